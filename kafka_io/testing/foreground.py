"""Runs an embedded broker as a process, for `penstock broker`."""

import sys

from kafka_io.stopping import stop_signals
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07


def run_foreground(config: BrokerConfig07 | ModernBrokerConfig, zookeeper: str | None = None) -> None:
    """Run a broker until SIGTERM or SIGINT arrives, then stop it. Call it from the main thread only.

    It prints one line when clients are served. It raises the errors of `EmbeddedBroker.start`.
    """
    with stop_signals() as stop_requested, _server(config, zookeeper) as server:
        sys.stdout.write(f"penstock broker {config.broker_id} ready on {config.host}:{server.port}\n")
        sys.stdout.flush()
        while not stop_requested():
            pass


def _server(config: BrokerConfig07 | ModernBrokerConfig, zookeeper: str | None) -> BrokerServer07 | ModernBrokerServer:
    if isinstance(config, BrokerConfig07):
        return BrokerServer07(config, zookeeper=zookeeper)
    return ModernBrokerServer(config, zookeeper=zookeeper)
