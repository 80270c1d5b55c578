"""The broker as a process: what `penstock broker` runs."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.server import ModernBrokerServer
from kafka_io.broker.server import BrokerServer

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_foreground(config: BrokerConfig | ModernBrokerConfig, zookeeper: str | None = None) -> None:
    """Run a broker until SIGTERM or SIGINT, then stop it in order; from the main thread only.

    Prints one line when clients are served. Same errors as the server's `start`.
    """
    with _told_to_stop() as told, _server(config, zookeeper) as server:
        sys.stdout.write(f"penstock broker {config.broker_id} ready on {config.host}:{server.port}\n")
        sys.stdout.flush()
        told.get()


def _server(config: BrokerConfig | ModernBrokerConfig, zookeeper: str | None) -> BrokerServer | ModernBrokerServer:
    if isinstance(config, BrokerConfig):
        return BrokerServer(config, zookeeper=zookeeper)
    return ModernBrokerServer(config, zookeeper=zookeeper)


@contextmanager
def _told_to_stop() -> Iterator[SimpleQueue[int]]:
    """What SIGTERM and SIGINT put their number into; their handlers of before come back at the end.

    Not an event: a handler that interrupts its `wait` at the wrong moment would wait for the lock it interrupted.
    """
    told: SimpleQueue[int] = SimpleQueue()
    before = {number: signal.signal(number, lambda number, _: told.put(number)) for number in _SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
