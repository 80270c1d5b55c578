"""A 0.7 broker's entries in ZooKeeper: itself, and each topic it has a log of (facts, 6; seed 003, 5.6).

The nodes are ephemeral; that they come back after a lost session is the registry's work.
"""

from kafka_io.broker.clock import wall_ms
from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.enrolment import Enrolment, TopicQueue
from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry


class Registration(Enrolment):
    """What is told of a topic is its configured number of partitions, not what exists on disk."""

    def __init__(self, registry: Registry, broker: Broker, config: BrokerConfig, topics: TopicQueue) -> None:
        super().__init__(broker.id, topics)
        self._registry = registry
        self._broker = broker
        self._config = config

    def _register_broker(self) -> None:
        self._registry.register_broker(self._broker, f"{self._broker.host}-{wall_ms()}")

    def _register(self, topic: str) -> None:
        self._registry.register_topic(topic, self._broker.id, self._config.partitions_of(topic))
