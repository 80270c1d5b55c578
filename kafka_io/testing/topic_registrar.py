"""Registers topics in ZooKeeper, on a thread of its own, so that no client of the broker waits for ZooKeeper."""

import logging
import queue
import threading
from collections.abc import Callable

from kafka_io.errors import RegistryError, RegistryUnavailable

logger = logging.getLogger(__name__)

_PAUSE_S = 1.0

TopicQueue = queue.SimpleQueue[str | None]


class TopicRegistrar:
    """Registers each topic of the queue `changed`, one after the other.

    Args:
        broker_id: the id of the broker, for the name of the thread.
        changed: the names of topics whose registration may be out of date.
        register: registers the current state of a topic; raises RegistryError.
    """

    def __init__(self, broker_id: int, changed: TopicQueue, register: Callable[[str], None]) -> None:
        self._changed = changed
        self._register = register
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{broker_id}-registration")

    def start(self) -> None:
        """Register the topics in the queue. The thread registers topics that come later.

        Raises:
            RegistryError: ZooKeeper does not answer, or refuses a topic.
        """
        self._changed.put(None)  # marks the end of the topics that were loaded
        while (topic := self._changed.get()) is not None:
            self._register(topic)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Ephemeral nodes disappear with the session with ZooKeeper."""
        self._stopping.set()
        self._changed.put(None)
        self._thread.join()

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
