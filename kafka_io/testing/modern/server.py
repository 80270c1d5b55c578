"""The embedded broker of Kafka 0.8 and later."""

from collections.abc import Callable
from contextlib import ExitStack

from kafka_io.model import Broker, Generation
from kafka_io.registry.published import PublishedTopic
from kafka_io.registry.zookeeper import Registry
from kafka_io.testing.broker import EmbeddedBroker, wall_ms
from kafka_io.testing.listener import OpenSession
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.groups.coordinator import GroupCoordinator
from kafka_io.testing.modern.handlers import HANDLERS_BY_GENERATION
from kafka_io.testing.modern.node import BrokerNode
from kafka_io.testing.modern.purgatory import FetchPurgatory
from kafka_io.testing.modern.session import ModernSession
from kafka_io.testing.modern.topics import BrokerTopics
from kafka_io.testing.modern.transactions import TransactionCoordinator
from kafka_io.testing.topic_registrar import TopicQueue, TopicRegistrar
from kafka_io.wire.types import uuid_text


class ModernBrokerServer(EmbeddedBroker[ModernBrokerConfig, BrokerTopics]):
    """A broker, and a whole cluster, that speaks the protocol of 0.8-0.9 or of later versions over a log on disk."""

    _transactions: TransactionCoordinator

    def _create_logs(self, on_change: Callable[[str], None]) -> BrokerTopics:
        return BrokerTopics(self.config, clock=self._clock, on_change=on_change)

    def _create_services(self, parts: ExitStack, logs: BrokerTopics, broker: Broker) -> OpenSession:
        coordinator = GroupCoordinator(self.config)
        coordinator.offsets.load()
        self._transactions = TransactionCoordinator(self.config, logs, coordinator.offsets, clock=self._clock)
        self._transactions.load()
        node = BrokerNode(
            config=self.config,
            broker=broker,
            clock=self._clock,
            topics=logs,
            coordinator=coordinator,
            transactions=self._transactions,
            purgatory=FetchPurgatory(),
        )
        # A request that waits holds its thread, and the listener waits for the threads of its sessions when it stops.
        # So the waiting requests are ended before the listener stops.
        parts.callback(coordinator.close)
        parts.callback(node.purgatory.close)
        handlers = HANDLERS_BY_GENERATION[self.config.generation]
        return lambda client: ModernSession(client, node, handlers)

    def _create_registration(
        self, registry: Registry, broker: Broker, logs: BrokerTopics, changed_topics: TopicQueue
    ) -> TopicRegistrar:
        generation = self.config.generation
        return ModernBrokerRegistration(registry, broker, logs, changed_topics, generation=generation)

    def _flush(self, logs: BrokerTopics) -> None:
        logs.flush()
        self._transactions.expire()  # transactions whose producer is gone


class ModernBrokerRegistration(TopicRegistrar):
    """Registers the broker while it runs, and its topics with their leader.

    The broker is a cluster of its own, so it also does the work of a genuine cluster's controller. A topic is
    registered in the state that it has when its turn comes: one that was deleted meanwhile is removed there.
    """

    def __init__(
        self, registry: Registry, broker: Broker, topics: BrokerTopics, changed: TopicQueue, *, generation: Generation
    ) -> None:
        super().__init__(broker.id, changed)
        self._registry = registry
        self._broker = broker
        self._topics = topics
        self._is_modern = generation is Generation.MODERN

    def _register_broker(self) -> None:
        self._registry.register_modern_broker(self._broker, started_ms=wall_ms(), endpoints=self._is_modern)
        if self._is_modern:
            self._registry.publish_cluster_id(self._topics.cluster_id)

    def _register(self, topic: str) -> None:
        state = self._topics.get(topic)
        if state is None:
            self._registry.withdraw_topic(topic)
            return
        published = PublishedTopic(
            name=topic,
            partitions=len(state.logs),
            leader=self._broker.id,
            topic_id=uuid_text(state.id) if self._is_modern else None,
        )
        self._registry.publish_topic(published)
