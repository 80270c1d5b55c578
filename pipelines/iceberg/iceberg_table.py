"""A topic's Iceberg table: snapshots with their cursors, and one commit for each ledger entry."""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetPropertiesUpdate
from pyiceberg.transforms import IdentityTransform

from pipelines.iceberg.changes import change_of
from pipelines.iceberg.columns import column_properties, iceberg_schema
from pipelines.iceberg.compaction import merge_of, small_files
from pipelines.iceberg.housekeeping import delete_unneeded, expire, metadata_names, older_snapshots
from pipelines.iceberg.open_version import IcebergVersion
from pipelines.iceberg.snapshot_commit import TAG, SnapshotChange, commit_snapshot, unchanged
from pipelines.iceberg.snapshots import COMMIT, CREATED, HOUSEKEEPING, ancestors, commits, newest_snapshot
from pipelines.iceberg.stored_ledger import StoredLedger
from pipelines.layout.delta_schema import delta_fields
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.lake_table import Compaction, ScrubResult
from pipelines.table.open_table import OpenTable, file_paths
from pipelines.table.stored_table import StoredTable
from pipelines.table.table_commit import TableCommit, newest_commits
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown, TableSnapshot
from resources.errors import LakeUnavailable, LogTorn, RewindRefused, TableForeign
from resources.failpoints import failpoint
from resources.stores.lake import lake_errors
from resources.stores.table_catalog import catalog_errors, create_table, table_location
from resources.stores.table_io import elsewhere

_CLEANED = "penstock.cleaned-before"
_FIRST_PARTITION_ID = 1000  # the spec reserves the ids from here on for fields of partitions
_PROPERTIES = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Each commit makes a file with all metadata. Engines that keep these properties delete old ones; so does `forget`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergLakeTable(StoredTable):
    """One topic's table in a catalog; see LakeTable.

    Args:
        catalog: the catalog.
        identifier: the namespace and the name of the table in it.
    """

    catalog: Catalog
    identifier: tuple[str, ...]

    def existing(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """See LakeTable. One request reads all of a table's metadata, so `after` saves nothing."""
        snapshot = self.newest(after=after)
        if snapshot is not None and self.checks_cursors:
            self.check_cursors(snapshot)
        return snapshot

    def newest(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """See LakeTable."""
        del after
        table = self._load()
        return None if table is None else self._snapshot_of(self._opened(table, newest_snapshot(table)))

    def open_newest(self) -> IcebergVersion | None:
        """See LakeTable."""
        table = self._load()
        return None if table is None else self._opened(table, newest_snapshot(table))

    def check_loadable(self, opened: OpenTable) -> None:
        """See LakeTable."""
        self.check_cursors(self._snapshot_of(IcebergVersion.of_opened(opened)))

    def snapshot(self) -> TableSnapshot:
        """See LakeTable."""
        return self.existing() or self._create()

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """See LakeTable."""
        return self.check_same_table(snapshot, self.existing(after=snapshot))

    def _load(self) -> Table | None:
        """The table with its newest metadata; None if the catalog does not have it.

        Raises:
            LakeRefused: its files are not in the lake.
        """
        with lake_errors(self.uri), suppress(NoSuchTableError):
            table = self.catalog.load_table(self.identifier)
            if _plain(table.location()) != _plain(table_location(self.uri)):
                raise elsewhere(table.location(), self.lake.root)
            return table
        return None

    def _existing_table(self) -> Table:
        table = self._load()
        if table is None:
            raise LakeUnavailable(f"the table {self.uri} was removed", self.where)
        return table

    def _opened(self, table: Table, snapshot: Snapshot | None) -> IcebergVersion:
        return IcebergVersion(table, snapshot, self.uri, self.lake.options)

    def _snapshot_of(self, opened: IcebergVersion) -> TableSnapshot:
        table = opened.table
        newest = newest_commits(self._commits(table, opened.snapshot, upto=opened.version, with_files=False))
        if newest.entry is None and opened.snapshot is not None:
            raise TableForeign(f"the table {self.uri} has snapshots, but none of Penstock", self.where)
        return TableSnapshot(
            version=opened.version,
            entry=newest.entry,
            table_id=str(table.metadata.table_uuid),
            layout=opened.layout,
            mismatch=self._mismatch(opened) if newest.entry else None,
            changed=newest.change.change_by_others(self.where.topic) if newest.change else "",
            digest=newest.digest,
            entry_ms=newest.entry_ms,
            open_table=opened,
        )

    def _mismatch(self, opened: IcebergVersion) -> str | None:
        """Why the version is not on top of Penstock's newest snapshot, which its tag names."""
        name, tagged = ".".join(self.identifier), opened.table.metadata.refs.get(TAG)
        if tagged is None:
            return (
                f"the tag {TAG} of the table {name} is gone, so nothing shows which snapshot is Penstock's newest one"
            )
        if any(snapshot.snapshot_id == tagged.snapshot_id for snapshot in ancestors(opened.table, opened.snapshot)):
            return None
        return (
            f"version {opened.version} of the table {name} does not follow Penstock's newest snapshot: somebody rolled "
            "it back or replaced it; in Spark, "
            f"`CALL system.set_current_snapshot(table => '{name}', ref => '{TAG}')` undoes that"
        )

    def _create(self) -> TableSnapshot:
        failpoint("no table found")
        self.check_no_other_format("_delta_log", "delta")
        fields = delta_fields(self.new_layout.table_schema)
        schema = assign_fresh_schema_ids(iceberg_schema(fields))  # with the ids that the catalog will give
        column = schema.find_field(self.new_layout.partition_column)
        spec = PartitionSpec(PartitionField(column.field_id, _FIRST_PARTITION_ID, IdentityTransform(), column.name))
        created = {CREATED: str(time.time_ns() // 1_000_000)}
        properties = {**_PROPERTIES, **created, **column_properties(schema, fields)}
        place = table_location(self.uri)
        with lake_errors(self.uri):
            create_table(
                self.catalog, self.identifier, schema=schema, location=place, partition_spec=spec, properties=properties
            )
        failpoint("table made")
        snapshot = self.existing()
        if snapshot is None:
            raise LakeUnavailable(f"the catalog does not show the new table {self.uri}; load again", self.where)
        return snapshot

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """See TableStore."""
        for commit in self._commits_until(upto.version, after, with_files=False):
            if commit.entry is not None:
                yield commit.version, commit.entry

    def commits(self, newest: int, *, after: int = -1) -> Iterator[TableCommit]:
        """See LakeTable."""
        return self._commits_until(newest, after, with_files=True)

    def commits_of(self, opened: OpenTable) -> Iterator[TableCommit]:
        """See LakeTable."""
        version = IcebergVersion.of_opened(opened)
        return self._commits(version.table, version.snapshot, upto=version.version, with_files=True)

    def _commits(self, table: Table, newest: Snapshot | None, *, upto: int, with_files: bool) -> Iterator[TableCommit]:
        records = StoredLedger.of(table.properties).newest_first(self.uri, self.lake.options)
        return commits(table, newest, records, upto=upto, with_files=with_files)

    def _commits_until(self, newest: int, after: int, *, with_files: bool) -> Iterator[TableCommit]:
        table = self._existing_table()
        for commit in self._commits(table, newest_snapshot(table), upto=newest, with_files=with_files):
            if commit.version <= after:
                return
            yield commit

    def _at(self, table: Table, version: int) -> Snapshot | None:
        """The snapshot of a version; None for version 0.

        Raises:
            LogTorn: it expired, or there never was one.
        """
        if version == 0:
            return None
        for snapshot in ancestors(table, newest_snapshot(table)):
            if snapshot.sequence_number == version:
                return snapshot
        raise LogTorn(
            f"version {version} of the table {self.uri} is not there: its snapshot may have expired", self.where
        )

    def opened_at(self, version: int) -> IcebergVersion:
        """See LakeTable."""
        table = self._existing_table()
        return self._opened(table, self._at(table, version))

    def oldest(self, version: int) -> int:
        """See LakeTable. Snapshots before it may have expired."""
        table = self._existing_table()
        known = [snapshot.sequence_number or 0 for snapshot in ancestors(table, newest_snapshot(table))]
        return min((number for number in known if number >= version), default=version)

    def paths(self, version: int) -> set[str]:
        """See LakeTable."""
        with lake_errors(self.uri):
            return file_paths(self.opened_at(version))

    def written_ns(self, version: int) -> int | None:
        """See LakeTable."""
        table = self._load()
        newest = newest_snapshot(table) if table else None
        is_newest = newest is not None and newest.sequence_number == version
        return newest.timestamp_ms * 1_000_000 if newest and is_newest else None

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """See TableStore. An error of the catalog does not say whether the snapshot landed, so the table is read."""
        opened = IcebergVersion.of(snapshot)
        target = None if entry.target is None else self.opened_at(entry.target)
        with lake_errors(self.uri):
            change = change_of(opened, entry, new_slices, replaced, target)
        try:
            with catalog_errors():
                written = commit_snapshot(opened, change)
        except Exception as error:
            landed = self._landed(entry, after=snapshot.version)
            if landed is not None:
                return landed
            if isinstance(error, CommitFailedException):
                raise CommitConflict(str(error)) from error
            raise CommitOutcomeUnknown(f"{type(error).__name__}: {error}") from error
        failpoint("log entry written")
        return written.sequence_number or 0

    def _landed(self, entry: LedgerEntry, *, after: int) -> int | None:
        """The version with the entry; None if no version after this one has it.

        Raises:
            CommitOutcomeUnknown: the catalog does not answer.
        """
        try:
            table = self._existing_table()
            for snapshot in ancestors(table, newest_snapshot(table)):
                version = snapshot.sequence_number or 0
                if version <= after:
                    break
                if snapshot.summary is not None and snapshot.summary[COMMIT] == entry.commit:
                    return version
        except LakeUnavailable as error:
            raise CommitOutcomeUnknown(error.reason) from error
        return None

    def sync(self, *, after: int) -> None:
        """Nothing: the catalog answers when the commit is durable, and workers force data files to disk."""

    def check_restorable(self, snapshot: TableSnapshot, target: int) -> None:
        """See TableStore."""
        try:
            paths = self.paths(target)
        except LogTorn as error:
            raise RewindRefused(
                f"the snapshot of version {target} has expired, so its files are not known; `penstock history "
                f"{self.where.topic}` lists later versions",
                self.where,
            ) from error
        missing = sorted(paths - file_paths(snapshot.opened))
        cleaned = self.cleaned_before(snapshot)
        if missing and cleaned > target:
            reason = f"may be deleted at any time, because `penstock clean` cleaned up before version {cleaned}"
            raise self.not_restorable(missing, target, reason)
        self.check_files_exist(missing, target)

    def cleaned_before(self, snapshot: TableSnapshot) -> int:
        """See LakeTable."""
        return int(IcebergVersion.of(snapshot).table.properties.get(_CLEANED, 0))

    def announce_clean(self, snapshot: TableSnapshot, before: int) -> None:
        """See LakeTable."""
        if self.cleaned_before(snapshot) >= before:
            return
        table = IcebergVersion.of(snapshot).table
        update = SetPropertiesUpdate(updates={_CLEANED: str(before)})
        try:
            with lake_errors(self.uri):
                self.catalog.commit_table(table, unchanged(table), (update,))
        except CommitFailedException as error:
            raise CommitConflict(str(error)) from error

    def drop(self, snapshot: TableSnapshot, damaged: Collection[str]) -> TableSnapshot:
        """See LakeTable."""
        opened = IcebergVersion.of(snapshot)
        removed = [f"{opened.table.location()}/{path}" for path in damaged]
        with lake_errors(self.uri):
            self.set_aside(damaged)
            commit_snapshot(opened, SnapshotChange(removed=removed, summary={HOUSEKEEPING: "drop"}))
        return self.newer(snapshot)

    def compact(self, days: Sequence[date | None] | None, target_bytes: int) -> Compaction:
        """See LakeTable. Each new file is a commit of its own."""
        done, opened = Compaction(), self._open_existing()
        with lake_errors(self.uri):
            while paths := small_files(opened, days, target_bytes):
                change = merge_of(opened, paths)
                failpoint("compaction announced")
                try:
                    commit_snapshot(opened, change)
                except CommitFailedException:
                    return done.interrupted()
                failpoint("after compaction")
                done, opened = done.plus(len(paths), len(change.added)), self._open_existing()
        return done

    def _open_existing(self) -> IcebergVersion:
        table = self._existing_table()
        return self._opened(table, newest_snapshot(table))

    def checkpoint(self) -> None:
        """Nothing: the newest metadata file has all that opening a table needs."""

    def forget(self, before: int) -> None:
        """See LakeTable. Snapshots expire, and files that no snapshot needs are deleted."""
        opened = self._open_existing()
        with lake_errors(self.uri):
            times = [commit.time for commit in self._commits_until(before, before - 1, with_files=False)]
            self._expire(opened, older_snapshots(opened.table, before))
            delete_unneeded(self._open_existing(), times[0] if times and before else None)

    def _expire(self, opened: IcebergVersion, snapshots: Sequence[Snapshot]) -> bool:
        """Let snapshots expire; whether that was done, because nobody else committed at the same time."""
        with suppress(CommitFailedException):
            if snapshots:
                expire(opened, snapshots)
            return True
        return False

    def scrub(self, names: Collection[str] = (), *, deleted: Collection[str] = (), after: int = -1) -> ScrubResult:
        """See LakeTable. Snapshots with deleted files expire, and with them the manifests that have bounds of them.

        Nobody can read such a snapshot any more.
        """
        del after
        opened = self.open_newest()
        if opened is None:
            return ScrubResult()
        columns = tuple(sorted(opened.layout.personal.union(names)))
        with lake_errors(self.uri):
            lost = self._with_files(opened.table, deleted)
            if not lost:
                return ScrubResult(columns=columns)
            can_expire = {snapshot.snapshot_id for snapshot in older_snapshots(opened.table, opened.version)}
            if kept := [snapshot for snapshot in lost if snapshot.snapshot_id not in can_expire]:
                number = kept[0].sequence_number
                reason = f"a branch or a tag keeps version {number}, which has bounds of deleted files in its manifests"
                return ScrubResult(columns=columns, unsupported=reason)
            outdated = metadata_names(opened.table, lost)
            if not self._expire(opened, lost):
                return ScrubResult(columns=columns, unsupported="another writer was first; run the command again")
            others = delete_unneeded(self._open_existing(), None, outdated)
        return ScrubResult(columns=columns, commits=len(lost), others=others)

    def objects_with_bounds(self, names: Collection[str] = (), *, deleted: Collection[str] = ()) -> int:
        """The number of snapshots whose manifests have bounds of deleted files."""
        del names
        table = self._load()
        if table is None:
            return 0
        with lake_errors(self.uri):
            return len(self._with_files(table, deleted))

    def _with_files(self, table: Table, paths: Collection[str]) -> list[Snapshot]:
        """The snapshots that have one of these data files."""
        searched = set(paths)
        snapshots = table.metadata.snapshots if searched else []
        return [
            snapshot for snapshot in snapshots if not searched.isdisjoint(file_paths(self._opened(table, snapshot)))
        ]


def _plain(place: str) -> str:
    """A place without its scheme: servers write `file:/` and `file:///`, or `s3a://` and `s3://`."""
    return place.rpartition(":")[2].strip("/")
