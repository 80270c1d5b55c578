"""Real brokers: each version starts when a test first requests it, and all tests of the unit share it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.brokers.broker_lake import BrokerLake
from tests.brokers.listener_security import ListenerSecurity
from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES
from tests.brokers.secure import SecureBroker, secure_broker
from tests.brokers.shared import SharedBroker
from tests.unit_servers import UnitServers


@pytest.fixture(scope="session")
def listener_security(tmp_path_factory: pytest.TempPathFactory) -> ListenerSecurity:
    """The security of the SSL and SASL_SSL listeners of shared brokers."""
    return ListenerSecurity.create_in(tmp_path_factory.mktemp("security") / "certificates")


@pytest.fixture(scope="session")
def shared(
    unit_servers: UnitServers,
    zookeeper_server: str,
    listener_security: ListenerSecurity,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], SharedBroker]:
    """`shared(version)` is the running broker of that version, with the settings that find its cluster."""

    @contextmanager
    def running(version: str) -> Iterator[SharedBroker]:
        release, folder = RELEASES[version], tmp_path_factory.mktemp(f"broker-{version}")
        # Each start has its own registry and folder: the process may have run an earlier unit with this version.
        zookeeper = f"{zookeeper_server}/{folder.name}" if release.modes[-1] == "zookeeper" else None
        broker = RealBroker(
            version,
            folder,
            zookeeper=zookeeper,
            listeners={protocol: protocol for protocol in release.security_protocols},
            config=listener_security.config,
            options=listener_security.options,
        )
        with broker:
            shared_broker = SharedBroker(broker=broker, zookeeper=zookeeper)
            shared_broker.create_internal_topics()
            yield shared_broker

    return lambda version: unit_servers.shared(f"broker {version}", lambda: running(version))


@pytest.fixture(scope="session")
def brokers(shared: Callable[[str], SharedBroker]) -> Callable[[str], RealBroker]:
    """`brokers(version)` is the shared broker of that version. Tests use their own topic names and do not stop it."""
    return lambda version: shared(version).broker


# The id of the parameter puts the tests of this broker together in one process (see tests/spreading.py).
@pytest.fixture(params=["3.9.1"], ids="secure-{}".format)
def secure(
    request: pytest.FixtureRequest, unit_servers: UnitServers, tmp_path_factory: pytest.TempPathFactory
) -> SecureBroker:
    """A broker 3.9.1 with TLS and SASL listeners, which all its tests share."""
    version = request.param
    return unit_servers.shared(
        f"secure broker {version}", lambda: secure_broker(tmp_path_factory.mktemp("secure"), version=version)
    )


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"matrix-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def open_lake(spark: SparkSession, tmp_path: Path) -> Callable[..., BrokerLake]:
    """`open_lake(cluster settings)` is a new lake that only this test uses."""
    return lambda cluster, **caps: BrokerLake(tmp_path, spark, cluster, **caps)
