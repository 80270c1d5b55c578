"""A cluster from 0.8 on: topics from ZooKeeper if it has one, else from Metadata; bounds from the leaders."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata, topic_id_text
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.cluster.bounds import bounds_of, offsets_at
from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.modern_retention import retention_of
from kafka_io.cluster.record_times import record_times
from kafka_io.cluster.retention import Retention
from kafka_io.cluster.truncation import find_truncations
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, KafkaIOError, RegistryError, Unsupported, Where, error_context
from kafka_io.messages.metadata import MetadataTopic
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry, TopicPartition
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.registry.listing import Listing, SkippedNode
from kafka_io.registry.zookeeper import Registry

T = TypeVar("T")

UNKNOWN_LIFE = "unknown"
"""The incarnation of a topic of a cluster that has neither topic ids nor a ZooKeeper: a new life goes unnoticed."""


class ModernCluster(Cluster):
    """A cluster of 0.8 or later. A context manager; one thread uses it."""

    def __init__(
        self,
        name: str,
        *,
        registry: Registry | None = None,
        bootstrap: Sequence[Broker] = (),
        read_settings: ReadSettings,
        generation: Generation | None = None,
        security: Security = PLAINTEXT,
    ) -> None:
        self.name = name
        self.registry = registry
        self._bootstrap = tuple(bootstrap)
        self._read_settings = read_settings
        self._pinned_generation = generation
        self._security = security
        self._connected: dict[RetryPolicy, ClusterMetadata] = {}

    @property
    def where(self) -> Where:
        """The cluster as the context of errors."""
        return Where(cluster=self.name)

    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        with error_context(self.where):
            if self.registry is not None:
                return self.registry.cluster_id()
            metadata = self.metadata()
            return metadata.retry(lambda: metadata.cluster_id)

    def topics(self) -> Listing[TopicEntry]:
        """All topics but Kafka's own, listed afresh, and those that were passed over with the reason.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        if self.registry is not None:
            with error_context(self.where):
                return self.registry.topics()
        skipped: list[SkippedNode] = []
        found = [
            entry
            for topic in self.metadata().all_topics().topics
            if not topic.is_internal and (entry := _entry(topic, skipped))
        ]
        return Listing(found=tuple(sorted(found, key=lambda entry: entry.name)), skipped=tuple(skipped))

    def topic(self, name: str) -> TopicEntry | None:
        """One topic as it is now; None if there is no such."""
        with error_context(Where(cluster=self.name, topic=name)):
            if self.registry is not None:
                return self.registry.topic(name)
            metadata = self.metadata()
            metadata.forget(name)
            found = metadata.retry(lambda: metadata.topic(name))
            return _entry(found, []) if found else None

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only what it concerns.

        Before `latest` no transaction is open, unless what is not committed is read as well.
        """
        return self.bounds_of({topic: partitions})[topic]

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """What `bounds` tells, of many topics at once: with two questions to each broker."""
        with error_context(self.where):
            found = bounds_of(self.metadata(), _places(topics), committed=self._read_settings.committed)
        return self._answers(topics, found)

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The first offset of each partition whose record is not older than that time; the latest if none is.

        Brokers before 0.10 tell the start of a segment that was last written to before that time, or the earliest
        offset: older records may follow, but none is skipped. It is never above the latest that `bounds` gives.
        """
        asked = {topic: partitions}
        with error_context(self._place(topic)):
            found = offsets_at(self.metadata(), _places(asked), timestamp_ms, committed=self._read_settings.committed)
        return self._answers(asked, found)[topic]

    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """See Cluster: by small fetches from 0.10 on, and by segments before."""
        asked = {
            TopicPartition.of(topic, id_): offset for topic, offsets in at.items() for id_, offset in offsets.items()
        }
        with error_context(self.where):
            found = record_times(self.metadata(), asked, self._read_settings, now_ms=time.time_ns() // 1_000_000)
        return self._answers(at, found)

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """See Cluster: as the brokers tell, or else ZooKeeper.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: no broker can be reached.
        """
        names = sorted(set(topics))
        with error_context(self.where):
            try:
                found = retention_of(self.metadata(), names)
            except Unsupported:  # before 0.11
                found = self._registered_retention(names)
        return {topic: self._placed(topic, kept) for topic, kept in found.items()}

    def _registered_retention(self, topics: Sequence[str]) -> dict[str, Retention | KafkaIOError]:
        if self.registry is None:
            return dict.fromkeys(topics, Retention())
        settings = self.registry.topic_settings(topics)
        return {
            topic: found if isinstance(found, KafkaIOError) else Retention.of(found)
            for topic, found in settings.items()
        }

    def _place(self, topic: str) -> Where:
        return Where(cluster=self.name, topic=topic)

    def _answers(
        self, topics: Mapping[str, Iterable[BrokerPartition]], found: PartitionAnswers[T]
    ) -> dict[str, dict[BrokerPartition, T | KafkaIOError]]:
        answers: dict[str, dict[BrokerPartition, T | KafkaIOError]] = {topic: {} for topic in topics}
        for partition, answer in found.items():
            answers[partition.topic][partition.within_topic] = self._placed(partition.topic, answer)
        return answers

    def _placed(self, topic: str, answer: T | KafkaIOError) -> T | KafkaIOError:
        return answer.with_context(self._place(topic)) if isinstance(answer, KafkaIOError) else answer

    def truncations(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """Of partitions read up to (offset, in a leader's epoch): from where on the log is another, where it is."""
        with error_context(Where(cluster=self.name, topic=topic)):
            found = find_truncations(self.metadata(), topic, {one.partition: at for one, at in read.items()})
        return {BrokerPartition(None, number): end for number, end in found.items()}

    def source(self, partition: BrokerPartition) -> Source:
        """The brokers, each of which knows the partition's leader."""
        del partition
        metadata = self.metadata()
        return self._source(metadata.known_brokers, self._pinned_generation or metadata.generation)

    def _source(self, brokers: tuple[Broker, ...], generation: Generation | None) -> Source:
        # For MODERN, a connection still asks the broker which versions it supports. So it serves for "unknown", too.
        return Source(
            cluster=self.name,
            generation=generation or Generation.MODERN,
            brokers=brokers,
            security=self._security,
            read_settings=self._read_settings,
        )

    @property
    def generation(self) -> Generation:
        """The protocol that the brokers speak: the oldest one, as far as it is known.

        Raises:
            NetworkError: no broker can be reached.
        """
        metadata = self.metadata()
        if self._pinned_generation is None and metadata.generation is None:
            with error_context(self.where):
                metadata.retry(lambda: metadata.from_any(lambda connection: connection.versions))
        return self._pinned_generation or metadata.generation or Generation.MODERN

    def metadata(self, retry_policy: RetryPolicy | None = None) -> ClusterMetadata:
        """The brokers' view of the cluster; the cluster closes it.

        Raises:
            RegistryError: no broker is registered.
            TlsFailed: the files of the security settings cannot be used.
        """
        retry_policy = retry_policy or self._read_settings.retry_policy
        if retry_policy not in self._connected:
            source = self._source(self._addresses(), self._pinned_generation)
            self._connected[retry_policy] = source.connect(retry_policy)
        return self._connected[retry_policy]

    def _addresses(self) -> tuple[Broker, ...]:
        """The given brokers, else the registered ones.

        Raises:
            RegistryError: no broker is registered.
        """
        if self._bootstrap or self.registry is None:
            return self._bootstrap
        with error_context(self.where):
            listed = self.registry.brokers(self._security.protocol)
            if not listed.found:
                left_out = "".join(f"; {one.path}: {one.reason}" for one in listed.skipped)
                raise RegistryError(f"no broker that can be used is registered in ZooKeeper{left_out}")
        return listed.found

    def close(self) -> None:
        """Close all connections; safe to call again."""
        for metadata in self._connected.values():
            metadata.close()
        if self.registry is not None:
            self.registry.close()


def _places(topics: Mapping[str, Iterable[BrokerPartition]]) -> list[TopicPartition]:
    return [TopicPartition.of(topic, id_) for topic, partitions in topics.items() for id_ in partitions]


def _entry(topic: MetadataTopic, skipped: list[SkippedNode]) -> TopicEntry | None:
    name = topic.name or ""
    try:
        ErrorCode.check(topic.error_code, Where(topic=name))
    except BrokerError as error:
        skipped.append(SkippedNode(path=name, reason=str(error)))
        return None
    numbers = sorted(one.partition_index for one in topic.partitions)
    return TopicEntry(
        name=name,
        incarnation=topic_id_text(topic.topic_id) or UNKNOWN_LIFE,
        partitions=tuple(BrokerPartition(None, number) for number in numbers),
    )
