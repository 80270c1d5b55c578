"""The Parquet file of one slice, or of a part of it."""

import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.layout.file_statistics import file_stats
from pipelines.layout.layout import RAW, TableLayout
from pipelines.ledger.slice_facts import DataFile
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.table_files import table_errors, table_files

_LEVELS = {"zstd": 1}
ROW_GROUP_BYTES = 30 * 1024 * 1024
"""The size of a row group: about one batch of the decoder. Smaller batches are collected first."""
_ROW_GROUP_ROWS = 1_000_000


class FileTask(Protocol):
    """What is known of a data file before its rows."""

    @property
    def table_uri(self) -> str:
        """The table."""

    @property
    def folder(self) -> str:
        """The folder inside the table."""

    @property
    def file_name(self) -> str:
        """The first part of the file's name."""

    @property
    def options(self) -> Mapping[str, str]:
        """What the lake's store needs."""

    @property
    def parquet_codec(self) -> str:
        """The compression of the file."""

    @property
    def layout(self) -> TableLayout:
        """The columns of the file."""


class SliceFile:
    """A context manager that writes the file. It is created with the first row: a slice without rows has no file.

    The file's name contains a random part, so that two attempts at one slice never write the same file.

    Attributes:
        waiting_bytes: the size of the rows that are not written yet.

    Args:
        task: what is known of the file.
        unforced: collects the folders that must be forced to disk before the file is committed (see
            `durable.sync_below`). Without it, the file is forced to disk with its folders.
    """

    def __init__(self, task: FileTask, unforced: set[Path] | None = None) -> None:
        self._task = task
        self._files = table_files(task.table_uri, task.options)
        self._layout = task.layout
        self._local = durable.local_path(task.table_uri)
        self._unforced = unforced
        # Both attempts of a slow task can run to their end, and a forgotten one can write an hour later (faults S02,
        # S03). Only the name that the driver collected is committed (decision D06).
        self.path = f"{task.folder}/{task.file_name}-{uuid.uuid4().hex}.parquet"
        self.rows = 0
        self.size = 0
        self.stats: Mapping[str, Any] = {}
        self._nulls = dict.fromkeys(task.layout.personal.intersection(task.layout.ordered), 0)
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._open_files = ExitStack()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the order of their offsets. They are written one row group at a time."""
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self.waiting_bytes += batch.nbytes
        for name in self._nulls:
            self._nulls[name] += batch.column(name).null_count
        if self.waiting_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting rows as a row group, also if it is small."""
        with table_errors(self._task.table_uri):
            if self._writer is None:
                self._writer = self._open()
            try:
                self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=_ROW_GROUP_ROWS)
            except BaseException:
                self._writer.is_open = False  # to close it would fail too, and hide the error
                raise
        self._waiting, self.waiting_bytes = [], 0
        failpoint("file written")

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The file, after it is complete; none without rows."""
        return (DataFile(path=self.path, size=self.size, rows=self.rows, stats=self.stats),) if self.rows else ()

    def _open(self) -> pq.ParquetWriter:
        failpoint("file opened")
        folder = self.path.rpartition("/")[0]
        self._files.create_dir(folder, recursive=True)
        stream = self._open_files.enter_context(self._files.open_output_stream(self.path))
        self._open_files.callback(self._keep_size, stream)  # after the writer has written the footer
        options = parquet_options(self._task.parquet_codec, self._layout)
        writer = pq.ParquetWriter(
            stream,
            self._layout.file_schema,
            metadata_collector=self._footers,
            write_page_checksum=True,  # `verify --files` compares it (fault A14)
            **options,
        )
        # A writer whose close has failed would be closed again when it is freed, and print another error.
        self._open_files.callback(setattr, writer, "is_open", False)
        return self._open_files.enter_context(writer)

    def _keep_size(self, stream: pa.NativeFile) -> None:
        """Keep the size of the complete file. The driver checks that the file in the lake has it."""
        self.size = stream.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        """Complete the file and force it to disk. After an error a local file is deleted: the disk may be full.

        No commit will name an unfinished file. In an object store there is none.
        """
        try:
            with table_errors(self._task.table_uri), self._open_files:
                if kind is None and self._waiting:
                    self.flush()
        except BaseException:
            self._delete()
            raise
        if kind is not None:
            self._delete()
        if kind is None and self.rows:
            [footer] = self._footers
            self.stats = file_stats(footer, self._layout, self._nulls)
            failpoint("file closed")
            if self._local is not None:
                durable.sync_below(self._local, self._local / self.path, self._unforced)
                failpoint("file synced")

    def _delete(self) -> None:
        """Delete the unfinished file, which only this object knows (fault E21)."""
        if self._local is not None:
            with suppress(OSError):
                (self._local / self.path).unlink()


def parquet_options(codec: str, layout: TableLayout = RAW) -> dict[str, Any]:
    """The options for pyarrow's Parquet writer."""
    return {
        "compression": codec,
        "compression_level": _LEVELS.get(codec),
        "column_encoding": {layout.name(name): "DELTA_BINARY_PACKED" for name in ("offset", "timestamp")},
        "use_dictionary": layout.dictionary,
        # Nothing reads the bounds of bytes and lists, and they cost time. Those of personal columns would be values.
        "write_statistics": [name for name in layout.ordered if name not in layout.personal],
        "write_batch_size": 4096,  # the rows of a batch stay in the processor's cache
    }
