"""A running 0.7 cluster for each test, and connectors that are shut down after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_io.consumer.connector.connector import ConsumerConnector
from tests.live import LiveCluster, live_cluster
from tests.nodes import connected

Connect = Callable[..., ConsumerConnector]
SHORT_INTERVALS: dict[str, Any] = {
    "auto_commit_interval_ms": 200,
    "rebalance_backoff_ms": 200,
    "rebalance_max_retries": 200,
    "look_interval_ms": 1000,
    "fetch_backoff_ms": 100,
    "zookeeper_timeout_ms": 60_000,
    "shutdown_timeout_ms": 60_000,
}


@pytest.fixture
def cluster(chroot: str, tmp_path: Path) -> Iterator[LiveCluster]:
    """A cluster of two brokers. Each broker has two partitions of each topic."""
    with live_cluster(chroot, tmp_path / "live") as live:
        yield live


@pytest.fixture
def connect(chroot: str) -> Iterator[Connect]:
    """Opens connectors with short intervals, by default in the group `readers`."""
    with ExitStack() as opened:

        def open_(group: str = "readers", **settings: Any) -> ConsumerConnector:
            return opened.enter_context(ConsumerConnector.open(chroot, group, **{**SHORT_INTERVALS, **settings}))

        yield open_


@pytest.fixture
def nodes(chroot: str) -> Iterator[KazooClient]:
    """A kazoo client with which a test reads and writes nodes."""
    with connected(chroot) as client:
        yield client
