"""A load that cannot write a complete file reports a clear error; the next load with disk space continues."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from resources.explanations.codes import code_of_kind, exit_code_of
from resources.explanations.explanation import ExitCode
from tests.crash.child import DriverOptions
from tests.crash.harness import Act, Trial
from tests.crash.stage import Stage

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
MANY = {"slice_records": 120}
"""Settings for many slices, so that the log entry is larger than each data file."""
FEW = {"slice_records": 1000}
"""Settings for few slices, so that each data file is larger than the log entry."""
AT_ONCE = DriverOptions(slices_per_commit=100)


def _first(name: str, output: str) -> str | None:
    """The first value of this name in the output, as JSON."""
    match = re.search(rf'"{name}": (".*")', output)
    return match and match[1]


def data_sizes(trial: Trial) -> list[int]:
    return sorted(Path(file).stat().st_size for file in trial.files())


def entry_size(trial: Trial, version: int) -> int:
    return (trial.home / "lake" / "main" / "clicks" / "_delta_log" / f"{version:020d}.json").stat().st_size


@pytest.mark.parametrize(
    ("slices", "largest_file", "error", "loads_some"),
    [
        # The end is missing of: the first log entry, the second one, the largest data file, every data file. The size
        # of a data file changes by some bytes with the times of the load.
        (MANY, lambda trial: entry_size(trial, 0) - 1, "LakeUnavailable: the table ", False),
        (MANY, lambda trial: entry_size(trial, 1) - 1, "LakeUnavailable: the commit did not land: ", False),
        (FEW, lambda trial: sum(data_sizes(trial)[-2:]) // 2, "file too large", True),
        (FEW, lambda trial: data_sizes(trial)[0] - 100, "file too large", False),
    ],
)
def test_a_load_without_disk_space_fails_and_the_next_one_loads_the_rest(
    slices: dict[str, int],
    largest_file: Callable[[Trial], int],
    error: str,
    loads_some: bool,
    stage: Stage,
    tmp_path: Path,
) -> None:  # faults L09, S07
    complete = stage.trial(
        "modern", tmp_path / "room"
    )  # its path must be as long as the other lake's, as the log contains paths
    complete.finish(Act(settings=slices, options=AT_ONCE))
    trial = stage.trial("modern", tmp_path / "lake")
    ended = trial.run(Act(settings=slices, options=replace(AT_ONCE, file_bytes=largest_file(complete))))
    # The output is a file too, which the limit may cut. Then the command cannot print its result: another error.
    kind, message = (json.loads(str(_first(name, ended.output))) for name in ("kind", "message"))
    exit_code = exit_code_of([code_of_kind(kind)])
    assert f'"exit_code": {exit_code},' in ended.output
    assert ended.code in {exit_code, ExitCode.FAILED}
    assert exit_code != ExitCode.SUCCESS
    assert error in f"{kind}: {message}"
    assert message.isprintable()
    assert bool(trial.loaded_numbers()) == loads_some
    trial.finish(Act(settings=slices, options=AT_ONCE))
    trial.check_complete()
