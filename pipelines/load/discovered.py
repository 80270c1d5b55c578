"""The first stage of a load: the topic as the cluster shows it, its table, and the bounds of its partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kafka_io.cluster.cluster import PartitionResults
from kafka_io.errors import LocatedError, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry
from pipelines.commit.commit import LoadChange, commit
from pipelines.fetch.decode_plan import check_format, check_partition_by
from pipelines.identity.earlier_loads import Evidence
from pipelines.identity.identity import table_state
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_routes import TableRoutes
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.plan.window import AllBounds
from pipelines.routes.changes import with_routes
from pipelines.routes.router import MAIN_ROUTE
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import ClusterChanged, RouteUnknown, TableLost, TopicRecreated, TopicUnknown
from resources.failpoints import failpoint
from resources.table_names import table_name

BoundsByPartition = dict[BrokerPartition, Bounds]
ErrorsByPartition = dict[BrokerPartition, LocatedError]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAnswers:
    """What the brokers said about a topic; `asked` is a time before the first question."""

    asked: datetime
    topic: TopicEntry
    bounds: PartitionResults[Bounds]

    def agree_with(self, state: TableState) -> bool:
        """Whether nothing in the table, which was read later, contradicts the answers.

        Each cursor is within its log, no leader epoch is newer than the one of the answer, and no choice of the user
        about the topic's identity is needed. A partition whose broker did not answer contradicts nothing.
        """
        if state.findings.replaced or state.findings.adopted or state.covered.keys() - self.bounds.keys():
            return False
        for partition, (_, cursor) in state.covered.items():
            bound = self.bounds[partition]
            if isinstance(bound, Bounds) and not (
                bound.earliest <= cursor <= bound.latest and bound.epoch >= state.epochs.get(partition, bound.epoch)
            ):
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTable:
    """One of the tables of a topic, from which a load continues.

    Args:
        route: the route of its records; empty for the topic's own table.
        table: the table.
        snapshot: its version.
        state: its state, for a load of the topic.
    """

    route: str
    table: TableStore
    snapshot: TableSnapshot
    state: TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered(Stage):
    """What the cluster and the table hold. The errors are those of brokers that do not report the bounds.

    Args:
        began: a time before the brokers were asked.
        topic: the topic.
        wanted: the partitions whose bounds were asked for.
        tables: all tables of the topic. Its own is the last one, and so its commit is the last one too.
        bounds: the bounds of the wanted partitions.
    """

    began: datetime
    topic: TopicEntry
    wanted: frozenset[BrokerPartition]
    tables: tuple[TopicTable, ...]
    bounds: AllBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Finds out what the cluster and the table hold.

    Args:
        run: the run.
        table: the topic's table.
        evidence: functions that can show that a topic without a table was loaded before.
    """

    run: Run
    table: TableStore
    evidence: tuple[Evidence, ...] = ()

    def of(
        self,
        topic: str,
        *,
        after: Sequence[TopicTable] = (),
        first: TopicAnswers | None = None,
        wanted: Collection[BrokerPartition] | None = None,
    ) -> Discovered:
        """What the cluster and the table hold now, or what they held when the first answers were given.

        Args:
            topic: the name of the topic.
            after: the tables after the step before; without them, tables that do not exist are created.
            first: what brokers said before, for all partitions.
            wanted: the partitions whose bounds are needed; None for all.

        Raises:
            TopicUnknown: the cluster has no such topic.
            LoadError: no load can continue from the table.
            KafkaIOError: the brokers cannot be asked.
        """
        if first is not None:
            opened = self._opened_with(first, after)
            if opened and all(first.agree_with(table.state) for table in opened):
                return self._discovered(first, opened)
            after = opened or after
        began, entry = self.run.now(), self.run.cluster.topic(topic)
        if entry is None:
            raise TopicUnknown("the cluster has no such topic; `penstock topics` lists its topics")
        # The table is read before the bounds. In the other order a commit of another run in between would make the
        # table end after the logs, and the plan would refuse them as truncated.
        opened = self._opened(entry, after)
        partitions = [partition for partition in entry.partitions if wanted is None or partition in wanted]
        bounds = self.run.cluster.bounds(topic, partitions)
        asked = partitions if wanted is None else wanted
        return self._discovered(TopicAnswers(asked=began, topic=entry, bounds=bounds), opened, asked)

    def _discovered(
        self,
        answers: TopicAnswers,
        tables: Sequence[TopicTable],
        wanted: Collection[BrokerPartition] | None = None,
    ) -> Discovered:
        bounds, errors = with_errors_apart(answers.bounds)
        failpoint("bounds known")
        return Discovered(
            began=answers.asked,
            topic=answers.topic,
            wanted=frozenset(answers.topic.partitions if wanted is None else wanted),
            tables=tuple(tables),
            bounds=bounds,
            errors=errors,
        )

    def _opened_with(self, first: TopicAnswers, after: Sequence[TopicTable]) -> Sequence[TopicTable]:
        """The tables, for the topic of the first answers; none if they are not the tables of that topic."""
        try:
            return self._opened(first.topic, after)
        except (TopicRecreated, ClusterChanged):  # perhaps another run loads a newer incarnation already
            return ()

    def _opened(self, topic: TopicEntry, after: Sequence[TopicTable]) -> Sequence[TopicTable]:
        """The tables for the next step of the run; the topic's own is the last one.

        Raises:
            TableLost: the topic was loaded before, but the table is new (fault N17).
            RoutesChanged: the settings put records of the topic into other tables than before.
            LoadError: no load can continue from the tables.
        """
        failpoint("discovered")
        earlier = {known.route: known for known in after}
        own = self._open(self.table, topic, MAIN_ROUTE, earlier)
        failpoint("table opened")
        snapshot, state = own.snapshot, own.state
        if snapshot.entry is None and self.run.window.since is None:
            reasons = (evidence(state) for evidence in self.evidence)
            reason = next((reason for reason in reasons if reason), None)
            if reason and self.table.newer(snapshot).entry is None:  # another run may just have begun the table
                raise TableLost(
                    f"{reason}; `--from earliest` (in Dagster, `since: earliest`) loads all of it into a new table",
                    state.topic.where,
                )
        planned = TableRoutes.of(self.run.topics.tables_of(topic.name))
        if planned.by and any(partition.broker is not None for partition in topic.partitions):
            raise RouteUnknown(
                "a topic of Kafka 0.7 has only one table: remove [topics.NAME.tables]", state.topic.where
            )
        routed = []
        for route in planned.all_routes:
            table = self.run.tables.of(table_name(topic.name, route))
            routed.append(joined(self.run, self._open(table, topic, route, earlier), own))
        return [replace(table, state=with_routes(table.state, planned)) for table in (*routed, own)]

    def _open(self, table: TableStore, topic: TopicEntry, route: str, earlier: Mapping[str, TopicTable]) -> TopicTable:
        after = earlier[route].snapshot if route in earlier else None
        snapshot, state = open_table(self.run, table, topic, name=table_name(topic.name, route), after=after)
        snapshot.check_unchanged(state.topic.where)
        return TopicTable(route=route, table=table, snapshot=snapshot, state=state)


def open_table(
    run: Run, table: TableStore, topic: TopicEntry, *, name: str, after: TableSnapshot | None = None
) -> tuple[TableSnapshot, TableState]:
    """The newest snapshot of a table of the topic, and its state. Only without a snapshot before, a table is created.

    Raises:
        LoadError: no load can continue from it.
    """
    snapshot = table.newer(after) if after else table.snapshot()
    if after:
        after.check_layout(snapshot, Where(cluster=run.cluster.name, topic=name))
    format_ = run.topics.format_of(name)
    check_format(format_, snapshot, table.uri)
    check_partition_by(format_, snapshot, table.uri)
    return snapshot, table_state(snapshot, TopicIdentity.of(run.cluster, topic, name), topic.also, run.choices)


def joined(run: Run, new: TopicTable, own: TopicTable) -> TopicTable:
    """The table of a route, which begins at the cursors of the topic's own table if it is new and the other is not.

    Raises:
        TableLost: the topic was loaded into this table before.
        LoadError: see `commit`.
    """
    if new.snapshot.entry is not None or own.snapshot.entry is None or own.state.findings.replaced:
        return new
    cursors = {partition: cursor for partition, (start, cursor) in own.state.covered.items() if start < cursor}
    if cursors and new.route in own.state.routes.all_routes:
        raise TableLost.of_one(new.table.uri, new.state.topic.where)
    begins = (CommittedRange(offsets=OffsetRange(id_, cursor, cursor)) for id_, cursor in sorted(cursors.items()))
    facts = tuple(SliceFacts(range=begin, route=new.route) for begin in begins)
    if not facts:
        return new
    commit(new.table, new.snapshot, LoadChange(state=new.state, facts=facts, run=run.id))
    snapshot = new.table.newer(new.snapshot)
    assert snapshot.entry is not None
    return replace(new, snapshot=snapshot, state=replace(snapshot.entry.state, findings=new.state.findings))


def with_errors_apart(answers: PartitionResults[Bounds]) -> tuple[BoundsByPartition, ErrorsByPartition]:
    """The bounds among the answers about partitions, and the errors where brokers did not report them."""
    bounds = {partition: answer for partition, answer in answers.items() if isinstance(answer, Bounds)}
    return bounds, {partition: answer for partition, answer in answers.items() if not isinstance(answer, Bounds)}
