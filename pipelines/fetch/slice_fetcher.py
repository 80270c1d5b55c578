"""Fetches slices of a topic: how large they are, which of them share a task, and which are fetched again."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange
from kafka_io.values.json.inference import MAX_BYTES, MAX_VALUES
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.fetch_runner import Runner
from pipelines.fetch.fetch_task import FetchTask, SliceRoutes
from pipelines.identity.holes import with_causes
from pipelines.identity.truncation import check_incarnation
from pipelines.layout.layout import RAW
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.coverage import is_covered
from pipelines.ledger.ledger import Coverage, LeaderEpochs, LedgerEntry
from pipelines.ledger.slice_facts import DecodingNeeds, PartNeeds, SliceFacts
from pipelines.plan.bytes_per_offset import committed_bytes_per_offset, read_sample, sizes_by_bytes
from pipelines.plan.plan import PlannedStep
from pipelines.plan.slices import SliceSizes, group_slices
from pipelines.routes.router import MAIN_ROUTE
from pipelines.routes.topic_router import TopicRouter
from pipelines.rules.row_rules import NO_RULES
from resources.progress import Progress, no_progress
from resources.settings.settings import Caps

_MAX_SAMPLES = 8
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_CLOCK_STANDS_STILL = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedTable:
    """A table that gets the records of one route.

    Args:
        route: the route.
        uri: the URI of the table.
        decoding: how its records are decoded.
        covered: what the table has already. It takes no slice of it again.
    """

    route: str
    uri: str
    decoding: Decoding
    covered: Coverage = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRouting:
    """The tables of a topic that has several of them.

    Args:
        router: finds the route of each record, and learns the names of schemas.
        own: the route of the table that a FetchOrder names.
        covered: what this table has already.
        others: the other tables that get rows.
    """

    router: TopicRouter
    own: str = MAIN_ROUTE
    covered: Coverage = field(default_factory=dict)
    others: tuple[RoutedTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOrder:
    """Slices of one topic that are to be fetched, and where their files go.

    Args:
        topic: the topic.
        table_uri: the URI of its table.
        slices: the slices. Empty ones need no fetch.
        epochs: the leader epochs of the bounds on which the slices were planned, as far as they are known.
        began: the loading time of the rows.
        sizes: the sizes of the slices, which decide how many of them share a task.
        below: a path in the table's folder below which the files are staged; empty if they go into its own folders.
        skip: the choices by which records that cannot be read are skipped.
        to_message: slices that end after a message (see Plan).
        on_progress: is called with how many of how many slices are fetched.
        ahead: the steps that probably come next.
        exact: the exact sets of the slices that have some, where rows were erased, filtered or retired.
        routing: the tables of the topic; None if it has only one.
    """

    topic: TopicEntry
    table_uri: str
    slices: Sequence[OffsetRange]
    epochs: LeaderEpochs
    began: datetime
    sizes: SliceSizes
    below: str = ""
    skip: tuple[str, ...] = ()
    to_message: Collection[OffsetRange] = ()
    on_progress: Progress = no_progress
    ahead: Sequence[PlannedStep] = ()
    exact: Mapping[OffsetRange, Mapping[ExactCause, StoredSet]] = field(default_factory=dict)
    routing: TopicRouting | None = None

    def tables(self, decoding: Decoding) -> Sequence[RoutedTable]:
        """All tables that get rows; `decoding` is that of the table of the order."""
        if self.routing is None:
            return (RoutedTable(route=MAIN_ROUTE, uri=self.table_uri, decoding=decoding),)
        routing = self.routing
        own = RoutedTable(route=routing.own, uri=self.table_uri, decoding=decoding, covered=routing.covered)
        return (own, *routing.others)

    def of_step(self, step: PlannedStep) -> "FetchOrder":
        """The order for a step that comes later."""
        plan = step.plan
        return replace(
            self, slices=plan.slices, epochs=step.epochs, sizes=step.sizes, to_message=plan.to_message, ahead=()
        )

    def again(self, slices: Sequence[OffsetRange]) -> "FetchOrder":
        """The same order for other slices, or parts of these. Nothing is begun ahead of them."""
        return replace(self, slices=slices, ahead=())


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFetcher:
    """Fetches slices of the topics of one cluster.

    Args:
        cluster: where the topics are.
        runner: runs the fetch tasks; it is used only if there is something to fetch.
        caps: the limits for slices and runs.
        options: what the lake's store needs.
        parquet_codec: the compression of new files.
    """

    cluster: Cluster
    runner: Runner
    caps: Caps
    options: Mapping[str, str] = field(default_factory=dict)
    parquet_codec: str = "zstd"

    def slice_sizes(self, topic: TopicEntry, wanted: Sequence[OffsetRange], entry: LedgerEntry | None) -> SliceSizes:
        """The sizes of slices for the wanted ranges; `entry` is the newest of the table.

        In 0.7 offsets are bytes, so all slices have the same size. From 0.8 on the sizes of records are estimated.
        """
        if all(offsets.partition.broker is not None for offsets in wanted):
            return SliceSizes(slice=self.caps.slice_bytes, driver=self.caps.driver_slices)

        def sample(offsets: OffsetRange) -> float | None:
            return read_sample(self.cluster.source(offsets.partition), _planned_range(topic, offsets))

        return sizes_by_bytes(self.caps, wanted, committed_bytes_per_offset(entry), sample)

    def fetch_decoded(self, order: FetchOrder, decoding: Decoding) -> list[SliceFacts]:
        """The facts of the slices, decoded as planned, in order of partition and offset.

        A slice with unknown schemas is fetched again after the registry was asked for them. A slice with fields without
        columns is fetched again after the plan got columns for them.
        """
        # A first load would fetch everything twice, once to see the columns. A sample shows most of them.
        tables = order.tables(decoding)
        unseen = [table for table in tables if table.decoding.needs_sample]
        while unseen and (sample := _sample_of(order.slices)):
            beginnings = replace(order.again(sample), to_message=sample, on_progress=no_progress)
            facts = self.fetch_slices(beginnings, unseen)
            _learn(order, unseen, facts)
            # A schema must be known before a sample can show which of its message types there are.
            shown = {part.route for part in facts if part.needs and part.needs.values.schemas}
            unseen = [table for table in unseen if table.route in shown and table.decoding.needs_sample]
        facts = self.fetch_slices(order, tables)
        _keep_columns(tables, facts)
        while again := sorted({slice_facts.offsets for slice_facts in facts if slice_facts.needs}):
            _learn(order, tables, facts)
            facts = [slice_facts for slice_facts in facts if not slice_facts.needs]
            facts += self.fetch_slices(order.again(again), tables)
            _keep_columns(tables, facts)
        return sorted(facts, key=lambda slice_facts: slice_facts.offsets)

    def fetch_slices(self, order: FetchOrder, tables: Sequence[RoutedTable]) -> list[SliceFacts]:
        """The facts of the slices in these tables, fetched with what the plans of their decodings know now.

        Raises:
            TopicRecreated: the topic may have been recreated meanwhile.
            KafkaIOError: there are holes, and the topic's cleanup.policy cannot be read now.
        """
        loaded_at_us = microseconds(order.began)
        facts = [
            SliceFacts(range=CommittedRange(offsets=offsets, loaded_at_us=loaded_at_us), route=table.route)
            for offsets in order.slices
            if not offsets.size
            for table in tables
            if not is_covered(offsets, table.covered)
        ]
        makers = [(table, self._task_maker(order, table)) for table in tables]
        if tasks := list(self._tasks(makers, order)):
            ahead = [list(self._tasks(makers, order.of_step(step))) for step in order.ahead]
            facts += self.runner.fetch(tasks, order.on_progress, ahead)
        if facts:
            # Answers of brokers before 3.1 do not name the incarnation: what was read may be of a topic that was
            # created again while it was read (faults B05, B06).
            read = {slice_facts.offsets.partition for slice_facts in facts if not slice_facts.failure}
            check_incarnation(self.cluster, order.topic, read)
        return with_causes(self.cluster, order.topic.name, facts)

    def _task_maker(self, order: FetchOrder, table: RoutedTable) -> Callable[..., FetchTask]:
        """A function that completes the fetch tasks for a table."""
        decoding = table.decoding
        decode = decoding.plan
        layout = decode.layout if decode else RAW.partitioned_by(decoding.partition_by)
        has_day_files = layout.is_by_day and not order.below  # staged rows get their days in the commit
        return partial(
            FetchTask,
            table_uri=table.uri,
            folder="" if has_day_files else f"{order.below}{layout.folder(order.began.date())}",
            options=self.options,
            parquet_codec=self.parquet_codec,
            loaded_at_us=microseconds(order.began),
            skip=order.skip,
            decode=decode,
            partition_by=decoding.partition_by,
            times=decoding.event_times,
            rules=NO_RULES if decode else decoding.rules,
        )

    def _tasks(
        self, makers: Sequence[tuple[RoutedTable, Callable[..., FetchTask]]], order: FetchOrder
    ) -> Iterator[FetchTask]:
        """The fetch tasks of the slices; each table has a function that completes its tasks."""
        groups = group_slices([offsets for offsets in order.slices if offsets.size], order.sizes)
        for number, group in enumerate(groups):
            for offsets in group:
                planned = replace(
                    _planned_range(order.topic, offsets),
                    to_message=offsets in order.to_message,
                    epoch=order.epochs.get(offsets.partition, -1),
                )
                source, exact = self.cluster.source(offsets.partition), order.exact.get(offsets, {})
                own = {
                    table.route: task(spark_task=number, source=source, planned=planned, exact=exact)
                    for table, task in makers
                    if not is_covered(offsets, table.covered)
                }
                first = next(iter(own.values()), None)
                if first is None:
                    continue
                yield replace(first, routes=SliceRoutes(order.routing.router.router, own)) if order.routing else first


def _learn(order: FetchOrder, tables: Iterable[RoutedTable], facts: Sequence[SliceFacts]) -> None:
    """Let the router learn the names of schemas, and each table what its plan lacks for its records."""
    uses = sorted({use for part in facts if part.needs for use in part.needs.routes}, key=str)
    ids = order.routing.router.learn(uses) if order.routing and uses else {}
    for table in tables:
        needs = [part.needs for part in facts if part.needs and part.route == table.route]
        if new := ids.get(table.route, ()):
            needs.append(DecodingNeeds(values=PartNeeds(schemas=tuple(new))))
        if needs:
            table.decoding.learn_from(needs)


def _keep_columns(tables: Iterable[RoutedTable], facts: Sequence[SliceFacts]) -> None:
    """Keep the columns of each table that has new files; see `Decoding.keep_columns`."""
    for table in tables:
        table.decoding.keep_columns(part for part in facts if part.route == table.route)


def _sample_of(slices: Sequence[OffsetRange]) -> Sequence[OffsetRange]:
    """The beginnings of some slices, if slices are so large that reading them twice would cost more than a sample."""
    large = [offsets for offsets in slices if offsets.size > _sample_size(offsets)]
    chosen = large[:: max(1, -(-len(large) // _MAX_SAMPLES))]
    return [replace(offsets, stop=offsets.start + _sample_size(offsets)) for offsets in chosen]


def _sample_size(offsets: OffsetRange) -> int:
    """The offsets of a sample: bytes in 0.7."""
    return MAX_VALUES if offsets.partition.broker is None else MAX_BYTES


def _planned_range(topic: TopicEntry, offsets: OffsetRange) -> PlannedRange:
    """The offsets of the topic in its present incarnation."""
    return PlannedRange(topic=topic.name, offsets=offsets, incarnation=topic.incarnation)


def microseconds(time: datetime) -> int:
    """The time in microseconds since 1970, as the tables store it."""
    return (time - _EPOCH) // _MICROSECOND


def loading_time(began: datetime, newest: LedgerEntry | None) -> datetime:
    """The loading time of rows that are fetched now: `began`, or the next one after that of the newest commit.

    Rows of two incarnations may have the same offset, and then only the loading time tells them apart. So two commits
    get different ones if the clock stands still, or goes back a little (fault E08).
    """
    used = max((committed.loaded_at_us for committed in newest.ranges), default=0) if newest else 0
    behind = timedelta(microseconds=used + 1 - microseconds(began))
    return began + behind if timedelta() < behind <= _CLOCK_STANDS_STILL else began
