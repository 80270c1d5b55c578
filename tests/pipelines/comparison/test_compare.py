"""Comparing finds each row that differs, on either side, however the rows are cut into batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.comparison import compare as comparing
from pipelines.comparison import table_rows
from pipelines.comparison.compare import ComparedOffsets, Comparison, compare
from pipelines.comparison.table_rows import LiveRows
from pipelines.layout.rows import FILE_SCHEMA, PARTITION_COLUMN
from pipelines.ledger.committed_range import CommittedRange

Record = dict[str, Any]
LOADED_US = 7
WHOLE = OffsetRange(BrokerPartition(None, 0), 0, 1000)


def record(offset: int, value: bytes | None = b"v", *, inner: int | None = None, **columns: Any) -> Record:
    """A row of a table, or of a broker."""
    row = {"partition": 0, "offset": offset, "inner": inner, "value": value, "loaded_at": LOADED_US, **columns}
    return {field.name: row.get(field.name) for field in FILE_SCHEMA}


def batches(records: list[Record], size: int = 1000) -> Iterator[pa.RecordBatch]:
    for offset in range(0, len(records), size):
        yield pa.RecordBatch.from_pylist(records[offset : offset + size], schema=FILE_SCHEMA)


def rows(folder: Path, records: list[Record], *edges: tuple[int, int], broker: int | None = None) -> LiveRows:
    """A table of `records`, of which the ranges with these edges count; they were loaded at LOADED_US."""
    table = pa.Table.from_batches(batches(records), schema=FILE_SCHEMA)
    table = table.append_column(PARTITION_COLUMN, pa.repeat(pa.scalar(0, pa.date32()), len(table)))
    write_deltalake(str(folder), table, partition_by=[PARTITION_COLUMN], mode="overwrite")
    partition = BrokerPartition(broker, 0)
    live = [
        CommittedRange(offsets=OffsetRange(partition, start, stop), rows=len(records), loaded_at_us=LOADED_US)
        for start, stop in edges or [(0, 1000)]
    ]
    return LiveRows(DeltaTable(str(folder)).to_pyarrow_dataset(), live, uri=str(folder))


def compared(folder: Path, ours: list[Record], theirs: list[Record], size: int = 1000) -> Comparison:
    result = compare(batches(theirs, size), rows(folder, ours), WHOLE)
    return sum((comparison for _, comparison in result), Comparison())


@pytest.mark.parametrize(
    "change",
    [
        {"value": b"w"},
        {"value": None},
        {"value": b""},
        {"key": b"k"},
        {"timestamp": 1},
        {"timestampRaw": 1},
        {"timestampType": 1},
        {"headers": [{"key": "a", "value": b"b"}]},
        {"headers": [{"key": "a", "value": None}]},
    ],
    ids=str,
)
def test_a_difference_in_any_column_is_found(tmp_path: Path, change: Record) -> None:
    broker_rows = [record(offset) for offset in range(50)]
    ours = [{**row, **change} if row["offset"] in {7, 31} else row for row in broker_rows]
    result = compared(tmp_path, ours, broker_rows)
    assert (result.equal, result.differing.count, result.differing.first) == (48, 2, (7, 31))
    assert not result.only_in_table.count
    assert not result.only_on_broker.count


# fault U14
def test_rows_without_headers_are_equal_whether_an_older_version_wrote_them_or_this_one(tmp_path: Path) -> None:
    broker_rows = [record(offset) for offset in range(5)]
    assert compared(tmp_path, [{**row, "headers": []} for row in broker_rows], broker_rows).same


def test_a_row_that_the_table_has_twice_is_a_copy(tmp_path: Path) -> None:
    broker_rows = [record(offset) for offset in range(5)]
    result = compared(tmp_path, [*broker_rows, record(3), record(3, b"w")], broker_rows)
    assert (result.equal, result.copies.count, result.copies.first, result.same) == (5, 2, (3,), False)
    assert not result.only_in_table.count


def test_rows_of_another_loading_time_do_not_count(tmp_path: Path) -> None:
    broker_rows = [record(offset) for offset in range(5)]
    assert compared(tmp_path, [*broker_rows, record(3, loaded_at=6)], broker_rows).same


def test_all_rows_are_counted_and_the_first_offsets_are_listed(tmp_path: Path) -> None:
    result = compared(tmp_path, [record(offset) for offset in range(20, 40)], [record(1)])
    assert str(result.only_in_table) == "20 rows, at offsets 20, 21, 22, 23, 24, ..."
    assert str(result.only_on_broker) == "1 row, at offsets 1"
    assert str(ComparedOffsets.of(np.arange(5))) == "5 rows, at offsets 0, 1, 2, 3, 4"


@pytest.mark.parametrize(
    ("limits", "stops"),
    [
        ({"_PIECE_ROWS": 3}, [2, 5, 8, 1000]),
        ({"_PIECE_ROWS": 4}, [5, 8, 1000]),
        ({"_PIECE_BYTES": next(batches([record(0), record(1), record(2)])).nbytes}, [2, 5, 8, 1000]),
        ({}, [1000]),
    ],
)
def test_a_piece_ends_when_it_has_enough_rows_or_bytes(
    limits: dict[str, int], stops: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(comparing, name, limit)
    records = [record(offset) for offset in range(10)]
    assert [stop for stop, _ in compare(batches(records, 3), rows(tmp_path, records), WHOLE)] == stops


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=st.data(), size=st.integers(1, 30), piece_rows=st.integers(1, 20))
def test_each_row_is_counted_once_for_any_size_of_batches(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: int, piece_rows: int
) -> None:
    counts = data.draw(st.lists(st.integers(1, 4), max_size=15))
    broker_rows = [record(10 * offset, inner=inner) for offset, count in enumerate(counts) for inner in range(count)]
    fates = data.draw(st.lists(st.sampled_from("=!-"), min_size=len(broker_rows), max_size=len(broker_rows)))
    ours = [
        row if fate == "=" else {**row, "value": b"!"}
        for row, fate in zip(broker_rows, fates, strict=True)
        if fate != "-"
    ]
    extra = [record(10 * offset + 5, inner=0) for offset in data.draw(st.sets(st.integers(0, 20)))]
    mixed = data.draw(st.permutations([*ours, *extra]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "_PIECE_ROWS", piece_rows)
        result = compared(tmp_path_factory.mktemp("table"), list(mixed), broker_rows, size)
    assert (result.equal, result.differing.count) == (fates.count("="), fates.count("!"))
    assert (result.only_on_broker.count, result.only_in_table.count) == (fates.count("-"), len(extra))


def test_the_starts_of_messages_are_looked_up_in_the_rows(tmp_path: Path) -> None:
    known = rows(tmp_path, [record(offset, inner=0) for offset in (10, 40, 70)])
    assert [known.start_before(offset) for offset in (5, 10, 39, 40, 999)] == [0, 10, 10, 40, 70]
    assert [known.start_after(offset) for offset in (0, 10, 11, 70, 71)] == [10, 10, 40, 70, 1000]


def test_messages_and_ranges_are_looked_up_in_any_order_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "_BATCH_ROWS", 1)
    known = rows(tmp_path, [record(offset, inner=0) for offset in (10, 40, 70, 110)], (0, 100), (100, 200))
    assert [known.start_before(offset) for offset in (50, 99, 100, 105)] == [40, 70, 100, 100]
    assert [known.start_after(offset) for offset in (30, 75, 100, 101)] == [40, 100, 100, 110]


def test_the_rows_of_each_range_are_counted(tmp_path: Path) -> None:
    known = rows(tmp_path, [record(offset) for offset in (0, 99, 100, 150, 199)], (0, 100), (100, 200))
    assert [count for _, count in known.counts(0, 200)] == [2, 3]
    assert [count for _, count in known.counts(100, 101)] == [3]


def test_rows_between_the_ranges_are_not_live(tmp_path: Path) -> None:
    known = rows(tmp_path, [record(offset) for offset in (99, 100, 149, 150)], (0, 100), (150, 200))
    assert [offset for batch in known.between(0, 200) for offset in batch.column("offset").to_pylist()] == [99, 150]


def test_rows_of_another_broker_are_not_live(tmp_path: Path) -> None:
    known = rows(tmp_path, [record(1, broker=1), record(2, broker=2)], (0, 10), broker=2)
    assert [offset for batch in known.between(0, 10) for offset in batch.column("offset").to_pylist()] == [2]


def test_a_partition_without_ranges_has_no_rows(tmp_path: Path) -> None:
    rows(tmp_path, [record(1)])
    known = LiveRows(DeltaTable(str(tmp_path)).to_pyarrow_dataset(), [], uri=str(tmp_path))
    assert list(known.between(0, 10)) == []


def test_a_row_without_a_time_matches_every_time(tmp_path: Path) -> None:
    timed = [record(offset, timestamp=offset * 1000) for offset in range(10)]
    assert rows(tmp_path, timed).first_since(5, below=100) == 5
    assert rows(tmp_path, timed).first_since(50, below=100) is None
    assert rows(tmp_path, [*timed, record(3)]).first_since(5, below=100) == 3


def test_the_first_row_of_a_time_may_be_in_any_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "_BATCH_ROWS", 2)
    timed = [record(offset, timestamp=offset * 1000) for offset in range(10)]
    assert rows(tmp_path, timed).first_since(3, below=100) == 3
