"""A command that takes rows out of a table is killed with SIGKILL at a failpoint, and the next run completes it.

The table is as before the command or as after it, and housekeeping deletes what the killed run has left.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.harness import Trial
from tests.crash.removals import (
    KEPT,
    REMOVALS,
    SKIP,
    SKIP_STEPS,
    changed,
    check_cleaned,
    check_proven,
    complete,
    numbers_in_files,
    play_removal,
    rows_of,
)
from tests.crash.stage import Stage
from tests.crash.stories import REPLAY
from tests.crash.worlds import MESSAGES
from tests.thorough import spread

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
Opener = Callable[[str], Trial]


@pytest.fixture(scope="module")
def lakes() -> dict[str, Path]:
    """The lakes before the commands of REMOVALS, by the name of the command."""
    return {}


@pytest.fixture
def before(lakes: dict[str, Path], stage: Stage, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Opener:
    """Opens a copy of the lake before a command."""

    def copied(name: str) -> Trial:
        if name not in lakes:
            lakes[name] = tmp_path_factory.mktemp(name)
            made = stage.trial(REMOVALS[name].world, lakes[name])
            for act in REMOVALS[name].earlier:
                ended = made.start(act).wait()
                assert ended.code == 0, ended.output
        shutil.copytree(lakes[name] / "lake", tmp_path / "lake")
        return stage.trial(REMOVALS[name].world, tmp_path)

    return copied


@pytest.mark.parametrize(
    ("name", "step"), [case for name in REMOVALS for case in spread(2, [(name, step) for step in REMOVALS[name].steps])]
)
def test_a_command_that_is_killed_changes_all_of_its_rows_or_none(
    name: str, step: str, before: Opener
) -> None:  # faults L01, L02, L05, P18
    removal, trial = REMOVALS[name], before(name)
    expected = changed(rows_of(trial), removal.change)
    assert len(expected) >= 400
    killed = play_removal(trial, removal, step)
    assert killed.code == -9, killed.output
    if name == "finish":
        assert numbers_in_files(trial) == {number for number, *_ in KEPT}
    check_cleaned(trial, expected)


@pytest.mark.parametrize("name", REMOVALS)
def test_a_replay_after_a_killed_command_brings_nothing_back(name: str, before: Opener) -> None:  # fault P18
    removal, trial = REMOVALS[name], before(name)
    expected = changed(rows_of(trial), removal.change)
    killed = trial.start(removal.act, kill_at=removal.steps[-1]).wait()
    assert (killed.code, rows_of(trial)) == (-9, expected), killed.output
    complete(trial, replace(removal.act, arguments=REPLAY), expected)


@pytest.mark.parametrize(("name", "step"), [("erase", "before erase entry"), ("rewrite", "table rewritten")])
def test_a_killed_command_also_changes_what_was_loaded_after_it(
    name: str, step: str, stage: Stage, tmp_path: Path
) -> None:  # fault P18
    removal, trial = REMOVALS[name], stage.trial("modern", tmp_path)
    [load] = removal.earlier
    assert trial.start(replace(load, settings={**load.settings, "variant": "truncated"})).wait().code == 0
    some = rows_of(trial)
    killed = trial.start(removal.act, kill_at=step).wait()
    assert (killed.code, rows_of(trial)) == (-9, some), killed.output
    assert trial.start(load).wait().code == 0
    assert len(some) < len(rows_of(trial)) == len(MESSAGES)
    expected = changed(rows_of(trial), removal.change)
    complete(trial, removal.act, expected)
    check_cleaned(trial, expected)


@pytest.mark.parametrize("step", spread(2, SKIP_STEPS))
def test_a_load_that_is_killed_beside_a_set_of_skipped_records_is_completed_by_the_next_one(
    step: str, stage: Stage, tmp_path: Path
) -> None:  # faults L01, L02, P19
    trial = stage.trial("modern", tmp_path)
    killed = trial.start(SKIP, kill_at=step).wait()
    assert killed.code == -9, killed.output
    assert set(rows_of(trial)) < set(KEPT)
    check_proven(trial)
    complete(trial, SKIP, KEPT)
    complete(trial, SKIP, KEPT)
    check_cleaned(trial, KEPT)
