"""The lake: one Delta table per topic, under one root. Paths and options go to deltalake as they are."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from kafka_io.errors import Where
from resources import topic_names
from resources.errors import LakeUnavailable

if TYPE_CHECKING:  # workers need no settings, and pydantic takes a while to import
    from resources.settings import Settings


_STACK = re.compile(r"\n\s*0: ")
_DRAWN = re.compile(r"\x1b\[[0-9;]*m|\u21b3")  # deltalake draws chains of causes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """Where the tables are: `root` is a folder or a URI, `options` what its object store needs."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """The lake that the settings name."""
        return cls(root=settings.lake, options=settings.lake_options)

    def table_uri(self, cluster: str, topic: str) -> str:
        """The table of a topic: `<root>/<cluster>/<encoded topic>`."""
        return "/".join((self.root.rstrip("/"), cluster, *topic_names.folders(topic)))

    def topics(self, cluster: str) -> list[str]:
        """The topics of a cluster that have a table, by name."""
        root = "/".join((self.root.rstrip("/"), cluster))
        with lake_errors(root):
            return sorted(topic_names.decode_folders(path) for path in _tables(filesystem(root, self.options), []))

    def open(self, uri: str) -> DeltaTable | None:
        """A handle on the table's newest version; None where there is no table.

        Raises:
            LakeUnavailable: the store gives no answer, or the table's log is damaged.
        """
        with lake_errors(uri):
            try:
                return DeltaTable(uri, storage_options=dict(self.options))
            except TableNotFoundError:
                return None

    def create(
        self, uri: str, schema: pa.Schema, *, partition_by: list[str], configuration: Mapping[str, str]
    ) -> DeltaTable:
        """The table, made if it is not there; two runs that both make it get the same one."""
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
                    # With retries, the one that comes second makes the table once more, as its next version.
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
            except CommitFailedError:
                return DeltaTable(uri, storage_options=dict(self.options))


def _tables(files: pafs.FileSystem, folder: list[str]) -> Iterator[list[str]]:
    """Paths of tables below `folder`. Only folders whose name goes on in the next are looked into, never a table."""
    selector = pafs.FileSelector("/".join(folder), allow_not_found=True)
    for info in files.get_file_info(selector):
        path = [*folder, info.base_name]
        if info.type == pafs.FileType.Directory and topic_names.goes_on(info.base_name):
            yield from _tables(files, path)
        elif files.get_file_info("/".join([*path, "_delta_log"])).type == pafs.FileType.Directory:
            yield path


@contextmanager
def lake_errors(uri: str) -> Iterator[None]:
    """Errors of the store leave this block as LakeUnavailable."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise LakeUnavailable(f"the table {uri} cannot be read or written: {reason_of(error)}", Where()) from error


def reason_of(error: Exception) -> str:
    """What an error of the store says, as one line: no frames of its stack, no colours."""
    return " ".join(_DRAWN.sub(" ", _STACK.split(str(error))[0]).split())


def filesystem(uri: str, options: Mapping[str, str]) -> pafs.FileSystem:
    """A file system whose root is the table at `uri`; workers write and the driver checks through it."""
    if "://" not in uri:
        return pafs.SubTreeFileSystem(uri, pafs.LocalFileSystem())
    return pafs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
