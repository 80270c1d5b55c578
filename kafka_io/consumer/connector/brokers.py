"""The brokers' addresses from ZooKeeper; while ZooKeeper does not answer, the last known ones."""

from dataclasses import dataclass

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.consumer.modern_simple import ModernPartitionFetcher
from kafka_io.consumer.simple import SimpleConsumer
from kafka_io.consumer.v07_simple import PartitionFetcher07
from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.model import Broker, BrokerPartition, Generation
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.zookeeper.membership import ConsumerRegistration
from kafka_io.zookeeper.node_format import NodeFormat

_NO_WAIT_MS = 0  # a fetcher asks several brokers in turn: none of them may make the others wait


@dataclass(eq=False)
class BrokerDirectory:
    """Opens simple consumers of a cluster's brokers. Any thread may use it."""

    registration: ConsumerRegistration
    node_format: NodeFormat
    read_settings: ReadSettings
    known: tuple[Broker, ...] = ()

    def open(self) -> SimpleConsumer:
        """A consumer of all brokers; it looks up their addresses when it connects."""
        if self.node_format is NodeFormat.V07:
            return SimpleConsumer(PartitionFetcher07(self._find, self.read_settings))
        return SimpleConsumer(ModernPartitionFetcher(self._connect, self.read_settings, max_wait_ms=_NO_WAIT_MS))

    def _connect(self) -> ClusterMetadata:
        brokers = self._list()
        if not brokers:
            raise RegistryError("no broker is registered in ZooKeeper")
        source = Source(cluster=None, generation=Generation.MODERN, brokers=brokers, read_settings=self.read_settings)
        return source.connect()

    def _find(self, partition: BrokerPartition) -> Broker:
        for broker in self._list():
            if broker.id == partition.broker:
                return broker
        raise RegistryError(f"broker {partition.broker} is not registered in ZooKeeper: it is down or has just stopped")

    def _list(self) -> tuple[Broker, ...]:
        try:
            self.known = self.registration.brokers().entries
        except RegistryUnavailable:
            if not self.known:
                raise
        return self.known
