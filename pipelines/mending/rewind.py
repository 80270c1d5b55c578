"""Rewind: a table goes back to what an old version held, rows and cursors together, in one entry of its log.

deltalake's `restore` takes the rows back and leaves the cursors, so that the next load would pass over what is gone
(L14). A rewind is also the way out of that: it can be done to a table whose cursor has strayed.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from pipelines.loading.commit import commit
from pipelines.loading.ledger import Covered, Entry, Kind, Standing
from pipelines.loading.logged import Logged, newest_entry
from pipelines.loading.steps import step
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot, TableLog
from resources.errors import CommitRefused, RewindRefused, TableMissing
from resources.lake import filesystem, lake_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewinding:
    """The change that takes a table back to version `target`, where it stood as `back` says.

    `over` is the id of the newest commit when that was chosen: of another history the user knows nothing.
    """

    target: int
    back: Standing
    over: str
    run: str
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, log: TableLog, at: Snapshot) -> int:
        """Write it on top of `at`; the version."""
        entry = Entry(
            commit=self.commit,
            run=self.run,
            kind=Kind.REWIND,
            sequence=at.next_sequence,
            topic=self.back.topic,
            ranges=(),
            covered=self.back.covered,
            epochs=self.back.epochs,
            target=self.target,
        )
        step("before rewind entry")
        version = log.restore(at, entry)
        step("after rewind entry")
        return version

    def onto(self, now: Snapshot) -> Self:
        """The same, if nothing was loaded or taken back meanwhile."""
        if now.entry is None or now.entry.commit != self.over:
            rival = f"run {now.entry.run}" if now.entry else "another writer"
            raise CommitRefused(f"{rival} committed meanwhile; look at the history again", self.back.topic.where)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayedTable(LakeTable):
    """A topic's table that is opened also where its cursor has strayed, and is never made."""

    def snapshot(self) -> Snapshot:
        """The newest version.

        Raises:
            TableMissing: there is none.
            LoadError: see `LakeTable.newest`.
        """
        at = self.newest()
        if at is None:
            raise TableMissing(f"there is no table {self.uri}", self.where)
        return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """A rewind that can be done: to version `target`, of `time`.

    `rows` is how many it takes back, below zero where it takes back another rewind; `before` what is covered now.
    """

    table: LakeTable
    at: Snapshot
    change: Rewinding
    time: datetime
    rows: int
    before: Covered

    @property
    def target(self) -> int:
        """The version that the table goes back to."""
        return self.change.target

    def __str__(self) -> str:
        rows = f"{self.rows:,} rows fewer" if self.rows >= 0 else f"{-self.rows:,} rows more"
        return f"from version {self.at.version} to version {self.target} ({self.time:%Y-%m-%d %H:%M:%S} UTC), {rows}"

    @property
    def cursors(self) -> Iterator[tuple[BrokerPartition, int | None, int | None]]:
        """Of each partition the cursor before and after; None where the table does not know the partition."""
        before, after = self.before, self.change.back.covered
        for id_ in sorted({*before, *after}):
            yield id_, before[id_][1] if id_ in before else None, after[id_][1] if id_ in after else None

    def as_dict(self) -> dict[str, Any]:
        """As `penstock rewind --json` prints it."""
        return {
            "topic": self.change.back.topic.name,
            "table": self.table.uri,
            "target": self.target,
            "time": self.time.isoformat(),
            "rows": self.rows,
            "cursors": [
                {"broker": id_.broker, "partition": id_.partition, "before": before, "after": after}
                for id_, before, after in self.cursors
            ],
        }


def plan_rewind(table: LakeTable, to: int | datetime, *, run: str) -> Rewind:
    """The rewind to a version, or to the newest that is not younger than a time. Nothing is changed yet.

    Raises:
        RewindRefused: there is no such version, or it is not to be had any more.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    mended = StrayedTable(lake=table.lake, uri=table.uri, where=table.where)
    at = mended.snapshot()
    if at.entry is None:
        raise RewindRefused("nothing was loaded yet", table.where)
    target = _target(mended, at, to)
    entry, restore = newest_entry(mended.commits(target.version))
    if restore is not None:
        raise RewindRefused(restore.strayed(table.where.topic), table.where)
    back = Standing(topic=at.entry.topic)  # version 0 is of no load yet: its topic is whose table it became
    if entry is not None:
        back = Standing.after(entry)
    return Rewind(
        table=mended,
        at=at,
        change=Rewinding(target=target.version, back=back, over=at.entry.commit, run=run),
        time=target.time,
        rows=_rows_since(mended, target.version, at),
        before=at.entry.covered,
    )


def rewind(planned: Rewind) -> int:
    """Do what was planned; the version that it became.

    Raises:
        CommitRefused: something was committed since it was planned.
        CommitUnknown: whether it landed cannot be seen, or the disk may not keep it.
        LakeUnavailable: it did not land.
    """
    return commit(planned.table, planned.at, planned.change).version


def _target(table: LakeTable, at: Snapshot, to: int | datetime) -> Logged:
    if isinstance(to, int):
        found = next(table.commits(to), None) if 0 <= to <= at.version else None
        told = str(to)
    else:
        found = next((one for one in table.commits(at.version) if one.time <= to), None)
        told = f"of {to.isoformat(timespec='seconds')} or before"
    if found is None:
        raise RewindRefused(f"the table has no version {told}; its newest is version {at.version}", table.where)
    if found.version == at.version:
        why = at.strayed or f"version {at.version} is the newest, there is nothing to take back"
        raise RewindRefused(why, table.where)
    return found


def _rows_since(table: LakeTable, version: int, at: Snapshot) -> int:
    """How many rows more a snapshot has than an old version, whose files are all there still.

    Raises:
        RewindRefused: some were removed.
    """
    with lake_errors(table.uri):
        old = table.lake.open(table.uri)
        assert old is not None
        old.load_as_version(version)
        now, then = _rows_by_file(at.handle), _rows_by_file(old)
        infos = filesystem(table.uri, table.lake.options).get_file_info([path for path in then if path not in now])
    lost = [info.path for info in infos if info.type != pafs.FileType.File]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        told = f"the data file {lost[0]}{more} of version {version} was removed, as by a vacuum"
        raise RewindRefused(f"{told}: the table cannot go back to it", table.where)
    return sum(now.values()) - sum(then.values())


def _rows_by_file(handle: DeltaTable) -> dict[str, int]:
    files = pa.table(handle.get_add_actions(flatten=True)).select(["path", "num_records"])
    return {one["path"]: one["num_records"] or 0 for one in files.to_pylist()}  # others may write files without
