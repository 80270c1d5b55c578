"""Replay: fetch a range of offsets again, and replace the table's rows by what was fetched, in one commit.

The cursor does not move, and scheduled loads may run meanwhile. The fetched rows are staged outside of the table until
they are compared with it. If both are the same, nothing is committed; so a second replay changes nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

import numpy as np

from kafka_io.errors import LocatedError, Where
from kafka_io.model import OffsetRange, TopicEntry
from pipelines.commit.bad_records import check_records
from pipelines.commit.commit import columns_to_add, commit
from pipelines.commit.replacement import ReplaceChange
from pipelines.comparison.compare import ComparedOffsets, Comparison, compare
from pipelines.comparison.table_rows import TableRows, numbers
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.slice_fetcher import FetchOrder, TopicRouting, loading_time, microseconds
from pipelines.identity.divergence import check_same_logs
from pipelines.layout.columns import NO_COLUMNS
from pipelines.ledger.committed_range import CommittedRange, ExactCause, LoadedRange
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import MAX_WRITTEN, CommitKind, Coverage, LedgerEntry, RecordedChoice, TableState
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_routes import TableRoutes
from pipelines.load.discovered import open_table
from pipelines.load.run import Run
from pipelines.plan.day_cuts import day_cuts
from pipelines.plan.slices import SliceSizes, sliced
from pipelines.rewrites.exact_slices import exact_of_slices, lasting
from pipelines.rewrites.recorded_skips import RecordedSkips, skipped_in
from pipelines.rewrites.replay_request import ReplayRequest, ReplayResolver
from pipelines.rewrites.replay_result import PartitionReplay, TopicReplay
from pipelines.rewrites.staging import StagedFiles, staging_folder
from pipelines.routes.changes import with_routes
from pipelines.routes.topic_router import TopicRouter
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot, TableStore
from pipelines.verify.changes_by_others import ChangesByOthers
from pipelines.verify.topic_tables import other_tables
from pipelines.verify.verify import verify
from resources.errors import (
    CommitRefused,
    LoadError,
    ReplayRefused,
    TableMissing,
    TableNotProven,
    TopicUnknown,
)
from resources.failpoints import failpoint
from resources.progress import Progress, no_progress
from resources.table_names import route_of, topic_of


def replay(run: Run, table: LakeTable, request: ReplayRequest, on_progress: Progress = no_progress) -> TopicReplay:
    """Replay what is requested. An error is in the result; only interruptions are raised.

    `on_progress` is called with how many of how many offsets are fetched.
    """
    began = run.now()
    try:
        result = _proven(table, _replay(run, table, request, began, on_progress))
    except LocatedError as error:
        failure = SliceFailure.of(error, Where(cluster=run.cluster.name, topic=request.topic))
        result = TopicReplay(topic=request.topic, table=table.uri, failure=failure)
    return replace(result, seconds=round((run.now() - began).total_seconds(), 3))


def _replay(run: Run, table: LakeTable, request: ReplayRequest, began: datetime, on_progress: Progress) -> TopicReplay:
    topic, snapshot, state = _opened(run, table, request)
    damaged = table.damaged(snapshot.opened)
    rows, skips = TableRows(table, snapshot, state.topic, without=damaged), RecordedSkips.of(table.entries(snapshot))
    resolver = ReplayResolver.of(run.cluster, state, request.partitions, rows.of)
    ranges = resolver.ranges(request)
    sizes = _sizes(run, topic, snapshot, ranges, began)
    slices = list(_slices(ranges, resolver, sizes))
    failpoint("replay planned")
    folder = staging_folder(run.id)
    decoding = Decoding(run.topics.format_of(request.topic), snapshot, run.topics.open_registry)
    order = FetchOrder(
        topic=topic,
        table_uri=table.uri,
        slices=slices,
        began=loading_time(began, snapshot.entry),
        epochs=resolver.epochs,
        sizes=sizes,
        skip=skips.names(ranges, run.choices),
        below=folder,
        on_progress=_in_offsets(on_progress, sum(offsets.size for offsets in slices)),
        exact=exact_of_slices(table, rows.ranges, slices),
        routing=_routing(run, table, snapshot, state),
    )
    facts = run.fetcher.fetch_decoded(order, decoding)
    check_same_logs(run.cluster, state, resolver.same_logs)
    failpoint("replay staged")
    result = TopicReplay(topic=request.topic, table=table.uri, version=snapshot.version)
    for failure in (slice_facts.failure for slice_facts in facts if slice_facts.failure):
        return replace(result, failure=failure)
    if damaged:
        _check_lost_rows_are_replayed(rows, ranges, damaged)
        snapshot = table.drop(snapshot, damaged)
        rows = TableRows(table, snapshot, state.topic)
    check_records(run.topics.format_of(request.topic), facts, state.topic.where)
    staged = StagedFiles(table, folder, facts, snapshot.layout)
    compared = tuple(PartitionReplay.of(offsets, facts, _compare(staged, rows, offsets)) for offsets in ranges)
    skips.check(facts, rows, run.choices)
    compacted = (_compacted(table, rows, part, facts) for part in compared)
    choices = (*_choices(compacted, request, state), *skipped_in(facts))
    failpoint("replay compared")
    columns = decoding.plan.stored if decoding.plan else NO_COLUMNS
    is_same = all(part.comparison.same for part in compared) and all(_is_complete(rows, part) for part in ranges)
    # Columns that the table lacks are not compared.
    changed = not is_same or bool(columns_to_add(state, snapshot, columns)) or _was_changed(table, snapshot)
    version = snapshot.version
    if changed:
        change = ReplayChange(
            state=state,
            ranges=tuple(ranges),
            facts=tuple(facts),
            choices=choices,
            run=run.id,
            fetched_rows=staged.rows,
            columns=columns,
            schemas=decoding.schema_ids,
            rules=decoding.rules.recorded(),
        )
        version = _commit(table, snapshot, change)
    staged.remove(committed=changed)
    return replace(result, version=version, changed=changed, partitions=compared)


def _routing(run: Run, table: LakeTable, snapshot: TableSnapshot, state: TableState) -> TopicRouting | None:
    """The router that finds the records of the table; None if the topic has only one table.

    Raises:
        RoutesChanged: the settings say otherwise than when the table was loaded.
        SchemaChanged: an id that one of the tables has met has another schema now.
    """
    name = state.topic.name
    tables = run.topics.tables_of(topic_of(name))
    with_routes(state, TableRoutes.of(tables))
    if tables is None:
        return None
    others = ((route_of(str(other.where.topic)), other.existing()) for other in other_tables(table))
    entries = {route: other.entry for route, other in others if other} | {route_of(name): snapshot.entry}
    router = TopicRouter(tables, topic_of(name), run.topics.format_of, run.topics.open_registry, entries)
    return TopicRouting(router=router, own=route_of(name))


def _sizes(
    run: Run, topic: TopicEntry, snapshot: TableSnapshot, ranges: Sequence[OffsetRange], began: datetime
) -> SliceSizes:
    """The sizes of the slices, which end with the days of the table's folders."""
    sizes = run.fetcher.slice_sizes(topic, ranges, snapshot.entry)
    if not snapshot.layout.is_by_day:
        return sizes
    return replace(sizes, cuts=day_cuts(run.cluster, topic.name, ranges, now_ms=microseconds(began) // 1000))


def _in_offsets(on_progress: Progress, size: int) -> Progress:
    """A callback for the fetch, which counts slices, that calls `on_progress` with offsets."""
    return lambda done, total: on_progress(size * done // total, size)


def _proven(table: LakeTable, result: TopicReplay) -> TopicReplay:
    """The result, which fails if the table is not proven after the replay (fault E05)."""
    problems = verify(table).problems if result.failure is None else ()
    if not problems:
        return result
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    error = TableNotProven(f"the replay has ended, and the table is still not proven: {problems[0]}{more}", table.where)
    return replace(result, failure=SliceFailure.of(error, table.where))


def _slices(ranges: Sequence[OffsetRange], resolver: ReplayResolver, sizes: SliceSizes) -> Iterator[OffsetRange]:
    """The slices of the ranges, each range from its start."""
    for offsets in ranges:
        cuts = sizes.cut_points(offsets.partition, resolver.bounds)
        yield from sliced(offsets, cuts, sizes.target(offsets.partition))


def _opened(run: Run, table: LakeTable, request: ReplayRequest) -> tuple[TopicEntry, TableSnapshot, TableState]:
    """The topic, its table, and the state of the table.

    Raises:
        LoadError: one of them does not exist, or the table holds nothing of the topic.
    """
    topic = run.cluster.topic(topic_of(request.topic))
    if topic is None:
        raise TopicUnknown("the cluster has no such topic; `penstock topics` lists its topics")
    existing = table.existing()
    if existing is None:
        raise TableMissing("the topic has no table")
    snapshot, state = open_table(run, table, topic, name=request.topic, after=existing)
    if not state.covered:
        raise ReplayRefused("the table holds nothing of the topic's present incarnation; load the topic first")
    return topic.with_ids(state.ids.learned(topic.ids)), snapshot, state


def _check_lost_rows_are_replayed(rows: TableRows, ranges: Sequence[OffsetRange], damaged: Collection[str]) -> None:
    """Check that the replay fetches everything again that the damaged files held, before they are taken out.

    Raises:
        ReplayRefused: it does not.
    """
    for partition, committed in rows.ranges.items():
        for whole, count in rows.of(partition).counts(committed[0].offsets.start, committed[-1].offsets.stop):
            if count < whole.rows and not any(whole.offsets == whole.offsets.intersection(part) for part in ranges):
                raise ReplayRefused(
                    f"the data file {min(damaged)} is lost or damaged, and with it rows of {whole}: replay all of it, "
                    "for example from earliest to latest"
                )


def _compare(staged: StagedFiles, rows: TableRows, offsets: OffsetRange) -> Comparison:
    pieces = compare(staged.batches(offsets), rows.of(offsets.partition), offsets)
    return sum((comparison for _, comparison in pieces), Comparison())


def _is_complete(rows: TableRows, offsets: OffsetRange) -> bool:
    """Whether the committed ranges that overlap `offsets` have as many rows in the table as the ledger says."""
    counts = rows.of(offsets.partition).counts(offsets.start, offsets.stop)
    return all(count == whole.rows for whole, count in counts)


def _was_changed(table: LakeTable, snapshot: TableSnapshot) -> bool:
    """Whether another program wrote rows of the table: then a replay is recorded, also if all of them are right."""
    return bool(snapshot.changed) or ChangesByOthers.of(table, snapshot).any


def _compacted(
    table: LakeTable, rows: TableRows, compared: PartitionReplay, facts: Sequence[SliceFacts]
) -> tuple[OffsetRange, ComparedOffsets]:
    """The rows of a partition that the brokers no longer have. Those that `skip` leaves out now are no such rows."""
    offsets, only_in_table = compared.offsets, compared.comparison.only_in_table
    own = [fetched.range for fetched in facts if fetched.partition == offsets.partition]
    skipped = ExactOffsets.union(table.exact_sets(part).get(ExactCause.FILTERED, NO_OFFSETS) for part in own)
    if not (only_in_table.count and skipped.count):
        return offsets, only_in_table
    names = rows.of(offsets.partition).layout.name("offset"), rows.of(offsets.partition).layout.name("inner")
    left_out = sum(
        int(np.count_nonzero(skipped.contains(*(numbers(batch.column(name)) for name in names))))
        for batch in rows.of(offsets.partition).between(offsets.start, offsets.stop)
    )
    first = np.array(only_in_table.first, np.int64)
    others = tuple(first[~skipped.contains(first, np.zeros_like(first))].tolist())
    return offsets, ComparedOffsets(count=only_in_table.count - left_out, first=others)


def _choices(
    compared: Iterable[tuple[OffsetRange, ComparedOffsets]], request: ReplayRequest, state: TableState
) -> Iterator[RecordedChoice]:
    """The choices by which rows are dropped that the brokers no longer have.

    From 0.8 on compaction removes records also between others. In 0.7 no log is compacted: rows that only the table has
    are wrong there, and are dropped without a choice.

    Raises:
        ReplayRefused: the request does not choose to drop rows.
    """
    for offsets, compacted in compared:
        if not compacted.count or offsets.partition.broker is not None:
            continue
        if request.on_compacted == "fail":
            raise ReplayRefused(
                f"the brokers no longer have {compacted} of {offsets}: they were compacted away, or never committed; "
                'on_compacted = "drop" drops them from the table too',
                state.topic.where,
            )
        yield RecordedChoice.of("on_compacted", "drop", offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayChange(ReplaceChange):
    """The change of a replay: it replaces rows, and moves no cursor.

    `fetched_rows` gives the number of fetched rows with the offsets of a range.
    """

    repairs: ClassVar[bool] = True
    kind: CommitKind = CommitKind.REPLAY
    fetched_rows: Callable[[CommittedRange], int]
    shortfall: ClassVar[type[LoadError]] = ReplayRefused

    def rows_again(self, part: CommittedRange) -> int:
        return self.fetched_rows(part)

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry, if the replay still leaves out what was taken out, and what it replaces.

        Raises:
            CommitRefused: the replay would bring back rows that another run has erased meanwhile, for example; or take
                out retired rows that a rewind has brought back.
            ReplayRefused: retired rows are in between, at too many places.
        """
        changed, replaced = super(ReplayChange, self).complete(entry, table, snapshot)
        fetched, sets = [facts.range for facts in self.facts if facts.range.exact], table.sets
        for part in replaced if fetched else [part for part in replaced if part.exact]:
            left_out, wanted = (lasting(sets.of_ranges(own, part.offsets)) for own in (fetched, [part]))
            if left_out != wanted:
                raise CommitRefused(
                    f"another run has taken rows of {part} out of the table meanwhile, or brought some back; run again",
                    self.state.topic.where,
                )
        written = tuple(part for facts in self.facts for part in self._written(facts.range, table))
        return replace(changed, written=written), replaced

    def _written(self, fetched: CommittedRange, table: TableStore) -> Iterator[LoadedRange]:
        """What the replay has written of a range: not its retired offsets, so that results of their rows stay.

        In 0.7 an offset may have rows that are retired and others that are not, so the whole range counts as written.

        Raises:
            ReplayRefused: there are too many parts.
        """
        retired = table.exact_sets(fetched).get(ExactCause.RETIRED, NO_OFFSETS) if fetched.exact else NO_OFFSETS
        if not len(retired.firsts) or retired.by_row:
            yield LoadedRange.of(fetched)
            return
        if len(retired.firsts) > MAX_WRITTEN:
            raise ReplayRefused(
                f"retired rows are at {len(retired.firsts):,} places of {fetched}, and at most {MAX_WRITTEN:,} can be "
                "left out: replay smaller intervals",
                self.state.topic.where,
            )
        starts = [fetched.offsets.start, *retired.seconds.tolist()]
        for start, stop in zip(starts, [*retired.firsts.tolist(), fetched.offsets.stop], strict=True):
            if start < stop:
                yield LoadedRange(replace(fetched.offsets, start=start, stop=stop), fetched.loaded_at_us)

    def coverage_after(self, covered: Coverage) -> Coverage:
        for offsets in self.ranges:
            start, cursor = covered.get(offsets.partition, (0, 0))
            if not start <= offsets.start < offsets.stop <= cursor:
                raise CommitRefused(
                    f"the table covers [{start}, {cursor}) of partition {offsets.partition} now, and no longer all of "
                    f"{offsets}",
                    self.state.topic.where,
                )
        return covered


def _commit(table: LakeTable, snapshot: TableSnapshot, change: ReplayChange) -> int:
    """Commit the change on top of the newest version, because loads may have run since `snapshot`; the new version.

    Raises:
        CommitRefused: the log may no longer hold what was fetched (fault B03), or the table no longer covers it.
    """
    table.check(change.facts)
    newest = table.newer(snapshot)
    if any(entry.kind is CommitKind.CUT for _, entry in table.entries(newest, after=snapshot.version)):
        raise CommitRefused(
            "another run found a truncated log meanwhile and took back its rows; run again", change.state.topic.where
        )
    return commit(table, newest, change.rebased(newest)).version
