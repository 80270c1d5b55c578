"""What clusters of all generations have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_io.client.retention import Retention
from kafka_io.client.source import Source
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from kafka_io.registry.listing import Listing


class Cluster(Closing):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it.

    >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
    ...     cluster.publish("clicks", [b"one", b"two"])
    ...     topic = cluster.topic("clicks")
    ...     cluster.bounds(topic.name, topic.partitions)
    2
    {BrokerPartition(broker=None, partition=0): Bounds(earliest=0, latest=2, cuts=(), epoch=0)}
    """

    name: str

    @abstractmethod
    def cluster_id(self) -> str | None:
        """The cluster's own id; None before 0.10.1, where clusters have none."""

    @abstractmethod
    def topics(self) -> Listing[TopicEntry]:
        """All topics, listed afresh, and what was passed over with the reason."""

    @abstractmethod
    def topic(self, name: str) -> TopicEntry | None:
        """One topic as it is now; None if there is no such."""

    @abstractmethod
    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only what it concerns."""

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """What `bounds` tells, of many topics at once: from 0.8 on with a few questions to each broker."""
        return {topic: self.bounds(topic, partitions) for topic, partitions in topics.items()}

    @abstractmethod
    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """By topic and partition, when the first record at or after an offset was written: in ms since 1970.

        From 0.10 on it is that record's own time, as its producer or broker set it, be it absurd. None if there is no
        such record yet (also where all from there on are in a transaction that is open), if it has no time, or if it
        cannot be had with six fetches, of 16 KiB to 16 MiB.

        Earlier brokers keep no times of records: from them it is when the record's segment was last written to, which
        is what they go by to delete it, told up to 0.5 % of its age too old. None if there is no such record yet.
        """

    @abstractmethod
    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """How long each topic's records are kept; an error hides only what it concerns, as where we may not ask.

        From 0.11 on brokers tell. From 0.8.1 on it is what ZooKeeper has of a topic, if the cluster is found through
        it: where a topic leaves it to its brokers, it is not known. Of 0.7 nothing is.
        """

    @abstractmethod
    def partings(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """Of partitions read up to (offset, in a leader's epoch): from where on the log is another, where it is.

        Logs may be cut and written anew without ending earlier; only brokers from 2.1 on can tell.
        """

    @abstractmethod
    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The first offset of each partition whose record is not older than that time; the latest if none is.

        From 0.10 on this is exact. Earlier brokers know only when a segment was last written to: from them it is the
        start of the newest segment that was not written to since, or the earliest offset. Older records may follow
        there, but none that is asked for is skipped. It is never above the latest that `bounds` gives.
        """

    @abstractmethod
    def publish(
        self,
        topic: str,
        payloads: Iterable[bytes],
        *,
        codecs: Sequence[str] = ("none",),
        batch: int = 500,
        on_sent: Callable[[int], None] = lambda _count: None,
    ) -> int:
        """Send all payloads as messages without keys, spread over the topic's partitions; how many.

        On return the brokers have them all. What was sent may be there twice after an error.

        Args:
            topic: it need not exist, where brokers make topics by themselves.
            payloads: a message each.
            codecs: names of codecs, by turns of requests.
            batch: messages in one request, and compressed together.
            on_sent: told how many messages each request held.
        """

    @abstractmethod
    def source(self, partition: BrokerPartition) -> Source:
        """Where a worker reads the partition from."""
