"""Opens a topic's Delta table: snapshots with their cursors, handles of versions, and the commits of the log.

The newest part of the log is read once, as a DeltaLogSegment. deltalake reads the log of a table in HDFS or another
store without StoreClient, every log that DeltaLogSegment does not understand, and the files of a version.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable

from kafka_io.errors import Where
from pipelines.delta.commits import LogCommit
from pipelines.delta.entries import LogEntries
from pipelines.delta.handle import file_paths
from pipelines.delta.log_segment import (
    DeltaLogSegment,
    LogUnclear,
    TableDefinition,
    log_entry,
    read_newer,
    read_segment,
)
from pipelines.delta.snapshot_checks import checked_snapshot
from pipelines.delta.table_copy import TableCopy
from pipelines.ledger.ledger import LedgerEntry
from pipelines.table.table_store import TableSnapshot
from resources.errors import CursorMismatch, LakeUnavailable
from resources.stores.lake import Lake, filesystem, lake_errors
from resources.stores.object_client import object_client
from resources.stores.store_client import store_client

_MAX_ENTRIES_KEPT = 30
"""With more entries after the checkpoint, all is read again: there may be a newer checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReader:
    """The table of a topic at `uri`, as its readers see it."""

    lake: Lake
    uri: str
    where: Where

    def existing(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """The newest version; None if there is no table. Of the version `after` of a table only newer entries are read.

        Raises:
            LakeUnavailable: the store does not answer.
            LogTorn: an entry of the log cannot be read.
            TableForeign: the table has commits, but none of Penstock; or it uses a feature that changes what its files
                mean; or its `txn` entries expire, so that a cursor could be lost (fault L15).
            CursorMismatch: the `txn` cursor is not where the newest entry left it, or somebody restored an old
                version (fault L14).
        """
        snapshot = self.newest(after=after)
        if snapshot is not None:
            self._check_cursors(snapshot)
        return snapshot

    def check_loadable(self, handle: DeltaTable) -> None:
        """Check that a load could continue from the handle's version.

        Raises:
            LoadError: see `existing`.
        """
        self._check_cursors(self._read(handle))

    def _check_cursors(self, snapshot: TableSnapshot) -> None:
        if snapshot.mismatch:
            raise CursorMismatch(snapshot.mismatch, self.where)

    def newest(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """The newest version, even if its cursors do not match, to show or repair it; None if there is no table.

        Raises:
            LoadError: see `existing`, except CursorMismatch.
        """
        try:
            segment = self._newer_segment(after) or self._segment()
            return None if segment is None else self._of_segment(segment)
        except LogUnclear:
            handle = self._opened_by_deltalake()
            return self._read(handle) if handle is not None else None

    def newest_handle(self) -> DeltaTable | None:
        """The newest version as deltalake reads it; None if there is no table.

        Raises:
            LakeUnavailable: the store does not answer.
            LogTorn: an entry of the log cannot be read.
        """
        try:
            segment = self._segment()
            return None if segment is None else self._opened_at(segment)
        except LogUnclear:
            return self._opened_by_deltalake()

    def _segment(self) -> DeltaLogSegment | None:
        """The newest part of the log; None if there is no table.

        Raises:
            LogUnclear: only deltalake can read it.
            LakeUnavailable: the store does not answer.
        """
        client = store_client(self.uri, self.lake.options)
        if client is None:
            raise LogUnclear
        with lake_errors(self.uri):
            return read_segment(client)

    def _newer_segment(self, after: TableSnapshot | None) -> DeltaLogSegment | None:
        """The log from the checkpoint of a snapshot on, of which only the new entries are read.

        None if the log no longer has the entry of the snapshot, or all has to be read again.
        """
        client = store_client(self.uri, self.lake.options)
        if client is None or after is None or after.segment is None or len(after.segment.entries) > _MAX_ENTRIES_KEPT:
            return None
        with lake_errors(self.uri), suppress(LogUnclear):
            return read_newer(client, after.segment)
        return None

    def _opened_by_deltalake(self) -> DeltaTable | None:
        try:
            return self.lake.open(self.uri)
        except LakeUnavailable:
            self._entries.check_newest()
            raise

    def _read(self, handle: DeltaTable) -> TableSnapshot:
        """The snapshot of the handle's version."""
        snapshot = checked_snapshot(
            self.uri, self.where, TableDefinition.of_handle(handle), self.commits_of(handle), lambda: handle
        )
        return replace(snapshot, version=handle.version(), writer=lambda: handle)

    def _of_segment(self, segment: DeltaLogSegment) -> TableSnapshot:
        """The snapshot of the newest version. deltalake opens it only if it is asked for more.

        Raises:
            LogUnclear: only deltalake can read the log.
        """
        opened, writer = cache(lambda: self._opened_at(segment)), cache(lambda: self.handle_at(segment.version))
        commits = self._commits_of_segment(segment)
        try:
            snapshot = checked_snapshot(self.uri, self.where, segment.definition, commits, opened)
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # actions without what they must have
            raise LogUnclear from error
        return replace(snapshot, version=segment.version, writer=writer, segment=segment)

    def _opened_at(self, segment: DeltaLogSegment) -> DeltaTable:
        """A deltalake handle of the newest version of the segment. It reads the log again only on a local disk."""
        client = object_client(self.uri, self.lake.options)
        try:
            with lake_errors(self.uri):
                return TableCopy(self.uri, self.lake.options, segment) if client else self.handle_at(segment.version)
        except LakeUnavailable:
            self._entries.check_newest()
            raise

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """Version and entry of Penstock's commits in `(after, upto.version]`, newest first."""
        for commit in self.commits(upto.version, after=after):
            if commit.entry is not None:
                yield commit.version, commit.entry

    def commits(self, newest: int, *, after: int = -1) -> Iterator[LogCommit]:
        """Every commit of the versions in `(after, newest]`, newest first; see LogEntries."""
        return self._entries.commits(newest, after=after)

    def commits_of(self, handle: DeltaTable) -> Iterator[LogCommit]:
        """Every commit of the table up to the handle's version, newest first; those that were read are not read again.

        Raises:
            LogTorn: an entry is missing or damaged.
            LakeUnavailable: the store does not answer.
        """
        if isinstance(handle, TableCopy):
            return self._commits_of_segment(handle.segment)
        return self.commits(handle.version())

    def _commits_of_segment(self, segment: DeltaLogSegment) -> Iterator[LogCommit]:
        yield from (segment.commit(version) for version in sorted(segment.entries, reverse=True))
        yield from self.commits(min(segment.entries) - 1)

    @property
    def _entries(self) -> LogEntries:
        return LogEntries(uri=self.uri, options=self.lake.options, where=self.where)

    def paths(self, version: int) -> set[str]:
        """The paths of the data files of a version."""
        with lake_errors(self.uri):
            return file_paths(self.handle_at(version))

    def handle_at(self, version: int) -> DeltaTable:
        """A handle of an older version of the table, which exists."""
        with lake_errors(self.uri):
            handle = self.lake.open(self.uri)
            if handle is None:
                raise LakeUnavailable(f"the table {self.uri} was removed", self.where)
            if handle.version() != version:
                handle.load_as_version(version)
            return handle

    def written_ns(self, version: int) -> int | None:
        """When the entry of the newest version was written, in ns since 1970; None if the newest is not this version.

        The store answers that much faster than it reads the log.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        files = filesystem(self.uri, self.lake.options)
        with lake_errors(self.uri):
            entry, next_entry = files.get_file_info([log_entry(version), log_entry(version + 1)])
        is_newest = entry.type == pafs.FileType.File and next_entry.type == pafs.FileType.NotFound
        return entry.mtime_ns if is_newest else None

    def damaged(self, handle: DeltaTable) -> frozenset[str]:
        """The data files of the handle's version that are missing, or have another size than the log says."""
        with lake_errors(self.uri):
            adds = pa.table(handle.get_add_actions()).select(["path", "size_bytes"]).to_pylist()
            sizes = {unquote(add["path"]): add["size_bytes"] for add in adds}
            infos = filesystem(self.uri, self.lake.options).get_file_info(list(sizes))
        return frozenset(info.path for info in infos if info.size != sizes[info.path])
