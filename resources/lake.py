"""The lake: one Delta table per topic under one root. Paths and options are passed to deltalake unchanged."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)
from deltalake.fs import DeltaStorageHandler

from kafka_io.errors import Where
from resources import durable, topic_names
from resources.errors import LakeRefused, LakeUnavailable, TopicUnknown

if TYPE_CHECKING:  # workers need no settings, and pydantic is slow to import
    from resources.settings import Settings


_STACK = re.compile(r"\n\s*0: ")
_DECORATION = re.compile(r"\x1b\[[0-9;]*m|\u21b3")  # colours and arrows in the messages of deltalake


_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PATIENCE = {
    "max_retries": "100",
    "retry_timeout": "120s",
    "backoff_config.init_backoff": "200ms",
    "backoff_config.max_backoff": "5s",
    "backoff_config.base": "3",
}
"""How the client of an object store repeats requests that fail for a time, such as 503: for two minutes."""
_REFUSED = re.compile(
    r"status 40[0135]|lacked the necessary privileges|lacked valid authentication|AccessDenied|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|NoSuchBucket|ContainerNotFound|UnknownConfigurationKey"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The place of the tables: `root` is a folder or a URI, `options` are those of its object store."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """The lake of the settings. Its object store is patient, unless the settings say otherwise.

        Raises:
            LakeRefused: deltalake would write the lake into one folder and look for it in another (fault U09).
        """
        folder = durable.local_path(settings.lake)
        escape = _ESCAPE.search(str(folder))
        if folder and escape:
            raise LakeRefused(
                f"the lake {folder} has {escape[0]} in its path, which deltalake reads as an encoded character: "
                "choose another folder as `lake` in the settings",
                Where(),
            )
        patience = {} if folder else _PATIENCE
        return cls(root=settings.lake, options={**patience, **settings.lake_options})

    def table_uri(self, cluster: str, topic: str) -> str:
        """The URI of the table of a topic: `<root>/<cluster>/<encoded topic>`.

        Raises:
            TopicUnknown: the name is empty.
        """
        if not topic:
            raise TopicUnknown("no topic has an empty name", Where(cluster=cluster))
        return "/".join((self.root.rstrip("/"), cluster, *topic_names.folders(topic)))

    def topics(self, cluster: str) -> list[str]:
        """The topics of a cluster that have a table, sorted by name."""
        root = "/".join((self.root.rstrip("/"), cluster))
        with lake_errors(root):
            return sorted(topic_names.decode_folders(path) for path in _tables(filesystem(root, self.options), []))

    def open(self, uri: str) -> DeltaTable | None:
        """The newest version of a table; None if there is no table.

        Raises:
            LakeUnavailable: the store does not answer, or the table's log is damaged.
        """
        with lake_errors(uri):
            try:
                return DeltaTable(uri, storage_options=dict(self.options))
            except TableNotFoundError:
                return None

    def create(
        self, uri: str, schema: pa.Schema, *, partition_by: list[str], configuration: Mapping[str, str]
    ) -> DeltaTable:
        """Create the table unless it exists, and open it. Two runs that do so at the same time get the same table."""
        with lake_errors(uri):
            if "://" not in uri:
                Path(uri).mkdir(parents=True, exist_ok=True)
            try:
                return DeltaTable.create(
                    uri,
                    schema,
                    mode="ignore",
                    partition_by=partition_by,
                    configuration=dict(configuration),
                    storage_options=dict(self.options),
                    # With retries, the second of two runs would create the table again as its next version.
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
            except CommitFailedError:
                return DeltaTable(uri, storage_options=dict(self.options))


def _tables(files: pafs.FileSystem, folder: list[str]) -> Iterator[list[str]]:
    """The paths of the tables below `folder`. Only folders with a part of a long name are searched, never a table."""
    selector = pafs.FileSelector("/".join(folder), allow_not_found=True)
    for info in files.get_file_info(selector):
        path = [*folder, info.base_name]
        if info.type == pafs.FileType.Directory and topic_names.continues(info.base_name):
            yield from _tables(files, path)
        elif files.get_file_info("/".join([*path, "_delta_log"])).type == pafs.FileType.Directory:
            yield path


@contextmanager
def lake_errors(uri: str) -> Iterator[None]:
    """Turn errors of the store inside a `with` block into LakeUnavailable, or LakeRefused if they would come again."""
    try:
        yield
    except (DeltaError, OSError) as error:
        kind = LakeRefused if is_refusal(error) else LakeUnavailable
        raise kind(f"the table {uri} cannot be read or written: {reason_of(error)}", Where()) from error


def is_refusal(error: Exception) -> bool:
    """Whether the store or deltalake would give the same error again: the only place that decides this (fault N14).

    Refusals are: missing rights, wrong credentials, a bucket that does not exist, and a table that does not accept the
    columns or needs a feature of Delta that deltalake lacks. Everything else may pass: no answer, status 429 or 5xx, a
    full disk.
    """
    if isinstance(error, (PermissionError, NotADirectoryError, SchemaMismatchError, DeltaProtocolError)):
        return True
    return _REFUSED.search(str(error)) is not None


def reason_of(error: Exception) -> str:
    """The message of an error of the store as one line, without stack frames and colours."""
    return " ".join(_DECORATION.sub(" ", _STACK.split(str(error))[0]).split())


def filesystem(uri: str, options: Mapping[str, str]) -> pafs.FileSystem:
    """A file system whose root is the table at `uri`. Workers write through it, and the driver checks their files."""
    if "://" not in uri:
        return pafs.SubTreeFileSystem(uri, pafs.LocalFileSystem())
    return pafs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
