"""A 0.7 cluster: its brokers and topics from ZooKeeper, its partitions' bounds from the brokers themselves."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Self

from kafka_io.client.link import Link, Patience
from kafka_io.client.partition import FetchSizes, Partition
from kafka_io.closing import Closing
from kafka_io.errors import (
    ConnectFailed,
    DeadlineExceeded,
    KafkaIOError,
    NetworkError,
    RegistryError,
    Where,
    placing,
)
from kafka_io.model import Bounds, Broker, BrokerPartition, TopicEntry
from kafka_io.records.columns import Limits
from kafka_io.registry.zookeeper import Listing, Registry


class Cluster(Closing):
    """One Kafka cluster, opened by its name in the settings. A context manager; one thread uses it."""

    def __init__(
        self,
        name: str,
        registry: Registry,
        *,
        patience: Patience | None = None,
        sizes: FetchSizes | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self.registry = registry
        self._patience = patience or Patience()
        self._sizes = sizes or FetchSizes()
        self._limits = limits or Limits()
        self._brokers: Mapping[int, Broker] | None = None
        self._links: dict[int, Link] = {}
        self._closing = ExitStack()

    @classmethod
    def open(cls, name: str, *, zookeeper: str, patience: Patience | None = None) -> Self:
        """Connect to the cluster's ZooKeeper (`host:port[,host:port][/chroot]`).

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
        """
        with placing(Where(cluster=name)):
            registry = Registry.open(zookeeper)
        cluster = cls(name, registry, patience=patience)
        cluster._closing.callback(registry.close)
        return cluster

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

    def partition(self, topic: str, where: BrokerPartition) -> Partition:
        """The partition, bound to its broker.

        Raises:
            RegistryError: that broker is not registered.
        """
        return Partition(
            link=self._link(where.broker, topic),
            topic=topic,
            id=where,
            cluster=self.name,
            sizes=self._sizes,
            limits=self._limits,
        )

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """What the brokers hold of each partition; an error hides only that partition, or that broker's.

        Raises:
            RegistryError: the registry cannot say where the brokers are.
        """
        self.brokers()
        found: dict[BrokerPartition, Bounds | KafkaIOError] = {}
        down: dict[int, NetworkError] = {}
        for partition in partitions:
            error = down.get(partition.broker)
            if error is not None:
                found[partition] = type(error)(error.reason, Where(partition=str(partition)).within(error.where))
                continue
            try:
                found[partition] = self.partition(topic, partition).bounds()
            except KafkaIOError as failure:
                found[partition] = failure
                # A broker that only closes the connection may have refused just this partition (facts, 3).
                if isinstance(failure, ConnectFailed | DeadlineExceeded):
                    down[partition.broker] = failure
        return found

    def _link(self, broker_id: int, topic: str) -> Link:
        if broker_id not in self._links:
            broker = self.brokers().get(broker_id)
            if broker is None:
                place = Where(cluster=self.name, broker=str(broker_id), topic=topic)
                raise RegistryError("the broker is not registered in ZooKeeper: it is down, or just gone", place)
            self._links[broker_id] = self._closing.enter_context(Link(broker, self._patience))
        return self._links[broker_id]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()
