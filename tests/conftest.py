"""Shared by all tests: one ZooKeeper for the session, and a place of its own in it for each test."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from resources.zookeeper_server import ZooKeeperServer
from tests.nodes import empty_registry

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
    return empty_registry(zookeeper_server)
