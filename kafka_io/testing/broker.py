"""The embedded broker of any generation: its parts start in the order in which they need each other.

    data directory -> logs -> listening socket -> services -> housekeeping -> registration -> sessions of clients

They stop in the reverse order. The socket listens before the broker registers, because the registration contains its
port. A client that connects in between waits in the backlog and is served when everything has started.
"""

import queue
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

from kafka_io.model import Broker
from kafka_io.stopping import run_foreground
from kafka_io.testing.config import BrokerConfig
from kafka_io.testing.data_dir import locked_data_dir
from kafka_io.testing.housekeeping import BrokerHousekeeping, ClockMs
from kafka_io.testing.listener import ServeClient, SocketListener
from kafka_io.testing.partition_logs import PartitionLogs
from kafka_io.testing.topic_registrar import TopicQueue, TopicRegistrar
from kafka_io.zookeeper.zookeeper import ZooKeeper

ConfigT = TypeVar("ConfigT", bound=BrokerConfig)
LogsT = TypeVar("LogsT", bound=PartitionLogs[Any, Any])


def wall_ms() -> int:
    """The wall time in ms since 1970."""
    return time.time_ns() // 1_000_000


class EmbeddedBroker(ABC, Generic[ConfigT, LogsT]):
    """A broker over a log on disk, in this process; a context manager, or `start` and `stop`.

    Args:
        config: the settings of the broker.
        zookeeper: `host:port[,host:port][/chroot]` of ZooKeeper. Without it clients need the broker's address.
        clock: returns the wall time in ms since 1970, for rolling, retention and offsets by time.
    """

    LOGS_TYPE: ClassVar[type[Any]]
    _logs: LogsT

    def __init__(self, config: ConfigT, *, zookeeper: str | None = None, clock: ClockMs = wall_ms) -> None:
        self.config = config
        self._zookeeper_address = zookeeper
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
            parts.enter_context(locked_data_dir(self.config.data_dir))
            self._logs = self.LOGS_TYPE(self.config, clock=self._clock, on_change=changed_topics.put)
            parts.callback(self._logs.close)
            self._logs.load()
            config = self.config
            name = f"broker-{config.broker_id}"
            listener = SocketListener(config.host, config.port, name=name, max_connections=config.max_connections)
            parts.callback(listener.stop)
            broker = Broker(self.config.broker_id, self.config.host, listener.port)
            serve = self._start_services(parts, broker)
            housekeeping = BrokerHousekeeping(self.config, flush=self._flush, clean=self._logs.clean, clock=self._clock)
            housekeeping.start()
            parts.callback(housekeeping.stop)
            if self._zookeeper_address is not None:
                zookeeper = parts.enter_context(ZooKeeper.open(self._zookeeper_address))
                self._register_broker(zookeeper, broker)
                registrar = TopicRegistrar(broker.id, changed_topics, partial(self._register_topic, zookeeper))
                registrar.start()
                parts.callback(registrar.stop)
            listener.start(serve)
            self._listener = listener
            # All parts run, and `stop` closes them. An error before this line closes the parts that have started.
            self._parts = parts.pop_all()

    def stop(self) -> None:
        """Leave ZooKeeper, end all connections and threads, and flush. Calling it again does nothing."""
        self._listener = None
        self._parts.close()

    @abstractmethod
    def _start_services(self, parts: ExitStack, broker: Broker) -> ServeClient:
        """Start what requests need besides the logs, to be stopped by `parts`. Returns what serves each client."""

    @abstractmethod
    def _register_broker(self, zookeeper: ZooKeeper, broker: Broker) -> None:
        """Register the broker in ZooKeeper while it runs."""

    @abstractmethod
    def _register_topic(self, zookeeper: ZooKeeper, topic: str) -> None:
        """Register the current state of a topic in ZooKeeper."""

    def run_foreground(self) -> None:
        """Run the broker until SIGTERM or SIGINT arrives, then stop it; see `stopping.run_foreground`."""
        name, host = f"penstock broker {self.config.broker_id}", self.config.host
        run_foreground(self, lambda: f"{name} ready on {host}:{self.port}")

    def _flush(self) -> None:
        """Flush what is written. Housekeeping calls this at each flush interval."""
        self._logs.flush()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
