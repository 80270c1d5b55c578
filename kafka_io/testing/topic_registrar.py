"""Registers a broker and its topics in ZooKeeper, on a thread of its own, so that no client waits for ZooKeeper."""

import logging
import queue
import threading
from abc import ABC, abstractmethod

from kafka_io.errors import RegistryError, RegistryUnavailable

logger = logging.getLogger(__name__)

_PAUSE_S = 1.0

TopicQueue = queue.SimpleQueue[str | None]


class TopicRegistrar(ABC):
    """Registers a broker, and then each topic of the queue `changed`, one after the other."""

    def __init__(self, broker_id: int, changed: TopicQueue) -> None:
        self._changed = changed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{broker_id}-registration")

    def start(self) -> None:
        """Register the broker and the topics in the queue. The thread registers topics that come later.

        Raises:
            RegistryError: ZooKeeper does not answer, or another broker is registered with this id.
        """
        self._register_broker()
        self._changed.put(None)
        while (topic := self._changed.get()) is not None:
            self._register(topic)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Ephemeral nodes disappear with the session of the registry."""
        self._stopping.set()
        self._changed.put(None)
        self._thread.join()

    @abstractmethod
    def _register_broker(self) -> None:
        """Register the broker; raises RegistryError."""

    @abstractmethod
    def _register(self, topic: str) -> None:
        """Register the current state of a topic; raises RegistryError."""

    def _run(self) -> None:
        while (topic := self._changed.get()) is not None:
            while not self._stopping.is_set() and not self._is_settled(topic):
                self._stopping.wait(_PAUSE_S)

    def _is_settled(self, topic: str) -> bool:
        """Register a topic. Returns False if another attempt can help."""
        try:
            self._register(topic)
        except RegistryUnavailable as error:
            logger.warning("topic %r is not registered yet: %s", topic, error)
            return False
        except RegistryError:
            logger.exception("topic %r cannot be registered", topic)
        return True
