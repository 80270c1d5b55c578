"""The lake: one table per topic under one root. Paths and options are passed to deltalake unchanged."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from kafka_io.errors import Where
from resources import topic_names
from resources.errors import LakeRefused, LakeUnavailable, TopicUnknown
from resources.stores import durable
from resources.stores.object_client import object_client
from resources.stores.store_errors import is_refusal, reason_of
from resources.stores.store_options import store_options
from resources.stores.table_catalog import EMBEDDED, TableCatalog, catalog_errors, names_of, table_identifier
from resources.table_formats import ALL_DELTA, TableFormats

if TYPE_CHECKING:  # workers need no settings, and pydantic is slow to import
    from pyiceberg.catalog import Catalog

    from resources.settings.settings import Settings

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_RETRY_OPTIONS = {
    "max_retries": "100",
    "retry_timeout": "60s",
    "backoff_config.init_backoff": "200ms",
    "backoff_config.max_backoff": "5s",
    "backoff_config.base": "3",
}
"""How the client of an object store repeats requests that fail for a time, such as 503: for a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The place of the tables. It has references to secrets, and never the secrets: tasks of Spark have the options.

    Args:
        root: a folder or a URI.
        options: the options of its object store.
        formats: which table has which format.
        catalog: the catalog of Iceberg tables.
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict)
    formats: TableFormats = ALL_DELTA
    catalog: TableCatalog = EMBEDDED

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """The lake of the settings. Failed requests to an object store are repeated, unless the settings say otherwise.

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
        retry_options = {} if folder else _RETRY_OPTIONS
        return cls(
            root=settings.lake,
            options={**retry_options, **settings.lake_options},
            formats=settings.table_formats,
            catalog=TableCatalog(
                type=settings.catalog.type, uri=settings.catalog.uri or "", properties=settings.catalog.properties
            ),
        )

    @classmethod
    def of_table(cls, uri: str, options: Mapping[str, str]) -> Self:
        """The place of a single table, whose URI is known."""
        return cls(root=uri.rstrip("/").rpartition("/")[0], options=options)

    def table_uri(self, cluster: str, topic: str) -> str:
        """The URI of the table of a topic: `<root>/<cluster>/<encoded topic>`.

        Raises:
            TopicUnknown: the name is empty.
        """
        if not topic:
            raise TopicUnknown("no topic has an empty name", Where(cluster=cluster))
        return "/".join((self.root.rstrip("/"), cluster, *topic_names.folders(topic)))

    def iceberg_place(self, uri: str) -> tuple[str, str] | None:
        """The cluster and the topic whose Iceberg table has this URI; None if it is the URI of anything else."""
        cluster, _, folder = uri.removeprefix(f"{self.root.rstrip('/')}/").partition("/")
        topic = _topic_of(folder.split("/"))
        is_table = topic is not None and self.table_uri(cluster, topic) == uri
        return (cluster, topic) if is_table and topic and self.formats.of(cluster, topic) == "iceberg" else None

    def topics(self, cluster: str) -> list[str]:
        """The topics of a cluster that have a table, sorted by name."""
        root = "/".join((self.root.rstrip("/"), cluster))
        with lake_errors(root):
            files = filesystem(root, self.options)
            folders = list(_topic_folders(files, []))
            in_catalog = self._names_in_catalog(cluster) if self.formats.has_iceberg else frozenset[str]()
            is_table = partial(self._is_table, files, cluster, in_catalog)
            are_tables = each_of(root, is_table, folders, at_once=tables_at_once(root))
            tables = [folder for folder, is_table in zip(folders, are_tables, strict=True) if is_table]
        return sorted(map(topic_names.decode_folders, tables))

    def _names_in_catalog(self, cluster: str) -> frozenset[str]:
        """The names of all tables that the catalog has of a cluster."""
        return frozenset() if self.catalog.is_new(self.root) else names_of(self.open_catalog(), cluster)

    def _is_table(
        self, files: pafs.FileSystem, cluster: str, in_catalog: frozenset[str], folder: Sequence[str]
    ) -> bool:
        topic = _topic_of(folder)
        if topic is not None and self.formats.of(cluster, topic) == "iceberg":
            return table_identifier(cluster, topic)[1] in in_catalog
        return _has_delta_log(files, folder)

    def open_catalog(self) -> "Catalog":
        """The catalog of Iceberg tables. Raises as `TableCatalog.open`."""
        return self.catalog.open(self.root, self.options)

    def clusters(self) -> list[str]:
        """The names of the clusters that have a folder in the lake, sorted."""
        with lake_errors(self.root):
            infos = list_folder(filesystem(self.root, self.options), "")
        folders = (info.base_name for info in infos if info.type == pafs.FileType.Directory)
        return sorted(name for name in folders if not name.startswith("_"))

    def has_table(self, cluster: str, topic: str) -> bool:
        """Whether the topic has a table. This asks only for this table, however many there are.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        uri = self.table_uri(cluster, topic)
        with lake_errors(uri):
            if self.formats.of(cluster, topic) == "iceberg":
                is_new = self.catalog.is_new(self.root)
                return not is_new and self.open_catalog().table_exists(table_identifier(cluster, topic))
            return _has_delta_log(filesystem(uri, self.options), [])

    def open(self, uri: str) -> DeltaTable | None:
        """The newest version of a table; None if there is no table.

        Raises:
            LakeUnavailable: the store does not answer, or the Delta log is damaged.
        """
        with lake_errors(uri):
            try:
                return DeltaTable(uri, storage_options=store_options(self.options))
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
                    storage_options=store_options(self.options),
                    # With retries, the second of two runs would create the table again as its next version.
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
            except CommitFailedError:
                return DeltaTable(uri, storage_options=store_options(self.options))


def tables_at_once(uri: str) -> int:
    """How many tables of a lake, or of the lake of a table, are read at the same time.

    An object store answers slowly, and answers many requests at once.
    """
    return 8 if durable.local_path(uri) else 48


def each_of(uri: str, ask: Callable[[ItemT], AnswerT], items: Collection[ItemT], *, at_once: int) -> Iterator[AnswerT]:
    """The answer for each item, in order. In an object store, which answers slowly, up to `at_once` threads ask.

    On a local disk a thread costs more than it saves.
    """
    if durable.local_path(uri) is not None or len(items) == 1:
        yield from map(ask, items)
        return
    with ThreadPoolExecutor(at_once) as threads:
        yield from threads.map(ask, items)


def _topic_folders(files: pafs.FileSystem, folder: list[str]) -> Iterator[list[str]]:
    """The paths below `folder` that can be tables. Only folders with a part of a long name are searched."""
    for info in list_folder(files, "/".join(folder)):
        path = [*folder, info.base_name]
        if info.type == pafs.FileType.Directory and topic_names.continues(info.base_name):
            yield from _topic_folders(files, path)
        else:
            yield path


def _topic_of(folder: Sequence[str]) -> str | None:
    """The topic of a table's folder; None for another folder."""
    with suppress(ValueError):
        return topic_names.decode_folders(list(folder))
    return None


def _has_delta_log(files: pafs.FileSystem, folder: Sequence[str]) -> bool:
    return bool(files.get_file_info("/".join([*folder, "_delta_log"])).type == pafs.FileType.Directory)


@contextmanager
def lake_errors(uri: str) -> Iterator[None]:
    """Turn errors of the store inside a `with` block into LakeUnavailable, or LakeRefused if they would come again.

    A catalog is a store, too.
    """
    try:
        with catalog_errors():
            yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        kind = LakeRefused if is_refusal(error) else LakeUnavailable
        raise kind(f"the table {uri} cannot be read or written: {reason_of(error)}", Where()) from error


def list_folder(files: pafs.FileSystem, folder: str, *, recursive: bool = False) -> list[pafs.FileInfo]:
    """The files and folders in `folder`; none if it does not exist.

    pyarrow first lists the folder, and after a failure asks whether it exists. If another process creates it between
    these two steps, pyarrow raises FileNotFoundError, and the second listing finds the folder.
    """
    selector = pafs.FileSelector(folder, allow_not_found=True, recursive=recursive)
    try:
        return list(files.get_file_info(selector))
    except FileNotFoundError:
        return list(files.get_file_info(selector))


def files_below(uri: str, files: pafs.FileSystem, folder: str) -> list[pafs.FileInfo]:
    """All files below a folder of the table at `uri`; none if it does not exist.

    Links to folders are not followed: what is behind them does not belong to the table (fault E14). Stores of objects
    have none.
    """
    root = durable.local_path(uri)
    if root is None:
        infos = list_folder(files, folder, recursive=True)
    elif (root / folder).is_symlink():
        infos = []
    else:
        below = (Path(parent, name) for parent, _, names in os.walk(root / folder) for name in names)
        infos = files.get_file_info([path.relative_to(root).as_posix() for path in below])
    return [info for info in infos if info.type == pafs.FileType.File]


def write_file(files: pafs.FileSystem, path: str, content: bytes) -> None:
    """Write a file with this content; its folder is created.

    Through a buffer, because the streams of deltalake take no pyarrow.Buffer, which is what pyarrow writes without one.
    """
    folder = path.rpartition("/")[0]
    files.create_dir(folder, recursive=True)
    with files.open_output_stream(path, buffer_size=len(content) + 1) as stream:
        stream.write(content)


def filesystem(uri: str, options: Mapping[str, str], sizes: Mapping[str, int] | None = None) -> pafs.FileSystem:
    """A file system whose root is the table at `uri`. Workers write through it, and the driver checks their files.

    In an object store, files with known `sizes` are opened without a request.
    """
    if "://" not in uri:
        return pafs.SubTreeFileSystem(uri, pafs.LocalFileSystem())
    return pafs.PyFileSystem(_StorageHandler(uri, options, sizes))


class _StorageHandler(DeltaStorageHandler):
    """The file system of deltalake. If the store has an ObjectClient, the client writes files and lists folders.

    It writes a small file with one request. deltalake holds Python's lock while it waits for a listing, and then all
    threads wait.
    """

    def __init__(self, uri: str, options: Mapping[str, str], sizes: Mapping[str, int] | None) -> None:
        super().__init__(uri, store_options(options), dict(sizes) if sizes else None)
        self._client = object_client(uri, options)

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        """A stream whose object exists when it is closed. An object below 8 MiB takes one request."""
        if self._client is None:
            return super().open_output_stream(path, metadata)
        return pa.PythonFile(self._client.open_writer(path), mode="w")

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """The files and folders that the selector describes; none if an object store has nothing there."""
        if self._client is None:
            return super().get_file_info_selector(selector)
        return list(self._client.entries(selector.base_dir, recursive=selector.recursive))
