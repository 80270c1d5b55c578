"""Rows are counted for their ranges, and duplicate rows are found, with the result of a simple count."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.verify import row_counts
from pipelines.verify.exact_file import ExactFile, ExactPlace
from pipelines.verify.range_file import EARLIEST, RangeColumns, Window
from pipelines.verify.row_counts import RangeCounts, count_rows, partition_code

Row = tuple[int | None, int | None, int | None, int | None, int | None]
"""Broker, partition, offset, inner, loading time."""
Range = tuple[int | None, int, int, int, int]
"""Broker, partition, start, stop, loading time."""

_SCHEMA = pa.schema([FILE_SCHEMA.field(name) for name in row_counts.IDENTIFYING])
_RANGES: list[Range] = [
    (None, 0, 0, 5, 100),
    (None, 0, 5, 10, 100),
    (None, 0, 12, 15, 200),
    (None, 1, 0, 10, 100),
    (2, 0, 0, 10, 100),
    (2, 1, 3, 6, 300),
]


def counted(
    ranges: list[Range],
    batches: list[list[Row]],
    *,
    files: int = 1,
    max_sorted: int = 1_000,
    max_bits: int = 1_000,
    exact: Sequence[ExactOffsets] = (),
) -> RangeCounts:
    columns = [np.array(column, np.int64) for column in zip(*(row[2:] for row in ranges), strict=True)] or [
        np.zeros(0, np.int64)
    ] * 3
    codes = np.array([partition_code(broker, partition) for broker, partition, *_ in ranges], np.int64)
    starts, stops, loaded_us = columns
    slots, rows, of_files = np.arange(len(ranges)), np.zeros(len(ranges), np.int64), np.full(len(ranges), files)
    exact_file = ExactFile()
    places = [exact_file.add(offsets) for offsets in exact] or [ExactPlace()] * len(ranges)
    first, count = (np.array([place[number] for place in places], np.int64) for number in (0, 1))
    arrays = RangeColumns(loaded_us, slots, starts, stops, rows, of_files, first, count)

    def read(window: Window) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                row
                for row in batch
                if window.start == EARLIEST or (row[4] is not None and window.start <= row[4] < window.stop)
            ]
            values = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
            arrays = [pa.array(column, field.type) for column, field in zip(values, _SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)

    with exact_file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_counts, "_MAX_SORTED_ROWS", max_sorted)
        patch.setattr(row_counts, "_MAX_BITS_BYTES", max_bits)
        return count_rows(arrays, codes, Window(), read, exact_file)


def expected(ranges: list[Range], batches: list[list[Row]]) -> tuple[list[int], list[int], int, int]:
    all_rows = [row for batch in batches for row in batch]
    # Without a broker the offset alone identifies a row.
    copies = Counter(row if row[0] is not None else (*row[:3], None, row[4]) for row in all_rows)
    members = [
        {
            row: count
            for row, count in copies.items()
            if (row[0], row[1], row[4]) == (broker, partition, loaded) and row[2] is not None and start <= row[2] < stop
        }
        for broker, partition, start, stop, loaded in ranges
    ]
    inside = sum(sum(rows.values()) for rows in members)
    return (
        [len(rows) for rows in members],
        [sum(rows.values()) - len(rows) for rows in members],
        copies.total() - inside,
        sum(row[0] is None and row[3] == 1 for row in all_rows),
    )


_ROWS = st.tuples(
    st.sampled_from([None, 2]),
    st.sampled_from([None, 0, 1]),
    st.none() | st.integers(0, 16),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 100, 200, 300, 400]),
)


@given(
    batches=st.lists(st.lists(_ROWS, max_size=30), max_size=4),
    files=st.sampled_from([1, 2]),
    max_sorted=st.sampled_from([1, 3, 1_000]),
    max_bits=st.sampled_from([1, 2, 1_000]),
)
def test_rows_are_counted_as_a_plain_count_does(
    batches: list[list[Row]], files: int, max_sorted: int, max_bits: int
) -> None:
    result = counted(_RANGES, batches, files=files, max_sorted=max_sorted, max_bits=max_bits)
    assert (result.rows.tolist(), result.copies.tolist(), result.outside, result.misplaced) == expected(
        _RANGES, batches
    )


_SETS = st.sets(st.tuples(st.integers(0, 16), st.sampled_from([0, 1])), max_size=8)


@given(batches=st.lists(st.lists(_ROWS, max_size=30), max_size=4), sets=st.lists(_SETS, min_size=6, max_size=6))
def test_rows_of_exact_sets_are_counted_as_a_plain_count_does(
    batches: list[list[Row]], sets: list[set[tuple[int, int]]]
) -> None:
    exact = []
    for (broker, *_), rows in zip(_RANGES, sets, strict=True):
        offsets, inner = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
        exact.append(ExactOffsets.of(offsets, None if broker is None else inner))
    expected_rows = [
        sum(
            (row[0], row[1], row[4]) == (broker, partition, loaded)
            and row[2] is not None
            and start <= row[2] < stop
            and (any(row[2] == offset for offset, _ in rows) if broker is None else (row[2], row[3]) in rows)
            for batch in batches
            for row in batch
        )
        for (broker, partition, start, stop, loaded), rows in zip(_RANGES, sets, strict=True)
    ]
    assert counted(_RANGES, batches, exact=exact).in_set.tolist() == expected_rows


def test_without_ranges_every_row_is_outside() -> None:
    result = counted([], [[(None, 0, 1, 0, 100)]])
    assert (result.rows.tolist(), result.outside) == ([], 1)


def test_rows_in_order_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A range may continue in the next batch, and messages of 0.7 may share their offset."""
    monkeypatch.setattr(row_counts, "_add_copies", None)
    batches: list[list[Row]] = [[(2, 0, 3, 0, 100), (2, 0, 3, 1, 100)], [(2, 0, 3, 2, 100), (2, 0, 7, 0, 100)]]
    assert counted(_RANGES, batches).rows.tolist() == [0, 0, 0, 0, 4, 0]


@pytest.mark.parametrize(("max_bits", "is_once"), [(4, True), (3, False)])
def test_ranges_with_several_files_are_read_once_if_their_bits_fit_into_memory(
    max_bits: int, is_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them need two bytes each, the third far too many. Offset 908 of partition 0 is there twice."""
    ranges = [_RANGES[3], (None, 2, 0, 2**60, 100), (None, 0, 903, 912, 100)]
    days: list[list[Row]] = [
        [(None, 0, 903, None, 100), (None, 0, 908, None, 100), (None, 1, 2, None, 100)],
        [(None, 0, 904, None, 100), (None, 0, 908, None, 100), (None, 0, 911, None, 100), (None, 1, 0, None, 100)],
    ]
    sorted_again, add_copies = list[int](), row_counts._add_copies

    def noticed(*args: Any) -> None:
        sorted_again.extend(args[2].tolist())
        add_copies(*args)

    monkeypatch.setattr(row_counts, "_add_copies", noticed)
    result = counted(ranges, days, files=2, max_bits=max_bits)
    assert (result.rows.tolist(), result.copies.tolist()) == ([2, 0, 4], [0, 0, 1])
    assert sorted_again == ([] if is_once else [2])


def test_messages_of_several_files_that_share_their_offset_are_no_duplicates() -> None:
    days: list[list[Row]] = [[(2, 0, 7, 0, 100)], [(2, 0, 3, 0, 100), (2, 0, 3, 1, 100), (2, 0, 3, 1, 100)]]
    result = counted(_RANGES, days, files=2)
    assert (result.rows.tolist(), result.copies.tolist()) == ([0, 0, 0, 0, 3, 0], [0, 0, 0, 0, 1, 0])
