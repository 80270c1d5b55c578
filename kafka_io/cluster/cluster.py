"""The interface of a Kafka cluster of any generation."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.closing import Closing
from kafka_io.cluster.open_transactions import OpenTransaction
from kafka_io.cluster.retention import Retention
from kafka_io.errors import KafkaIOError, Unsupported, Where, error_context
from kafka_io.model import Bounds, Broker, BrokerPartition, EpochEnd, Generation, OffsetRange, TopicEntry
from kafka_io.reader.source import Source
from kafka_io.records.last_message import LastMessage
from kafka_io.zookeeper.listing import Listing

if TYPE_CHECKING:  # many clusters have no ZooKeeper, and kazoo is slow to import
    from kafka_io.zookeeper.zookeeper import ZooKeeper

T = TypeVar("T")

PartitionResults = dict[BrokerPartition, T | KafkaIOError]
"""The result or the error for each partition of a topic."""

TopicResults = dict[str, PartitionResults[T]]
"""The result or the error for each partition, by topic."""


class Cluster(Closing):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it.

    >>> with open_producer(bootstrap=bootstrap) as producer:
    ...     _ = [producer.send("clicks", value) for value in (b"one", b"two")]
    >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
    ...     topic = cluster.topic("clicks")
    ...     cluster.bounds(topic.name, topic.partitions)
    {BrokerPartition(broker=None, partition=0): Bounds(earliest=0, latest=2, segment_starts=(), epoch=0, held_back=0)}
    """

    partitions_have_brokers: bool = False
    """Whether the broker is part of a partition's identity, as in 0.7."""

    name: str
    zookeeper: "ZooKeeper | None" = None
    """The cluster's ZooKeeper; None if the cluster was opened without one."""

    @property
    def where(self) -> Where:
        """The cluster as the context of errors."""
        return Where(cluster=self.name)

    @property
    @abstractmethod
    def generation(self) -> Generation:
        """The protocol that the brokers speak; the oldest one if they differ.

        Raises:
            NetworkError: no broker can be reached.
        """

    @abstractmethod
    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1, where clusters have none."""

    def topics(self) -> Listing[TopicEntry]:
        """All topics but the brokers' own, listed again at each call, and what was skipped with the reason.

        Raises:
            RegistryError: ZooKeeper cannot be read.
            NetworkError: there is no ZooKeeper, and no broker can be reached.
        """
        assert self.zookeeper is not None
        with error_context(self.where):
            return self.zookeeper.topics()

    def topic(self, name: str) -> TopicEntry | None:
        """One topic as it is now; None if it does not exist. Raises what `topics` does."""
        assert self.zookeeper is not None
        with error_context(Where(cluster=self.name, topic=name)):
            return self.zookeeper.topic(name)

    def described(self, names: Collection[str]) -> dict[str, TopicEntry]:
        """Those of the topics that exist and can be loaded, as they are now: with one request to the brokers for all.

        Raises what `topics` does.
        """
        wanted = set(names)
        return {entry.name: entry for entry in self.topics().entries if entry.name in wanted}

    def topic_at_leaders(self, name: str, partitions: Iterable[BrokerPartition]) -> TopicEntry | None:
        """The same as `topic`, but if a leader of these partitions contradicts it, the topic that the leader knows.

        Any other broker may describe a topic that was deleted or created again since (fault B17).

        Raises:
            KafkaIOError: see `topic`, or a leader cannot be reached.
        """
        del partitions
        return self.topic(name)

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> PartitionResults[Bounds]:
        """The offsets that the brokers hold of each partition; a failure hides only the partitions that it concerns.

        Before the latest offset no transaction is open, unless the read settings include uncommitted records.

        Raises:
            RegistryError: ZooKeeper cannot be read.
        """
        return self.bounds_of({topic: partitions})[topic]

    @abstractmethod
    def bounds_of(self, topics: Mapping[str, Iterable[BrokerPartition]]) -> TopicResults[Bounds]:
        """The same as `bounds`, for many topics at once: from 0.8 on with a few requests to each broker."""

    @abstractmethod
    def times_at(self, offsets: Mapping[str, Mapping[BrokerPartition, int]]) -> TopicResults[int | None]:
        """When the first record at or after each offset was written, in ms since 1970, by topic and partition.

        From 0.10 on this is the record's own timestamp, as its producer or broker set it, even if it is absurd. The
        result is None if there is no such record yet, also if all records from there on are in an open transaction. It
        is None, too, if the record has no timestamp, or if six fetches of 16 KiB to 16 MiB do not contain it.

        Earlier brokers keep no timestamps of records. For them the result is the time at which the record's segment was
        last written to, which also decides when they delete it. It is up to 0.5 % of its age too old. The result is
        None if there is no such record yet.
        """

    def ends_at(self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int) -> PartitionResults[int]:
        """The offset before which each partition has all records that are older than a time; at most the latest offset.

        From 0.10 on this is the result of `offsets_at`. Earlier brokers know only when a segment was last written to.
        For them it is the end of the first segment that was written to after the time (fault U17).
        """
        return self.offsets_at(topic, partitions, timestamp_ms)

    def open_transactions(
        self, offsets: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, OpenTransaction]]:
        """The open transactions that begin at the last stable offsets of partitions, by topic; none before 0.11.

        Raises:
            NetworkError: no broker can be reached.
        """
        del offsets
        return {}

    @abstractmethod
    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """How long each topic's records are kept; a failure (such as no authorization) hides only its topic.

        From 0.11 on the brokers answer. From 0.8.1 on ZooKeeper has a topic's own settings, if the cluster was opened
        through it; the settings of the brokers are unknown. In 0.7 nothing is known.
        """

    @abstractmethod
    def cleanup_policies(self, topic: str) -> frozenset[str] | None:
        """The values of the topic's cleanup.policy: "delete", "compact" or both; None if it is unknown.

        It is known where a topic's `retention` is.

        Raises:
            KafkaIOError: it cannot be read, for example because the client is not authorized to.
        """

    @abstractmethod
    def truncations(
        self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]
    ) -> dict[BrokerPartition, EpochEnd]:
        """The partitions whose logs were truncated below what was read, each with the first offset that differs.

        If the leader does not know the epoch, only records show where the log is the same.

        A log can be truncated and written again without ever ending earlier. Only brokers from 2.1 on report this
        (KIP-320).

        Args:
            topic: the topic's name.
            read: for each partition the next offset to read, and the leader epoch of the last record that was read.
        """

    @abstractmethod
    def last_messages(
        self, topic: str, ranges: Mapping[BrokerPartition, OffsetRange]
    ) -> PartitionResults[LastMessage | None]:
        """The last message of each range, which begins at that message; None if the log has no message there.

        A log that was truncated and written again, or created again, has another message there, or none. Retention and
        compaction also remove messages: from 0.8 on the result is then the next message of the log, which has a higher
        offset. In 0.7 an offset where no message begins is a message with an empty digest.
        """

    @abstractmethod
    def offsets_at(self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int) -> PartitionResults[int]:
        """The offset of each partition's first record from a time on; the latest offset if all records are older.

        From 0.10 on this is exact. Earlier brokers know only when a segment was last written to. For them the result is
        the start of the newest segment that was not written to since that time, or the earliest offset: older records
        may follow it, but no newer record comes before it. The result is never above the latest offset in `bounds`.
        """

    @abstractmethod
    def source(self, partition: BrokerPartition) -> Source:
        """The place from which a worker reads the partition."""

    def metadata(self, retry_policy: RetryPolicy | None = None) -> ClusterMetadata:
        """The brokers' view of the cluster, for clients that send requests of their own; the cluster closes it.

        A caller that gives a retry policy gets connections of its own.

        Raises:
            Unsupported: the cluster runs 0.7, whose brokers know neither each other nor consumer groups.
            RegistryError: no broker is registered.
        """
        del retry_policy
        raise Unsupported("brokers of 0.7 know neither each other nor consumer groups", self.where)

    def brokers_by_id(self) -> Mapping[int, Broker]:
        """The registered brokers of a cluster whose partitions have brokers.

        Raises:
            Unsupported: the cluster runs 0.8 or later.
            RegistryError: ZooKeeper cannot be read.
        """
        raise Unsupported("from 0.8 on a partition's number does not name a broker", self.where)
