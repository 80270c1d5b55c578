"""Rewind: take a table back to what an old version held, rows and cursors together, in one entry of its log.

deltalake's `restore` brings back the rows but not the cursors, so the next load would leave out the rows that are gone
(fault L14). A rewind also repairs that: it accepts a table whose cursors do not match its rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Self

import pyarrow.compute as pc

from pipelines.commit.commit import Change, commit
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.event_time import EventTime
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, TableState
from pipelines.maintenance.history import newest_version
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from pipelines.table.table_commit import TableCommit, newest_commits
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, ErasedSince, RewindRefused
from resources.printed import HIDDEN
from resources.stores.lake import lake_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindChange(Change):
    """Takes a table back to version `target`; `state` is what the table had there.

    `known_commit` is the id of the newest commit when the user chose the target. If others are added, the user does not
    know what the rewind would take back.
    """

    repairs: ClassVar[bool] = True
    kind: CommitKind = CommitKind.REWIND
    target: int
    known_commit: str

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry. Housekeeping may have announced meanwhile that it deletes files of the target."""
        check_nothing_erased(table, snapshot, self.target)
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
class RewoundCursor:
    """A cursor before and after a rewind; None where the table does not cover the partition."""

    broker: int | None
    partition: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewoundTable:
    """The result of `penstock rewind`.

    It is a plan: nothing has changed yet.

    Args:
        topic: the topic's name.
        table: the table's URI.
        target: the version that the table goes back to.
        time: when the target was committed.
        rows: how many rows fewer the table has after the rewind; negative if the rewind cancels another rewind.
        cursors: the cursors of all partitions.
        opened: the table.
        snapshot: the table's newest version.
        change: the change to commit.
    """

    topic: str
    table: str
    target: int
    time: datetime
    rows: int
    cursors: Sequence[RewoundCursor]
    opened: LakeTable = field(metadata=HIDDEN)
    snapshot: TableSnapshot = field(metadata=HIDDEN)
    change: RewindChange = field(metadata=HIDDEN)

    def __str__(self) -> str:
        rows = f"{self.rows:,} rows fewer" if self.rows >= 0 else f"{-self.rows:,} rows more"
        newest = self.snapshot.version
        return f"from version {newest} to version {self.target} ({self.time:%Y-%m-%d %H:%M:%S} UTC), {rows}"


def plan_rewind(table: LakeTable, to: int | datetime, *, run: str) -> RewoundTable:
    """The rewind to a version, or to the newest version at a time. Nothing is changed yet.

    Raises:
        RewindRefused: there is no such version, or its files are gone.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    table = table.even_if_mismatched()
    snapshot = newest_version(table)
    if snapshot.entry is None:
        raise RewindRefused("nothing was loaded yet, so there is nothing to take back", table.where)
    target = _target(table, snapshot, to)
    newest = newest_commits(table.commits(target.version))
    entry, topic = newest.entry, table.where.topic
    if newest.restore is not None:
        raise RewindRefused(newest.restore.restore_mismatch(topic), table.where)
    if newest.change is not None:
        raise RewindRefused(newest.change.change_by_others(topic), table.where)
    check_nothing_erased(table, snapshot, target.version)
    table.check_restorable(snapshot, target.version)
    state = restored_state(snapshot.entry, entry)
    return RewoundTable(
        topic=state.topic.name,
        table=table.uri,
        target=target.version,
        time=target.time,
        rows=_rows_since(table, target.version, snapshot),
        cursors=list(_cursors(snapshot.entry.covered, state.covered)),
        opened=table,
        snapshot=snapshot,
        change=RewindChange(target=target.version, state=state, known_commit=snapshot.entry.commit, run=run),
    )


def check_nothing_erased(table: TableStore, snapshot: TableSnapshot, target: int) -> None:
    """Check that no rows were erased since the version `target`, even if its files exist (fault P16).

    Raises:
        ErasedSince: some were.
    """
    for version, entry in table.entries(snapshot, after=target):
        if entry.kind is CommitKind.ERASE:
            topic = entry.topic
            raise ErasedSince(
                f"version {version} erased rows, which a rewind to version {target} would bring back; a rewind to "
                f"version {version} or a later one is possible",
                topic.where,
            )


def _cursors(before: Coverage, after: Coverage) -> Iterator[RewoundCursor]:
    for id_ in sorted({*before, *after}):
        old = before[id_][1] if id_ in before else None
        new = after[id_][1] if id_ in after else None
        yield RewoundCursor(broker=id_.broker, partition=id_.partition, before=old, after=new)


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


def rewind(planned: RewoundTable) -> int:
    """Do the planned rewind; returns the new version.

    Raises:
        CommitRefused: something was committed since it was planned.
        CommitUnknown: nobody can see whether the rewind landed, or a loss of power may undo it.
        LakeUnavailable: the rewind did not land.
    """
    return commit(planned.opened, planned.snapshot, planned.change).version


def _target(table: LakeTable, snapshot: TableSnapshot, to: int | datetime) -> TableCommit:
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
        return _row_count(snapshot.opened) - _row_count(table.opened_at(version))


def _row_count(opened: OpenTable) -> int:
    """The number of rows in the files of a version. Files of other writers may have no count."""
    return int(pc.sum(opened.files().column("num_records")).as_py() or 0)
