"""The broker's entries in ZooKeeper: itself, and each topic it has a log of (facts, 6; seed 003, 5.6).

The nodes are ephemeral; that they come back after a lost session is the registry's work.
"""

import logging
import queue
import threading

from kafka_io.broker.clock import wall_ms
from kafka_io.broker.config import BrokerConfig
from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry

logger = logging.getLogger(__name__)

_PAUSE_S = 1.0


class Registration:
    """Registers a broker, and every topic that comes out of `topics`; on a thread, for no producer waits for ZooKeeper.

    What is told of a topic is its configured number of partitions, not what exists on disk.
    """

    def __init__(
        self, registry: Registry, broker: Broker, config: BrokerConfig, topics: "queue.SimpleQueue[str | None]"
    ) -> None:
        self._registry = registry
        self._broker = broker
        self._config = config
        self._topics = topics
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{broker.id}-registration")

    def start(self) -> None:
        """Register the broker and the topics known so far; those to come follow by themselves.

        Raises:
            RegistryError: ZooKeeper does not answer, or another broker has this id.
        """
        self._registry.register_broker(self._broker, f"{self._broker.host}-{wall_ms()}")
        self._topics.put(None)
        while (topic := self._topics.get()) is not None:
            self._register(topic)
        self._thread.start()

    def stop(self) -> None:
        """Register no more. What is registered goes with the registry's session."""
        self._stopping.set()
        self._topics.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (topic := self._topics.get()) is not None:
            while not self._stopping.is_set() and not self._is_settled(topic):
                self._stopping.wait(_PAUSE_S)

    def _is_settled(self, topic: str) -> bool:
        """Whether `topic` is registered, or never will be."""
        try:
            self._register(topic)
        except RegistryUnavailable as error:
            logger.warning("topic %r is not registered yet: %s", topic, error)
            return False
        except RegistryError:
            logger.exception("topic %r cannot be registered", topic)
        return True

    def _register(self, topic: str) -> None:
        self._registry.register_topic(topic, self._broker.id, self._config.partitions_of(topic))
