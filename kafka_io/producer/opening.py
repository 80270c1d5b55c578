"""`open_producer`: detects the generation of a cluster, and opens a producer to it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, overload

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.errors import RegistryError, Unsupported
from kafka_io.model import Broker, Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.producer.dispatch import Dispatcher
from kafka_io.producer.message import Delivered, ProducerClosed
from kafka_io.producer.partitioner import Murmur2Partitioner, Partitioner, StringHashPartitioner
from kafka_io.producer.producer import Producer
from kafka_io.producer.senders import AsyncSender, SyncSender
from kafka_io.producer.settings import ProducerSettings, Queueing
from kafka_io.producer.transport import Transport
from kafka_io.producer.transport_modern import ModernTransport
from kafka_io.producer.transport_v07 import Transport07
from kafka_io.producer.v07_brokers import FixedBrokers, RegisteredBrokers, WritablePartitionSource07
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.registry.zookeeper import Registry


@overload
def open_producer(
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    generation: Generation | None = None,
    security: Security = PLAINTEXT,
    settings: ProducerSettings | None = None,
    queue: None = None,
) -> Producer[Delivered]: ...


@overload
def open_producer(
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    generation: Generation | None = None,
    security: Security = PLAINTEXT,
    settings: ProducerSettings | None = None,
    queue: Queueing,
) -> "Producer[Future[Delivered]]": ...


def open_producer(
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    generation: Generation | None = None,
    security: Security = PLAINTEXT,
    settings: ProducerSettings | None = None,
    queue: Queueing | None = None,
) -> Producer[Any]:
    """Open a producer to the cluster that is found through ZooKeeper or the brokers at `bootstrap`.

        >>> with open_producer(bootstrap=bootstrap) as producer:
        ...     [producer.send("clicks", b"%d" % number).offset for number in range(3)]
        [0, 1, 2]

    Args:
        zookeeper: `host:port[,host:port][/chroot]`, where the brokers are registered. In 0.7 the producer follows
            brokers that come and go.
        bootstrap: brokers at `host:port[,host:port]`. With `generation` 0.7 this is the complete list of brokers; they
            get ids from 0 on, and pick the partitions themselves.
        generation: the generation of the brokers; None detects it.
        security: TLS and SASL, from 0.9 on.
        settings: how to send.
        queue: makes the producer asynchronous; without it the producer is synchronous.

    Raises:
        RegistryUnavailable: no ZooKeeper answers at the address.
        RegistryError: ZooKeeper has no Kafka registry at the address, or no broker is registered.
        Unsupported: security or transactions for a cluster of 0.7.
        ValueError: neither address is given, or an address is not valid.
    """
    settings = settings or ProducerSettings()
    stopping = threading.Event()

    def pause(pause_s: float) -> None:
        if stopping.wait(pause_s):
            raise ProducerClosed("the deadline for closing passed before the next attempt: the message may be stored")

    connector = _ProducerConnector(
        bootstrap=parse_bootstrap(bootstrap) if bootstrap else (),
        generation=generation,
        security=security,
        settings=settings,
        pause=pause,
    )
    transport, partitioner = connector.through(zookeeper) if zookeeper else connector.directly()
    dispatcher = Dispatcher(transport, settings.partitioner or partitioner, settings)
    sender = (
        SyncSender(dispatcher.send, transport.close)
        if queue is None
        else AsyncSender(dispatcher.send, queue, release=transport.close, interrupt=stopping.set)
    )
    return Producer(sender, dispatcher, transport, settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProducerConnector:
    """Makes the transport and the default partitioner for the cluster's generation.

    `pause` sleeps between two attempts, and raises ProducerClosed once the producer must stop.
    """

    bootstrap: tuple[Broker, ...]
    generation: Generation | None
    security: Security
    settings: ProducerSettings
    pause: Callable[[float], None]

    def directly(self) -> tuple[Transport, Partitioner]:
        """Connect to the given brokers."""
        if not self.bootstrap:
            raise ValueError("give the address of ZooKeeper or of bootstrap brokers")
        if self.generation is not Generation.V07:
            return self._modern(self.bootstrap)
        listed = [Broker(number, broker.host, broker.port) for number, broker in enumerate(self.bootstrap)]
        return self._v07(FixedBrokers(listed))

    def through(self, zookeeper: str) -> tuple[Transport, Partitioner]:
        """Connect to the registered brokers. The session with ZooKeeper stays open only for 0.7, which needs it."""
        with ExitStack() as closing:
            registry = closing.enter_context(Registry.open(zookeeper))
            if registry.is_v07(self.generation):
                max_age_s = self.settings.metadata_max_age_ms / 1000
                transport_and_partitioner = self._v07(RegisteredBrokers(registry, max_age_s=max_age_s))
                closing.pop_all()  # from here on the transport closes the registry
                return transport_and_partitioner
            brokers = self.bootstrap or registry.brokers(self.security.protocol).found
        if not brokers:
            raise RegistryError("no broker is registered in ZooKeeper")
        return self._modern(brokers)

    def _v07(self, brokers: WritablePartitionSource07) -> tuple[Transport, Partitioner]:
        if self.security != PLAINTEXT or self.settings.transactional_id is not None:
            raise Unsupported("0.7 has neither TLS nor SASL nor transactions: leave them out of the settings")
        transport = Transport07(
            brokers,
            retry_policy=self.settings.retry_policy,
            confirms=self.settings.acks != 0,
            max_message_bytes=self.settings.max_message_bytes,
            sleep=self.pause,
        )
        return transport, StringHashPartitioner()

    def _modern(self, bootstrap: tuple[Broker, ...]) -> tuple[Transport, Partitioner]:
        source = Source(
            cluster=None,
            generation=self.generation or Generation.MODERN,
            brokers=bootstrap,
            security=self.security,
            read_settings=ReadSettings(retry_policy=self.settings.retry_policy),
        )
        return ModernTransport(source.connect(sleep=self.pause), self.settings), Murmur2Partitioner()
