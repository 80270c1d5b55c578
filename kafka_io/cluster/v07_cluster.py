"""A 0.7 cluster: its brokers and topics from ZooKeeper, its partitions' bounds from the brokers themselves."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Self, TypeVar

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.retention import Retention
from kafka_io.cluster.v07_times import offset_at, time_at
from kafka_io.errors import (
    ConnectFailed,
    DeadlineExceeded,
    KafkaIOError,
    NetworkError,
    RegistryError,
    Where,
    error_context,
)
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.reader.v07_partition import Partition07
from kafka_io.registry.zookeeper import Listing, Registry

T = TypeVar("T")


class Cluster07(Cluster):
    """A cluster of 0.7. A context manager; one thread uses it."""

    partitions_have_brokers = True
    registry: Registry

    def __init__(self, name: str, registry: Registry, *, read_settings: ReadSettings | None = None) -> None:
        self.name = name
        self.registry = registry
        self._read_settings = read_settings or ReadSettings()
        self._brokers: Mapping[int, Broker] | None = None
        self._links: dict[int, BrokerConnection07] = {}
        self._closing = ExitStack()

    @classmethod
    def open(cls, name: str, *, zookeeper: str, read_settings: ReadSettings | None = None) -> Self:
        """Connect to the cluster's ZooKeeper (`host:port[,host:port][/chroot]`).

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
        """
        with error_context(Where(cluster=name)):
            registry = Registry.open(zookeeper)
        return cls(name, registry, read_settings=read_settings)

    @property
    def generation(self) -> Generation:
        """0.7."""
        return Generation.V07

    def cluster_id(self) -> str | None:
        """None: clusters of 0.7 have no id."""
        return None

    def topics(self) -> Listing[TopicEntry]:
        """All topics, listed afresh, and the nodes that were passed over with the reason."""
        with error_context(Where(cluster=self.name)):
            return self.registry.topics()

    def topic(self, name: str) -> TopicEntry | None:
        """One topic as the registry has it now; None if it has not."""
        with error_context(Where(cluster=self.name, topic=name)):
            return self.registry.topic(name)

    def brokers_by_id(self) -> Mapping[int, Broker]:
        """The registered brokers, listed once.

        Raises:
            RegistryError: ZooKeeper gives no answer, or holds no registry of Kafka.
        """
        if self._brokers is None:
            with error_context(Where(cluster=self.name)):
                self._brokers = {broker.id: broker for broker in self.registry.brokers().found}
        return self._brokers

    def partition(self, topic: str, where: BrokerPartition) -> Partition07:
        """The partition, bound to its broker.

        Raises:
            RegistryError: that broker is not registered.
        """
        return Partition07(
            connection=self._link(where.holder, topic),
            topic=topic,
            id=where,
            cluster=self.name,
            sizes=self._read_settings.sizes,
            limits=self._read_settings.limits,
        )

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only that partition, or that broker's.

        Raises:
            RegistryError: the registry cannot say where the brokers are.
        """
        return self.bounds_of({topic: partitions})[topic]

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """What `bounds` tells, of many topics; each partition is a question of its own, as 0.7 has it."""
        return self._of_each(topics, Partition07.bounds)

    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """When the segment that holds each offset was last written to, see `kafka_io.cluster.v07_times.time_at`.

        Raises:
            RegistryError: the registry cannot say where the brokers are.
        """
        now_ms = time.time_ns() // 1_000_000
        return self._of_each(at, lambda partition: time_at(partition, at[partition.topic][partition.id], now_ms=now_ms))

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """Nothing is known: brokers of 0.7 keep it in their own files."""
        return dict.fromkeys(topics, Retention())

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The start of the newest segment of each partition that was not written to since that time, or the earliest.

        Messages older than that time may follow there, but none that is not is skipped: 0.7 knows no times but those
        of its segments. Of a time to come it is the latest.

        Raises:
            RegistryError: the registry cannot say where the brokers are.
        """
        return self._of_each({topic: partitions}, lambda partition: offset_at(partition, timestamp_ms))[topic]

    def _of_each(
        self, topics: Mapping[str, Iterable[BrokerPartition]], ask: Callable[[Partition07], T]
    ) -> dict[str, dict[BrokerPartition, T | KafkaIOError]]:
        """What `ask` tells of each partition; a broker that is down is tried once."""
        self.brokers_by_id()
        down: dict[int, NetworkError] = {}
        return {
            topic: {id_: self._of_one(topic, id_, ask, down) for id_ in partitions}
            for topic, partitions in topics.items()
        }

    def _of_one(
        self, topic: str, id_: BrokerPartition, ask: Callable[[Partition07], T], down: dict[int, NetworkError]
    ) -> T | KafkaIOError:
        error = down.get(id_.holder)
        if error is not None:
            return type(error)(error.reason, Where(topic=topic, partition=str(id_)).within(error.where))
        try:
            return ask(self.partition(topic, id_))
        except KafkaIOError as failure:
            # A broker that only closes the connection may have refused just this partition [kafka-0.7: Errors].
            if isinstance(failure, ConnectFailed | DeadlineExceeded):
                down[id_.holder] = failure
            return failure

    def truncations(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:  # noqa: ARG002 - 0.7 has no epochs
        """Nothing: a log of 0.7 has one writer, which never truncates what it has flushed."""
        return {}

    def source(self, partition: BrokerPartition) -> Source:
        """Where a worker reads the partition from: the one broker that holds it.

        Raises:
            RegistryError: that broker is not registered.
        """
        broker = self._broker(partition.holder)
        return Source(
            cluster=self.name, generation=Generation.V07, brokers=(broker,), read_settings=self._read_settings
        )

    def _broker(self, broker_id: int, topic: str | None = None) -> Broker:
        broker = self.brokers_by_id().get(broker_id)
        if broker is None:
            place = Where(cluster=self.name, broker=str(broker_id), topic=topic)
            raise RegistryError("the broker is not registered in ZooKeeper: it is down, or just gone", place)
        return broker

    def _link(self, broker_id: int, topic: str) -> BrokerConnection07:
        if broker_id not in self._links:
            broker = self._broker(broker_id, topic)
            self._links[broker_id] = self._closing.enter_context(
                BrokerConnection07(broker, self._read_settings.retry_policy)
            )
        return self._links[broker_id]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()
        self.registry.close()
