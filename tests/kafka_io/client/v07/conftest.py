"""Real brokers without ZooKeeper, links that do not really sleep, and all of them ended after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.server import BrokerServer
from kafka_io.client.link import Patience
from kafka_io.client.retry import Backoff
from kafka_io.client.v07.link import Link07
from kafka_io.model import Broker

StartBroker = Callable[..., BrokerServer]
OpenLink = Callable[..., Link07]

ATTEMPTS = 3
TIMEOUT_S = 20.0


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers that flush each request; the same id finds its data again."""
    with ExitStack() as brokers:

        def start(*, broker_id: int = 0, zookeeper: str | None = None, **settings: Any) -> BrokerServer:
            chosen = {"partitions": 2, "segment_bytes": 300, "flush_messages": 1, **settings}
            config = BrokerConfig(broker_id=broker_id, data_dir=tmp_path / f"broker-{broker_id}", **chosen)
            return brokers.enter_context(BrokerServer(config, zookeeper=zookeeper))

        yield start


@pytest.fixture
def open_link() -> Iterator[OpenLink]:
    """Links to a broker or a server that plays one; `sleep` is told the pauses instead of taking them."""
    with ExitStack() as links:

        def open_(
            broker: BrokerServer | Broker,
            *,
            timeout_s: float = TIMEOUT_S,
            attempts: int = ATTEMPTS,
            sleep: Callable[[float], None] = lambda _: None,
        ) -> Link07:
            if isinstance(broker, BrokerServer):
                broker = Broker(broker.config.broker_id, broker.config.host, broker.port)
            patience = Patience(timeout_s=timeout_s, backoff=Backoff(attempts=attempts))
            return links.enter_context(Link07(broker, patience, sleep=sleep))

        yield open_
