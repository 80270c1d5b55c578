"""A 0.7 cluster: its brokers and topics from ZooKeeper, its partitions' bounds from the brokers themselves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Self, TypeVar

from kafka_io.client.cluster import Cluster
from kafka_io.client.reading import Reading
from kafka_io.client.source import Source
from kafka_io.client.v07.link import Link07
from kafka_io.client.v07.partition import Partition07
from kafka_io.client.v07.producer import publish
from kafka_io.client.v07.times import offset_at
from kafka_io.errors import (
    ConnectFailed,
    DeadlineExceeded,
    KafkaIOError,
    NetworkError,
    RegistryError,
    Where,
    placing,
)
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry
from kafka_io.registry.zookeeper import Listing, Registry

T = TypeVar("T")


class Cluster07(Cluster):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it."""

    def __init__(self, name: str, registry: Registry, *, reading: Reading | None = None) -> None:
        self.name = name
        self.registry = registry
        self._reading = reading or Reading()
        self._brokers: Mapping[int, Broker] | None = None
        self._links: dict[int, Link07] = {}
        self._closing = ExitStack()

    @classmethod
    def open(cls, name: str, *, zookeeper: str, reading: Reading | None = None) -> Self:
        """Connect to the cluster's ZooKeeper (`host:port[,host:port][/chroot]`).

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
        """
        with placing(Where(cluster=name)):
            registry = Registry.open(zookeeper)
        return cls(name, registry, reading=reading)

    def cluster_id(self) -> str | None:
        """None: clusters of 0.7 have no id."""
        return None

    def topics(self) -> Listing[TopicEntry]:
        """All topics, listed afresh, and the nodes that were passed over with the reason."""
        with placing(Where(cluster=self.name)):
            return self.registry.topics()

    def topic(self, name: str) -> TopicEntry | None:
        """One topic as the registry has it now; None if it has not."""
        with placing(Where(cluster=self.name, topic=name)):
            return self.registry.topic(name)

    def brokers(self) -> Mapping[int, Broker]:
        """The brokers by id, listed once.

        Raises:
            RegistryError: the registry gives no answer, or is none.
        """
        if self._brokers is None:
            with placing(Where(cluster=self.name)):
                self._brokers = {broker.id: broker for broker in self.registry.brokers().found}
        return self._brokers

    def partition(self, topic: str, where: BrokerPartition) -> Partition07:
        """The partition, bound to its broker.

        Raises:
            RegistryError: that broker is not registered.
        """
        return Partition07(
            link=self._link(where.holder, topic),
            topic=topic,
            id=where,
            cluster=self.name,
            sizes=self._reading.sizes,
            limits=self._reading.limits,
        )

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only that partition, or that broker's.

        Raises:
            RegistryError: the registry cannot say where the brokers are.
        """
        return self._of_each(topic, partitions, Partition07.bounds)

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The start of the newest segment of each partition that was not written to since that time, or the earliest.

        Messages older than that time may follow there, but none that is not is skipped: 0.7 knows no times but those
        of its segments. Of a time to come it is the latest.

        Raises:
            RegistryError: the registry cannot say where the brokers are.
        """
        return self._of_each(topic, partitions, lambda partition: offset_at(partition, timestamp_ms))

    def _of_each(
        self, topic: str, partitions: Iterable[BrokerPartition], ask: Callable[[Partition07], T]
    ) -> dict[BrokerPartition, T | KafkaIOError]:
        """What `ask` tells of each partition; a broker that is down is tried once."""
        self.brokers()
        found: dict[BrokerPartition, T | KafkaIOError] = {}
        down: dict[int, NetworkError] = {}
        for partition in partitions:
            error = down.get(partition.holder)
            if error is not None:
                found[partition] = type(error)(error.reason, Where(partition=str(partition)).within(error.where))
                continue
            try:
                found[partition] = ask(self.partition(topic, partition))
            except KafkaIOError as failure:
                found[partition] = failure
                # A broker that only closes the connection may have refused just this partition (facts, 3).
                if isinstance(failure, ConnectFailed | DeadlineExceeded):
                    down[partition.holder] = failure
        return found

    def partings(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:  # noqa: ARG002 - 0.7 has no epochs
        """Nothing: a log of 0.7 has one writer, which never cuts what it has flushed."""
        return {}

    def publish(
        self,
        topic: str,
        payloads: Iterable[bytes],
        *,
        codecs: Sequence[str] = ("none",),
        batch: int = 500,
        on_sent: Callable[[int], None] = lambda _count: None,
    ) -> int:
        """See kafka_io.client.v07.producer.publish."""
        with placing(Where(cluster=self.name)):
            return publish(
                self.registry,
                topic,
                payloads,
                codecs=codecs,
                batch=batch,
                patience=self._reading.patience,
                on_sent=on_sent,
            )

    def source(self, partition: BrokerPartition) -> Source:
        """Where a worker reads the partition from: the one broker that holds it.

        Raises:
            RegistryError: that broker is not registered.
        """
        broker = self._broker(partition.holder)
        return Source(cluster=self.name, generation=Generation.V07, brokers=(broker,), reading=self._reading)

    def _broker(self, broker_id: int, topic: str | None = None) -> Broker:
        broker = self.brokers().get(broker_id)
        if broker is None:
            place = Where(cluster=self.name, broker=str(broker_id), topic=topic)
            raise RegistryError("the broker is not registered in ZooKeeper: it is down, or just gone", place)
        return broker

    def _link(self, broker_id: int, topic: str) -> Link07:
        if broker_id not in self._links:
            broker = self._broker(broker_id, topic)
            self._links[broker_id] = self._closing.enter_context(Link07(broker, self._reading.patience))
        return self._links[broker_id]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()
        self.registry.close()
