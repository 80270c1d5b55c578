"""A cluster from 0.8 on: topics from ZooKeeper if it has one, else from Metadata; bounds from the leaders."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata, check_topic, topic_id_text
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.cluster.bounds import bounds_of, ends_at, offsets_at
from kafka_io.cluster.cluster import Cluster, PartitionResults, TopicResults
from kafka_io.cluster.first_records import last_messages
from kafka_io.cluster.open_transactions import OpenTransaction, find_open_transactions
from kafka_io.cluster.record_times import record_times
from kafka_io.cluster.retention import SETTINGS, Retention, TopicSettings, cleanup_policies
from kafka_io.cluster.truncation import find_truncations
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import (
    NOWHERE,
    BrokerError,
    Corrupt,
    KafkaIOError,
    NetworkError,
    RegistryError,
    Unsupported,
    Where,
    error_context,
    printable,
    value_of,
)
from kafka_io.messages.describe_configs import ConfigResource, DescribeConfigsRequest, DescribedConfigs
from kafka_io.messages.metadata import MetadataTopic
from kafka_io.model import (
    UNKNOWN_INCARNATION,
    Bounds,
    Broker,
    BrokerPartition,
    EpochEnd,
    Generation,
    OffsetRange,
    TopicEntry,
    TopicPartition,
)
from kafka_io.reader.source import Source
from kafka_io.records.last_message import LastMessage
from kafka_io.zookeeper.listing import Listing, SkippedNode

if TYPE_CHECKING:  # many clusters have no ZooKeeper, and kazoo is slow to import
    from kafka_io.zookeeper.zookeeper import ZooKeeper

T = TypeVar("T")

_TOPIC = 2  # type of a resource in DescribeConfigs


class ModernCluster(Cluster):
    """A cluster of 0.8 or later. A context manager; one thread uses it.

    Args:
        given: the cluster as the user describes it: without brokers if only ZooKeeper is known, and with a generation
            that counts if it `refuses_newer`.
        zookeeper: the cluster's ZooKeeper.
    """

    def __init__(self, given: Source, zookeeper: "ZooKeeper | None" = None) -> None:
        self.name = given.cluster or ""
        self.zookeeper = zookeeper
        self._given = given
        self._read_settings = given.read_settings
        self._pinned_generation = given.generation if given.refuses_newer else None
        self._metadata: dict[RetryPolicy, ClusterMetadata] = {}
        self._cluster_id = ""

    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        with error_context(self.where):
            self._cluster_id = self._read_cluster_id() or ""
        for metadata in self._metadata.values():
            metadata.expected_cluster_id = self._cluster_id
        return self._cluster_id or None

    def _read_cluster_id(self) -> str | None:
        if self.zookeeper is not None:
            return self.zookeeper.cluster_id()
        metadata = self.metadata()
        return metadata.retry(lambda: metadata.cluster_id)

    def topics(self) -> Listing[TopicEntry]:
        if self.zookeeper is not None:
            return super().topics()
        entries: list[TopicEntry] = []
        skipped: list[SkippedNode] = []
        refused: dict[str, KafkaIOError] = {}
        for topic in self.metadata().all_topics().topics:
            name = topic.name or ""
            if topic.is_internal:
                continue
            try:
                entries.append(_entry(topic))
            except (BrokerError, Corrupt) as error:
                skipped.append(SkippedNode(path=printable(name), reason=str(error)))
                refused[name] = error
        ordered = tuple(sorted(entries, key=lambda entry: entry.name))
        return Listing(entries=ordered, skipped=tuple(skipped), refused=refused)

    def topic(self, name: str) -> TopicEntry | None:
        if self.zookeeper is not None:
            return super().topic(name)
        metadata = self.metadata()
        metadata.forget(name)
        with error_context(self._topic_where(name)):
            topic = metadata.retry(lambda: metadata.topic(name))
            return _entry(topic) if topic else None

    def described(self, names: Collection[str]) -> dict[str, TopicEntry]:
        if self.zookeeper is not None:
            return super().described(names)
        metadata = self.metadata()
        with error_context(self.where):
            topics = metadata.retry(lambda: metadata.described(names))
        return {name: _entry(topic) for name, topic in topics.items()}

    def topic_at_leaders(self, name: str, partitions: Iterable[BrokerPartition]) -> TopicEntry | None:
        entry = self.topic(name) if self.zookeeper is not None else None
        if self.zookeeper is not None and (entry is None or not entry.ids.topic_id):
            return entry
        metadata, numbers = self.metadata(), {partition.partition for partition in partitions}

        def attempt() -> MetadataTopic | None:
            try:
                return metadata.topic_at_leaders(name, numbers)
            except NetworkError:
                metadata.forget(name)
                raise

        with error_context(self._topic_where(name)):
            topic = metadata.retry(attempt)
        leaders_entry = _entry(topic) if topic else None
        if entry is None or leaders_entry is None or entry.ids.difference(leaders_entry.ids):
            return leaders_entry
        return entry

    def bounds_of(self, topics: Mapping[str, Iterable[BrokerPartition]]) -> TopicResults[Bounds]:
        with error_context(self.where):
            answers = bounds_of(self.metadata(), _addresses(topics), committed=self._read_settings.committed)
        return self._by_topic(topics, answers)

    def offsets_at(self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int) -> PartitionResults[int]:
        return self._at_time(offsets_at, topic, partitions, timestamp_ms)

    def ends_at(self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int) -> PartitionResults[int]:
        return self._at_time(ends_at, topic, partitions, timestamp_ms)

    def _at_time(
        self, ask: Callable[..., PartitionAnswers[int]], topic: str, partitions: Iterable[BrokerPartition], time_ms: int
    ) -> PartitionResults[int]:
        committed = self._read_settings.committed
        with error_context(self._topic_where(topic)):
            answers = ask(self.metadata(), _addresses({topic: partitions}), time_ms, committed=committed)
        return self._by_topic([topic], answers)[topic]

    def times_at(self, offsets: Mapping[str, Mapping[BrokerPartition, int]]) -> TopicResults[int | None]:
        requested = {partition: offsets[partition.topic][partition.within_topic] for partition in _addresses(offsets)}
        with error_context(self.where):
            answers = record_times(self.metadata(), requested, self._read_settings, now_ms=time.time_ns() // 1_000_000)
        return self._by_topic(offsets, answers)

    def open_transactions(
        self, offsets: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, OpenTransaction]]:
        requested = {partition: offsets[partition.topic][partition.within_topic] for partition in _addresses(offsets)}
        now_ms = time.time_ns() // 1_000_000
        with error_context(self.where):
            by_partition = find_open_transactions(self.metadata(), requested, self._read_settings, now_ms=now_ms)
        by_topic: dict[str, dict[BrokerPartition, OpenTransaction]] = {topic: {} for topic in offsets}
        for partition, transaction in by_partition.items():
            by_topic[partition.topic][partition.within_topic] = transaction
        return by_topic

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """The retention as the brokers report it, otherwise as ZooKeeper has it.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: no broker can be reached.
        """
        return {
            topic: settings if isinstance(settings, KafkaIOError) else Retention.of(settings)
            for topic, settings in self._topic_settings(sorted(set(topics))).items()
        }

    def cleanup_policies(self, topic: str) -> frozenset[str] | None:
        return cleanup_policies(value_of(self._topic_settings([topic])[topic]))

    def _topic_settings(self, topics: Sequence[str]) -> dict[str, TopicSettings | KafkaIOError]:
        """The settings of each topic as the brokers report them, else as ZooKeeper has them."""
        with error_context(self.where):
            try:
                settings = described_settings(self.metadata(), topics)
            except Unsupported:  # before 0.11
                registered = self.zookeeper.topic_settings(topics) if self.zookeeper else {}
                settings = {topic: registered.get(topic, {}) for topic in topics}
        return {topic: self._located(topic, answer) for topic, answer in settings.items()}

    def truncations(
        self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]
    ) -> dict[BrokerPartition, EpochEnd]:
        with error_context(self._topic_where(topic)):
            return find_truncations(self.metadata(), topic, read)

    def last_messages(
        self, topic: str, ranges: Mapping[BrokerPartition, OffsetRange]
    ) -> PartitionResults[LastMessage | None]:
        offsets = {TopicPartition.of(topic, partition): range_.start for partition, range_ in ranges.items()}
        with error_context(self._topic_where(topic)):
            answers = last_messages(self.metadata(), offsets, self._read_settings)
        return self._by_topic([topic], answers)[topic]

    def _topic_where(self, topic: str) -> Where:
        return Where(cluster=self.name, topic=topic)

    def _by_topic(self, topics: Iterable[str], answers: PartitionAnswers[T]) -> TopicResults[T]:
        by_topic: TopicResults[T] = {topic: {} for topic in topics}
        for partition, answer in answers.items():
            by_topic[partition.topic][partition.within_topic] = self._located(partition.topic, answer)
        return by_topic

    def _located(self, topic: str, answer: T | KafkaIOError) -> T | KafkaIOError:
        """The answer; an error also names the cluster and the topic."""
        return answer.with_context(self._topic_where(topic)) if isinstance(answer, KafkaIOError) else answer

    def source(self, partition: BrokerPartition) -> Source:
        """The brokers, each of which knows the partition's leader."""
        del partition
        metadata = self.metadata()
        # MODERN serves for "unknown", too: a connection then asks the broker which versions it supports.
        generation = self._pinned_generation or metadata.generation or Generation.MODERN
        return replace(
            self._given,
            brokers=metadata.known_brokers,
            generation=generation,
            cluster_id=self._cluster_id,
            refuses_newer=False,
        )

    @property
    def generation(self) -> Generation:
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
        if retry_policy not in self._metadata:
            brokers = self._given.brokers or self._registered_brokers()
            source = replace(self._given, brokers=brokers, cluster_id=self._cluster_id)
            self._metadata[retry_policy] = source.connect(retry_policy)
        return self._metadata[retry_policy]

    def _registered_brokers(self) -> tuple[Broker, ...]:
        assert self.zookeeper is not None, "a cluster has bootstrap brokers or a ZooKeeper"
        with error_context(self.where):
            listing = self.zookeeper.brokers(self._given.security.protocol)
            if not listing.entries:
                skipped = "".join(f"; {node.path}: {node.reason}" for node in listing.skipped)
                raise RegistryError(f"no usable broker is registered in ZooKeeper{skipped}")
        return listing.entries

    def close(self) -> None:
        """Close all connections; safe to call again."""
        for metadata in self._metadata.values():
            metadata.close()
        if self.zookeeper is not None:
            self.zookeeper.close()


def _addresses(topics: Mapping[str, Iterable[BrokerPartition]]) -> list[TopicPartition]:
    return [TopicPartition.of(topic, partition) for topic, partitions in topics.items() for partition in partitions]


def _entry(topic: MetadataTopic) -> TopicEntry:
    """The topic as Metadata describes it.

    Raises:
        BrokerError: the broker refuses to describe it.
        Corrupt: no topic can have its name or its partitions.
    """
    name = topic.name or ""
    check_topic(topic)
    ErrorCode.check(topic.error_code, Where(topic=name), right="DESCRIBE")
    numbers = sorted(partition.partition_index for partition in topic.partitions)
    return TopicEntry(
        name=name,
        incarnation=topic_id_text(topic.topic_id) or UNKNOWN_INCARNATION,
        partitions=tuple(BrokerPartition(None, number) for number in numbers),
    )


def described_settings(metadata: ClusterMetadata, topics: Sequence[str]) -> dict[str, TopicSettings | KafkaIOError]:
    """The SETTINGS of each topic, or the brokers' error; one DescribeConfigs for all topics (KIP-133).

    Raises:
        NetworkError: no broker can be reached.
        Unsupported: the brokers are older than 0.11.
    """
    request = DescribeConfigsRequest(
        resources=tuple(
            ConfigResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=SETTINGS) for topic in topics
        )
    )
    answer = metadata.retry(lambda: metadata.from_any(lambda connection: connection.request(request)))
    described = {result.resource_name: result for result in answer.results if result.resource_type == _TOPIC}
    return {topic: _settings(described.get(topic)) for topic in topics}


def _settings(described: DescribedConfigs | None) -> TopicSettings | KafkaIOError:
    if described is None:
        return Corrupt("the answer lacks one of the requested topics")
    error = ErrorCode.error_of(described.error_code, NOWHERE, right="DESCRIBE_CONFIGS")
    return error or {config.name: config.value for config in described.configs}
