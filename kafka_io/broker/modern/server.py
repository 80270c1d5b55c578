"""The embedded broker from 0.8 on as a whole: its parts, started in the order they need each other."""

import queue
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from kafka_io.broker.clock import ClockMs, wall_ms
from kafka_io.broker.data_dir import DataDir
from kafka_io.broker.enrolment import TopicQueue
from kafka_io.broker.housekeeping import Housekeeping
from kafka_io.broker.listener import Listener
from kafka_io.broker.modern.arrivals import Arrivals
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.dialect import DIALECTS
from kafka_io.broker.modern.groups.coordinator import Coordinator
from kafka_io.broker.modern.node import Node
from kafka_io.broker.modern.registration import ModernRegistration
from kafka_io.broker.modern.session import ModernSession
from kafka_io.broker.modern.topics import Topics
from kafka_io.broker.modern.transactions import Transactions
from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry


class ModernBrokerServer:
    """A broker, and a whole cluster, of 0.8-0.9 or modern dialect over a log on disk; a context manager.

    Args:
        zookeeper: `host:port[,host:port][/chroot]` to register in; without it clients need the broker's address.
        clock: wall time in ms, for roll and retention.
    """

    def __init__(self, config: ModernBrokerConfig, *, zookeeper: str | None = None, clock: ClockMs = wall_ms) -> None:
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
            Corrupt: a log of it has a hole, or a file is not what it must be.
            RegistryError: ZooKeeper is not there, or has a broker of this id.
            OSError: the port is taken.
        """
        changed: TopicQueue = queue.SimpleQueue()
        with ExitStack() as parts:
            parts.enter_context(DataDir.open(self.config.data_dir))
            topics = Topics(self.config, clock=self._clock, on_change=changed.put)
            parts.callback(topics.close)
            topics.load()
            listener = Listener(self.config)
            parts.callback(listener.stop)
            node = self._node(topics, listener.port)
            # Requests that wait must end before the listener waits for their threads.
            parts.callback(node.coordinator.close)
            parts.callback(node.arrivals.close)

            def flush() -> None:
                topics.flush()
                node.transactions.expire()  # those that nobody ends

            housekeeping = Housekeeping(self.config, flush=flush, clean=topics.clean, clock=self._clock)
            housekeeping.start()
            parts.callback(housekeeping.stop)
            if self._zookeeper is not None:
                registry = parts.enter_context(Registry.open(self._zookeeper))
                generation = self.config.generation
                registration = ModernRegistration(registry, node.broker, topics, changed, generation=generation)
                registration.start()
                parts.callback(registration.stop)
            dialect = DIALECTS[self.config.generation]
            listener.start(lambda client: ModernSession(client, node, dialect))
            self._listener = listener
            self._parts = parts.pop_all()

    def _node(self, topics: Topics, port: int) -> Node:
        coordinator = Coordinator(self.config)
        coordinator.offsets.load()
        transactions = Transactions(self.config, topics, coordinator.offsets, clock=self._clock)
        transactions.load()
        return Node(
            config=self.config,
            broker=Broker(self.config.broker_id, self.config.host, port),
            clock=self._clock,
            topics=topics,
            coordinator=coordinator,
            transactions=transactions,
            arrivals=Arrivals(),
        )

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
