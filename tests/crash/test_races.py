"""Drivers that work on one table at the same time, and drivers that are resumed after others have committed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.ledger.ledger import LedgerEntry
from resources.explanations.explanation import ExitCode
from tests.crash.child import DriverOptions
from tests.crash.drivers import Driver
from tests.crash.harness import REGISTRY_DOWN, Act, Trial
from tests.crash.stage import WORLDS, Stage
from tests.crash.stories import BOTH_SCHEMAS, CLEAN, REGISTRY_DOWN_STORY, SCHEMA_STORIES
from tests.thorough import spread

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
AT_ONCE = Act(options=DriverOptions(slices_per_commit=100))
BEFORE_ENTRY = (
    "table opened",
    "planned",
    "batch fetched",
    "file opened",
    "fetched",
    "files checked",
    "before load entry",
)
AFTER_ENTRY = ("log entry written", "after load entry", "log entry found", "log entry synced")


def stopped_driver(trial: Trial, act: Act, step: str) -> Driver:
    driver = trial.start(act, kill_at=f"stop:{step}")
    assert driver.stopped()
    return driver


def newest(trial: Trial) -> LedgerEntry | None:
    return trial.table.snapshot().entry


@pytest.mark.parametrize("number", range(4))
def test_a_table_is_created_once(number: int, stage: Stage, tmp_path: Path) -> None:  # fault L05
    trial = stage.trial("modern", tmp_path / "lake")
    drivers = [stopped_driver(trial, AT_ONCE, "no table found") for _ in range(3)]
    for driver in drivers:
        driver.resume()
    ended = [driver.wait() for driver in drivers]
    assert [driver.code for driver in ended] == [0, 0, 0], ended
    trial.check()
    trial.check_complete()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("step", spread(3, BEFORE_ENTRY))
def test_a_driver_that_is_resumed_late_reports_that_everything_is_committed(
    step: str, world: str, stage: Stage, tmp_path: Path
) -> None:  # faults L05, L06, S03, S05
    trial = stage.trial(world, tmp_path / "lake")
    late = stopped_driver(trial, AT_ONCE, step)
    trial.finish(AT_ONCE)
    before, files = newest(trial), {file: Path(file).read_bytes() for file in trial.files()}
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.output
    assert "committed the same offsets first" in ended.output
    assert newest(trial) == before
    assert {file: Path(file).read_bytes() for file in files} == files
    trial.check()
    trial.check_complete()


@pytest.mark.parametrize("step", spread(3, BEFORE_ENTRY))
def test_a_driver_that_is_resumed_late_with_another_plan_loads_the_rest(
    step: str, stage: Stage, tmp_path: Path
) -> None:  # faults L06, S05, U05
    """The slices of the other driver end at other offsets, so the late driver fetches the rest again."""
    trial = stage.trial("modern", tmp_path / "lake")
    late = stopped_driver(trial, AT_ONCE, step)
    other_plan = Act(settings={"slice_records": 40, "capped": True}, options=DriverOptions(slices_per_commit=1))
    assert trial.run(other_plan).code == 0
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.output
    trial.check()
    trial.check_complete()


@pytest.mark.parametrize("value_format", ["text", "json"])
def test_a_driver_that_is_resumed_while_it_adds_columns_finds_those_of_another_run(
    value_format: str, stage: Stage, tmp_path: Path
) -> None:  # faults L06, S05, U05
    """The other run has decoded the same messages into the same column, or into others."""
    trial = stage.trial("modern", tmp_path / "lake")
    late = stopped_driver(trial, replace(AT_ONCE, settings={"value_format": "text"}), "columns changed")
    rival = Act(settings={"value_format": value_format, "slice_records": 40, "capped": True})
    assert trial.run(rival).code == 0
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.output
    added = [column["name"] for _, entry in trial.table.entries(trial.table.snapshot()) for column in entry.columns]
    assert sorted(added) == sorted({*added, "value"})
    assert ("number" in added) == (value_format == "json")
    trial.check()
    trial.check_complete()


def test_a_driver_whose_column_another_run_has_added_with_another_type_is_refused(stage: Stage, tmp_path: Path) -> None:
    """The other run commits one slice, with the numbers as JSON text. The next load uses the column of the table."""
    trial = stage.trial("modern", tmp_path / "lake")
    act = replace(AT_ONCE, settings={"value_format": "json"})
    late = stopped_driver(trial, act, "columns changed")
    declared = {"value_format": "json", "columns": '{ number = "json" }'}
    rival = Act(settings=declared, options=DriverOptions(slices_per_commit=1))
    assert trial.run(rival, kill_at="after load entry").code == -9
    before = newest(trial)
    late.resume()
    ended = late.wait()
    [failure] = json.loads(ended.output)["errors"]
    assert (ended.code, failure["kind"]) == (ExitCode.TRY_AGAIN, "CommitRefused"), ended.output
    assert "the table has a column number of type string, not int64" in failure["message"]
    assert newest(trial) == before
    trial.finish(act)
    trial.check_complete()


@pytest.mark.parametrize("plan", [{}, {"slice_records": 40, "capped": True}])
def test_two_drivers_that_both_bring_a_new_schema_add_its_columns_once(
    plan: Mapping[str, Any], stage: Stage, tmp_path: Path
) -> None:
    """Both have decoded records of the new schema before one of them commits."""
    trial = stage.trial_before("modern", SCHEMA_STORIES[0], 1, tmp_path)
    act = replace(BOTH_SCHEMAS, options=AT_ONCE.options)
    rival = replace(act, settings={**act.settings, **plan})
    drivers = [stopped_driver(trial, either, "columns changed") for either in (act, rival)]
    for driver in drivers:
        driver.resume()
    ended = [driver.wait() for driver in drivers]
    assert [driver.code for driver in ended] == [0, 0], ended
    trial.check()
    trial.check_complete()


def test_a_load_fails_while_the_registry_does_not_answer_and_the_next_one_loads_everything(
    stage: Stage, tmp_path: Path
) -> None:
    trial = stage.trial_before("modern", REGISTRY_DOWN_STORY, 1, tmp_path)
    [*_, act] = REGISTRY_DOWN_STORY.acts
    before = newest(trial)
    act.prepare(trial)
    ended = trial.run(act)
    [failure] = json.loads(ended.output)["errors"]
    assert (ended.code, failure["kind"], newest(trial)) == (ExitCode.TRY_AGAIN, REGISTRY_DOWN, before)
    assert trial.run(act).code == 0
    trial.check_complete()


@pytest.mark.parametrize("step", AFTER_ENTRY)
def test_a_driver_that_is_resumed_late_finds_its_own_commit(
    step: str, stage: Stage, tmp_path: Path
) -> None:  # fault S05
    trial = stage.trial("0.7", tmp_path / "lake")
    late = stopped_driver(trial, AT_ONCE, step)
    trial.finish(Act())
    before = newest(trial)
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.output
    assert newest(trial) == before
    trial.check()
    trial.check_complete()


def test_a_slice_without_memory_fails_and_other_slices_are_committed(
    stage: Stage, tmp_path: Path
) -> None:  # faults S07, S08
    trial = stage.trial("modern", tmp_path / "lake")
    ended = trial.run(AT_ONCE, kill_at="raise:batch fetched:2")
    assert ended.code == 1
    failure, *_ = json.loads(ended.output)["errors"]
    assert failure["kind"] == "MemoryError"
    rows = sum(map(len, trial.loaded_numbers().values()))
    assert 0 < rows < sum(map(len, trial.published.values()))
    trial.finish(AT_ONCE)
    trial.check_complete()


@pytest.mark.parametrize("step", ["before compaction", "compaction announced"])
def test_only_one_of_two_compactions_at_once_merges_files(step: str, stage: Stage, tmp_path: Path) -> None:  # fault L16
    """With deltalake alone both commits would land, and every row would be in the table twice."""
    trial = stage.trial("modern", tmp_path / "lake")
    trial.finish(Act())
    late = stopped_driver(trial, CLEAN, step)
    [result] = json.loads(trial.run(CLEAN).output)["results"]
    assert (result["busy"], result["merged"] > 1) == (False, True)
    late.resume()
    ended = late.wait()
    [result] = json.loads(ended.output)["results"]
    assert (ended.code, result["merged"]) == (0, 0)
    trial.check()
    trial.check_complete()


def test_two_housekeeping_runs_at_once_both_succeed(stage: Stage, tmp_path: Path) -> None:
    trial = stage.trial("modern", tmp_path / "lake")
    trial.finish(Act())
    CLEAN.prepare(trial)
    late = stopped_driver(trial, CLEAN, "file cleaned")
    assert trial.run(CLEAN).code == 0
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.errors
    trial.check()
    trial.check_complete()
