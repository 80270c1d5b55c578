"""What a load begins with: the topic as the cluster shows it, its table, and the bounds of its partitions."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kafka_io.cluster.cluster import Cluster, PartitionResults
from kafka_io.errors import LocatedError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.ledger.ledger import TableState
from pipelines.table.table_store import TableSnapshot
from resources.errors import ClusterChanged, TopicRecreated, TopicUnknown

BoundsByPartition = dict[BrokerPartition, Bounds]
ErrorsByPartition = dict[BrokerPartition, LocatedError]
OpenTable = Callable[[TopicEntry], tuple[TableSnapshot, TableState]]


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
        if state.replaced or state.adopted or state.covered.keys() - self.bounds.keys():
            return False
        for partition, (_, cursor) in state.covered.items():
            bound = self.bounds[partition]
            if isinstance(bound, Bounds) and not (
                bound.earliest <= cursor <= bound.latest and bound.epoch >= state.epochs.get(partition, bound.epoch)
            ):
                return False
        return True


class Discovery(NamedTuple):
    """What the cluster and the table hold.

    Args:
        began: a time before the brokers were asked.
        topic: the topic.
        wanted: the partitions whose bounds were asked for.
        snapshot: the table.
        state: the state of the table, for a load of the topic.
        bounds: the bounds of the wanted partitions.
        errors: the errors where brokers do not report them.
    """

    began: datetime
    topic: TopicEntry
    wanted: set[BrokerPartition]
    snapshot: TableSnapshot
    state: TableState
    bounds: BoundsByPartition
    errors: ErrorsByPartition


def discover(
    cluster: Cluster,
    name: str,
    open_table: OpenTable,
    now: Callable[[], datetime],
    *,
    first: TopicAnswers | None = None,
    wanted: Collection[BrokerPartition] | None = None,
) -> Discovery:
    """What the cluster and the table hold now, or what they held when the first answers were given.

    Args:
        cluster: the cluster.
        name: the name of the topic.
        open_table: reads the table of the topic.
        now: the time, in UTC.
        first: what brokers said before, for all partitions.
        wanted: the partitions whose bounds are needed; None for all.

    Raises:
        TopicUnknown: the cluster has no such topic.
        LoadError: no load can continue from the table.
        KafkaIOError: the brokers cannot be asked.
    """
    earlier = _with_first_answers(first, open_table) if first else None
    if earlier:
        return earlier
    began, topic = now(), cluster.topic(name)
    if topic is None:
        raise TopicUnknown("the cluster has no such topic; `penstock topics` lists its topics")
    # The table is read before the bounds. In the other order a commit of another run in between would make the
    # table end after the logs, and the plan would refuse them as truncated.
    snapshot, state = open_table(topic)
    partitions = set(topic.partitions if wanted is None else wanted)
    answers = cluster.bounds(name, [partition for partition in topic.partitions if partition in partitions])
    return Discovery(began, topic, partitions, snapshot, state, *with_errors_apart(answers))


def _with_first_answers(first: TopicAnswers, open_table: OpenTable) -> Discovery | None:
    """What the first answers and the table say together; None if the table, which is read later, contradicts them."""
    try:
        snapshot, state = open_table(first.topic)
    except (TopicRecreated, ClusterChanged):  # perhaps another run loads a newer incarnation already
        return None
    if not first.agree_with(state):
        return None
    partitions = set(first.topic.partitions)
    return Discovery(first.asked, first.topic, partitions, snapshot, state, *with_errors_apart(first.bounds))


def with_errors_apart(answers: PartitionResults[Bounds]) -> tuple[BoundsByPartition, ErrorsByPartition]:
    """The bounds among the answers about partitions, and the errors where brokers did not report them."""
    bounds = {partition: answer for partition, answer in answers.items() if isinstance(answer, Bounds)}
    return bounds, {partition: answer for partition, answer in answers.items() if not isinstance(answer, Bounds)}
