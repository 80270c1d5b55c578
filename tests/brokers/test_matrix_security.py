"""Loads through TLS and SASL, also in Spark's workers. The settings only name the secrets; every process reads them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from resources.settings.settings import ClusterSettings
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.listener_security import ListenerSecurity
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.secure import MECHANISMS, PASSWORD, USER, SecureBroker, unsecured_token
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

RECORDS = [(b"key %d" % number, b"value " * number) for number in range(200)]


@pytest.fixture
def secret(tmp_path: Path) -> Callable[[str], str]:
    """Writes a secret to a file and returns the reference to it."""

    def secret(text: str) -> str:
        (tmp_path / "secret").write_text(text + "\n")
        return f"file:{tmp_path / 'secret'}"

    return secret


def check_loads_all(shared_broker: SharedBroker | SecureBroker, lake: BrokerLake, topic: str) -> None:
    """Check that records produced through the plaintext listener are loaded through the secure listener."""
    shared_broker.broker.create_topic(topic)
    shared_broker.broker.produce(topic, RECORDS, codec="gzip")
    load = lake.load(topic)
    assert (load.error, load.rows) == (None, len(RECORDS))
    assert lake.rows(topic) == read(shared_broker.broker, topic)


# fault X07: ZooKeeper has the address of each listener. 0.9 and 0.10 have no SaslAuthenticate: tokens are bare frames.
@pytest.mark.parametrize(
    ("version", "protocol"),
    [
        pytest.param(version, protocol, marks=pytest.mark.matrix("TLS" if protocol == "SSL" else "SASL"))
        for version in VERSIONS
        for protocol in RELEASES[version].security_protocols
    ],
)
def test_records_of_each_version_are_loaded_through_tls_and_sasl(
    version: str,
    protocol: str,
    shared: Callable[[str], SharedBroker],
    listener_security: ListenerSecurity,
    secret: Callable[[str], str],
    topic: str,
    open_lake: Callable[..., BrokerLake],
) -> None:
    shared_broker = shared(version)
    security: dict[str, Any] = {"tls": {"ca": str(listener_security.authority)}}
    if protocol == "SASL_SSL":
        security["sasl"] = {"mechanism": "PLAIN", "username": USER, "password": secret(PASSWORD)}
    check_loads_all(shared_broker, open_lake(shared_broker.cluster_settings(protocol, security=security)), topic)


def login(mechanism: str, secure: SecureBroker, secret: Callable[[str], str]) -> dict[str, Any]:
    """The settings of `sasl` for a mechanism."""
    if mechanism == "OAUTHBEARER":
        return {"mechanism": mechanism, "token": secret(unsecured_token())}
    return {"mechanism": mechanism, "username": secure.user, "password": secret(secure.password)}


def cluster_settings(secure: SecureBroker, listener: str, security: Mapping[str, Any]) -> ClusterSettings:
    """The settings of the cluster at a listener."""
    return ClusterSettings.model_validate({"bootstrap": secure.bootstrap(listener), "security": security})


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_a_client_certificate_is_sent_if_the_broker_requires_one(
    listener: str, secure: SecureBroker, topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    own = {"certificate": str(secure.client.certificate), "key": str(secure.client.key)}
    tls = {"ca": str(secure.authority), **(own if listener == "MTLS" else {})}
    check_loads_all(secure, open_lake(cluster_settings(secure, listener, {"tls": tls})), topic)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_sasl_mechanism_works_over_tls(
    mechanism: str, secure: SecureBroker, secret: Callable[[str], str], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    security = {"tls": {"ca": str(secure.authority)}, "sasl": login(mechanism, secure, secret)}
    check_loads_all(secure, open_lake(cluster_settings(secure, "SASL_SSL", security)), topic)


# fault X08: SCRAM never sends the password
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_works_without_tls(
    mechanism: str, secure: SecureBroker, secret: Callable[[str], str], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    check_loads_all(
        secure, open_lake(cluster_settings(secure, "SASL_PLAINTEXT", {"sasl": login(mechanism, secure, secret)})), topic
    )
