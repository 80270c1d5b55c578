"""The broker as a process: what `penstock broker` runs."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.server import ModernBrokerServer
from kafka_io.broker.server import BrokerServer


def run_foreground(config: BrokerConfig | ModernBrokerConfig, zookeeper: str | None = None) -> None:
    """Run a broker until SIGTERM or SIGINT, then stop it in order; from the main thread only.

    Prints one line when clients are served. Same errors as the server's `start`.
    """
    with _told_to_stop() as stopping, _server(config, zookeeper) as server:
        sys.stdout.write(f"penstock broker {config.broker_id} ready on {config.host}:{server.port}\n")
        sys.stdout.flush()
        stopping.wait()


def _server(config: BrokerConfig | ModernBrokerConfig, zookeeper: str | None) -> BrokerServer | ModernBrokerServer:
    if isinstance(config, BrokerConfig):
        return BrokerServer(config, zookeeper=zookeeper)
    return ModernBrokerServer(config, zookeeper=zookeeper)


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Set by SIGTERM and SIGINT, whose handlers of before come back at the end."""
    stopping = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
