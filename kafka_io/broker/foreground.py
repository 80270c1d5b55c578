"""The broker as a process: what `penstock broker` runs."""

import sys

from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.server import ModernBrokerServer
from kafka_io.broker.server import BrokerServer
from kafka_io.stopping import stopping


def run_foreground(config: BrokerConfig | ModernBrokerConfig, zookeeper: str | None = None) -> None:
    """Run a broker until SIGTERM or SIGINT, then stop it in order; from the main thread only.

    Prints one line when clients are served. Same errors as the server's `start`.
    """
    with stopping() as told, _server(config, zookeeper) as server:
        sys.stdout.write(f"penstock broker {config.broker_id} ready on {config.host}:{server.port}\n")
        sys.stdout.flush()
        while not told.is_told():
            pass


def _server(config: BrokerConfig | ModernBrokerConfig, zookeeper: str | None) -> BrokerServer | ModernBrokerServer:
    if isinstance(config, BrokerConfig):
        return BrokerServer(config, zookeeper=zookeeper)
    return ModernBrokerServer(config, zookeeper=zookeeper)
