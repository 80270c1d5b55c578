"""A version of a table in an object store, opened by deltalake from a copy of its delta log on the local disk.

deltalake reads the delta log, but sends no request: the copy is made of a DeltaLogSegment. A checkpoint that deltalake
writes into it is copied to the store. The copy is removed with the handle of deltalake.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from pipelines.delta.delta_log_segment import DELTA_LOG, POINTER, DeltaLogSegment, checkpoint_file, commit_file
from pipelines.delta.open_version import DeltaVersion
from resources.stores import durable
from resources.stores.lake import filesystem
from resources.stores.object_client import object_client

if TYPE_CHECKING:
    import pyarrow.dataset as pads


class CopiedVersion(DeltaVersion):
    """A version of the table at `uri`, of which `read` gives the handle of a copy; see `opened_copy`.

    A write through this handle would reach the copy alone. It is known inside of the room only, which writes to the
    table through `writer`.
    """

    def __init__(
        self,
        uri: str,
        options: Mapping[str, str],
        segment: DeltaLogSegment,
        read: Callable[[], DeltaTable],
        write: Callable[[], DeltaTable],
    ) -> None:
        super().__init__(read, write, segment)
        self._uri, self._options = uri, options

    @property
    def uri(self) -> str:
        return self._uri

    def dataset(self) -> "pads.FileSystemDataset":
        """The rows are read from the store, and not from the folder of the copy."""
        sizes = self.handle._table.get_add_file_sizes()  # noqa: SLF001 - `files` would also give all statistics
        store = filesystem(self._uri, self._options, sizes)
        return self.handle.to_pyarrow_dataset(filesystem=store)

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version to the store, and then the pointer to it.

        Raises:
            DeltaError, OSError: that failed. Without a pointer the checkpoint is not needed by anybody.
        """
        super().create_checkpoint()
        client, folder = object_client(self._uri, self._options), durable.local_path(self.handle.table_uri)
        assert client is not None
        assert folder is not None
        # In this order: a pointer to a checkpoint that is not there makes the table unreadable for others.
        for path in (checkpoint_file(self.handle.version()), POINTER):
            client.write(path, (folder / path).read_bytes())


def opened_copy(segment: DeltaLogSegment) -> DeltaTable:
    """The newest version of the segment, from a copy in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-log-"))
    (folder / DELTA_LOG).mkdir()
    for file in segment.files():
        (folder / file.path).write_bytes(file.content)
    try:
        handle = DeltaTable(str(folder))
    except Exception:
        shutil.rmtree(folder)
        raise
    weakref.finalize(handle, shutil.rmtree, folder, ignore_errors=True)
    return handle


def first_commit(schema: pa.Schema, *, partition_by: Sequence[str], configuration: Mapping[str, str]) -> bytes:
    """The first commit of a new table, as deltalake writes it."""
    with tempfile.TemporaryDirectory(prefix="penstock-log-") as folder:
        once = CommitProperties(max_commit_retries=0)
        DeltaTable.create(
            folder, schema, partition_by=list(partition_by), configuration=dict(configuration), commit_properties=once
        )
        return (Path(folder) / commit_file(0)).read_bytes()
