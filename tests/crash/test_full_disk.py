"""A file that cannot be written completely is a clear error and no version; the next load with room continues."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.child import Terms
from tests.crash.harness import Act, Trial
from tests.crash.stage import Stage

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
MANY = {"slice_records": 120}
"""Many slices, so that the log's entry is larger than any data file."""
FEW = {"slice_records": 1000}
"""The other way round."""
AT_ONCE = Terms(slices_per_commit=100)


def data(trial: Trial) -> list[int]:
    return sorted(Path(file).stat().st_size for file in trial.files())


def log(trial: Trial, version: int) -> int:
    return (trial.home / "lake" / "main" / "clicks" / "_delta_log" / f"{version:020d}.json").stat().st_size


@pytest.mark.parametrize(
    ("slices", "most", "error", "some"),
    [
        # All bytes but the last of the log's first entry, of its second, of the largest data file, and of each.
        (MANY, lambda trial: log(trial, 0) - 1, "LakeUnavailable: the table ", False),
        (MANY, lambda trial: log(trial, 1) - 1, "LakeUnavailable: the commit did not land: ", False),
        (FEW, lambda trial: data(trial)[-1] - 1, "File too large", True),
        (FEW, lambda trial: data(trial)[0] - 1, "File too large", False),
    ],
)
def test_a_load_without_disk_space_fails_and_the_next_one_loads_the_rest(
    slices: dict[str, int], most: Callable[[Trial], int], error: str, some: bool, stage: Stage, tmp_path: Path
) -> None:  # faults L09, S07
    complete = stage.trial("modern", tmp_path / "room")  # paths as long as the other's: the log has them
    complete.finish(Act(settings=slices, terms=AT_ONCE))
    trial = stage.trial("modern", tmp_path / "lake")
    ended = trial.run(Act(settings=slices, terms=replace(AT_ONCE, file_bytes=most(complete))))
    assert ended.code == 1
    [load] = json.loads(ended.output)
    assert error in load["error"]
    assert load["error"].isprintable()
    assert bool(trial.held()) == some
    trial.finish(Act(settings=slices, terms=AT_ONCE))
    trial.check_whole()
