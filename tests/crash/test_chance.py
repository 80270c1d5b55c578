"""Random stories leave a correct table. A story that does not is reported with the seed that starts it again."""

from pathlib import Path

import pytest

from tests.crash import chance
from tests.crash.__main__ import run
from tests.crash.harness import Trial
from tests.crash.stage import Stage
from tests.thorough import first

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
SEEDS = range(12)


@pytest.mark.parametrize("seed", first(2, SEEDS))
def test_the_table_is_correct_after_a_random_story(
    seed: int, stage: Stage, tmp_path: Path
) -> None:  # faults L05, L06, S04, S05
    outcomes = chance.attempt(stage, seed, tmp_path)
    assert outcomes.total() > 0
    assert list(tmp_path.iterdir()) == []


def test_the_lake_of_a_failed_story_is_kept_and_named(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def duplicated(trial: Trial) -> None:
        raise AssertionError(f"rows are there twice in {trial.home.name}")

    monkeypatch.setattr(Trial, "check_complete", duplicated)
    with pytest.raises(chance.Failed, match="make crash RUNS=1 SEED=7: AssertionError: rows are there twice"):
        chance.attempt(stage, 7, tmp_path)
    assert (tmp_path / "seed-7" / "lake").is_dir()


def test_a_run_reports_how_drivers_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = run(1, 3, tmp_path)
    assert outcomes.total() > 0
    assert "1 stories from seed 3, drivers: " in capsys.readouterr().out
