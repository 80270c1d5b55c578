"""One version of a Delta table, open: deltalake reads it when it is first asked for."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from pipelines.delta.delta_log_segment import DeltaLogSegment
from pipelines.layout.delta_schema import DeltaField
from pipelines.layout.layout import TableLayout
from pipelines.table.open_table import OpenTable
from pipelines.table.table_store import TableSnapshot

if TYPE_CHECKING:  # it imports pandas
    import pyarrow.dataset as pads

_FOLDER = "file://"
CLEANED = "penstock.cleanedBefore"
"""The property in which housekeeping announces what it is about to delete; see `DeltaVersion.cleaned_before`."""


class DeltaVersion(OpenTable):
    """A version of a table, opened by deltalake. In the room `delta` it also gives what a write on top of it needs.

    `segment` is the newest part of the delta log, if Penstock has read it itself.
    """

    def __init__(
        self, read: Callable[[], DeltaTable], write: Callable[[], DeltaTable], segment: DeltaLogSegment | None = None
    ) -> None:
        self._read, self._write, self.segment = read, write, segment

    @classmethod
    def of_handle(cls, handle: DeltaTable) -> Self:
        """The version that deltalake has opened."""
        return cls(lambda: handle, lambda: handle)

    @staticmethod
    def of(snapshot: TableSnapshot) -> "DeltaVersion":
        """The version of a snapshot that a Delta table gave."""
        return DeltaVersion.of_opened(snapshot.opened)

    @staticmethod
    def of_opened(opened: OpenTable) -> "DeltaVersion":
        """The version that a Delta table has opened."""
        assert isinstance(opened, DeltaVersion)
        return opened

    @cached_property
    def handle(self) -> DeltaTable:
        """What deltalake knows of this version. It may be that of a copy, so only `writer` writes to the table."""
        return self._read()

    @cached_property
    def writer(self) -> DeltaTable:
        """What deltalake needs to write on top of this version."""
        return self._write()

    @property
    def uri(self) -> str:
        uri = self.handle.table_uri
        # deltalake names a folder by a URL. Its path can have characters that are encoded there, such as a space.
        return unquote(uri).removeprefix(_FOLDER).rstrip("/") if uri.startswith(_FOLDER) else uri

    @property
    def version(self) -> int:
        return self.segment.version if self.segment else self.handle.version()

    @property
    def layout(self) -> TableLayout:
        return TableLayout.of_delta(self.handle.schema().to_json())

    def fields(self) -> Sequence[DeltaField]:
        schema: Sequence[DeltaField] = msgspec.json.decode(self.handle.schema().to_json())["fields"]
        return schema

    def schema(self) -> pa.Schema:
        return pa.schema(self.handle.schema().to_arrow())

    def files(self) -> pa.Table:
        # One level only: a field `b` in a column `a` would have the same name as a column `a.b` (fault A08).
        files = pa.table(self.handle.get_add_actions()).flatten()
        paths = map(unquote, files.column("path").to_pylist())  # the paths of actions are parts of URIs
        return files.set_column(files.schema.get_field_index("path"), "path", pa.array(paths, pa.string()))

    def dataset(self) -> "pads.FileSystemDataset":
        return self.handle.to_pyarrow_dataset()

    def count(self) -> int:
        return self.handle.count()

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version.

        Raises:
            DeltaError, OSError: that failed.
        """
        self.handle.create_checkpoint()

    @property
    def cleaned_before(self) -> int:
        """The version before which housekeeping deletes files: those that no version from it on contains."""
        return int(self.handle.metadata().configuration.get(CLEANED, 0))
