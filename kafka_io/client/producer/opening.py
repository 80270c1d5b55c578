"""Finding out what a cluster is, and opening a producer to it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, overload

from kafka_io.client.modern.bootstrap import parse_bootstrap
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.producer.dispatch import Dispatcher
from kafka_io.client.producer.message import Delivered, ProducerClosed
from kafka_io.client.producer.partitioner import Murmur2Partitioner, Partitioner, StringHashPartitioner
from kafka_io.client.producer.producer import Producer
from kafka_io.client.producer.registered import Brokers07, FixedBrokers, RegisteredBrokers
from kafka_io.client.producer.senders import AsyncSender, SyncSender
from kafka_io.client.producer.settings import ProducerSettings, Queueing
from kafka_io.client.producer.transport import Transport
from kafka_io.client.producer.transport_modern import ModernTransport
from kafka_io.client.producer.transport_v07 import Transport07
from kafka_io.client.reading import Reading
from kafka_io.errors import RegistryError, Unsupported
from kafka_io.model import Broker, Generation
from kafka_io.net.security import PLAINTEXT, Security
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
    """A producer to the cluster that ZooKeeper or the brokers at `bootstrap` lead to.

        >>> with open_producer(bootstrap=bootstrap) as producer:
        ...     [producer.send("clicks", b"%d" % number).offset for number in range(3)]
        [0, 1, 2]

    Args:
        zookeeper: `host:port[,host:port][/chroot]`, where brokers are registered; those of 0.7 are followed as they
            come and go.
        bootstrap: brokers at `host:port[,host:port]`. With `generation` 0.7 they are all there are, with ids from 0 on,
            and pick the partitions themselves.
        generation: what the brokers speak, in place of finding it out.
        security: TLS and SASL, from 0.9 on.
        settings: how to send.
        queue: makes the producer asynchronous; without, it is synchronous.

    Raises:
        RegistryUnavailable: no ZooKeeper answers there.
        RegistryError: ZooKeeper has no Kafka registry there, or no broker in it.
        Unsupported: security or transactions are asked of a cluster of 0.7.
        ValueError: neither address is given, or one is none.
    """
    settings = settings or ProducerSettings()
    stopping = threading.Event()

    def pause(pause_s: float) -> None:
        if stopping.wait(pause_s):
            raise ProducerClosed("the deadline for closing came before another attempt: the message may be there")

    connecting = _Connecting(
        bootstrap=parse_bootstrap(bootstrap) if bootstrap else (),
        generation=generation,
        security=security,
        settings=settings,
        pause=pause,
    )
    transport, partitioner = connecting.through(zookeeper) if zookeeper else connecting.directly()
    dispatcher = Dispatcher(transport, settings.partitioner or partitioner, settings)
    sender = (
        SyncSender(dispatcher.send, transport.close)
        if queue is None
        else AsyncSender(dispatcher.send, queue, release=transport.close, interrupt=stopping.set)
    )
    return Producer(sender, dispatcher, transport, settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connecting:
    """What is known of a cluster before it is asked anything; `pause` is how attempts wait for each other."""

    bootstrap: tuple[Broker, ...]
    generation: Generation | None
    security: Security
    settings: ProducerSettings
    pause: Callable[[float], None]

    def directly(self) -> tuple[Transport, Partitioner]:
        """By the brokers that are given."""
        if not self.bootstrap:
            raise ValueError("a cluster is found through ZooKeeper or bootstrap brokers: neither is given")
        if self.generation is not Generation.V07:
            return self._modern(self.bootstrap)
        listed = [Broker(number, broker.host, broker.port) for number, broker in enumerate(self.bootstrap)]
        return self._v07(FixedBrokers(listed))

    def through(self, zookeeper: str) -> tuple[Transport, Partitioner]:
        """By the brokers that are registered; only those of 0.7 are followed there."""
        with ExitStack() as opened:
            registry = opened.enter_context(Registry.open(zookeeper))
            if self.generation is Generation.V07 if self.generation else registry.is_v07() is not False:
                max_age_s = self.settings.metadata_max_age_ms / 1000
                found = self._v07(RegisteredBrokers(registry, max_age_s=max_age_s))
                opened.pop_all()
                return found
            brokers = self.bootstrap or registry.brokers(self.security.protocol).found
        if not brokers:
            raise RegistryError("no broker is registered that could be asked")
        return self._modern(brokers)

    def _v07(self, brokers: Brokers07) -> tuple[Transport, Partitioner]:
        if self.security != PLAINTEXT or self.settings.transactional_id is not None:
            raise Unsupported("0.7 has neither TLS nor SASL nor transactions")
        transport = Transport07(
            brokers,
            patience=self.settings.patience,
            confirms=self.settings.acks != 0,
            max_message_bytes=self.settings.max_message_bytes,
            sleep=self.pause,
        )
        return transport, StringHashPartitioner()

    def _modern(self, bootstrap: tuple[Broker, ...]) -> tuple[Transport, Partitioner]:
        brokers = open_brokers(
            bootstrap,
            Reading(patience=self.settings.patience),
            cluster=None,
            generation=self.generation,
            security=self.security,
            sleep=self.pause,
        )
        return ModernTransport(brokers, self.settings), Murmur2Partitioner()
