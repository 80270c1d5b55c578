"""Brokers of a fake cluster as a client sees them, without the pauses of its retries."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kafka_io.client.link import Patience
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.dial import Dialling
from kafka_io.client.retry import Backoff
from kafka_io.errors import Where
from tests.fakes.cluster import FakeCluster

OpenBrokers = Callable[..., Brokers]
ATTEMPTS = 3


@pytest.fixture
def open_brokers() -> Iterator[OpenBrokers]:
    """Opens clients that are closed after the test."""
    with ExitStack() as opened:

        def open_(cluster: FakeCluster, *, timeout_s: float = 10.0, attempts: int = ATTEMPTS) -> Brokers:
            patience = Patience(timeout_s=timeout_s, backoff=Backoff(attempts=attempts))
            dialling = Dialling(timeout_s=timeout_s, max_answer_bytes=1_000_000)
            brokers = Brokers(cluster.bootstrap, dialling, patience, where=Where(cluster="main"), sleep=lambda _: None)
            return opened.enter_context(brokers)

        yield open_
