"""Shared by all tests: one ZooKeeper for the session, and a place of its own in it for each test; who runs which."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from resources.zookeeper_server import ZooKeeperServer
from tests.nodes import empty_registry

# Examples are slow on a shared machine, and where a fresh clone compiles its kernels for the first of them.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


BROKERS = "tests/brokers/"
LONGEST = (BROKERS, "tests/ui/", "tests/spark/", "tests/crash/", "tests/pipelines/demo/", "tests/simulation/")


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """The tests of a file run in one process, and so do all that share the real brokers: they start once."""

    def _split_scope(self, nodeid: str) -> str:
        return BROKERS if nodeid.startswith(BROKERS) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Called where tests run in several processes."""
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process is left with it at the end."""
    items.sort(key=lambda item: next((at for at, room in enumerate(LONGEST) if item.nodeid.startswith(room)), 99))


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a ZooKeeper that all tests share."""
    with ZooKeeperServer(None, tmp_path_factory.mktemp("zookeeper")) as server:
        yield server.connect


@pytest.fixture
def chroot(zookeeper_server: str) -> str:
    """`host:port/chroot`, an empty registry for this test alone."""
    return empty_registry(zookeeper_server)
