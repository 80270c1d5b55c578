"""Fixtures: brokers from 0.8 on, on free ports, and connections to them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.talk import Client

StartModern = Callable[..., ModernBrokerServer]
Connect = Callable[[ModernBrokerServer], Client]


@pytest.fixture
def start_modern(tmp_path: Path) -> Iterator[StartModern]:
    """Starts a broker in a directory of the test. It is stopped after the test."""
    with ExitStack() as brokers:

        def start(
            *, zookeeper: str | None = None, clock: Callable[[], int] | None = None, **settings: Any
        ) -> ModernBrokerServer:
            config = ModernBrokerConfig(**{"broker_id": 1, "data_dir": tmp_path / "data", **settings})
            clock_argument = {} if clock is None else {"clock": clock}
            return brokers.enter_context(ModernBrokerServer(config, zookeeper=zookeeper, **clock_argument))

        yield start


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections to a broker. They are closed after the test."""
    with ExitStack() as clients:
        yield lambda broker: clients.enter_context(Client(broker.port))


@pytest.fixture
def client(start_modern: StartModern, connect: Connect) -> Client:
    """A connection to a new broker that has the topic `clicks` with one partition."""
    new_client = connect(start_modern())
    assert new_client.create("clicks") == 0
    return new_client
