"""The metadata of one cluster from 0.8 on: its brokers, its topics, and the leader of each partition.

Any broker answers a Metadata request, but its answer can be out of date. When a broker does not lead a partition, the
metadata of the topic is dropped and requested again, as often as the retry policy allows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from kafka_io import stopping
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.brokers.negotiation import Connector
from kafka_io.brokers.retry import Backoff, retrying
from kafka_io.closing import Closing
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import (
    NOWHERE,
    BrokerBusy,
    Corrupt,
    KafkaIOError,
    LeaderMoved,
    NetworkError,
    TopicReplaced,
    Where,
    error_context,
)
from kafka_io.messages.listed_topics import check_listed_topic
from kafka_io.messages.metadata import (
    MetadataPartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)
from kafka_io.model import Broker, Generation, TopicPartition
from kafka_io.wire.types import NULL_UUID, uuid_text

T = TypeVar("T")

LEADER = -2
"""Used instead of the id of a replica: read from the leader only."""

_NO_AUTO_CREATE_SINCE = 4  # before that version, a Metadata request for a topic may create it


def topic_id_text(topic_id: UUID) -> str | None:
    """A topic's id as Kafka prints it (22 letters); None when the broker has none."""
    return None if topic_id == NULL_UUID else uuid_text(topic_id)


def check_topic(topic: MetadataTopic) -> None:
    """Check the name and the partitions of a topic. Raises Corrupt; see `check_listed_topic`."""
    check_listed_topic(topic.name, (partition.partition_index for partition in topic.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The leader of a partition; `topic_id` is null before 2.8, `epoch` is -1 before 2.1."""

    connection: ModernBrokerConnection
    epoch: int
    topic_id: UUID


@dataclass(frozen=True)
class _KnownTopic:
    """A topic as a broker described it."""

    description: MetadataTopic

    @cached_property
    def partitions(self) -> Mapping[int, MetadataPartition]:
        """The partitions by number, so that reads of all partitions of a topic take linear time."""
        return {row.partition_index: row for row in self.description.partitions}


@dataclass(eq=False)
class ClusterMetadata(Closing):
    """The metadata of a cluster, and one connection to each of its brokers. It belongs to one thread.

    See `Source.connect`. If the `expected_cluster_id` is given, answers of another cluster are refused.
    """

    bootstrap: Sequence[Broker]
    connector: Connector
    backoff: Backoff
    _: KW_ONLY
    where: Where
    sleep: Callable[[float], None] = stopping.sleep
    expected_cluster_id: str = ""

    def __post_init__(self) -> None:
        self._connections: dict[Broker, ModernBrokerConnection] = {}
        self._topics: dict[str, _KnownTopic] = {}
        self._brokers: dict[int, Broker] = {}
        self._replicas: dict[TopicPartition, int] = {}  # ids of brokers to read from instead of the leader
        self._cluster_id: str | None = None
        self._described_by: Broker | None = None  # the broker of the last Metadata answer
        self._outdated: set[str] = set()  # addresses of brokers with older metadata, which are asked last
        self._closing = ExitStack()

    @property
    def known_brokers(self) -> tuple[Broker, ...]:
        """The brokers of the last Metadata answer, then the bootstrap brokers."""
        return tuple(dict.fromkeys((*self._brokers.values(), *self.bootstrap)))

    @property
    def generation(self) -> Generation | None:
        """The generation of the brokers with a connection: the oldest if they differ, None before the first."""
        generations = {connection.generation for connection in self._connections.values() if connection.generation}
        # In a rolling upgrade the brokers of a cluster differ (fault B16), and the oldest one counts.
        return Generation.V08 if Generation.V08 in generations else next(iter(generations), None)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1, and where brokers support only Metadata below v2.

        Raises:
            NetworkError: no broker can be reached.
        """
        if not self._brokers:
            self._request_metadata()
        return self._cluster_id

    def serving(self, topic: str, partition: int) -> Broker | None:
        """The broker that the partition is read from, if the metadata is known; no request is sent."""
        row = self._row(topic, partition)
        return self._replica(topic, partition) or (self._brokers.get(row.leader_id) if row else None)

    def epoch_of(self, topic: str, partition: int) -> int:
        """The epoch of the partition's leader, if the metadata is known, else -1; no request is sent."""
        row = self._row(topic, partition)
        return row.leader_epoch if row else -1

    def _row(self, topic: str, partition: int) -> MetadataPartition | None:
        """The partition of a known topic; None if the topic or the partition is not known."""
        return self._topics[topic].partitions.get(partition) if topic in self._topics else None

    def all_topics(self) -> MetadataResponse:
        """Every topic of the cluster, requested again after retriable errors.

        Raises:
            NetworkError: no broker can be reached.
        """
        with error_context(self.where):
            return self.retry(self._request_metadata)

    def retry(self, act: Callable[[], T]) -> T:
        """Call `act` and return its result. Retry after a retriable error, as often as the retry policy allows.

        Until a broker of the cluster has answered once, the time is limited too: see FirstContact.
        """
        return retrying(act, self.backoff, sleep=self.sleep, contact=self.connector.contact)

    def on_leader(self, topic: str, partition: int, act: Callable[[Leader], T], *, epoch: int = -1) -> T:
        """Call `act` with the partition's leader and return its result. If the leader moved or is down, try the next.

        `epoch` is the oldest one that the leader may have.

        Raises:
            KafkaIOError: the last error of `act`, or that the partition has no leader.
        """

        def attempt() -> T:
            try:
                leader = self.leader(topic, partition, epoch=epoch)
                with error_context(leader.connection.where):
                    return act(leader)
            # The metadata may be from before an election (fault B01), and a leader that does not answer may be dead
            # (fault N13). So the next attempt asks who leads now.
            except (NetworkError, LeaderMoved):
                self.forget(topic)
                raise

        with error_context(self.where):
            return self.retry(attempt)

    def leader(self, topic: str, partition: int, *, epoch: int = -1) -> Leader:
        """The leader of the partition. The topic is requested if it is not known.

        Raises:
            LeaderMoved: the partition has no leader now, no broker knows the topic yet, or the broker that described it
                knows only a leader with an epoch before `epoch`. The next question goes to the other brokers first.
            NetworkError: no broker can be reached.
        """
        metadata = self.topic(topic)
        row = self._row(topic, partition)
        where = Where(topic=topic, partition=partition)
        if metadata is None or row is None:
            subject = "topic" if metadata is None else "partition of the topic"
            raise LeaderMoved(f"the broker does not know this {subject}", where, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if -1 < row.leader_epoch < epoch:
            # A deposed leader that has lost its controller may still answer for itself (fault A03).
            if self._described_by:
                self._outdated.add(self._described_by.address)
            raise LeaderMoved(
                f"the broker knows the leader with epoch {row.leader_epoch}, and not yet the one with epoch {epoch}",
                where,
                ErrorCode.FENCED_LEADER_EPOCH,
            )
        broker = self._brokers.get(row.leader_id)
        if broker is None:
            raise LeaderMoved("the partition has no leader", where, ErrorCode.LEADER_NOT_AVAILABLE)
        return Leader(connection=self.connection(broker), epoch=row.leader_epoch, topic_id=metadata.topic_id)

    def topic(self, name: str) -> MetadataTopic | None:
        """The metadata of a topic; None if the cluster does not have it.

        Raises:
            NetworkError: no broker can be reached.
            BrokerError: the broker refuses to describe the topic.
            Corrupt: the broker lists partitions that no topic can have.
        """
        if name not in self._topics:
            topic = _described(self._request_metadata(name), name)
            if topic is None:
                return None
            self._topics[name] = _KnownTopic(topic)
        return self._topics[name].description

    def topic_at_leaders(self, name: str, partitions: Collection[int]) -> MetadataTopic | None:
        """The topic as a broker describes it now, or the answer of a leader of these partitions that contradicts it.

        The broker that describes the topic may not know yet that it was deleted or created again, for example because
        it lost the controller. A leader of the present topic knows it. Without topic ids no leader is asked.

        The first question goes to a broker that was a leader before: if it still is one, it is not asked again.

        Raises:
            NetworkError: a leader cannot be reached.
            KafkaIOError: see `topic`.
        """
        former_leaders = self._leaders(name, partitions)
        self.forget(name)
        topic = _described(self._request_metadata(name, first=former_leaders), name)
        if topic is None or topic.topic_id == NULL_UUID:
            return topic
        self._topics[name] = _KnownTopic(topic)
        for broker in self._leaders(name, partitions):
            if broker == self._described_by:
                continue
            connection = self.connection(broker)
            with error_context(connection.where):
                answer = metadata_answer(connection, _metadata_request(connection, (name,), auto_create=False))
                leaders_topic = _described(answer, name)
            # In a rolling upgrade a leader may not know ids yet (fault B16). An id that it does not know contradicts
            # nothing; a different id does (fault B17).
            if leaders_topic is None or leaders_topic.topic_id not in {NULL_UUID, topic.topic_id}:
                return leaders_topic
        return topic

    def _leaders(self, topic: str, partitions: Collection[int]) -> list[Broker]:
        """The leaders of these partitions, as far as they are known; no request is sent."""
        rows = self._topics[topic].description.partitions if topic in self._topics else ()
        leaders = {row.leader_id for row in rows if row.partition_index in partitions}
        return [self._brokers[number] for number in sorted(leaders & self._brokers.keys())]

    def learn(self, names: Iterable[str]) -> None:
        """Request the topics that are not known yet, in one request.

        A topic that a broker refuses to describe stays unknown; `topic` raises the reason.

        Raises:
            NetworkError: no broker can be reached.
        """
        unknown = sorted(set(names) - self._topics.keys())
        if len(unknown) > 1:  # `topic` requests a single one
            self._remember(self._request_metadata(*unknown))

    def _remember(self, answer: MetadataResponse) -> None:
        for topic in answer.topics:
            with suppress(Corrupt):  # `topic` raises it
                check_topic(topic)
                if topic.name and not topic.error_code:
                    self._topics[topic.name] = _KnownTopic(topic)

    def described(self, names: Collection[str]) -> dict[str, MetadataTopic]:
        """The topics as they are now, requested again in one request, without those that do not exist or are refused.

        Raises:
            NetworkError: no broker can be reached.
        """
        for name in names:
            self.forget(name)
        self._remember(self._request_metadata(*sorted(names)))
        return {name: self._topics[name].description for name in names if name in self._topics}

    def auto_create(self, topic: str) -> None:
        """Request a topic as a producer does: the broker creates it, if its settings allow that.

        Raises:
            NetworkError: no broker can be reached.
        """
        self._request_metadata(topic, auto_create=True)

    def preferred_replica(self, topic: str, partition: int) -> ModernBrokerConnection | None:
        """The replica to read the partition from, if the leader named one that is alive (KIP-392)."""
        broker = self._replica(topic, partition)
        return self.connection(broker) if broker else None

    def read_from(self, topic: str, partition: int, *, epoch: int = -1) -> tuple[ModernBrokerConnection, Leader]:
        """The broker that the partition is read from, which is a replica or the leader, and the leader.

        Raises what `leader` raises.
        """
        leader = self.leader(topic, partition, epoch=epoch)
        return self.preferred_replica(topic, partition) or leader.connection, leader

    def _replica(self, topic: str, partition: int) -> Broker | None:
        return self._brokers.get(self._replicas.get(TopicPartition(topic, partition), LEADER))

    def prefer_replica(self, topic: str, partition: int, broker_id: int) -> None:
        """Read the partition from this broker, or for LEADER from its leader only, until the topic is forgotten."""
        # A replica that the metadata do not list cannot be reached, so the leader is read.
        self._replicas[TopicPartition(topic, partition)] = broker_id if broker_id in self._brokers else LEADER

    def leader_only(self, topic: str, partition: int) -> bool:
        """Whether a replica was tried and could not be read."""
        return self._replicas.get(TopicPartition(topic, partition)) == LEADER

    def forget(self, topic: str) -> None:
        """Request the topic again when it is needed next."""
        self._topics.pop(topic, None)
        if self._replicas:
            chosen = self._replicas.items()
            self._replicas = {partition: broker for partition, broker in chosen if partition.topic != topic}

    def from_any(self, request: Callable[[ModernBrokerConnection], T], *, first: Iterable[Broker] = ()) -> T:
        """Send a request to the first broker that can be reached and can answer now, and return its result.

        The brokers in `first` are tried before the others.

        Raises:
            NetworkError, BrokerBusy: no broker answers; this is the error of the last one.
        """
        failure: KafkaIOError | None = None
        # One broker that is down must not hide the others, and an address of the settings may be gone by now
        # (fault W01).
        brokers = dict.fromkeys((*first, *self.known_brokers))
        for broker in sorted(brokers, key=lambda broker: broker.address in self._outdated):
            connection = self.connection(broker)
            try:
                return request(connection)
            except (NetworkError, BrokerBusy) as error:
                failure = error.with_context(connection.where)
                if self.connector.contact.is_over():
                    break
        assert failure is not None
        raise failure

    def _request_metadata(
        self, *topics: str, auto_create: bool = False, first: Iterable[Broker] = ()
    ) -> MetadataResponse:
        """The metadata of these topics; without names, that of all topics. See `from_any`."""

        def request(connection: ModernBrokerConnection) -> MetadataResponse:
            self._described_by = connection.broker
            return metadata_answer(connection, _metadata_request(connection, topics, auto_create=auto_create))

        answer = self.from_any(request, first=first)
        self.connector.contact.is_made = True
        # After a failover another cluster can answer at the same address. Its records must not get into the table
        # (fault P09). Brokers below Metadata v2 do not say which cluster they are.
        if answer.cluster_id and self.expected_cluster_id not in {"", answer.cluster_id}:
            raise TopicReplaced(
                f"the address leads to the cluster {answer.cluster_id} now, but the read was planned for the cluster "
                f"{self.expected_cluster_id}",
                self.where,
            )
        self._cluster_id = answer.cluster_id
        brokers = [Broker.advertised(broker.node_id, broker.host, broker.port) for broker in answer.brokers]
        self._brokers = {broker.id: broker for broker in brokers}
        return answer

    def connection(self, broker: Broker) -> ModernBrokerConnection:
        """The one connection to a broker, which is opened when it is first used."""
        if broker not in self._connections:
            self._connections[broker] = self._closing.enter_context(
                ModernBrokerConnection(broker, self.connector, sleep=self.sleep)
            )
        return self._connections[broker]

    def pause(self) -> None:
        """Forget all topics, and release the memory of the connections, before a time without requests."""
        self._topics.clear()
        self._replicas.clear()
        self._outdated.clear()
        for connection in self._connections.values():
            connection.pause()

    def resume(self) -> None:
        """Close each connection on which something happened during a pause. See `pause`."""
        for connection in self._connections.values():
            connection.resume()

    def close(self) -> None:
        """Close all connections; safe to call again."""
        self._closing.close()


def metadata_answer(connection: ModernBrokerConnection, request: MetadataRequest) -> MetadataResponse:
    """The answer of a broker that knows its cluster.

    Raises:
        BrokerBusy: the broker cannot describe the cluster now. Its answer says nothing about topics (fault A13).
    """
    answer = connection.request(request)
    error = ErrorCode.error_of(answer.error_code, NOWHERE)
    if error is not None:
        raise BrokerBusy(f"the broker cannot describe the cluster now: {error.reason}", NOWHERE, answer.error_code)
    # A broker that has just started lists no brokers, and knows no topic: not even itself, although it runs.
    knows_topic = any(topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in answer.topics)
    if not answer.brokers and not knows_topic:
        raise BrokerBusy("the broker does not know the cluster yet: it lists neither brokers nor topics")
    return answer


def _described(answer: MetadataResponse, name: str) -> MetadataTopic | None:
    """The topic in the answer of a broker; None if the broker does not know it.

    Raises:
        BrokerError: the broker refuses to describe the topic.
        Corrupt: the broker lists partitions that no topic can have.
    """
    topic = next((topic for topic in answer.topics if topic.name == name), None)
    if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    ErrorCode.check(topic.error_code, Where(topic=name), right="DESCRIBE")
    check_topic(topic)
    return topic


def _metadata_request(
    connection: ModernBrokerConnection, topics: Sequence[str], *, auto_create: bool
) -> MetadataRequest:
    """The request for some topics. Without names, or if naming a topic could create it, it is for all topics.

    "All topics" is an empty list in v0, and null in later versions.
    """
    version = connection.versions.pick(MetadataRequest.API)
    named: tuple[MetadataRequestTopic, ...] | None = tuple(MetadataRequestTopic(name=topic) for topic in topics)
    if not topics or (version < _NO_AUTO_CREATE_SINCE and not auto_create):
        named = () if version == 0 else None
    return MetadataRequest(topics=named, allow_auto_topic_creation=auto_create)
