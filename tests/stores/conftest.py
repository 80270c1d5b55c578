"""Each test runs in each store of the variable PENSTOCK_TEST_STORES: `make stores` names all, `make test` only moto.

The server of a store starts when a test first needs it. Each test has its own lake.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.cluster import FakeCluster
from tests.stores.proxy import FaultProxy, fault_proxy
from tests.stores.servers import STORES, StoreServer
from tests.stores.stored_topic import StoredTopic, new_cluster
from tests.stores.table import ASKED, HAS_HTTP


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat each test for each store. Tests of the interface HTTP are left out where a store has another one."""
    if "store_name" in metafunc.fixturenames:
        names = [name for name in STORES if name in os.environ.get(ASKED, "moto").split(",")]
        if "proxied" in metafunc.fixturenames:
            names = [name for name in names if name in HAS_HTTP]
        metafunc.parametrize("store_name", names, scope="session")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Servers"]:
    with ExitStack() as running:
        yield Servers(running, tmp_path_factory)


class Servers:
    """The servers that run."""

    def __init__(self, running: ExitStack, folders: pytest.TempPathFactory) -> None:
        self._running, self._folders = running, folders
        self._servers: dict[str, tuple[StoreServer, FaultProxy | None]] = {}

    def of(self, name: str) -> tuple[StoreServer, FaultProxy | None]:
        """The store with this name and its proxy; both start if they do not run."""
        if name not in self._servers:
            server = self._running.enter_context(STORES[name](self._folders.mktemp(name)))
            proxy = self._running.enter_context(fault_proxy(server.port)) if server.port else None
            self._servers[name] = server, proxy
        return self._servers[name]


@pytest.fixture
def store(store_name: str, servers: Servers) -> StoreServer:
    return servers.of(store_name)[0]


@pytest.fixture
def proxied(store_name: str, servers: Servers) -> Iterator[FaultProxy]:
    """The proxy of the store; after the test it has no faults."""
    proxy = servers.of(store_name)[1]
    assert proxy is not None
    yield proxy
    proxy.inject()
    proxy.hide_new_objects(0)


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with new_cluster() as running:
        yield running


@pytest.fixture
def topic(store_name: str, servers: Servers, fake: FakeCluster, tmp_path: Path) -> StoredTopic:
    """The topic with an empty lake in the store."""
    server, proxy = servers.of(store_name)
    return StoredTopic.of(tmp_path, fake, server.root, server.at(proxy.port) if proxy else server.options)
