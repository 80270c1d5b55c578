"""Replay: an interval is fetched again, and its rows take the place of those that the table has, in one commit.

The cursor stays where it is, and scheduled loads may go on. What is fetched lies beside the table until it was compared
with it: where both are the same nothing is committed, so a second replay changes nothing.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime

from kafka_io.errors import PlacedError, Where
from kafka_io.model import TopicEntry
from pipelines.loading.commit import commit
from pipelines.loading.ledger import Choice, Covered, Kind, Standing
from pipelines.loading.load import Loader
from pipelines.loading.parting import partings
from pipelines.loading.pieces import Interval, carve
from pipelines.loading.replacing import Replacing
from pipelines.loading.slices import Sizes, Slice, sliced
from pipelines.loading.steps import step
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot
from pipelines.loading.work import Facts
from pipelines.mending.asked import Asked, Ground, bounds_of
from pipelines.mending.compare import Comparison, compare
from pipelines.mending.replayed import PartitionReplay, TopicReplay
from pipelines.mending.rows import TableRows
from pipelines.mending.staged import Staged, folder
from resources.errors import CommitRefused, ReplayRefused, TableMissing, TopicUnknown
from resources.spark import Progress


def replay(loader: Loader, table: LakeTable, asked: Asked) -> TopicReplay:
    """Fetch again what is asked for. A failure is told in the result; only interruptions are raised."""
    began = loader.now()
    try:
        done = _replay(loader, table, asked, began)
    except PlacedError as error:
        placed = error.placed(Where(cluster=loader.cluster.name, topic=asked.topic))
        done = TopicReplay(topic=asked.topic, table=table.uri, error=f"{type(error).__name__}: {placed}")
    return dataclasses.replace(done, seconds=round((loader.now() - began).total_seconds(), 3))


def _replay(loader: Loader, table: LakeTable, asked: Asked, began: datetime) -> TopicReplay:
    found = loader.cluster.topic(asked.topic)
    if found is None:
        raise TopicUnknown("the registry has no such topic")
    if table.existing() is None:
        raise TableMissing("the topic has no table")
    at, stands = loader.stands(table, found)
    if not stands.covered:
        raise ReplayRefused("the table covers nothing of the topic as it is now")
    rows = TableRows(table, at, stands.topic)
    intervals, slices, sizes = _planned(loader, found, at, stands, asked=asked, rows=rows)
    step("replay planned")
    below = folder(loader.run_id)
    tell = _tell(loader, asked, slices)
    facts = loader.fetched(found, table.uri, slices, began, tell, sizes=sizes, below=below)
    step("replay staged")
    told = TopicReplay(topic=asked.topic, table=table.uri, version=at.version)
    for failure in (one.failure for one in facts if one.failure):
        return dataclasses.replace(told, error=str(failure), trace=failure.trace)
    staged = Staged(table, below, facts)
    compared = tuple(PartitionReplay.of(one, facts, _compared(staged, rows, one)) for one in intervals)
    counted = [_is_counted(table, at, rows, staged, one) for one in intervals]
    choices = tuple(_choices(compared, asked, stands))
    step("replay compared")
    changed = not all(counted) or not all(one.found.same for one in compared)
    version = at.version
    if changed:
        version = _commit(table, at, replaying(stands, intervals, facts, choices=choices, run=loader.run_id))
    staged.remove()
    return dataclasses.replace(told, version=version, changed=changed, partitions=compared)


def _tell(loader: Loader, asked: Asked, slices: Sequence[Slice]) -> Progress:
    """Tasks that are done, told as offsets."""
    tell, size = loader.on_progress(asked.topic), sum(one.size for one in slices)
    return lambda done, total: tell(size * done // total, size)


def _planned(
    loader: Loader, found: TopicEntry, at: Snapshot, stands: Standing, *, asked: Asked, rows: TableRows
) -> tuple[Sequence[Interval], Sequence[Slice], Sizes]:
    """What is to be fetched, all of which the brokers hold, and how it is cut.

    Raises:
        ReplayRefused: they do not, or the table does not cover it.
    """
    bounds = bounds_of(loader.cluster, stands, asked.partitions)
    intervals = Ground(cluster=loader.cluster, standing=stands, bounds=bounds, rows=rows.of).intervals(asked)
    parted = partings(loader.cluster, stands, bounds)
    for one in intervals:
        if parted.get(one.id, one.stop) < one.stop:
            raise ReplayRefused(
                f"the log was cut at {parted[one.id]} and written anew: load the topic first",
                stands.topic.where.within(Where(partition=str(one.id))),
            )
    wanted = [Slice(id=one.id, start=one.start, stop=one.stop) for one in intervals]
    sizes = loader.sizes(found, wanted, at.entry)
    slices = [
        piece
        for one in wanted
        for piece in sliced(one.id, one.start, one.stop, bounds[one.id].cuts, sizes.target(one.id))
    ]
    return intervals, slices, sizes


def _compared(staged: Staged, rows: TableRows, interval: Interval) -> Comparison:
    pieces = compare(staged.batches(interval), rows.of(interval.id), interval)
    return sum((found for _, found in pieces), Comparison())


def _is_counted(table: LakeTable, at: Snapshot, rows: TableRows, staged: Staged, interval: Interval) -> bool:
    """Whether the ranges that meet the interval have as many rows in the table as the ledger tells.

    What is left of a range outside of it is counted anew by the commit: rows that are missing there would be told as a
    gap from then on, and `verify` would not find them any more.

    Raises:
        ReplayRefused: some are.
    """
    unlike = [one for one, count in rows.of(interval.id).counts(interval.start, interval.stop) if count != one.rows]
    for whole in unlike:
        carved = carve([whole], [interval])
        left = table.held(at, [piece for piece, _ in carved.left])
        if left and sum(left) + sum(map(staged.rows, carved.inside)) != whole.rows:
            raise ReplayRefused(f"{whole} has not all its rows outside of {interval} either: replay it whole")
    return not unlike


def _choices(compared: Sequence[PartitionReplay], asked: Asked, stands: Standing) -> Iterator[Choice]:
    """What is let go by choice: rows of logs from 0.8 on, which lose records also between others.

    Raises:
        ReplayRefused: it is not to be let go.
    """
    for one in compared:
        gone, place = one.found.only_in_table, one.interval
        if not gone.count or place.id.broker is not None:
            continue
        if asked.on_compacted == "fail":
            raise ReplayRefused(
                f"the brokers no longer have {gone} of {place}: they were compacted away, or never committed; "
                'on_compacted = "drop" drops them from the table too',
                stands.topic.where,
            )
        yield Choice(setting="on_compacted", value="drop", partition=str(place.id), start=place.start, stop=place.stop)


def replaying(
    standing: Standing,
    intervals: Sequence[Interval],
    facts: Sequence[Facts],
    *,
    choices: tuple[Choice, ...] = (),
    run: str,
) -> Replacing:
    """The change that puts the rows of `facts` in the place of those of `intervals`; no cursor moves."""

    def covers(covered: Covered) -> Covered:
        for one in intervals:
            start, cursor = covered.get(one.id, (0, 0))
            if not start <= one.start < one.stop <= cursor:
                told = f"the table covers [{start}, {cursor}) of partition {one.id} now, and no longer all of {one}"
                raise CommitRefused(told, standing.topic.where)
        return covered

    return Replacing(
        kind=Kind.REPLAY,
        standing=standing,
        intervals=tuple(intervals),
        covers=covers,
        facts=tuple(facts),
        choices=choices,
        run=run,
    )


def _commit(table: LakeTable, at: Snapshot, change: Replacing) -> int:
    """Put it on top of what is there now, for loads may have gone on since `at`; the version.

    Raises:
        CommitRefused: what was fetched may not be what the log holds now (B03), or the table does not cover it now.
    """
    table.check(change.facts)
    now = table.snapshot()
    if any(entry.kind is Kind.CUT for _, entry in table.entries(now, after=at.version)):
        told = "a log was found to be cut meanwhile, and the table was taken back; run again"
        raise CommitRefused(told, change.standing.topic.where)
    return commit(table, now, change.onto(now)).version
