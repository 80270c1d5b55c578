"""The first stage of a load: the topic as the cluster shows it, its table, and the bounds of its partitions."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from kafka_io.cluster.cluster import PartitionResults
from kafka_io.errors import LocatedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.fetch.decode_plan import check_format, check_partition_by
from pipelines.identity.earlier_loads import Evidence
from pipelines.identity.identity import table_state
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.plan.window import AllBounds
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import ClusterChanged, TableLost, TopicRecreated, TopicUnknown
from resources.failpoints import failpoint

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
class Discovered(Stage):
    """What the cluster and the table hold. The errors are those of brokers that do not report the bounds.

    Args:
        began: a time before the brokers were asked.
        topic: the topic.
        wanted: the partitions whose bounds were asked for.
        table: the topic's table.
        snapshot: the version of the table from which the load continues.
        state: the state of the table, for a load of the topic.
        bounds: the bounds of the wanted partitions.
    """

    began: datetime
    topic: TopicEntry
    wanted: frozenset[BrokerPartition]
    table: TableStore
    snapshot: TableSnapshot
    state: TableState
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
        after: TableSnapshot | None = None,
        first: TopicAnswers | None = None,
        wanted: Collection[BrokerPartition] | None = None,
    ) -> Discovered:
        """What the cluster and the table hold now, or what they held when the first answers were given.

        Args:
            topic: the name of the topic.
            after: an older snapshot of the table; without one, a table that does not exist is created.
            first: what brokers said before, for all partitions.
            wanted: the partitions whose bounds are needed; None for all.

        Raises:
            TopicUnknown: the cluster has no such topic.
            LoadError: no load can continue from the table.
            KafkaIOError: the brokers cannot be asked.
        """
        if first is not None:
            opened = self._opened_with(first, after)
            if opened and first.agree_with(opened[1]):
                return self._discovered(first, *opened)
            after = opened[0] if opened else after
        began, entry = self.run.now(), self.run.cluster.topic(topic)
        if entry is None:
            raise TopicUnknown("the cluster has no such topic; `penstock topics` lists its topics")
        # The table is read before the bounds. In the other order a commit of another run in between would make the
        # table end after the logs, and the plan would refuse them as truncated.
        opened = self._opened(entry, after)
        partitions = [partition for partition in entry.partitions if wanted is None or partition in wanted]
        bounds = self.run.cluster.bounds(topic, partitions)
        asked = partitions if wanted is None else wanted
        return self._discovered(TopicAnswers(asked=began, topic=entry, bounds=bounds), *opened, wanted=asked)

    def _discovered(
        self,
        answers: TopicAnswers,
        snapshot: TableSnapshot,
        state: TableState,
        wanted: Collection[BrokerPartition] | None = None,
    ) -> Discovered:
        bounds, errors = with_errors_apart(answers.bounds)
        failpoint("bounds known")
        return Discovered(
            began=answers.asked,
            topic=answers.topic,
            wanted=frozenset(answers.topic.partitions if wanted is None else wanted),
            table=self.table,
            snapshot=snapshot,
            state=state,
            bounds=bounds,
            errors=errors,
        )

    def _opened_with(self, first: TopicAnswers, after: TableSnapshot | None) -> tuple[TableSnapshot, TableState] | None:
        """The table, for the topic of the first answers; None if it is not the table of that topic."""
        try:
            return self._opened(first.topic, after)
        except (TopicRecreated, ClusterChanged):  # perhaps another run loads a newer incarnation already
            return None

    def _opened(self, topic: TopicEntry, after: TableSnapshot | None) -> tuple[TableSnapshot, TableState]:
        """The table for the next step of the run, and its state.

        Raises:
            TableLost: the topic was loaded before, but the table is new (fault N17).
            LoadError: no load can continue from the table.
        """
        failpoint("discovered")
        snapshot, state = open_table(self.run, self.table, topic, after=after)
        failpoint("table opened")
        snapshot.check_unchanged(state.topic.where)
        if snapshot.entry is None and self.run.window.since is None:
            reasons = (evidence(state) for evidence in self.evidence)
            reason = next((reason for reason in reasons if reason), None)
            if reason and self.table.newer(snapshot).entry is None:  # another run may just have begun the table
                raise TableLost(
                    f"{reason}; `--from earliest` (in Dagster, `since: earliest`) loads all of it into a new table",
                    state.topic.where,
                )
        return snapshot, state


def open_table(
    run: Run, table: TableStore, topic: TopicEntry, *, after: TableSnapshot | None = None
) -> tuple[TableSnapshot, TableState]:
    """The newest snapshot of the topic's table, and its state. Only without a snapshot before, a table is created.

    Raises:
        LoadError: no load can continue from it.
    """
    snapshot = table.newer(after) if after else table.snapshot()
    if after:
        after.check_layout(snapshot, Where(cluster=run.cluster.name, topic=topic.name))
    format_ = run.topics.format_of(topic.name)
    check_format(format_, snapshot, table.uri)
    check_partition_by(format_, snapshot, table.uri)
    return snapshot, table_state(snapshot, TopicIdentity.of(run.cluster, topic), topic.also, run.choices)


def with_errors_apart(answers: PartitionResults[Bounds]) -> tuple[BoundsByPartition, ErrorsByPartition]:
    """The bounds among the answers about partitions, and the errors where brokers did not report them."""
    bounds = {partition: answer for partition, answer in answers.items() if isinstance(answer, Bounds)}
    return bounds, {partition: answer for partition, answer in answers.items() if not isinstance(answer, Bounds)}
