"""A topic's Delta table: snapshots with their cursors, and one commit for each ledger entry.

A commit lands on the snapshot that it was built on, or not at all: it is the next version of the table, and no other
commit of that version may exist. Every commit of Penstock also sets the `txn` of SEQUENCE. deltalake refuses a commit
if its handle has not seen the newest version of such a `txn`, but a fresh handle accepts any version, even a lower one
(decision D14): no handle is replaced between reading the cursor and committing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Self

from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, SchemaMismatchError

from kafka_io.errors import Where, system_reason
from pipelines.delta.append import appended_commit, can_append
from pipelines.delta.compaction import compact
from pipelines.delta.delta_log_segment import DELTA_LOG, DeltaLogSegment, commit_file
from pipelines.delta.open_version import CLEANED, DeltaVersion
from pipelines.delta.reader import TableReader
from pipelines.delta.scrub import objects_with_bounds, scrub
from pipelines.delta.table_copy import first_commit
from pipelines.delta.write_options import AFTER_COMMIT, AFTER_ENTRY, CONFIGURATION
from pipelines.delta.writes import (
    append,
    checkpoint_interval,
    convert,
    properties,
    replace_files,
    replace_rows,
)
from pipelines.layout.layout import RAW, TableLayout
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import TAKING_OUT, CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.lake_table import Compaction, ScrubResult
from pipelines.table.open_table import file_paths
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown, TableSnapshot
from resources.errors import (
    CommitRefused,
    CommitUnknown,
    LakeRefused,
    LakeUnavailable,
    LogTorn,
    TableNotProven,
)
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.lake import Lake, lake_errors
from resources.stores.store_client import store_client
from resources.stores.store_errors import is_refusal, reason_of

_LOGGED = {".json", ".parquet"}
_REPLACING = {CommitKind.REPLAY, CommitKind.CUT, CommitKind.REDECODE}
_OF_ALL_FILES = {CommitKind.CONVERT: convert, CommitKind.REWRITE: replace_files}
"""The commits that replace all files of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaLakeTable(TableReader):
    """One topic's table in a lake; see TableStore."""

    @classmethod
    def of(cls, lake: Lake, cluster: str, topic: str, new_layout: TableLayout = RAW) -> Self:
        """The table of a topic. Nothing is opened yet."""
        where = Where(cluster=cluster, topic=topic)
        return cls(lake=lake, uri=lake.table_uri(cluster, topic), where=where, new_layout=new_layout)

    def snapshot(self) -> TableSnapshot:
        """The newest version. A table that does not exist is created.

        Raises:
            LoadError: see `existing`.
        """
        return self.existing() or self._create()

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The newest version of the table of this snapshot, which is never created again."""
        return self.check_same_table(snapshot, self.existing(after=snapshot))

    def _has_version(self, snapshot: TableSnapshot) -> bool:
        """Whether the version of the snapshot is still the same commit. A write would create a removed table again.

        No two tables have the same commit: every one has a random id, such as that of the table, of Penstock's entry
        or of a data file. So this one request shows as much as to open the table again (fault P07). If the log was put
        back to a copy, another commit can have the number of the version (fault E05).

        Raises:
            TableReplaced: the table was removed, or another one is in its place.
        """
        try:
            digest = next(self.commits(snapshot.version)).digest
        except LogTorn:
            digest = ""
        if not digest or digest != snapshot.digest:
            self.newer(snapshot)
        return digest == snapshot.digest

    def _check_planned(self, snapshot: TableSnapshot) -> None:
        """Check that a write on top of the snapshot would follow the commit on which it was planned.

        Raises:
            TableReplaced: see `_has_version`.
            CommitRefused: it would follow another commit.
        """
        if not self._has_version(snapshot):
            raise CommitRefused(
                f"the Delta log of {self.uri} was put back while this run used it: version {snapshot.version} is "
                "another commit now, or is not there; run again",
                self.where,
            )

    def _check_landed(self, snapshot: TableSnapshot) -> None:
        """Check the same after a write: the table can be replaced, or its log put back, before the write.

        Raises:
            TableReplaced: see `_has_version`.
            TableNotProven: the entry follows another commit than the one on which it was planned.
        """
        if not self._has_version(snapshot):
            raise TableNotProven(
                f"the Delta log of {self.uri} was put back while this run wrote version {snapshot.version + 1}, "
                f"which does not belong on top of it: `penstock rewind {self.where.topic} --version "
                f"{snapshot.version}` takes it back",
                self.where,
            )

    def _create(self) -> TableSnapshot:
        failpoint("no table found")
        self.check_no_other_format("metadata", "iceberg")
        layout, client = self.new_layout, store_client(self.uri, self.lake.options)
        schema, partition_by = layout.table_schema, [layout.partition_column]
        with lake_errors(self.uri):
            if client is None:
                self.lake.create(self.uri, schema, partition_by=partition_by, configuration=CONFIGURATION)
            else:
                content = first_commit(schema, partition_by=partition_by, configuration=CONFIGURATION)
                durable.make_folder(self.uri, DELTA_LOG)
                with suppress(FileExistsError):  # another run may have created it
                    client.create(commit_file(0), content)
        failpoint("table made")
        self.sync(after=-1)
        snapshot = self.existing()
        if snapshot is None:
            raise LakeUnavailable(f"the store does not show the new table {self.uri}; load again", self.where)
        return snapshot

    def drop(self, snapshot: TableSnapshot, damaged: Collection[str]) -> TableSnapshot:
        """Take damaged files out of the table, in a commit of its own; returns the table after it.

        What is left of them is moved into the folder DAMAGED, where no reader finds it.

        Raises:
            LakeUnavailable: that failed, for example because another writer was first.
        """
        with lake_errors(self.uri):
            self.set_aside(damaged)
            DeltaVersion.of(snapshot).writer.repair(post_commithook_properties=AFTER_COMMIT)
        return self.newer(snapshot)

    def check_restorable(self, snapshot: TableSnapshot, target: int) -> None:
        """Check that a rewind can bring back the files of version `target` (fault P14)."""
        missing = sorted(self.paths(target) - file_paths(snapshot.opened))
        cleaned = DeltaVersion.of(snapshot).cleaned_before
        if cleaned > target:
            paths_kept = self.paths(cleaned)
            if lost := [path for path in missing if path not in paths_kept]:
                reason = f"may be deleted at any time, because `penstock clean` cleaned up before version {cleaned}"
                raise self.not_restorable(lost, target, reason)
        else:
            self.check_files_exist(missing, target)

    def announce_clean(self, snapshot: TableSnapshot, before: int) -> None:
        """Announce that housekeeping deletes the files that no version from `before` on contains (fault P14).

        Raises:
            CommitConflict: another writer was first.
            LakeRefused: the table takes no such commit.
        """
        version = DeltaVersion.of(snapshot)
        if version.cleaned_before >= before:
            return
        try:
            version.writer.alter.set_table_properties(
                {CLEANED: str(before)}, raise_if_not_exists=False, post_commithook_properties=AFTER_COMMIT
            )
        except CommitFailedError as error:
            self._check_overtaken(snapshot.version, error)
            raise CommitConflict(reason_of(error)) from error

    def cleaned_before(self, snapshot: TableSnapshot) -> int:
        """The version before which housekeeping deletes files: those that no version from it on contains."""
        return DeltaVersion.of(snapshot).cleaned_before

    def compact(self, days: Sequence[date | None] | None, target_bytes: int) -> Compaction:
        """Merge the small files of these days, or of all folders if `days` is None; the rows stay the same.

        Raises:
            LakeRefused: the table takes no such commit.
        """
        with lake_errors(self.uri):
            return compact(self._newest_handle(), self.lake.options, days, target_bytes, self._check_overtaken)

    def forget(self, before: int) -> None:
        """Nothing: the Delta log is the ledger, and is kept for ever."""

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest version: who opens the table reads it instead of older commits."""
        with lake_errors(self.uri):
            handle = self._newest_handle()
            handle.create_checkpoint()
        self.sync(after=handle.version() - 1)

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """Write `entry` on top of `snapshot`, with what its kind does to the rows; returns the version.

        Raises:
            CommitConflict: another commit is on top of the snapshot already.
            CommitOutcomeUnknown: whether the entry landed is not known.
            LakeRefused: the table does not accept the rows; nothing was written.
            TableReplaced, CommitRefused: see TableStore.
            TableNotProven: the entry was written, but the log was put back before that.
        """
        self._check_planned(snapshot)
        segment = DeltaVersion.of(snapshot).segment
        files = [facts for facts in new_slices if facts.files]
        # deltalake's delete commits nothing if it finds no row: then the entry is appended without files.
        replaces = entry.kind in _REPLACING and (files or any(self.count_rows(snapshot, replaced)))
        appends = not replaces and entry.target is None and entry.kind not in _OF_ALL_FILES
        takes_out = entry.kind in TAKING_OUT
        if takes_out and not (segment and can_append(segment.definition)):
            raise LakeRefused(
                f"files of the table {self.uri} cannot be taken out: its log has a feature of Delta that Penstock "
                "leaves to deltalake",
                self.where,
            )
        removed = [path for committed in replaced for path in committed.paths] if takes_out else []
        try:
            if appends and segment and can_append(segment.definition):
                return self._append(snapshot, segment, entry, files, removed)
            return self._write_by_deltalake(snapshot, entry, files, replaced if replaces else None)
        except (CommitFailedError, FileExistsError) as error:
            self._check_overtaken(snapshot.version, error)
            raise CommitConflict(reason_of(error)) from error
        except (SchemaMismatchError, DeltaProtocolError) as error:  # deltalake raises them before it commits
            raise LakeRefused(
                f"the table {self.uri} does not accept the rows: {reason_of(error)}", self.where
            ) from error
        except (DeltaError, OSError, LakeUnavailable) as error:
            refused = isinstance(error, LakeRefused) or is_refusal(error)
            raise CommitOutcomeUnknown(reason_of(error), refused=refused) from error

    def _check_overtaken(self, version: int, error: Exception) -> None:
        """Check that a commit on top of the version failed with this error because another writer was first.

        deltalake raises the same error if the table has a feature that it cannot write (fault E22).

        Raises:
            LakeRefused: no other writer was first, so the same commit would fail again.
        """
        try:
            next(self.commits(version + 1))
        except LogTorn:
            reason = next(iter(str(error).splitlines()), "")
            raise LakeRefused(f"the table {self.uri} takes no commit: {reason}", self.where) from error

    def _append(
        self,
        snapshot: TableSnapshot,
        segment: DeltaLogSegment,
        entry: LedgerEntry,
        files: Sequence[SliceFacts],
        removed: Sequence[str] = (),
    ) -> int:
        """Write the entry as the next commit file, which must be absent; returns its version.

        The commit takes the `removed` files out of the table.

        Raises:
            FileExistsError: another commit is on top of the snapshot already.
            OSError: whether the entry landed is not known.
            TableReplaced, TableNotProven: see `_check_landed`.
        """
        client = store_client(self.uri, self.lake.options)
        assert client is not None
        content = appended_commit(snapshot, segment, entry, files, removed)
        # Of all writers the store lets only one create this object (faults L05, P13).
        client.create(commit_file(snapshot.version + 1), content)
        failpoint("log entry written")
        self._check_landed(snapshot)
        version = snapshot.version + 1
        configuration = segment.definition.configuration  # the entry changes columns, and no properties
        self._write_checkpoint(
            configuration, version, lambda: self._version_of(segment.followed_by(content)).create_checkpoint()
        )
        return version

    def _write_by_deltalake(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        files: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange] | None,
    ) -> int:
        """Write the entry, and replace the rows of the replaced ranges unless they are None; returns its version."""
        handle = DeltaVersion.of(snapshot).writer
        if handle.version() != snapshot.version:
            # A write through a newer handle would not notice the commits since the snapshot (decision D14).
            raise CommitConflict("the snapshot was written on before")
        if entry.target is not None:
            # All cursors are set, because those in the table may differ from those in the newest entry.
            all_cursors = properties(replace(snapshot, entry=None), entry)
            handle.restore(entry.target, commit_properties=all_cursors, post_commithook_properties=AFTER_ENTRY)
        elif entry.kind in _OF_ALL_FILES:
            _OF_ALL_FILES[entry.kind](snapshot, entry, files)
        elif replaced is not None:
            replace_rows(snapshot, entry, files, replaced, self.lake.options)
        else:
            append(snapshot, entry, files)
        failpoint("log entry written")
        version = snapshot.version + 1
        # deltalake does not say which version it has written, so the commit that must be it is read (fault L03).
        if not self._has_entry(version, entry):
            raise CommitOutcomeUnknown(f"the entry {entry.commit} was written, but the log does not show it")
        self._check_landed(snapshot)
        personal = snapshot.layout.with_columns(entry.columns).personal
        if personal or replaced is not None:  # deltalake has written bounds of all columns, some of them wrong
            scrub(self, personal, after=snapshot.version - 1)  # a killed writer may have left those of its own commit
            failpoint("bounds hidden")
            handle = self._handle_at(version)

        def create_checkpoint() -> None:
            handle.update_incremental()
            handle.create_checkpoint()

        self._write_checkpoint(handle.metadata().configuration, version, create_checkpoint)
        return version

    def _has_entry(self, version: int, entry: LedgerEntry) -> bool:
        try:
            written = next(self.commits(version)).entry
        except LogTorn:
            return False
        return written is not None and written.commit == entry.commit

    @staticmethod
    def _write_checkpoint(configuration: Mapping[str, str], version: int, create: Callable[[], None]) -> None:
        """Write a checkpoint of `version`, which was committed now, if it is a multiple of the interval.

        Whoever opens the table reads the checkpoint and the commits after it. A table without a checkpoint is correct,
        so a failure is ignored: a later commit writes the next one.
        """
        if version % checkpoint_interval(configuration) == 0:
            with suppress(DeltaError, OSError, LakeUnavailable):
                create()

    def scrub(self, names: Collection[str] = (), *, deleted: Collection[str] = (), after: int = -1) -> ScrubResult:
        """Replace bounds of personal columns, of deleted files, and wrong ones of deltalake; see `scrub`."""
        return scrub(self, names, deleted=deleted, after=after)

    def objects_with_bounds(self, names: Collection[str] = (), *, deleted: Collection[str] = ()) -> int:
        """The number of objects of the log in which `scrub` would hide bounds."""
        return objects_with_bounds(self, names, deleted=deleted)

    def sync(self, *, after: int) -> None:
        """Force the commit files of versions above `after` to disk, and checkpoints too (fault L10).

        Raises:
            CommitUnknown: that failed, so a loss of power may undo the versions.
        """
        root = durable.local_path(self.uri)
        if root is None:
            return
        try:
            folder = root / DELTA_LOG
            for file in sorted(folder.iterdir()):
                number = file.name.partition(".")[0]
                # Names such as `<n>.json#1` are files that another writer is about to rename to a commit file: they may
                # vanish at any time.
                is_commit = file.suffix in _LOGGED and number.isdigit() and int(number) > after
                if is_commit or file.name == "_last_checkpoint":
                    durable.sync(file)
            durable.sync_below(Path(self.lake.root), folder)
        except OSError as error:
            raise CommitUnknown(
                f"the commit landed, but could not be forced to disk: {system_reason(error)}", self.where
            ) from error
