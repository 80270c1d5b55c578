"""Fixtures: 0.7 brokers on free ports, and connections to them; all are closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from tests.kafka_io.testing.v07.talk import Client

StartBroker = Callable[..., BrokerServer07]

# The settings of the genuine broker whose bytes are in tests/golden/v07.
GENUINE: dict[str, Any] = {
    "broker_id": 0,
    "partitions": 2,
    "topic_partitions": {"three": 3},
    "segment_bytes": 4 * 1024 * 1024,
    "topic_segment_bytes": {"seg": 700, "purged": 700, "purgedall": 700},
}


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts a broker. Its settings are those of the genuine broker, except for the given ones."""
    with ExitStack() as brokers:

        def start(
            *, zookeeper: str | None = None, clock: Callable[[], int] | None = None, **settings: Any
        ) -> BrokerServer07:
            config = BrokerConfig07(**{**GENUINE, "data_dir": tmp_path / "data", **settings})
            clock_argument = {} if clock is None else {"clock": clock}
            return brokers.enter_context(BrokerServer07(config, zookeeper=zookeeper, **clock_argument))

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[[BrokerServer07], Client]]:
    """Opens connections to a broker."""
    with ExitStack() as clients:
        yield lambda broker: clients.enter_context(Client(broker.port))
