"""Rewind: take a table back to what an old version held, rows and cursors together, in one entry of its log.

deltalake's `restore` brings back the rows but not the cursors, so the next load would leave out the rows that are gone
(fault L14). A rewind also repairs that: it accepts a table whose cursors do not match its rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import Change, commit
from pipelines.delta.commits import DeltaCommit, newest_commits
from pipelines.delta.delta_table import LakeTable
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.event_time import EventTime
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, TableState
from pipelines.table.open_table import OpenTable
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, RewindRefused, TableMissing
from resources.stores.lake import lake_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindChange(Change):
    """Takes a table back to version `target`; `state` is what the table had there.

    `known_commit` is the id of the newest commit when the user chose the target. If others are added, the user does not
    know what the rewind would take back.
    """

    kind: CommitKind = CommitKind.REWIND
    target: int
    known_commit: str

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """See Change. Since the plan was made, housekeeping may have announced that it deletes files of the target."""
        table.check_restorable(snapshot, self.target)
        event_time = entry.event_time and replace(entry.event_time, moved_back_by=self.kind)
        return replace(entry, state=replace(entry.state, event_time=event_time), target=self.target), ()

    def rebased(self, newest: TableSnapshot) -> Self:
        """The same change, if no other commit was added."""
        if newest.entry is None or newest.entry.commit != self.known_commit:
            rival = f"run {newest.entry.run}" if newest.entry else "another writer"
            raise CommitRefused(f"{rival} committed meanwhile; look at the history again", self.state.topic.where)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForRewind(LakeTable):
    """A topic's table that is opened even if its cursors do not match its rows, and that is never created."""

    def existing(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """See `LakeTable.newest`."""
        return self.newest(after=after)

    def snapshot(self) -> TableSnapshot:
        """The newest version.

        Raises:
            TableMissing: there is no table.
            LoadError: see `LakeTable.newest`.
        """
        snapshot = self.existing()
        if snapshot is None:
            raise TableMissing(f"there is no table {self.uri}", self.where)
        return snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RewoundCursor:
    """A cursor before and after a rewind; None where the table does not cover the partition."""

    broker: int | None
    partition: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewoundTable:
    """The result of `penstock rewind`."""

    topic: str
    table: str
    target: int
    time: datetime
    rows: int
    cursors: Sequence[RewoundCursor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """A rewind that is possible.

    Args:
        table: the table.
        snapshot: the table's newest version.
        change: the change to commit.
        time: when the target was committed.
        rows: how many rows fewer the table has after the rewind; negative if the rewind cancels another rewind.
    """

    table: LakeTable
    snapshot: TableSnapshot
    change: RewindChange
    time: datetime
    rows: int

    @property
    def target(self) -> int:
        """The version that the table goes back to."""
        return self.change.target

    def __str__(self) -> str:
        rows = f"{self.rows:,} rows fewer" if self.rows >= 0 else f"{-self.rows:,} rows more"
        newest = self.snapshot.version
        return f"from version {newest} to version {self.target} ({self.time:%Y-%m-%d %H:%M:%S} UTC), {rows}"

    @property
    def cursors(self) -> Iterator[tuple[BrokerPartition, int | None, int | None]]:
        """Each partition with its cursor before and after; None if the table does not hold the partition."""
        before: Coverage = self.snapshot.entry.covered if self.snapshot.entry else {}
        after = self.change.state.covered
        for partition in sorted({*before, *after}):
            old = before[partition][1] if partition in before else None
            new = after[partition][1] if partition in after else None
            yield partition, old, new

    def printed(self) -> RewoundTable:
        """See RewoundTable."""
        return RewoundTable(
            topic=self.change.state.topic.name,
            table=self.table.uri,
            target=self.target,
            time=self.time,
            rows=self.rows,
            cursors=[
                RewoundCursor(broker=id_.broker, partition=id_.partition, before=before, after=after)
                for id_, before, after in self.cursors
            ],
        )


def plan_rewind(table: LakeTable, to: int | datetime, *, run: str) -> Rewind:
    """The rewind to a version, or to the newest version at a time. Nothing is changed yet.

    Raises:
        RewindRefused: there is no such version, or its files are gone.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    table = TableForRewind(lake=table.lake, uri=table.uri, where=table.where)
    snapshot = table.snapshot()
    if snapshot.entry is None:
        raise RewindRefused("nothing was loaded yet, so there is nothing to take back", table.where)
    target = _target(table, snapshot, to)
    entry, restore, *_ = newest_commits(table.commits(target.version))
    if restore is not None:
        raise RewindRefused(restore.restore_mismatch(table.where.topic), table.where)
    table.check_restorable(snapshot, target.version)
    return Rewind(
        table=table,
        snapshot=snapshot,
        change=RewindChange(
            target=target.version,
            state=restored_state(snapshot.entry, entry),
            known_commit=snapshot.entry.commit,
            run=run,
        ),
        time=target.time,
        rows=_rows_since(table, target.version, snapshot),
    )


def restored_state(newest: LedgerEntry, target: LedgerEntry | None) -> TableState:
    """The state of the table after a rewind to the entry `target`; None stands for version 0.

    Before its first load the table had the topic of today, and covered nothing. What later loads have learned of the
    topic stays true.
    """
    now = newest.state
    restored = target.state if target else TableState(topic=now.topic)
    if restored.event_time is None and now.event_time:  # nothing is proven of the version
        event_time = EventTime(column=now.event_time.column, lateness_ms=now.event_time.lateness_ms)
        restored = replace(restored, event_time=event_time)
    if restored.topic != now.topic:
        return restored
    epochs = {} if restored.ids.difference(now.ids) else restored.epochs
    return replace(restored, ids=now.ids, epochs=epochs)


def rewind(planned: Rewind) -> int:
    """Do the planned rewind; returns the new version.

    Raises:
        CommitRefused: something was committed since it was planned.
        CommitUnknown: nobody can see whether the rewind landed, or a loss of power may undo it.
        LakeUnavailable: the rewind did not land.
    """
    return commit(planned.table, planned.snapshot, planned.change).version


def _target(table: LakeTable, snapshot: TableSnapshot, to: int | datetime) -> DeltaCommit:
    if isinstance(to, int):
        target = next(table.commits(to), None) if 0 <= to <= snapshot.version else None
        target_text = str(to)
    else:
        target = next((commit for commit in table.commits(snapshot.version) if commit.time <= to), None)
        target_text = f"of {to.isoformat(timespec='seconds')} or before"
    if target is None:
        raise RewindRefused(
            f"the table has no version {target_text}; its newest is version {snapshot.version}, and "
            f"`penstock history {table.where.topic}` lists the others",
            table.where,
        )
    if target.version == snapshot.version:
        reason = snapshot.mismatch or f"version {snapshot.version} is the newest, so there is nothing to take back"
        raise RewindRefused(reason, table.where)
    return target


def _rows_since(table: LakeTable, version: int, snapshot: TableSnapshot) -> int:
    """The number of rows that a snapshot has more than an old version."""
    with lake_errors(table.uri):
        now, then = _rows_by_file(snapshot.opened), _rows_by_file(table.opened_at(version))
    return sum(now.values()) - sum(then.values())


def _rows_by_file(opened: OpenTable) -> dict[str, int]:
    files = opened.files().select(["path", "num_records"])
    # Files of other writers may have no count.
    return {file["path"]: file["num_records"] or 0 for file in files.to_pylist()}
