"""Real brokers for the session: each starts when a test first asks for it, and all tests share it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES
from tests.brokers.secure import SecureBroker, secure_broker


@pytest.fixture(scope="session")
def brokers(zookeeper_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RealBroker]]:
    """`brokers(version)` runs; give your topics names of your own, and do not stop it."""
    with ExitStack() as running:

        @cache
        def broker(version: str) -> RealBroker:
            zookeeper = f"{zookeeper_server}/shared-{version}" if RELEASES[version].modes[-1] == "zookeeper" else None
            folder = tmp_path_factory.mktemp(f"broker-{version}")
            return running.enter_context(RealBroker(version, folder, zookeeper=zookeeper))

        yield broker


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A 3.9.1 with TLS and SASL listeners, for the session."""
    with secure_broker(tmp_path_factory.mktemp("secure")) as secure:
        yield secure
