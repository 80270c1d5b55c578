"""The data files of a state table: read in the order of their rows, and written in row groups of a limited size."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, RemoveAction

from pipelines.increments.file_actions import add_action
from pipelines.layout.layout import types_with_order
from pipelines.layout.personal import is_personal
from pipelines.table.open_table import OpenTable
from resources.errors import LakeUnavailable
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.lake import filesystem, lake_errors

_BATCH_ROWS = 65_536
_ROW_GROUP_BYTES = 32 * 1024 * 1024
FILE_BYTES = 128 * 1024 * 1024
_SMALL_BYTES = FILE_BYTES // 8
_MAX_SMALL_FILES = 8

RowNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """A data file of a state table, with its path inside the table."""

    path: str
    size_bytes: int

    def removal(self) -> RemoveAction:
        """The action that takes the file out of the table."""
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        return RemoveAction(self.path, data_change=True, deletion_timestamp=now_ms, size=self.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFiles:
    """The data files of one version of a state table.

    Args:
        uri: the table.
        options: the options of its store.
        files: the files, in a fixed order.
    """

    uri: str
    options: Mapping[str, str]
    files: Sequence[StateFile] = ()

    @classmethod
    def of(cls, uri: str, options: Mapping[str, str], opened: OpenTable | None) -> "StateFiles":
        """The files of a version; none if there is no table."""
        if opened is None:
            return cls(uri=uri, options=options)
        with lake_errors(uri):
            adds = opened.files().select(["path", "size_bytes"]).to_pylist()
        files = [StateFile(path=add["path"], size_bytes=add["size_bytes"]) for add in adds]
        return cls(uri=uri, options=options, files=sorted(files, key=lambda file: file.path))

    def batches(self, number: int, schema: pa.Schema, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a file in their order, with some columns of `schema`; those that the file lacks are null."""
        import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas

        store = filesystem(self.uri, self.options)
        format_ = pads.ParquetFileFormat()
        fragment = format_.make_fragment(self.files[number].path, filesystem=store)
        dataset = pads.FileSystemDataset([fragment], schema, format_, store)
        with lake_errors(self.uri):
            yield from dataset.to_batches(columns=list(columns), batch_size=_BATCH_ROWS, batch_readahead=4)

    def small(self) -> set[int]:
        """The files to merge, if there are many small ones."""
        numbers = {number for number, file in enumerate(self.files) if file.size_bytes < _SMALL_BYTES}
        return numbers if len(numbers) > _MAX_SMALL_FILES else set()


@dataclass(slots=True, kw_only=True)
class StateFileWriter:
    """Writes rows into new files of a state table, which no version names yet.

    Args:
        uri: the table.
        options: the options of its store.
        schema: the columns.
        actions: what adds the complete files to the table.
    """

    uri: str
    options: Mapping[str, str]
    schema: pa.Schema
    actions: list[AddAction | RemoveAction] = field(default_factory=list)
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _waiting_bytes: int = 0
    _file: "_OpenFile | None" = None

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows. A row group is written when enough of them wait."""
        if rows.num_rows == 0:
            return
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Complete the last file."""
        self._flush()
        self._complete()

    def check_complete(self) -> None:
        """Check that no file has vanished since it was written.

        Raises:
            LakeUnavailable: housekeeping has deleted one, because the update takes longer than files are kept.
        """
        sizes = {action.path: action.size for action in self.actions if isinstance(action, AddAction)}
        with lake_errors(self.uri):
            infos = filesystem(self.uri, self.options).get_file_info(list(sizes))
        lost = [info.path for info in infos if info.size != sizes[info.path]]
        if lost:
            raise LakeUnavailable(
                f"the file {lost[0]} of the state table {self.uri} was deleted before its commit: an update must not "
                "take longer than `housekeeping.keep_days`"
            )

    def _flush(self) -> None:
        if not self._waiting:
            return
        with lake_errors(self.uri):
            if self._file is None:
                self._file = _OpenFile(filesystem(self.uri, self.options), self.schema)
                failpoint("state file opened")
            table = pa.Table.from_batches(self._waiting).combine_chunks()
            self._file.write(table)
            failpoint("state row group written")
            is_full = self._file.stream.tell() >= FILE_BYTES
        self._waiting, self._waiting_bytes = [], 0
        if is_full:
            self._complete()

    def _complete(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        with lake_errors(self.uri):
            file.open_files.close()
            size = file.store.get_file_info(file.path).size
        [footer] = file.footers
        self.actions.append(add_action(file.path, size, footer, types_with_order(self.schema), file.nulls))
        durable.sync_file(self.uri, file.path)
        failpoint("state file written")


class _OpenFile:
    """A file that is being written."""

    def __init__(self, store: pafs.FileSystem, schema: pa.Schema) -> None:
        self.store, self.path = store, f"state-{uuid.uuid4().hex}.parquet"
        self.footers: list[Any] = []
        ordered = types_with_order(schema)
        self.nulls = {column.name: 0 for column in schema if is_personal(column) and column.name in ordered}
        self.open_files = ExitStack()
        self.stream = self.open_files.enter_context(store.open_output_stream(self.path))
        self._writer = self.open_files.enter_context(
            pq.ParquetWriter(
                self.stream,
                schema,
                compression="zstd",
                compression_level=1,
                metadata_collector=self.footers,
                write_statistics=[name for name in ordered if name not in self.nulls],
            )
        )

    def write(self, rows: pa.Table) -> None:
        """Write a row group, and count the nulls of personal columns."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        for name in self.nulls:
            self.nulls[name] += rows.column(name).null_count
