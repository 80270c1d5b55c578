"""Counts the rows of a table by event time: exactly, in bounded memory, and only from files that can hold such rows.

The statistics in the Delta log say which event times a file can hold. If a file has none, the day of its folder says
it, in a table with folders of event days. Inside a file, Parquet's statistics skip row groups. Of the rows that remain,
only the column of the event time is read, batch by batch.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.layout.layout import TableLayout
from pipelines.ledger.slice_times import RECORD_TIME, is_time, times_as_integers
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.complete_files import bounds_of_group
from pipelines.verify.range_file import EARLIEST, LATEST, Numbers
from resources.stores.lake import filesystem, lake_errors

_BATCH_ROWS = 65_536
_DAY_MS = 86_400_000
_ROUNDED_MS = 1
"""The bounds in the log may be cut to ms, so the rows of a file can be this much later than the log says."""


def hour_counts(
    table: LakeTable, snapshot: TableSnapshot, column: str, edges: Sequence[int], *, only: Collection[int] | None = None
) -> Mapping[int, int]:
    """The number of rows in each window of event time, at one version of a table.

    The windows lie side by side: `edges` [a, b, c] are the windows from a to b and from b to c, each without its end.
    They can be hours, days, or of any other length.

    Args:
        table: the table.
        snapshot: the version of the table.
        column: the event time, as in the setting `event_time`: "timestamp" or a column of a typed table.
        edges: the bounds of the windows in ms since 1970, ascending.
        only: the starts of the wanted windows; all by default. Files that have rows of other windows are not read.

    Returns:
        The number of rows of each wanted window, by its start. A window without rows has 0. A column that the table
        does not have, or that holds no times, has no rows.

    Raises:
        ValueError: the edges do not ascend, or a wanted window does not begin at an edge.
        LakeRefused: a file is damaged.
        LakeUnavailable: the store does not answer.
    """
    windows = _Windows(edges, only)
    name = time_column(column, snapshot.layout)
    if len(windows.starts) and name in snapshot.layout.file_schema.names:
        paths, first_ms, last_ms = _files_with_times(snapshot, name)
        _count(table, windows, name, compress(paths, windows.overlap(first_ms, last_ms)))
    return windows.counts


def counts_in_files(
    table: LakeTable, layout: TableLayout, column: str, edges: Sequence[int], paths: Iterable[str]
) -> Mapping[int, int]:
    """The same for the rows of these files only, which can be files of an earlier version.

    Raises:
        LakeRefused: a file is damaged.
        LakeUnavailable: a file is deleted, or the store does not answer.
    """
    windows = _Windows(edges, None)
    _count(table, windows, time_column(column, layout), paths)
    return windows.counts


def first_time_ms(table: LakeTable, snapshot: TableSnapshot, column: str, since_ms: int) -> int | None:
    """The first event time of the rows from `since_ms` on; None if all rows are earlier.

    The statistics in the log give it. Only files with earlier times too, or without statistics, are read.

    Raises:
        LakeRefused: a file is damaged.
        LakeUnavailable: the store does not answer.
    """
    name = time_column(column, snapshot.layout)
    if name not in snapshot.layout.file_schema.names:
        return None
    paths, first_ms, last_ms = _files_with_times(snapshot, name)
    first: int = int(first_ms[first_ms >= since_ms].min(initial=LATEST))
    with lake_errors(table.uri):
        for path in compress(paths, (first_ms < since_ms) & (last_ms >= since_ms)):
            if first > since_ms:
                first = min(first, _first_in_file(table, path, name, _Windows([since_ms, first], None)))
    return None if first == LATEST else first


def _first_in_file(table: LakeTable, path: str, name: str, windows: "_Windows") -> int:
    """The first time of a file's rows in the only window, in ms; the end of the window if no row is in it."""
    since, until = windows.edges
    first = until
    with filesystem(table.uri, table.lake.options).open_input_file(path) as source:
        for times, per_ms in _times_of(pq.ParquetFile(source), name, windows):
            inside = times.filter(pc.greater_equal(times, since * per_ms))
            first = min(first, (pc.min(inside).as_py() if len(inside) else until * per_ms) // per_ms)
    return int(first)


def _count(table: LakeTable, windows: "_Windows", name: str, paths: Iterable[str]) -> None:
    """Count the rows of these files."""
    store = filesystem(table.uri, table.lake.options)
    with lake_errors(table.uri):
        for path in paths:
            with store.open_input_file(path) as source:
                for times, per_ms in _times_of(pq.ParquetFile(source), name, windows):
                    windows.add(times, per_ms)


def time_column(event_time: str, layout: TableLayout) -> str:
    """The column of a table that holds the event time which the settings name."""
    return layout.name(RECORD_TIME) if event_time == RECORD_TIME else event_time


class _Windows:
    """The wanted windows, and how many rows they have so far."""

    def __init__(self, edges: Sequence[int], only: Collection[int] | None) -> None:
        if any(later <= earlier for earlier, later in pairwise(edges)):
            raise ValueError("the edges of windows must ascend")
        firsts = edges[:-1]
        if only is not None and not {*only} <= {*firsts}:
            raise ValueError("a wanted window does not begin at an edge")
        self.edges = edges
        self._edges = np.array(edges, np.int64)
        self._rows = np.zeros(max(len(edges) - 1, 0), np.int64)
        self._wanted = np.array([only is None or start in only for start in firsts], np.bool_)
        self.starts, self._stops = self._edges[:-1][self._wanted], self._edges[1:][self._wanted]

    @property
    def counts(self) -> dict[int, int]:
        """The number of rows of each wanted window, by its start."""
        return dict(zip(self.starts.tolist(), self._rows[self._wanted].tolist(), strict=True))

    def overlap(self, first_ms: Numbers, last_ms: Numbers) -> npt.NDArray[np.bool_]:
        """Whether a wanted window has a time from each first to the last one at the same place."""
        place = np.searchsorted(self._stops, first_ms, side="right")
        starts = np.append(self.starts, LATEST)
        result: npt.NDArray[np.bool_] = (place < len(self.starts)) & (starts[place] <= last_ms)
        return result

    def add(self, times: pa.Array, per_ms: int) -> None:
        """Count times, of whose units a millisecond has `per_ms`. Null belongs to no window."""
        numbers = times.drop_null().to_numpy(zero_copy_only=False)
        places = np.searchsorted(self._edges * per_ms, numbers, side="right") - 1
        places = places[(places >= 0) & (places < len(self._rows))]
        self._rows += np.bincount(places, minlength=len(self._rows))


def _files_with_times(snapshot: TableSnapshot, name: str) -> tuple[list[str], Numbers, Numbers]:
    """The files of which the statistics do not say that all times are null: their paths and bounds."""
    adds = snapshot.opened.files()
    nulls = f"null_count.{name}"
    if nulls in adds.column_names:
        has_times = pc.fill_null(pc.not_equal(adds.column(nulls), adds.column("num_records")), True)
        adds = adds.filter(has_times)
    return adds.column("path").to_pylist(), *_file_bounds_ms(adds, snapshot.layout, name)


def _file_bounds_ms(adds: pa.Table, layout: TableLayout, name: str) -> tuple[Numbers, Numbers]:
    """A time before which, and a time after which, no row of each file is, in ms since 1970.

    A file about which nothing is known can hold every time.
    """
    first, last = (_bound_ms(adds, f"{bound}.{name}") for bound in ("min", "max"))
    if layout.is_by_day and layout.time_column == name:
        days = adds.column(f"partition.{layout.partition_column}").cast(pa.int32()).cast(pa.int64())
        has_day, start = pc.is_valid(days).to_numpy(), _filled(days, 0) * _DAY_MS
        first = np.where((first == EARLIEST) & has_day, start, first)
        last = np.where((last == LATEST) & has_day, start + _DAY_MS - 1, last)
    return first, last


def _bound_ms(adds: pa.Table, column: str) -> Numbers:
    is_first = column.startswith("min")
    unknown = EARLIEST if is_first else LATEST
    times = times_as_integers(adds.column(column).combine_chunks()) if column in adds.column_names else None
    if times is None:
        return np.full(adds.num_rows, unknown, np.int64)
    numbers, per_ms = _filled(times[0], unknown), times[1]
    return np.where(numbers == unknown, unknown, numbers // per_ms + (0 if is_first else _ROUNDED_MS))


def _filled(values: Any, missing: int) -> Numbers:
    result: Numbers = pc.fill_null(values, missing).to_numpy(zero_copy_only=False)
    return result


def _times_of(file: pq.ParquetFile, name: str, windows: _Windows) -> Iterator[tuple[pa.Array, int]]:
    """The times in the row groups of a file that can hold rows of the windows, as integers; and their unit."""
    if name not in file.schema_arrow.names:
        return  # the file is older than the column
    groups = [number for number in range(file.num_row_groups) if _may_have_rows(file, number, name, windows)]
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=[name], use_threads=False):
        times = times_as_integers(batch.column(name))  # a field `b` of a column `a` is read with a column `a.b`
        if times is not None:
            yield times


def _may_have_rows(file: pq.ParquetFile, number: int, name: str, windows: _Windows) -> bool:
    """Whether a row group may have rows of the windows, according to its own statistics."""
    statistics = bounds_of_group(file.metadata, number, name)
    if statistics is None:
        return True
    kind = file.metadata.schema.to_arrow_schema().field(name).type  # as the file stores it
    if not is_time(kind):
        return False
    stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    times = times_as_integers(pa.array([statistics.min_raw, statistics.max_raw], stored).view(kind))
    assert times is not None
    first, last = (np.array([bound // times[1]], np.int64) for bound in times[0].to_pylist())
    return bool(windows.overlap(first, last)[0])
