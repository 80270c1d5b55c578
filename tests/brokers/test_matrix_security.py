"""TLS and SASL through a whole load, Spark's workers too: the settings name secrets, and every process reads them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from resources.settings import ClusterSettings
from tests.brokers.lakeside import Lakeside
from tests.brokers.locks import Locks
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.secure import MECHANISMS, PASSWORD, USER, SecureBroker, unsecured_token
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

RECORDS = [(b"key %d" % number, b"value " * number) for number in range(200)]


@pytest.fixture
def secret(tmp_path: Path) -> Callable[[str], str]:
    """A reference to a secret that lies in a file."""

    def secret(text: str) -> str:
        (tmp_path / "secret").write_text(text + "\n")
        return f"file:{tmp_path / 'secret'}"

    return secret


def loads_all(there: SharedBroker | SecureBroker, lakeside: Lakeside, topic: str) -> None:
    """What the broker was given in the open becomes rows through the locked listener."""
    there.broker.create_topic(topic)
    there.broker.produce(topic, RECORDS, codec="gzip")
    load = lakeside.load(topic)
    assert (load.error, load.rows) == (None, len(RECORDS))
    assert lakeside.rows(topic) == read(there.broker, topic)


# fault X07: the registry tells where the listener is; 0.9 and 0.10 have no SaslAuthenticate, their tokens go bare
@pytest.mark.parametrize(
    ("version", "protocol"),
    [
        pytest.param(version, protocol, marks=pytest.mark.matrix("TLS" if protocol == "SSL" else "SASL"))
        for version in VERSIONS
        for protocol in RELEASES[version].locks
    ],
)
def test_each_version_is_loaded_through_its_locks(
    version: str,
    protocol: str,
    shared: Callable[[str], SharedBroker],
    locks: Locks,
    secret: Callable[[str], str],
    topic: str,
    beside: Callable[..., Lakeside],
) -> None:
    there = shared(version)
    security: dict[str, Any] = {"tls": {"ca": str(locks.authority)}}
    if protocol == "SASL_SSL":
        security["sasl"] = {"mechanism": "PLAIN", "username": USER, "password": secret(PASSWORD)}
    loads_all(there, beside(there.found(protocol, security=security)), topic)


def login(mechanism: str, locked: SecureBroker, secret: Callable[[str], str]) -> dict[str, Any]:
    """The `sasl` of the settings."""
    if mechanism == "OAUTHBEARER":
        return {"mechanism": mechanism, "token": secret(unsecured_token())}
    return {"mechanism": mechanism, "username": locked.user, "password": secret(locked.password)}


def found(locked: SecureBroker, listener: str, security: Mapping[str, Any]) -> ClusterSettings:
    """The cluster behind a listener."""
    return ClusterSettings.model_validate({"bootstrap": locked.bootstrap(listener), "security": security})


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_a_certificate_is_shown_where_one_is_wanted(
    listener: str, locked: SecureBroker, topic: str, beside: Callable[..., Lakeside]
) -> None:
    own = {"certificate": str(locked.client.certificate), "key": str(locked.client.key)}
    tls = {"ca": str(locked.authority), **(own if listener == "MTLS" else {})}
    loads_all(locked, beside(found(locked, listener, {"tls": tls})), topic)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_logs_in_over_tls(
    mechanism: str, locked: SecureBroker, secret: Callable[[str], str], topic: str, beside: Callable[..., Lakeside]
) -> None:
    security = {"tls": {"ca": str(locked.authority)}, "sasl": login(mechanism, locked, secret)}
    loads_all(locked, beside(found(locked, "SASL_SSL", security)), topic)


# fault X08: these two never send the password
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_logs_in_without_tls(
    mechanism: str, locked: SecureBroker, secret: Callable[[str], str], topic: str, beside: Callable[..., Lakeside]
) -> None:
    loads_all(locked, beside(found(locked, "SASL_PLAINTEXT", {"sasl": login(mechanism, locked, secret)})), topic)
