"""The embedded broker as a whole: its parts, started in the order they need each other, stopped in reverse."""

import queue
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from kafka_io.broker.clock import ClockMs, wall_ms
from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.data_dir import DataDir
from kafka_io.broker.housekeeping import Housekeeping
from kafka_io.broker.listener import Listener
from kafka_io.broker.logs import Logs
from kafka_io.broker.registration import Registration
from kafka_io.broker.session import Session
from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry


class BrokerServer:
    """A broker that speaks 0.7 over a log on disk; a context manager, or `start` and `stop`.

    Args:
        zookeeper: `host:port[,host:port][/chroot]` to register in; without it nobody is told of the broker.
        clock: wall time in ms, for OFFSETS, roll and retention.
    """

    def __init__(self, config: BrokerConfig, *, zookeeper: str | None = None, clock: ClockMs = wall_ms) -> None:
        self.config = config
        self._zookeeper = zookeeper
        self._clock = clock
        self._parts = ExitStack()
        self._listener: Listener | None = None

    @property
    def port(self) -> int:
        """The port it listens on; known once it has started."""
        if self._listener is None:
            raise RuntimeError("the broker has not been started")
        return self._listener.port

    def start(self) -> None:
        """Take the data directory, recover its logs, listen, register; on return clients are served.

        Raises:
            DataDirInUse: another broker has the directory.
            Corrupt: a log of it has a hole.
            RegistryError: ZooKeeper is not there, or has a broker of this id.
            OSError: the port is taken.
        """
        new_topics: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        with ExitStack() as parts:
            parts.enter_context(DataDir.open(self.config.data_dir))
            logs = Logs(self.config, clock=self._clock, on_new_topic=new_topics.put)
            parts.callback(logs.close)
            logs.load()
            housekeeping = Housekeeping(self.config, flush=logs.flush, clean=logs.clean, clock=self._clock)
            housekeeping.start()
            parts.callback(housekeeping.stop)
            listener = Listener(self.config)
            parts.callback(listener.stop)
            if self._zookeeper is not None:
                broker = Broker(self.config.broker_id, self.config.host, listener.port)
                registry = parts.enter_context(Registry.open(self._zookeeper))
                registration = Registration(registry, broker, self.config, new_topics)
                registration.start()
                parts.callback(registration.stop)
            listener.start(lambda client: Session(client, logs))
            self._listener = listener
            self._parts = parts.pop_all()

    def stop(self) -> None:
        """Leave ZooKeeper, end all connections and threads, flush; safe to call again."""
        self._listener = None
        self._parts.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
