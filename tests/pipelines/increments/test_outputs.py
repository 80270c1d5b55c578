"""Outputs keep progress and rows together, refuse what they cannot keep, and say what failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from pipelines.increments import delta_output
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.output import IncrementOutput, OutputChange, OutputWriter
from pipelines.increments.source import NOTHING, ConsumerProgress
from pipelines.increments.source_columns import SOURCE_COLUMNS
from resources.errors import (
    CommitUnknown,
    IncrementOvertaken,
    LakeRefused,
    LakeUnavailable,
    OutputBusy,
    OutputRefused,
)
from tests.pipelines.increments.stored_outputs import KINDS, TABLE, StoredOutput
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

FIRST, SECOND = ConsumerProgress(version=1, fingerprint=11), ConsumerProgress(version=2, fingerprint=22)


def rows(*offsets: int, **columns: Any) -> pa.Table:
    """Rows of the source `s` with these offsets."""
    size = len(offsets)
    values: dict[str, Any] = {
        "_source": ["s"] * size,
        "_source_broker": [None] * size,
        "_source_partition": [0] * size,
        "_source_offset": list(offsets),
        "_source_loaded_at_us": [1] * size,
    }
    own = pa.table({name: [value] * size for name, value in columns.items()})
    table = pa.table(values, SOURCE_COLUMNS)
    for name in own.column_names:
        table = table.append_column(name, own.column(name))
    return table


def change(data: Any, progress: ConsumerProgress = FIRST, *, removed: str = "") -> OutputChange:
    return OutputChange(rows=data, removed=removed, scope=removed, progress=progress, summary={})


@pytest.fixture
def output(stored: StoredOutput) -> IncrementOutput:
    return stored.output()


def own_columns(stored: StoredOutput) -> list[dict[str, Any]]:
    """The rows of the output in order of offset, without the other columns of SOURCE_COLUMNS."""
    table = stored.table()
    assert table is not None
    table = table.drop_columns([name for name in SOURCE_COLUMNS.names if name != "_source_offset"])
    return list(table.sort_by("_source_offset").to_pylist())


def begin(output: IncrementOutput, consumer: str = "c", source: str = "s") -> OutputWriter:
    return output.begin(consumer, source)


def test_the_progress_is_that_of_the_newest_change(output: IncrementOutput) -> None:
    assert begin(output).progress == NOTHING
    begin(output).commit(change(rows(1)))
    assert begin(output).progress == FIRST
    begin(output).commit(change(rows(2), SECOND))
    assert begin(output).progress == SECOND
    assert begin(output, "other").progress == begin(output, source="other").progress == NOTHING


def test_rows_are_added_and_removed_in_one_change(output: IncrementOutput, stored: StoredOutput) -> None:
    begin(output).commit(change(rows(1, 2, 3)))
    begin(output).commit(change(rows(2, 4), SECOND, removed="_source_offset IN (2, 3, 4)"))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1, 2, 4]


def test_readers_find_infinite_numbers_and_decimals_of_many_digits(delta: DeltaOutput) -> None:  # fault A24
    exact = Decimal("1234567890123456789012345.6789")
    for progress in (FIRST, SECOND):
        begin(delta).commit(change(rows(1, x=inf, y=exact), progress))
    opened = delta.open()
    assert opened is not None
    stored = opened.to_pyarrow_dataset()
    assert stored.count_rows(filter=pc.field("x") == inf) == 2
    assert stored.count_rows(filter=pc.field("y") == pa.scalar(exact)) == 2


def test_only_removing_rows_is_a_change(output: IncrementOutput, stored: StoredOutput) -> None:
    begin(output).commit(change(rows(1, 2, 3)))
    begin(output).commit(change(rows(), SECOND, removed="_source_offset > 1"))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1]
    begin(output).commit(change(rows(), FIRST, removed="_source_offset > 1"))
    assert begin(output).progress == FIRST


# faults N41, E19
@pytest.mark.parametrize("progress", [SECOND, ConsumerProgress(version=3, fingerprint=3)], ids=["same", "other"])
@pytest.mark.parametrize("removed", ["", "_source_offset IN (2, 3)"], ids=["append", "replace"])
def test_a_second_writer_on_the_same_progress_is_overtaken(
    progress: ConsumerProgress, removed: str, output: IncrementOutput, stored: StoredOutput
) -> None:
    begin(output).commit(change(rows(1)))
    early, late = begin(output), begin(output)
    early.commit(change(rows(2), SECOND))
    with pytest.raises(IncrementOvertaken):
        late.commit(change(rows(3), progress, removed=removed))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1, 2]
    assert begin(output).progress == SECOND


def test_two_writers_cannot_both_create_the_output(output: IncrementOutput, stored: StoredOutput) -> None:
    early, late = begin(output), begin(output)
    early.commit(change(rows(1)))
    with pytest.raises(IncrementOvertaken):
        late.commit(change(rows(1), SECOND))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1]


def test_consumers_of_one_output_do_not_conflict(output: IncrementOutput, stored: StoredOutput) -> None:
    begin(output).commit(change(rows(1)))
    first, second = begin(output, "first"), begin(output, "second")
    first.commit(change(rows(2)))
    second.commit(change(rows(3)))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1, 2, 3]


def test_new_columns_are_added(output: IncrementOutput, stored: StoredOutput) -> None:
    begin(output).commit(change(rows(1)))
    begin(output).commit(change(rows(2, length=7), SECOND))
    begin(output).commit(change(rows(3, name="x"), FIRST, removed="_source_offset = 3"))
    assert own_columns(stored) == [
        {"_source_offset": 1, "length": None, "name": None},
        {"_source_offset": 2, "length": 7, "name": None},
        {"_source_offset": 3, "length": None, "name": "x"},
    ]


# fault N48
def test_a_column_of_another_type_is_refused(output: IncrementOutput, stored: StoredOutput) -> None:
    begin(output).commit(change(rows(1, length=7)))
    with pytest.raises(OutputRefused):
        begin(output).commit(change(rows(2, length="long"), SECOND))
    assert len(own_columns(stored)) == 1
    assert begin(output).progress == FIRST


def test_an_error_in_the_rows_leaves_the_output_as_it_is(output: IncrementOutput, stored: StoredOutput) -> None:
    begin(output).commit(change(rows(1)))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(2).to_batches()
        raise LookupError("no such customer")

    reader = pa.RecordBatchReader.from_batches(SOURCE_COLUMNS, batches())
    with pytest.raises(LookupError, match="no such customer"):
        begin(output).commit(change(reader, SECOND, removed="_source_offset = 1 OR _source_offset = 2"))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1]
    assert begin(output).progress == FIRST


@pytest.mark.parametrize("kind", KINDS[1:])
def test_tables_of_one_database_have_their_own_progress(output: Any, stored: StoredOutput) -> None:
    other = replace(output, table="other rows")
    begin(output).commit(change(rows(1)))
    assert begin(other).progress == NOTHING
    begin(other).commit(change(rows(1, 2), SECOND))
    assert (begin(output).progress, begin(other).progress) == (FIRST, SECOND)
    assert [row["_source_offset"] for row in own_columns(stored)] == [1]


@pytest.mark.parametrize("kind", KINDS[1:])
def test_all_consumers_build_a_table_again_that_was_dropped(output: Any, stored: StoredOutput) -> None:
    other = replace(output, table="other rows")
    for consumer, into in (("a", output), ("b", output), ("a", other)):
        begin(into, consumer).commit(change(rows(1)))
    with output.open() as connection:
        connection.execute(f'drop table "{TABLE}"')
    early, late = begin(output, "a"), begin(output, "a")
    early.commit(change(rows(1, 2), SECOND))
    with pytest.raises(IncrementOvertaken):
        late.commit(change(rows(1, 2), SECOND))
    assert [row["_source_offset"] for row in own_columns(stored)] == [1, 2]
    assert (begin(output, "a").progress, begin(output, "b").progress) == (SECOND, NOTHING)
    assert begin(other, "a").progress == FIRST


@contextmanager
def lost_answer(error: Exception, *, lands: bool) -> Iterator[None]:
    """A write of deltalake raises `error`, whether it lands or not."""

    def write(*arguments: Any, **options: Any) -> None:
        if lands:
            write_deltalake(*arguments, **options)
        raise error

    with patch.object(delta_output, "write_deltalake", write):
        yield


@pytest.fixture
def delta(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


# fault N42
@pytest.mark.parametrize("error", [OSError("no answer"), DeltaError("status 503"), CommitFailedError("conflict")])
def test_a_change_whose_answer_was_lost_is_found(error: Exception, delta: DeltaOutput) -> None:
    with lost_answer(error, lands=True):
        begin(delta).commit(change(rows(1)))
    assert begin(delta).progress == FIRST
    assert DeltaTable(delta.uri).to_pyarrow_table().num_rows == 1


# fault E19
@pytest.mark.parametrize("error", [OSError("no answer"), CommitFailedError("conflict")])
def test_a_change_that_did_not_land_is_not_the_same_increment_of_another_process(
    error: Exception, delta: DeltaOutput
) -> None:
    begin(delta).commit(change(rows(1)))
    late = begin(delta)
    begin(delta).commit(change(rows(2), SECOND))
    with lost_answer(error, lands=False), pytest.raises(IncrementOvertaken):
        late.commit(change(rows(3), SECOND))


# fault E19
def test_a_change_whose_answer_was_lost_is_found_below_the_next_one(delta: DeltaOutput) -> None:
    begin(delta).commit(change(rows(1)))

    def write(*arguments: Any, **options: Any) -> None:
        write_deltalake(*arguments, **options)
        with patch.object(delta_output, "write_deltalake", write_deltalake):
            begin(delta).commit(change(rows(3), ConsumerProgress(version=3, fingerprint=3)))
        raise OSError("no answer")

    with patch.object(delta_output, "write_deltalake", write):
        begin(delta).commit(change(rows(2), SECOND))
    assert DeltaTable(delta.uri).to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError("no answer"), LakeUnavailable),
        (DeltaError("status 403"), LakeRefused),
        (CommitFailedError("conflict"), IncrementOvertaken),
    ],
)
def test_a_change_that_did_not_land_says_so(error: Exception, kind: type[Exception], delta: DeltaOutput) -> None:
    begin(delta).commit(change(rows(1)))
    with lost_answer(error, lands=False), pytest.raises(kind):
        begin(delta).commit(change(rows(2), SECOND))
    assert begin(delta).progress == FIRST


def test_a_change_may_be_unknown(delta: DeltaOutput) -> None:
    begin(delta).commit(change(rows(1)))
    writer = begin(delta)
    unreadable = patch.object(DeltaOutput, "open", side_effect=LakeUnavailable("no answer"))
    with lost_answer(OSError("no answer"), lands=True), unreadable, pytest.raises(CommitUnknown, match="run again"):
        writer.commit(change(rows(2), SECOND))
    assert begin(delta).progress == SECOND


# fault N47
def test_a_restored_output_is_refused(delta: DeltaOutput) -> None:
    begin(delta).commit(change(rows(1)))
    begin(delta).commit(change(rows(2), SECOND))
    before = DeltaTable(delta.uri).version()
    DeltaTable(delta.uri).restore(before - 1)
    with pytest.raises(OutputRefused, match="restored an old version of its rows, but not the progress"):
        begin(delta)
    begin(delta, "another")


# fault N47
def test_an_output_whose_progress_expires_is_refused(delta: DeltaOutput) -> None:
    begin(delta).commit(change(rows(1)))
    properties = {"delta.setTransactionRetentionDuration": "interval 30 days"}
    DeltaTable(delta.uri).alter.set_table_properties(properties)
    with pytest.raises(OutputRefused, match="would expire"):
        begin(delta)


def test_the_table_of_a_topic_is_no_output(small: SmallTable) -> None:
    small.commit(small.write(0, 10))
    with pytest.raises(OutputRefused, match="belongs to a topic"):
        begin(DeltaOutput(uri=small.uri))


def test_progress_survives_when_delta_cleans_the_log_of_the_output(delta: DeltaOutput) -> None:
    begin(delta).commit(change(rows(1)))
    for number in range(3):
        write_deltalake(delta.uri, rows(100 + number), mode="append")
    DeltaTable(delta.uri).create_checkpoint()
    for entry in sorted((Path(delta.uri) / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    assert begin(delta).progress == FIRST
    begin(delta).commit(change(rows(2), SECOND))
    assert begin(delta).progress == SECOND


def test_an_output_has_the_partition_columns_of_its_first_increment(tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "out"), partition_by=["day"])
    begin(output).commit(change(rows(1, day="2026-01-02")))
    begin(output).commit(change(rows(1, day="2026-01-03"), SECOND, removed="_source_offset = 1"))
    assert DeltaTable(output.uri).metadata().partition_columns == ["day"]
    assert DeltaTable(output.uri).to_pyarrow_table().column("day").to_pylist() == ["2026-01-03"]


# fault N49
def test_a_file_that_another_process_has_open_is_busy(tmp_path: Path) -> None:
    output = DuckDBOutput(path=tmp_path / "out.duckdb", table="t", timeout_s=0.1)
    begin(output).commit(change(rows(1)))
    locked = duckdb.IOException("Could not set lock on file")
    with patch.object(duckdb, "connect", side_effect=locked), pytest.raises(OutputBusy, match="more than 0 s"):
        begin(output)
    with (
        patch.object(duckdb, "connect", side_effect=duckdb.IOException("disk on fire")),
        pytest.raises(LakeUnavailable),
    ):
        begin(output)


def test_a_file_that_is_free_again_is_opened(tmp_path: Path) -> None:
    output = DuckDBOutput(path=tmp_path / "out.duckdb", table="t")
    begin(output).commit(change(rows(1)))
    connect, calls = duckdb.connect, iter([duckdb.IOException("lock"), duckdb.IOException("lock"), None])

    def busy(path: Path, **options: Any) -> Any:
        error = next(calls)
        if error is not None:
            raise error
        return connect(path, **options)

    with patch.object(duckdb, "connect", busy):
        assert begin(output).progress == FIRST
