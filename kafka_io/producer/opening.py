"""`open_producer`: detects the generation of a cluster, and opens a producer to it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, TypedDict, Unpack, overload

from kafka_io.brokers.bootstrap import parse_bootstrap, parse_broker_list
from kafka_io.errors import RegistryError, Unsupported
from kafka_io.model import Broker, Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.producer.audit_counts import AuditCounts
from kafka_io.producer.dispatch import Dispatcher, Transport
from kafka_io.producer.message import Delivered, ProducerClosed
from kafka_io.producer.producer import Producer
from kafka_io.producer.senders import AsyncSender, SyncSender
from kafka_io.producer.settings import ProducerSettings, Queueing
from kafka_io.producer.transport_modern import ModernTransport
from kafka_io.producer.v07.brokers import FixedBrokers, RegisteredBrokers
from kafka_io.producer.v07.transport import Transport07
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.zookeeper.zookeeper import ZooKeeper


class _Options(TypedDict, total=False):
    """The arguments of `open_producer` that do not depend on the kind of producer."""

    zookeeper: str | None
    bootstrap: str | None
    generation: Generation | None
    security: Security
    settings: ProducerSettings | None
    audit: AuditCounts | None


@overload
def open_producer(*, queue: None = None, **options: Unpack[_Options]) -> Producer[Delivered]: ...


@overload
def open_producer(*, queue: Queueing, **options: Unpack[_Options]) -> "Producer[Future[Delivered]]": ...


def open_producer(
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    generation: Generation | None = None,
    security: Security = PLAINTEXT,
    settings: ProducerSettings | None = None,
    queue: Queueing | None = None,
    audit: AuditCounts | None = None,
) -> Producer[Any]:
    """Open a producer to the cluster that is found through ZooKeeper or the brokers at `bootstrap`.

        >>> with open_producer(bootstrap=bootstrap) as producer:
        ...     [producer.send("clicks", b"%d" % number).offset for number in range(3)]
        [0, 1, 2]

    Args:
        zookeeper: `host:port[,host:port][/chroot]`, where the brokers are registered. In 0.7 the producer follows
            brokers that come and go.
        bootstrap: brokers at `host:port[,host:port]`. With `generation` 0.7 and without `zookeeper` this is the
            complete list of brokers, which pick the partitions themselves; `id:host:port` gives a broker its id.
        generation: the generation of the brokers; None detects it.
        security: TLS and SASL, from 0.9 on.
        settings: how to send.
        queue: makes the producer asynchronous; without it the producer is synchronous.
        audit: counts the confirmed messages and publishes the counts. Brokers before 0.10 do not store the times that
            it counts by.

    Raises:
        RegistryUnavailable: no ZooKeeper answers at the address.
        RegistryError: ZooKeeper has no nodes of Kafka at the address, or no broker is registered.
        Unsupported: security or transactions for a cluster of 0.7, or `audit` with transactions, because messages of
            an aborted transaction would be counted.
        ValueError: neither address is given, or an address is not valid.
    """
    settings = settings or ProducerSettings()
    if audit is not None and settings.transactional_id is not None:
        raise Unsupported("messages of transactions cannot be counted: open the producer without `audit`")
    parse = parse_broker_list if generation is Generation.V07 and not zookeeper else parse_bootstrap
    brokers = parse(bootstrap) if bootstrap else ()
    if not (zookeeper or brokers):
        raise ValueError("give the address of ZooKeeper or of bootstrap brokers")
    stopping = threading.Event()

    def pause(pause_s: float) -> None:
        if stopping.wait(pause_s):
            raise ProducerClosed("the deadline for closing passed before the next attempt: the message may be stored")

    client = ZooKeeper.open(zookeeper) if zookeeper else None
    transport = _transport(client, brokers, generation=generation, security=security, settings=settings, pause=pause)
    dispatcher = Dispatcher(transport, settings)
    dispatch = dispatcher.send if audit is None else audit.counting(dispatcher.send)

    def release() -> None:
        with transport:
            if audit is not None:
                audit.close()

    sender = (
        SyncSender(dispatch, release)
        if queue is None
        else AsyncSender(dispatch, queue, release=release, interrupt=stopping.set)
    )
    return Producer(sender, dispatcher, settings, audit)


def _transport(
    zookeeper: ZooKeeper | None,
    brokers: tuple[Broker, ...],
    *,
    generation: Generation | None,
    security: Security,
    settings: ProducerSettings,
    pause: Callable[[float], None],
) -> Transport:
    """The transport for the cluster's generation.

    Args:
        zookeeper: closed here, except in 0.7, whose transport needs it and closes it.
        brokers: the bootstrap brokers.
        generation: see `open_producer`.
        security: see `open_producer`.
        settings: see `open_producer`.
        pause: sleeps between two attempts, and raises ProducerClosed once the producer must stop.
    """
    with ExitStack() as closing:
        if zookeeper:
            closing.enter_context(zookeeper)
        if zookeeper.is_v07(generation) if zookeeper else generation is Generation.V07:
            if security != PLAINTEXT or settings.transactional_id is not None:
                raise Unsupported("0.7 has neither TLS nor SASL nor transactions: leave them out of the settings")
            max_age_s = settings.metadata_max_age_ms / 1000
            brokers_07 = RegisteredBrokers(zookeeper, max_age_s=max_age_s) if zookeeper else FixedBrokers(brokers)
            closing.pop_all()
            return Transport07(brokers_07, settings, sleep=pause)
        if zookeeper and not brokers:
            brokers = zookeeper.brokers(security.protocol).entries
    if not brokers:
        raise RegistryError("no broker is registered in ZooKeeper")
    source = Source(
        cluster=None,
        generation=generation or Generation.MODERN,
        brokers=brokers,
        security=security,
        read_settings=ReadSettings(retry_policy=settings.retry_policy),
    )
    return ModernTransport(source.connect(sleep=pause), settings)
