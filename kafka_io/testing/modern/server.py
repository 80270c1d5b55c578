"""The embedded broker of Kafka 0.8 and later."""

from contextlib import ExitStack
from typing import ClassVar

from kafka_io.model import Broker, Generation
from kafka_io.testing.broker import EmbeddedBroker, wall_ms
from kafka_io.testing.listener import ServeClient
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.groups.coordinator import GroupCoordinator
from kafka_io.testing.modern.handlers import VERSIONS_BY_GENERATION
from kafka_io.testing.modern.node import BrokerNode
from kafka_io.testing.modern.purgatory import FetchPurgatory
from kafka_io.testing.modern.session import ModernSessions
from kafka_io.testing.modern.topics import BrokerTopics
from kafka_io.testing.modern.transactions import TransactionCoordinator
from kafka_io.wire.types import uuid_text
from kafka_io.zookeeper.published import publish_cluster_id, publish_topic, withdraw_topic
from kafka_io.zookeeper.zookeeper import ZooKeeper


class ModernBrokerServer(EmbeddedBroker[ModernBrokerConfig, BrokerTopics]):
    """A broker, and a whole cluster, that speaks the protocol of 0.8-0.9 or of later versions over a log on disk.

    While it runs, it registers itself and its topics with their leader. The broker is a cluster of its own, so it also
    does the work of a genuine cluster's controller.
    """

    LOGS_TYPE: ClassVar[type[BrokerTopics]] = BrokerTopics
    _node: BrokerNode

    @property
    def _is_modern(self) -> bool:
        return self.config.generation is Generation.MODERN

    def _start_services(self, parts: ExitStack, broker: Broker) -> ServeClient:
        coordinator = GroupCoordinator(self.config)
        node = self._node = BrokerNode(
            config=self.config,
            broker=broker,
            clock=self._clock,
            topics=self._logs,
            coordinator=coordinator,
            transactions=TransactionCoordinator(self.config, self._logs, coordinator.offsets, clock=self._clock),
            purgatory=FetchPurgatory(),
        )
        # A request that waits holds its thread, and the listener waits for the threads of its sessions when it stops.
        # So the waiting requests are ended before the listener stops.
        parts.callback(coordinator.close)
        parts.callback(node.purgatory.close)
        return ModernSessions(node, VERSIONS_BY_GENERATION[self.config.generation]).serve

    def _register_broker(self, zookeeper: ZooKeeper, broker: Broker) -> None:
        zookeeper.register_modern_broker(broker, started_ms=wall_ms(), endpoints=self._is_modern)
        if self._is_modern:
            cluster_id = self._logs.cluster_id
            zookeeper.in_one_session(lambda queries: publish_cluster_id(queries, cluster_id))

    def _register_topic(self, zookeeper: ZooKeeper, topic: str) -> None:
        """Register the state that a topic has when its turn comes: one that was deleted meanwhile is removed."""
        state = self._logs.get(topic)
        if state is None:
            zookeeper.in_one_session(lambda queries: withdraw_topic(queries, topic))
            return
        partitions, leader = len(state.logs), self.config.broker_id
        topic_id = uuid_text(state.id) if self._is_modern else None
        zookeeper.in_one_session(
            lambda queries: publish_topic(queries, topic, partitions=partitions, leader=leader, topic_id=topic_id)
        )

    def _flush(self) -> None:
        super()._flush()
        self._node.transactions.expire()  # transactions whose producer is gone
