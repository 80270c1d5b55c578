"""Rows are counted for their ranges, and duplicate rows are found, with the result of a simple count."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.loading import row_counts
from pipelines.loading.range_file import RangeColumns, Window
from pipelines.loading.row_counts import RangeCounts, count_rows, partition_code
from pipelines.loading.rows import FILE_SCHEMA

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


def counted(ranges: list[Range], batches: list[list[Row]], *, max_sorted: int = 1_000) -> RangeCounts:
    columns = [np.array(column, np.int64) for column in zip(*(row[2:] for row in ranges), strict=True)] or [
        np.zeros(0, np.int64)
    ] * 3
    codes = np.array([partition_code(broker, partition) for broker, partition, *_ in ranges], np.int64)
    starts, stops, loaded_us = columns
    arrays = RangeColumns(loaded_us, np.arange(len(ranges)), starts, stops, np.zeros(len(ranges), np.int64))

    def read(window: Window) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                row
                for row in batch
                if window.start is None or (row[4] is not None and window.start <= row[4] < (window.stop or 0))
            ]
            values = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
            arrays = [pa.array(column, field.type) for column, field in zip(values, _SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_counts, "_MAX_SORTED_ROWS", max_sorted)
        return count_rows(arrays, codes, Window(None, None), read)


def expected(ranges: list[Range], batches: list[list[Row]]) -> tuple[list[int], list[int], int]:
    copies = Counter(row for batch in batches for row in batch)
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
    )


_ROWS = st.tuples(
    st.sampled_from([None, 2]),
    st.sampled_from([None, 0, 1]),
    st.none() | st.integers(0, 16),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 100, 200, 300, 400]),
)


@given(st.lists(st.lists(_ROWS, max_size=30), max_size=4), st.sampled_from([1, 3, 1_000]))
def test_rows_are_counted_as_a_plain_count_does(batches: list[list[Row]], max_sorted: int) -> None:
    result = counted(_RANGES, batches, max_sorted=max_sorted)
    assert (result.rows.tolist(), result.copies.tolist(), result.outside) == expected(_RANGES, batches)


def test_without_ranges_every_row_is_outside() -> None:
    result = counted([], [[(None, 0, 1, 0, 100)]])
    assert (result.rows.tolist(), result.outside) == ([], 1)


def test_rows_in_order_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a range continues in the next batch, and when messages of 0.7 share their offset."""
    monkeypatch.setattr(row_counts, "_add_copies", None)
    batches: list[list[Row]] = [[(2, 0, 3, 0, 100), (2, 0, 3, 1, 100)], [(2, 0, 3, 2, 100), (2, 0, 7, 0, 100)]]
    assert counted(_RANGES, batches).rows.tolist() == [0, 0, 0, 0, 4, 0]
