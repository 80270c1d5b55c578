"""Opens a topic's Delta table: snapshots with their cursors, versions, and the commits of the delta log.

The newest part of the delta log is read once, as a DeltaLogSegment. deltalake reads the delta log of a table in HDFS or
another store without StoreClient, every one that DeltaLogSegment does not understand, and the files of a version.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow.fs as pafs
from deltalake import DeltaTable

from pipelines.delta.delta_log import DeltaLog
from pipelines.delta.delta_log_segment import (
    DeltaLogSegment,
    DeltaLogUnclear,
    TableDefinition,
    commit_file,
    read_newer,
    read_segment,
)
from pipelines.delta.open_version import DeltaVersion
from pipelines.delta.snapshot_checks import check_features, checked_snapshot
from pipelines.delta.table_copy import CopiedVersion, opened_copy
from pipelines.ledger.ledger import LedgerEntry
from pipelines.table.open_table import OpenTable, file_paths
from pipelines.table.stored_table import StoredTable
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from resources.errors import LakeUnavailable
from resources.stores.lake import filesystem, lake_errors
from resources.stores.object_client import object_client
from resources.stores.store_client import store_client

HandleT = TypeVar("HandleT", bound=DeltaTable | None)
_MAX_COMMITS_KEPT = 30
"""With more commits after the checkpoint, all is read again: there may be a newer checkpoint (fault L22)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReader(StoredTable):
    """The table of a topic at `uri`, as its readers see it."""

    def existing(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """The newest version; None if there is no table. Of the version `after` of a table only newer entries are read.

        Raises:
            LakeUnavailable: the store does not answer.
            LogTorn: a commit of the delta log cannot be read.
            TableForeign: the table has commits, but none of Penstock; or it uses a feature that changes what its files
                mean; or its `txn` entries expire, so that a cursor could be lost (fault L15).
            CursorMismatch: the `txn` cursor is not where the newest entry left it, or somebody restored an old
                version (fault L14).
        """
        snapshot = self.newest(after=after)
        if snapshot is not None and self.checks_cursors:
            self.check_cursors(snapshot)
        return snapshot

    def check_loadable(self, opened: OpenTable) -> None:
        """Check that a load could continue from the version.

        Raises:
            LoadError: see `existing`.
        """
        self.check_cursors(self._read(DeltaVersion.of_opened(opened)))

    def newest(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """The newest version, even if its cursors do not match, to show or repair it; None if there is no table.

        Raises:
            LoadError: see `existing`, except CursorMismatch.
        """
        try:
            segment = self._newer_segment(after) or self._segment()
            return None if segment is None else self._of_segment(segment)
        except DeltaLogUnclear:
            opened = self._opened_by_deltalake()
            return self._read(opened) if opened is not None else None

    def open_newest(self) -> DeltaVersion | None:
        """The newest version as deltalake reads it, even if no load can continue from it; None if there is no table.

        Raises:
            LakeUnavailable: the store does not answer.
            LogTorn: a commit of the delta log cannot be read.
            TableForeign: the table uses a feature that Penstock does not know.
        """
        try:
            segment = self._segment()
            return None if segment is None else self._version_of(segment)
        except DeltaLogUnclear:
            opened = self._opened_by_deltalake()
            if opened is not None:
                check_features(self.uri, self.where, TableDefinition.of_handle(opened.handle))
            return opened

    def _segment(self) -> DeltaLogSegment | None:
        """The newest part of the delta log; None if there is no table.

        Raises:
            DeltaLogUnclear: only deltalake can read it.
            LakeUnavailable: the store does not answer.
            TableForeign: the table uses a feature that Penstock does not know. deltalake might not open it.
        """
        client = store_client(self.uri, self.lake.options)
        if client is None:
            raise DeltaLogUnclear
        with lake_errors(self.uri):
            segment = read_segment(client)
        if segment is not None:
            check_features(self.uri, self.where, segment.definition)
        return segment

    def _newer_segment(self, after: TableSnapshot | None) -> DeltaLogSegment | None:
        """The delta log from the checkpoint of a snapshot on, of which only the new commits are read.

        None if the delta log no longer has the commit of the snapshot, or all has to be read again.
        """
        client = store_client(self.uri, self.lake.options)
        segment = DeltaVersion.of(after).segment if after else None
        if client is None or segment is None or len(segment.commit_files) > _MAX_COMMITS_KEPT:
            return None
        with lake_errors(self.uri), suppress(DeltaLogUnclear):
            return read_newer(client, segment)
        return None

    def _opened_by_deltalake(self) -> DeltaVersion | None:
        handle = self._opened(lambda: self.lake.open(self.uri))
        return DeltaVersion.of_handle(handle) if handle is not None else None

    def _opened(self, open_table: Callable[[], HandleT]) -> HandleT:
        """The handle that deltalake gives. If it gives none, the error names the damaged commit or checkpoint."""
        try:
            with lake_errors(self.uri):
                return open_table()
        except LakeUnavailable:
            self._delta_log.check_newest()
            raise

    def _read(self, opened: DeltaVersion) -> TableSnapshot:
        """The snapshot of a version as deltalake reads it."""
        definition, commits = TableDefinition.of_handle(opened.handle), self.commits_of(opened)
        version = opened.handle.version()
        return checked_snapshot(self.uri, self.where, definition, commits, version=version, opened=opened)

    def _of_segment(self, segment: DeltaLogSegment) -> TableSnapshot:
        """The snapshot of the newest version. deltalake opens it only if it is asked for more.

        Raises:
            DeltaLogUnclear: only deltalake can read the delta log.
        """
        opened, commits = self._version_of(segment), self._commits_of_segment(segment)
        try:
            return checked_snapshot(
                self.uri, self.where, segment.definition, commits, version=segment.version, opened=opened
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # actions without what they must have
            raise DeltaLogUnclear from error

    def _version_of(self, segment: DeltaLogSegment) -> DeltaVersion:
        """The newest version of the segment. To open it, the delta log is read again only on a local disk."""
        at_version = partial(self._handle_at, segment.version)
        if object_client(self.uri, self.lake.options) is None:
            return DeltaVersion(partial(self._opened, at_version), at_version, segment)
        read_copy = partial(self._opened, partial(opened_copy, segment))
        return CopiedVersion(self.uri, self.lake.options, segment, read_copy, at_version)

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """Version and entry of Penstock's commits in `(after, upto.version]`, newest first."""
        for commit in self.commits(upto.version, after=after):
            if commit.entry is not None:
                yield commit.version, commit.entry

    def commits(self, newest: int, *, after: int = -1) -> Iterator[TableCommit]:
        """Every commit of the versions in `(after, newest]`, newest first; see DeltaLog."""
        return self._delta_log.commits(newest, after=after)

    def commits_of(self, opened: OpenTable) -> Iterator[TableCommit]:
        """Every commit of the table up to the version, newest first; those that were read are not read again.

        Raises:
            LogTorn: a commit is missing or damaged.
            LakeUnavailable: the store does not answer.
        """
        if isinstance(opened, CopiedVersion) and opened.segment:
            return self._commits_of_segment(opened.segment)
        return self.commits(opened.version)

    def _commits_of_segment(self, segment: DeltaLogSegment) -> Iterator[TableCommit]:
        yield from (segment.commit(version) for version in sorted(segment.commit_files, reverse=True))
        yield from self.commits(min(segment.commit_files) - 1)

    @property
    def _delta_log(self) -> DeltaLog:
        return DeltaLog(uri=self.uri, options=self.lake.options, where=self.where)

    def oldest(self, version: int) -> int:
        """This version: a Delta table keeps its whole log."""
        return version

    def paths(self, version: int) -> set[str]:
        """The paths of the data files of a version."""
        with lake_errors(self.uri):
            return file_paths(self.opened_at(version))

    def opened_at(self, version: int) -> DeltaVersion:
        """An older version of the table, which exists."""
        return DeltaVersion.of_handle(self._handle_at(version))

    def _handle_at(self, version: int) -> DeltaTable:
        with lake_errors(self.uri):
            handle = self._newest_handle()
            if handle.version() != version:
                handle.load_as_version(version)
            return handle

    def _newest_handle(self) -> DeltaTable:
        """Open the newest version with deltalake.

        Raises:
            LakeUnavailable: the table was removed, or the store does not answer.
        """
        handle = self.lake.open(self.uri)
        if handle is None:
            raise LakeUnavailable(f"the table {self.uri} was removed", self.where)
        return handle

    def written_ns(self, version: int) -> int | None:
        """When the newest version was written, in ns since 1970; None if the newest is not this version.

        The store answers that much faster than it reads the delta log.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        files = filesystem(self.uri, self.lake.options)
        with lake_errors(self.uri):
            commit, next_commit = files.get_file_info([commit_file(version), commit_file(version + 1)])
        is_newest = commit.type == pafs.FileType.File and next_commit.type == pafs.FileType.NotFound
        return commit.mtime_ns if is_newest else None
