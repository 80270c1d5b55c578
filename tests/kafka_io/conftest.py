"""Clients of fake and embedded brokers, without the pauses of retries; all are closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.negotiation import Connector
from kafka_io.brokers.retry import Backoff
from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.errors import Where
from kafka_io.model import Broker
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from tests.fakes.cluster import FakeCluster

OpenBrokers = Callable[..., ClusterMetadata]
ATTEMPTS = 3


@pytest.fixture
def open_brokers() -> Iterator[OpenBrokers]:
    """Opens clients of fake clusters. They are closed after the test."""
    with ExitStack() as opened:

        def open_(
            cluster: FakeCluster,
            *,
            timeout_s: float = 10.0,
            attempts: int = ATTEMPTS,
            sleep: Callable[[float], None] = lambda _: None,
        ) -> ClusterMetadata:
            connector = Connector(timeout_s=timeout_s, max_answer_bytes=1_000_000)
            metadata = ClusterMetadata(
                cluster.bootstrap,
                connector,
                Backoff(attempts=attempts),
                where=Where(cluster="main"),
                sleep=sleep,
            )
            return opened.enter_context(metadata)

        yield open_


StartBroker = Callable[..., BrokerServer07]
OpenConnection = Callable[..., BrokerConnection07]

TIMEOUT_S = 20.0


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts 0.7 brokers that flush after each request. A broker with the same id continues with the same data."""
    with ExitStack() as brokers:

        def start(*, broker_id: int = 0, zookeeper: str | None = None, **settings: Any) -> BrokerServer07:
            broker_settings = {"partitions": 2, "segment_bytes": 300, **settings}
            config = BrokerConfig07(broker_id=broker_id, data_dir=tmp_path / f"broker-{broker_id}", **broker_settings)
            return brokers.enter_context(BrokerServer07(config, zookeeper=zookeeper))

        yield start


@pytest.fixture
def open_connection() -> Iterator[OpenConnection]:
    """Opens connections to 0.7 brokers or fake ones. `sleep` is called for each pause; by default it does not wait."""
    with ExitStack() as connections:

        def open_(
            broker: BrokerServer07 | Broker,
            *,
            timeout_s: float = TIMEOUT_S,
            attempts: int = ATTEMPTS,
            sleep: Callable[[float], None] = lambda _: None,
        ) -> BrokerConnection07:
            if isinstance(broker, BrokerServer07):
                broker = Broker(broker.config.broker_id, broker.config.host, broker.port)
            retry_policy = RetryPolicy(timeout_s=timeout_s, backoff=Backoff(attempts=attempts))
            return connections.enter_context(BrokerConnection07(broker, retry_policy, sleep=sleep))

        yield open_
