"""Housekeeping of state tables deletes files that no version needs, and harms neither updates nor readers."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipelines.delta import compaction
from pipelines.delta.open_version import DeltaVersion
from pipelines.maintenance.clean import CleanResult
from pipelines.maintenance.clean_state import clean_state
from pipelines.state_tables import merge as state_merge
from pipelines.state_tables import update as state_update
from pipelines.state_tables.proof import prove_state
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from pipelines.table.open_table import file_paths
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory

pytestmark = pytest.mark.slow  # each test fills a table and changes it

MIB = 1024 * 1024
DAY, NONE = timedelta(days=1), timedelta(0)


@pytest.fixture
def history(tmp_path: Path) -> KeyedHistory:
    """A topic with a state table of two files; a third one was removed from it."""
    history = KeyedHistory(tmp_path / "lake", Random(1))
    for keys in ("ab", "cd", "a"):
        history.load(*((key, f"of {keys}") for key in keys))
        update(history)
    return history


def update(history: KeyedHistory) -> None:
    update_state(history.table, BY_KEY, sleep=lambda _: None)


def cleaned(history: KeyedHistory, *, keep: timedelta = NONE, dry_run: bool = False) -> CleanResult:
    return clean_state(history.table, keep=keep, target_bytes=MIB, dry_run=dry_run)


def folder(history: KeyedHistory) -> Path:
    return Path(state_output(history.table).uri)


def files(history: KeyedHistory) -> set[str]:
    return {file.name for file in folder(history).glob("*.parquet")}


def check(history: KeyedHistory) -> None:
    """Check that the state table is right and proven."""
    assert history.state() == history.expected()
    assert prove_state(history.table, BY_KEY).proven


def test_files_of_killed_updates_are_deleted_when_they_are_old(history: KeyedHistory) -> None:
    for name in ("old", "young"):
        (folder(history) / f"state-{name}.parquet").write_bytes(b"rows")
    then = time.time() - 2 * 86400
    os.utime(folder(history) / "state-old.parquet", (then, then))
    dry = cleaned(history, keep=DAY, dry_run=True)
    assert (dry.collected, dry.young, dry.merged) == (("state-old.parquet",), 1, 0)
    assert "state-old.parquet" in files(history)
    assert cleaned(history, keep=DAY).collected == dry.collected
    assert files(history) & {"state-old.parquet", "state-young.parquet"} == {"state-young.parquet"}
    check(history)


def test_removed_files_are_deleted_and_small_ones_merged(history: KeyedHistory) -> None:
    first = cleaned(history, keep=DAY)
    assert (first.collected, first.merged, first.larger) == ((), 2, 1)
    assert len(cleaned(history).collected) == 3
    assert files(history) == file_paths(DeltaVersion.of_handle(DeltaTable(folder(history))))
    check(history)
    history.load(("a", "4"))
    update(history)
    check(history)


def test_the_log_and_the_progress_stay(history: KeyedHistory) -> None:
    log = folder(history) / "_delta_log"
    before = {file.name for file in log.glob("*.json")}
    cleaned(history)
    assert before < {file.name for file in log.iterdir()}
    assert any(file.name.endswith(".checkpoint.parquet") for file in log.iterdir())
    assert update_state(history.table, BY_KEY).since == history.handle().version()


@contextmanager
def happening(module: object, step: str, event: Callable[[], object]) -> Iterator[None]:
    """Let something happen while work is suspended at a failpoint."""
    pending = [event]

    def failpoint(name: str) -> None:
        if name == step and pending:
            pending.pop()()

    with patch.object(module, "failpoint", failpoint):
        yield
    assert not pending


# fault N60
@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "step"),
    [
        (state_update, "increment known"),
        (state_update, "state rows decided"),
        (state_merge, "state files written"),
    ],
)
def test_an_update_is_repeated_if_another_update_was_first_and_the_files_of_both_were_cleaned(
    module: object, step: str, history: KeyedHistory
) -> None:
    history.load(("a", "4"), ("c", "4"))

    def overtake_and_clean() -> None:
        update(history)
        cleaned(history)

    with happening(module, step, overtake_and_clean):
        update(history)
    check(history)


# fault N60
def test_no_version_names_a_file_that_was_deleted_before_its_commit(history: KeyedHistory) -> None:
    history.load(("a", "4"))

    def delete_unnamed_files() -> None:  # a clean also commits, and the update would be refused for that
        for name in files(history) - file_paths(DeltaVersion.of_handle(DeltaTable(folder(history)))):
            (folder(history) / name).unlink()

    with happening(state_merge, "state files written", delete_unnamed_files):
        update(history)
    check(history)


# fault N60
def test_an_update_and_a_compaction_that_meet_do_not_both_land(history: KeyedHistory) -> None:
    history.load(("a", "4"), ("c", "4"))
    with happening(compaction, "compaction announced", lambda: update(history)):
        assert cleaned(history).busy
    check(history)


def test_a_topic_without_a_state_table_has_nothing_to_clean(tmp_path: Path) -> None:
    result = cleaned(KeyedHistory(tmp_path / "lake", Random(1)))
    assert (result.collected, result.empty, result.foreign) == ((), False, "")


def test_a_table_that_no_update_has_filled_is_left_as_it_is(tmp_path: Path) -> None:
    history = KeyedHistory(tmp_path / "lake", Random(1))
    for number in range(2):
        write_deltalake(str(folder(history)), pa.table({"number": [number]}), mode="overwrite")
    before = files(history)
    assert "no state table of this topic" in cleaned(history).foreign
    assert (files(history), DeltaTable(folder(history)).version()) == (before, 1)


def test_a_state_table_whose_first_update_was_killed_is_empty(history: KeyedHistory, tmp_path: Path) -> None:
    other = KeyedHistory(tmp_path / "other", Random(1))
    output = state_output(other.table)
    output.lake.create(output.uri, DeltaTable(folder(history)).schema(), partition_by=[], configuration={})
    assert cleaned(other).empty
