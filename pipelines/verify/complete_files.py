"""Reads the columns that identify rows from the data files of a table that are not damaged."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from pipelines.layout.file_statistics import outermost_columns
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from pipelines.verify.file_pages import damaged_column
from pipelines.verify.range_file import EARLIEST, LATEST, Numbers, Window
from pipelines.verify.row_counts import IDENTIFYING
from resources.errors import LakeRefused
from resources.stores import durable
from resources.stores.lake import each_of, filesystem, lake_errors, list_folder

_BATCH_ROWS = 65_536
_FILES_AT_ONCE = 8
_TIME = FILE_SCHEMA.field("loaded_at").type
_ROUNDED_US = 1_000
"""The bounds in the log may be in milliseconds, so rows of a file can be this much earlier or later than the bounds."""


class CompleteFiles:
    """The files of a version of a table.

    Attributes:
        damaged: the files that are missing, or have another size than the log says.
        unreadable: further files that were found to be damaged when they were read.
        size_bytes: the size of all files, as the log says.
    """

    def __init__(self, table: LakeTable, opened: OpenTable) -> None:
        self._uri = table.uri
        layout = opened.layout
        names = {name: layout.name(name) for name in IDENTIFYING}
        self._schema = pa.schema([layout.file_schema.field(name) for name in names.values()])
        with lake_errors(self._uri):
            adds = opened.files()
            paths = adds.column("path").to_pylist()
            sizes = adds.column("size_bytes").to_pylist()
            by_path = dict(zip(paths, sizes, strict=True))
            self._store = filesystem(table.uri, table.lake.options, by_path)
            complete = self._are_complete(by_path)
        self.damaged = [path for path, is_complete in zip(paths, complete, strict=True) if not is_complete]
        self.unreadable: list[str] = []
        self.size_bytes = sum(sizes)
        self._paths = [path for path, is_complete in zip(paths, complete, strict=True) if is_complete]
        bounds = (_times(adds, f"{bound}.{names['loaded_at']}") for bound in ("min", "max"))
        self._first_us, self._last_us = (bound[np.array(complete, np.bool_)] for bound in bounds)

    def _are_complete(self, sizes: Mapping[str, int]) -> list[bool]:
        """Whether each file exists with the size of the log.

        In an object store, a listing of the folders takes fewer requests than a question about each file. A file that
        it does not show is asked for, because the listings of some stores are late.
        """
        listed: dict[str, int | None] = {}
        if durable.local_path(self._uri) is None:
            folders = sorted({path.rpartition("/")[0] for path in sizes})
            for infos in each_of(self._uri, partial(list_folder, self._store), folders, at_once=_FILES_AT_ONCE):
                listed |= {info.path: info.size for info in infos}
        unclear = [path for path, size in sizes.items() if listed.get(path) != size]
        asked = self._store.get_file_info(unclear)
        listed |= {info.path: info.size if info.type == pafs.FileType.File else None for info in asked}
        return [listed.get(path) == size for path, size in sizes.items()]

    def rows(self, window: Window) -> Iterator[pa.RecordBatch]:
        """The columns IDENTIFYING of the rows whose loading time is in the window.

        Rows without a loading time belong to the first window.

        Raises:
            LakeRefused: a file is damaged.
            LakeUnavailable: the store does not answer.
        """
        paths = self._paths_in(window)
        for first in range(0, len(paths), _FILES_AT_ONCE):
            yield from self._read(paths[first : first + _FILES_AT_ONCE], window)

    def find_unreadable(self, window: Window) -> bool:
        """Read the files of the window one by one, and leave out the damaged ones; returns whether there are any.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        damaged = [path for path in self._paths_in(window) if not self._can_be_read(path)]
        self.unreadable += damaged
        return bool(damaged)

    def damaged_pages(self) -> Iterator[tuple[str, str]]:
        """Read all pages of all files that seem to be whole; gives the damaged ones, each with what is damaged in it.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        paths = [path for path in self._paths if path not in self.unreadable]
        with lake_errors(self._uri):
            damaged = each_of(self._uri, partial(damaged_column, self._store), paths, at_once=_FILES_AT_ONCE)
            yield from ((path, part) for path, part in zip(paths, damaged, strict=True) if part is not None)

    def _paths_in(self, window: Window) -> Sequence[str]:
        chosen = (self._last_us >= window.start) & (self._first_us < window.stop)
        paths = (self._paths[number] for number in np.flatnonzero(chosen))
        return [path for path in paths if path not in self.unreadable]

    def _read(self, paths: Sequence[str], window: Window) -> Iterator[pa.RecordBatch]:
        # Arrow's datasets read ahead in many threads, each of which keeps memory after it has been freed.
        with lake_errors(self._uri), ExitStack() as opened:
            for file in each_of(self._uri, self._opened, paths, at_once=_FILES_AT_ONCE):
                opened.callback(file.close, force=True)
                groups = [
                    number
                    for number in range(file.num_row_groups)
                    if _may_have_rows(file.metadata, number, self._schema.names[-1], window)
                ]
                names = [name for name in self._schema.names if name in file.schema_arrow.names]
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=names, use_threads=False):
                    rows = self._as_declared(batch)
                    yield rows.filter(_in_window(rows.column(-1).cast(pa.int64()), window))

    def _opened(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(self._store.open_input_file(path))

    def _as_declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns of the schema; files of older versions may lack some, or have other types."""
        columns = [
            batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _can_be_read(self, path: str) -> bool:
        try:
            for _ in self._read([path], Window()):
                pass
        except LakeRefused:
            return False
        return True


def _may_have_rows(footer: pq.FileMetaData, group: int, name: str, window: Window) -> bool:
    """Whether a row group may have rows of the window, according to the statistics of the column of loading times."""
    statistics = bounds_of_group(footer, group, name)
    if statistics is None:
        return True
    first, last = (pa.scalar(time, _TIME).value for time in (statistics.min, statistics.max))
    has_rows_without_time = window.start == EARLIEST and statistics.null_count != 0
    return bool(has_rows_without_time or (last >= window.start and first < window.stop))


def bounds_of_group(footer: pq.FileMetaData, group: int, name: str) -> pq.Statistics | None:
    """The statistics of a column in a row group of a file; None if they have no bounds."""
    number = next((number for other, number in outermost_columns(footer) if other == name), None)
    statistics = None if number is None else footer.row_group(group).column(number).statistics
    return statistics if statistics is not None and statistics.has_min_max else None


def _in_window(loaded_us: pa.Array, window: Window) -> pa.Array:
    """Which of these loading times are in the window."""
    inside = pc.and_(pc.greater_equal(loaded_us, window.start), pc.less(loaded_us, window.stop))
    return pc.fill_null(inside, window.start == EARLIEST)


def _times(adds: pa.Table, column: str) -> Numbers:
    """A bound of the loading times of each file, in microseconds; a file without one can have any time."""
    is_first = column.startswith("min")
    unknown = EARLIEST if is_first else LATEST
    if column not in adds.column_names:
        return np.full(adds.num_rows, unknown, np.int64)
    times: Numbers = adds.column(column).cast(_TIME).cast(pa.int64()).fill_null(unknown).to_numpy()
    rounded = _ROUNDED_US if is_first else -_ROUNDED_US
    return np.where(times == unknown, times, times - rounded)
