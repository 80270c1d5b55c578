"""The broker with TLS and SASL accepts a stock client with the right credentials and refuses others."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.brokers.secure import MECHANISMS, SecureBroker, unsecured_token

pytestmark = pytest.mark.brokers

_TOKEN = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}


def can_connect(secure: SecureBroker, listener: str, settings: Mapping[str, Any]) -> bool:
    """Whether librdkafka can connect with these `settings`."""
    refusals: list[KafkaError] = []
    base_settings: dict[str, Any] = {
        "bootstrap.servers": secure.bootstrap(listener),
        "error_cb": refusals.append,
        "log_level": 0,
    }
    client = AdminClient({**base_settings, **settings})
    while not refusals:
        client.poll(0)
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            client.poll(0)
    return False


def tls(secure: SecureBroker) -> Mapping[str, str]:
    """Settings of librdkafka that trust the broker."""
    return {"security.protocol": "ssl", "ssl.ca.location": str(secure.authority)}


def own_certificate(secure: SecureBroker) -> Mapping[str, str]:
    """Settings of librdkafka that send a client certificate."""
    return {
        "ssl.certificate.location": str(secure.client.certificate),
        "ssl.key.location": str(secure.client.key),
    }


def login(secure: SecureBroker, listener: str, mechanism: str) -> Mapping[str, str]:
    """Settings of librdkafka that log in with a SASL mechanism."""
    return {
        **tls(secure),
        "security.protocol": listener,
        "sasl.mechanism": mechanism,
        "sasl.username": secure.user,
        "sasl.password": secure.password,
        **(_TOKEN if mechanism == "OAUTHBEARER" else {}),
    }


def test_tls_accepts_clients_that_trust_the_authority(secure: SecureBroker) -> None:
    assert can_connect(secure, "SSL", tls(secure))


def test_clients_that_do_not_trust_the_authority_refuse_the_broker(secure: SecureBroker) -> None:
    assert not can_connect(secure, "SSL", {"security.protocol": "ssl"})


def test_mutual_tls_accepts_only_a_client_with_a_certificate(secure: SecureBroker) -> None:
    assert can_connect(secure, "MTLS", {**tls(secure), **own_certificate(secure)})
    assert not can_connect(secure, "MTLS", tls(secure))


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_accepts_the_user(secure: SecureBroker, listener: str, mechanism: str) -> None:
    assert can_connect(secure, listener, login(secure, listener, mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_refuses_a_wrong_password(secure: SecureBroker, mechanism: str) -> None:
    settings = login(secure, "SASL_PLAINTEXT", mechanism)
    assert not can_connect(secure, "SASL_PLAINTEXT", {**settings, "sasl.password": "wrong"})


def test_the_unsigned_token_of_the_tests_is_accepted(secure: SecureBroker) -> None:
    token = {"oauth_cb": lambda _config: (unsecured_token(), time.time() + 3600)}
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **token}
    assert can_connect(secure, "SASL_PLAINTEXT", settings)
