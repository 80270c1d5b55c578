"""What clusters of all generations have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from kafka_io.client.source import Source
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from kafka_io.registry.listing import Listing


class Cluster(Closing):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it."""

    name: str

    @abstractmethod
    def topics(self) -> Listing[TopicEntry]:
        """All topics, listed afresh, and what was passed over with the reason."""

    @abstractmethod
    def topic(self, name: str) -> TopicEntry | None:
        """One topic as it is now; None if there is no such."""

    @abstractmethod
    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only what it concerns."""

    @abstractmethod
    def partings(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """Of partitions read up to (offset, in a leader's epoch): from where on the log is another, where it is.

        Logs may be cut and written anew without ending earlier; only brokers from 2.1 on can tell.
        """

    @abstractmethod
    def source(self, partition: BrokerPartition) -> Source:
        """Where a worker reads the partition from."""
