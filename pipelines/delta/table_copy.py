"""A table in an object store, opened by deltalake from a copy of its delta log on the local disk.

deltalake reads the delta log, but sends no request: the copy is made of a DeltaLogSegment. A checkpoint that deltalake
writes into it is copied to the store. The copy is removed with its object.
"""

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from pipelines.delta.delta_log_segment import DELTA_LOG, POINTER, DeltaLogSegment, checkpoint_file, commit_file
from resources.stores.lake import filesystem
from resources.stores.object_client import ObjectClient, object_client

if TYPE_CHECKING:
    import pyarrow.dataset as pads

_WRITES = (
    "alter",
    "cleanup_metadata",
    "compact_logs",
    "create_write_transaction",
    "delete",
    "generate",
    "merge",
    "optimize",
    "repair",
    "restore",
    "update",
    "vacuum",
)
_OTHER_READS = ("history", "load_as_version", "load_cdf", "scan")


class TableCopy(DeltaTable):
    """One version of the table at `uri`.

    It knows the files of the version, and reads their rows from the store. The methods that would write to the table,
    or need other parts of the delta log, are refused: `DeltaVersion.writer` has them.
    """

    def __init__(self, uri: str, options: Mapping[str, str], segment: DeltaLogSegment) -> None:
        folder = Path(tempfile.mkdtemp(prefix="penstock-log-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        (folder / DELTA_LOG).mkdir()
        for file in segment.files():
            (folder / file.path).write_bytes(file.content)
        self._folder, self._uri, self._options, self.segment = folder, uri, options, segment
        super().__init__(str(folder))

    @property
    def table_uri(self) -> str:
        """The URI of the table in the store."""
        return self._uri

    def file_uris(self, *arguments: Any, **options: Any) -> list[str]:
        """The URIs of the data files in the store."""
        return [uri.replace(str(self._folder), self._uri, 1) for uri in super().file_uris(*arguments, **options)]

    def to_pyarrow_dataset(self, *arguments: Any, **options: Any) -> "pads.Dataset":
        """The rows of the version, in the store."""
        if options.get("filesystem") is None:
            options["filesystem"] = filesystem(self._uri, self._options, self._table.get_add_file_sizes())
        return super().to_pyarrow_dataset(*arguments, **options)

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version to the store, and then the pointer to it.

        Raises:
            DeltaError, OSError: that failed. Without a pointer the checkpoint is not needed by anybody.
        """
        super().create_checkpoint()
        for path in (checkpoint_file(self.version()), POINTER):
            self._client.write(path, (self._folder / path).read_bytes())

    @property
    def _client(self) -> ObjectClient:
        client = object_client(self._uri, self._options)
        assert client is not None
        return client


def first_commit(schema: pa.Schema, *, partition_by: Sequence[str], configuration: Mapping[str, str]) -> bytes:
    """The first commit of a new table, as deltalake writes it."""
    with tempfile.TemporaryDirectory(prefix="penstock-log-") as folder:
        once = CommitProperties(max_commit_retries=0)
        DeltaTable.create(
            folder, schema, partition_by=list(partition_by), configuration=dict(configuration), commit_properties=once
        )
        return (Path(folder) / commit_file(0)).read_bytes()


def _refused(name: str) -> Any:
    def refuse(_table: TableCopy, *_arguments: object, **_options: object) -> NoReturn:
        raise TypeError(f"{name} of a copy of the delta log would not reach the table")

    return property(refuse) if name in {"alter", "optimize"} else refuse


for _name in (*_WRITES, *_OTHER_READS):
    setattr(TableCopy, _name, _refused(_name))
