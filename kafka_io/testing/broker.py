"""What the two embedded brokers share: the parts of a broker start in the order in which they need each other.

    data directory -> logs -> listening socket -> services -> housekeeping -> registration -> sessions of clients

They stop in the reverse order. The socket listens before the broker registers, because the registration contains its
port. A client that connects in between waits in the backlog and is served when everything has started.
"""

import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry
from kafka_io.testing.data_dir import DataDir
from kafka_io.testing.housekeeping import BrokerHousekeeping, ClockMs, HousekeepingConfig
from kafka_io.testing.listener import ListenerConfig, OpenSession, SocketListener
from kafka_io.testing.topic_registrar import TopicQueue, TopicRegistrar


def wall_ms() -> int:
    """The wall time in ms since 1970."""
    return time.time_ns() // 1_000_000


class BrokerConfig(ListenerConfig, HousekeepingConfig, Protocol):
    """The settings that every embedded broker has."""

    @property
    def data_dir(self) -> Path:
        """The directory of the logs."""
        ...


class BrokerLogs(Protocol):
    """The logs of all partitions of a broker."""

    def load(self) -> None:
        """Open and recover the logs on disk."""
        ...

    def flush(self) -> None:
        """Make everything written so far durable."""
        ...

    def clean(self) -> None:
        """Delete segments that retention no longer keeps."""
        ...

    def close(self) -> None:
        """Flush and close all logs."""
        ...


ConfigT = TypeVar("ConfigT", bound=BrokerConfig)
LogsT = TypeVar("LogsT", bound=BrokerLogs)


class EmbeddedBroker(ABC, Generic[ConfigT, LogsT]):
    """A broker over a log on disk, in this process; a context manager, or `start` and `stop`.

    Args:
        config: the settings of the broker.
        zookeeper: `host:port[,host:port][/chroot]` of the registry. Without it clients need the broker's address.
        clock: returns the wall time in ms since 1970, for rolling, retention and offsets by time.
    """

    def __init__(self, config: ConfigT, *, zookeeper: str | None = None, clock: ClockMs = wall_ms) -> None:
        self.config = config
        self._zookeeper = zookeeper
        self._clock = clock
        self._parts = ExitStack()
        self._listener: SocketListener | None = None

    @property
    def port(self) -> int:
        """The port on which the broker listens.

        Raises:
            RuntimeError: the broker has not been started.
        """
        if self._listener is None:
            raise RuntimeError("the broker has not been started")
        return self._listener.port

    def start(self) -> None:
        """Lock the data directory, recover the logs, listen and register. Clients are served on return.

        Raises:
            DataDirInUse: another broker uses the directory.
            Corrupt: a log has a hole, or a file has the wrong content.
            RegistryError: ZooKeeper does not answer, or has another broker with this id.
            OSError: the port is in use.
        """
        changed_topics: TopicQueue = queue.SimpleQueue()
        with ExitStack() as parts:
            parts.enter_context(DataDir.open(self.config.data_dir))
            logs = self._create_logs(changed_topics.put)
            parts.callback(logs.close)
            logs.load()
            listener = SocketListener(self.config)
            parts.callback(listener.stop)
            broker = Broker(self.config.broker_id, self.config.host, listener.port)
            open_session = self._create_services(parts, logs, broker)
            housekeeping = BrokerHousekeeping(
                self.config, flush=lambda: self._flush(logs), clean=logs.clean, clock=self._clock
            )
            housekeeping.start()
            parts.callback(housekeeping.stop)
            if self._zookeeper is not None:
                registry = parts.enter_context(Registry.open(self._zookeeper))
                registration = self._create_registration(registry, broker, logs, changed_topics)
                registration.start()
                parts.callback(registration.stop)
            listener.start(open_session)
            self._listener = listener
            self._parts = parts.pop_all()

    def stop(self) -> None:
        """Leave ZooKeeper, end all connections and threads, and flush. Calling it again does nothing."""
        self._listener = None
        self._parts.close()

    @abstractmethod
    def _create_logs(self, on_change: Callable[[str], None]) -> LogsT:
        """The logs, not loaded yet; `on_change` is called with each topic that is created or deleted."""

    @abstractmethod
    def _create_services(self, parts: ExitStack, logs: LogsT, broker: Broker) -> OpenSession:
        """What requests need besides the logs; `parts` closes it before the listener. Returns a session factory."""

    @abstractmethod
    def _create_registration(
        self, registry: Registry, broker: Broker, logs: LogsT, changed_topics: TopicQueue
    ) -> TopicRegistrar:
        """The thread that registers the broker and its topics in ZooKeeper."""

    def _flush(self, logs: LogsT) -> None:
        """What housekeeping does at each flush interval."""
        logs.flush()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
