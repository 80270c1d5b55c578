"""The broker behind locks: a stock client with the right keys comes in, one without does not."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.brokers.secure import MECHANISMS, SecureBroker, unsecured_token

pytestmark = pytest.mark.brokers

_TOKEN = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}


def is_let_in(locked: SecureBroker, listener: str, settings: Mapping[str, Any]) -> bool:
    """What happens to librdkafka with these `settings`."""
    refusals: list[KafkaError] = []
    bound: dict[str, Any] = {
        "bootstrap.servers": locked.bootstrap(listener),
        "error_cb": refusals.append,
        "log_level": 0,
    }
    client = AdminClient({**bound, **settings})
    while not refusals:
        client.poll(0)
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            client.poll(0)
    return False


def tls(locked: SecureBroker) -> Mapping[str, str]:
    """What librdkafka is told to trust the broker."""
    return {"security.protocol": "ssl", "ssl.ca.location": str(locked.authority)}


def own_certificate(locked: SecureBroker) -> Mapping[str, str]:
    """What librdkafka is told to show a certificate."""
    return {
        "ssl.certificate.location": str(locked.client.certificate),
        "ssl.key.location": str(locked.client.key),
    }


def login(locked: SecureBroker, listener: str, mechanism: str) -> Mapping[str, str]:
    """What librdkafka is told to log in."""
    return {
        **tls(locked),
        "security.protocol": listener,
        "sasl.mechanism": mechanism,
        "sasl.username": locked.user,
        "sasl.password": locked.password,
        **(_TOKEN if mechanism == "OAUTHBEARER" else {}),
    }


def test_tls_lets_in_whoever_trusts_the_authority(locked: SecureBroker) -> None:
    assert is_let_in(locked, "SSL", tls(locked))


def test_tls_shows_a_certificate_that_strangers_do_not_trust(locked: SecureBroker) -> None:
    assert not is_let_in(locked, "SSL", {"security.protocol": "ssl"})


def test_mutual_tls_lets_in_a_client_with_a_certificate_alone(locked: SecureBroker) -> None:
    assert is_let_in(locked, "MTLS", {**tls(locked), **own_certificate(locked)})
    assert not is_let_in(locked, "MTLS", tls(locked))


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_lets_in_the_user(locked: SecureBroker, listener: str, mechanism: str) -> None:
    assert is_let_in(locked, listener, login(locked, listener, mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_turns_a_wrong_password_away(locked: SecureBroker, mechanism: str) -> None:
    settings = login(locked, "SASL_PLAINTEXT", mechanism)
    assert not is_let_in(locked, "SASL_PLAINTEXT", {**settings, "sasl.password": "wrong"})


def test_a_token_of_ours_is_of_the_user(locked: SecureBroker) -> None:
    token = {"oauth_cb": lambda _config: (unsecured_token(), time.time() + 3600)}
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **token}
    assert is_let_in(locked, "SASL_PLAINTEXT", settings)
