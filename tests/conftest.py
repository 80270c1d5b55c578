"""Shared by all tests: one ZooKeeper for the session, and a place of its own in it for each test."""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from kazoo.client import KazooClient

from resources.zookeeper_server import ZooKeeperServer

# Examples are slow on a shared machine, and where a fresh clone compiles its kernels for the first of them.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a ZooKeeper that all tests share."""
    with ZooKeeperServer(None, tmp_path_factory.mktemp("zookeeper")) as server:
        yield server.connect


@pytest.fixture
def chroot(zookeeper_server: str) -> str:
    """`host:port/chroot`, an empty registry for this test alone."""
    node = f"/test-{uuid.uuid4().hex}"
    client = KazooClient(zookeeper_server)
    client.start()
    try:
        client.create(node)
    finally:
        client.stop()
        client.close()
    return zookeeper_server + node
