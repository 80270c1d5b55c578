"""The Parquet file of one slice, and what its footer says about its columns in the form that Delta's log needs.

Every column that has an order needs its bounds in the log. Readers that use pyarrow conclude from a column without
bounds that no filter can match it, and leave the whole file out.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from pipelines.loading.failpoints import failpoint
from pipelines.loading.rows import FILE_SCHEMA, RAW_TIME_COLUMN, parquet_options
from pipelines.loading.work import FetchTask
from resources import durable
from resources.lake import filesystem, lake_errors

_ROW_GROUP_BYTES = 30 * 1024 * 1024  # what the decoder gives at once; smaller batches wait for more
_ROW_GROUP_ROWS = 1_000_000
_TIMES = {field.name for field in FILE_SCHEMA if pa.types.is_timestamp(field.type)}
_ORDERED = (
    "topic",
    "broker",
    "partition",
    "offset",
    "timestamp",
    RAW_TIME_COLUMN,
    "timestampType",
    "inner",
    "loaded_at",
)


class SliceFile:
    """A context manager that writes the file. It is created with the first row: a slice without rows has no file.

    The file's name contains a random part, so that two attempts at one slice never write the same file.
    """

    def __init__(self, task: FetchTask) -> None:
        self._uri = task.table_uri
        self._files = filesystem(task.table_uri, task.options)
        self._codec = task.parquet_codec
        self._local = durable.local_path(task.table_uri)
        offsets = task.offsets
        name = f"{offsets.partition}-{offsets.start:020d}-{offsets.stop:020d}-{uuid.uuid4().hex}.parquet"
        self.path = f"{task.folder}/{name}"
        self.rows = 0
        self.size = 0
        self.stats: Mapping[str, Any] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._open_files = ExitStack()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the order of their offsets. They are written one row group at a time."""
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= _ROW_GROUP_BYTES:
            self._write_row_group()

    def _write_row_group(self) -> None:
        with lake_errors(self._uri):
            if self._writer is None:
                self._writer = self._open()
            self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=_ROW_GROUP_ROWS)
        self._waiting, self._waiting_bytes = [], 0
        failpoint("file written")

    def _open(self) -> pq.ParquetWriter:
        failpoint("file opened")
        folder = self.path.rpartition("/")[0]
        self._files.create_dir(folder, recursive=True)
        stream = self._open_files.enter_context(self._files.open_output_stream(self.path))
        writer = pq.ParquetWriter(stream, FILE_SCHEMA, metadata_collector=self._footers, **parquet_options(self._codec))
        return self._open_files.enter_context(writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        """Complete the file and force it to disk. After an error the unfinished file stays.

        No commit will name an unfinished file, and housekeeping collects it.
        """
        with lake_errors(self._uri), self._open_files:
            if kind is None and self._waiting:
                self._write_row_group()
        if kind is None and self.rows:
            with lake_errors(self._uri):
                info = self._files.get_file_info(self.path)
            assert info.type == pafs.FileType.File
            self.size = info.size
            [footer] = self._footers
            self.stats = file_stats(footer)
            failpoint("file closed")
            if self._local is not None:
                durable.sync_below(self._local, self._local / self.path)
                failpoint("file synced")


def file_stats(footer: pq.FileMetaData) -> Mapping[str, Any]:
    """`numRecords`, and `minValues`, `maxValues` and `nullCount` by column; times are ISO 8601 texts in UTC."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in _column_statistics(footer):
        nulls[name] = nulls.get(name, 0) + column.null_count
        if column.has_min_max:
            lowest_here, highest_here = _bounds(name, column)
            lowest[name] = min(lowest_here, lowest.get(name, lowest_here))
            highest[name] = max(highest_here, highest.get(name, highest_here))
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: _json_value(name, value) for name, value in lowest.items()},
        "maxValues": {name: _json_value(name, value) for name, value in highest.items()},
        "nullCount": nulls,
    }


def _column_statistics(footer: pq.FileMetaData) -> Iterator[tuple[str, Any]]:
    """Name and statistics of each ordered column, row group by row group."""
    numbers = {footer.row_group(0).column(number).path_in_schema: number for number in range(footer.num_columns)}
    for group in range(footer.num_row_groups):
        for name in _ORDERED:
            yield name, footer.row_group(group).column(numbers[name]).statistics


def _bounds(name: str, column: pq.Statistics) -> tuple[Any, Any]:
    """The smallest and the largest value; a time is an integer (microseconds), because a datetime has narrower limits.

    Texts are decoded: `min_raw` has their bytes.
    """
    return (column.min_raw, column.max_raw) if name in _TIMES else (column.min, column.max)


def _json_value(name: str, value: Any) -> Any:
    return f"{np.datetime64(value, 'us')}Z" if name in _TIMES else value
