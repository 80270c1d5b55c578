"""The entries in ZooKeeper of a broker from 0.8 on: itself while it runs, and its topics with who leads them.

Such a broker is a cluster of its own, so it also does what the controller of a genuine cluster does.
"""

from kafka_io.broker.clock import wall_ms
from kafka_io.broker.enrolment import Enrolment, TopicQueue
from kafka_io.broker.modern.topics import Topics
from kafka_io.model import Broker, Generation
from kafka_io.registry.published import PublishedTopic
from kafka_io.registry.zookeeper import Registry
from kafka_io.wire.types import uuid_text


class ModernRegistration(Enrolment):
    """Tells what the topics are when their turn comes: one that was deleted meanwhile is withdrawn."""

    def __init__(
        self, registry: Registry, broker: Broker, topics: Topics, changed: TopicQueue, *, generation: Generation
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
        known = self._topics.get(topic)
        if known is None:
            self._registry.withdraw_topic(topic)
            return
        published = PublishedTopic(
            name=topic,
            partitions=len(known.logs),
            leader=self._broker.id,
            topic_id=uuid_text(known.id) if self._is_modern else None,
        )
        self._registry.publish_topic(published)
