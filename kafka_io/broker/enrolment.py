"""How a broker keeps ZooKeeper told of its topics, whatever the dialect: on a thread, for no client waits for that."""

import logging
import queue
import threading
from abc import ABC, abstractmethod

from kafka_io.errors import RegistryError, RegistryUnavailable

logger = logging.getLogger(__name__)

_PAUSE_S = 1.0

TopicQueue = queue.SimpleQueue[str | None]


class Enrolment(ABC):
    """Registers a broker, and then every topic that comes out of `changed`, one after the other."""

    def __init__(self, broker_id: int, changed: TopicQueue) -> None:
        self._changed = changed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{broker_id}-registration")

    def start(self) -> None:
        """Register the broker and the topics known so far; those to come follow by themselves.

        Raises:
            RegistryError: ZooKeeper does not answer, or another broker has this id.
        """
        self._register_broker()
        self._changed.put(None)
        while (topic := self._changed.get()) is not None:
            self._register(topic)
        self._thread.start()

    def stop(self) -> None:
        """Register no more. What is ephemeral goes with the registry's session."""
        self._stopping.set()
        self._changed.put(None)
        self._thread.join()

    @abstractmethod
    def _register_broker(self) -> None:
        """Make the broker known; raises RegistryError."""

    @abstractmethod
    def _register(self, topic: str) -> None:
        """Make the topic known as it is now; raises RegistryError."""

    def _run(self) -> None:
        while (topic := self._changed.get()) is not None:
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
