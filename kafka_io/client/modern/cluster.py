"""A cluster from 0.8 on: topics from ZooKeeper if it has one, else from Metadata; bounds from the leaders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kafka_io.client.cluster import Cluster
from kafka_io.client.modern.bounds import bounds_of, offsets_at
from kafka_io.client.modern.brokers import Brokers, topic_id_text
from kafka_io.client.modern.epochs import partings
from kafka_io.client.modern.publishing import publish
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.reading import Reading
from kafka_io.client.source import Source
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import BrokerError, KafkaIOError, RegistryError, Where, placing
from kafka_io.messages.metadata import MetadataTopic
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.registry.listing import Listing, Skipped
from kafka_io.registry.zookeeper import Registry

T = TypeVar("T")

UNKNOWN_LIFE = "unknown"
"""The incarnation of a topic of a cluster that has neither topic ids nor a ZooKeeper: a new life goes unnoticed."""


class ModernCluster(Cluster):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it."""

    def __init__(
        self,
        name: str,
        *,
        registry: Registry | None = None,
        bootstrap: Sequence[Broker] = (),
        reading: Reading,
        generation: Generation | None = None,
        security: Security = PLAINTEXT,
    ) -> None:
        self.name = name
        self._registry = registry
        self._bootstrap = tuple(bootstrap)
        self._reading = reading
        self._pinned = generation
        self._security = security
        self._opened: Brokers | None = None

    @property
    def where(self) -> Where:
        """The cluster's place, for errors."""
        return Where(cluster=self.name)

    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        with placing(self.where):
            if self._registry is not None:
                return self._registry.cluster_id()
            return self._brokers.patiently(lambda: self._brokers.cluster_id)

    def topics(self) -> Listing[TopicEntry]:
        """All topics but Kafka's own, listed afresh, and those that were passed over with the reason.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        if self._registry is not None:
            with placing(self.where):
                return self._registry.topics()
        skipped: list[Skipped] = []
        found = [
            entry
            for topic in self._brokers.all_topics().topics
            if not topic.is_internal and (entry := _entry(topic, skipped))
        ]
        return Listing(found=tuple(sorted(found, key=lambda entry: entry.name)), skipped=tuple(skipped))

    def topic(self, name: str) -> TopicEntry | None:
        """One topic as it is now; None if there is no such."""
        with placing(Where(cluster=self.name, topic=name)):
            if self._registry is not None:
                return self._registry.topic(name)
            self._brokers.forget(name)
            found = self._brokers.patiently(lambda: self._brokers.topic(name))
            return _entry(found, []) if found else None

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only what it concerns.

        Before `latest` no transaction is open, unless what is not committed is read as well.
        """
        with placing(self._place(topic)):
            found = bounds_of(self._brokers, topic, _numbers(partitions), committed=self._reading.committed)
        return self._answers(topic, found)

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The first offset of each partition whose record is not older than that time; the latest if none is.

        Brokers before 0.10 tell the start of a segment that was last written to before that time, or the earliest
        offset: older records may follow, but none is skipped. It is never above the latest that `bounds` gives.
        """
        with placing(self._place(topic)):
            found = offsets_at(
                self._brokers, topic, _numbers(partitions), timestamp_ms, committed=self._reading.committed
            )
        return self._answers(topic, found)

    def _place(self, topic: str) -> Where:
        return Where(cluster=self.name, topic=topic)

    def _answers(self, topic: str, found: Mapping[int, T | KafkaIOError]) -> dict[BrokerPartition, T | KafkaIOError]:
        place = self._place(topic)
        return {
            BrokerPartition(None, number): answer.placed(place) if isinstance(answer, KafkaIOError) else answer
            for number, answer in found.items()
        }

    def partings(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """Of partitions read up to (offset, in a leader's epoch): from where on the log is another, where it is."""
        with placing(Where(cluster=self.name, topic=topic)):
            found = partings(self._brokers, topic, {one.partition: at for one, at in read.items()})
        return {BrokerPartition(None, number): end for number, end in found.items()}

    def publish(
        self,
        topic: str,
        payloads: Iterable[bytes],
        *,
        codecs: Sequence[str] = ("none",),
        batch: int = 500,
        on_sent: Callable[[int], None] = lambda _count: None,
    ) -> int:
        """See kafka_io.client.modern.publishing."""
        with placing(self._place(topic)):
            return publish(self._brokers, topic, payloads, codecs=codecs, batch=batch, on_sent=on_sent)

    def source(self, partition: BrokerPartition) -> Source:
        """Where a worker reads the partition from: any of the brokers leads to its leader."""
        del partition
        return Source(
            cluster=self.name,
            generation=self._pinned or self._brokers.generation or Generation.MODERN,
            brokers=self._brokers.known,
            security=self._security,
            reading=self._reading,
        )

    @property
    def _brokers(self) -> Brokers:
        if self._opened is None:
            self._opened = open_brokers(
                self._addresses(),
                self._reading,
                cluster=self.name,
                generation=self._pinned,
                security=self._security,
            )
        return self._opened

    def _addresses(self) -> tuple[Broker, ...]:
        """Those that were given, else those that are registered.

        Raises:
            RegistryError: none is.
        """
        if self._bootstrap or self._registry is None:
            return self._bootstrap
        with placing(self.where):
            listed = self._registry.brokers(self._security.protocol)
            if not listed.found:
                left_out = "".join(f"; {one.path}: {one.reason}" for one in listed.skipped)
                raise RegistryError(f"no broker is registered that could be asked{left_out}")
        return listed.found

    def close(self) -> None:
        """End all connections; safe to call again."""
        if self._opened is not None:
            self._opened.close()
        if self._registry is not None:
            self._registry.close()


def _numbers(partitions: Iterable[BrokerPartition]) -> list[int]:
    return [one.partition for one in partitions]


def _entry(topic: MetadataTopic, skipped: list[Skipped]) -> TopicEntry | None:
    name = topic.name or ""
    try:
        check(topic.error_code, Where(topic=name), MODERN)
    except BrokerError as error:
        skipped.append(Skipped(path=name, reason=str(error)))
        return None
    numbers = sorted(one.partition_index for one in topic.partitions)
    return TopicEntry(
        name=name,
        incarnation=topic_id_text(topic.topic_id) or UNKNOWN_LIFE,
        partitions=tuple(BrokerPartition(None, number) for number in numbers),
    )
