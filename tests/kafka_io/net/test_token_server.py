"""Tokens come from the token server of the settings, are used for four fifths of their lifetime, and never shown."""

import json
from collections.abc import Iterator
from threading import Thread

import pytest

from kafka_io.errors import AuthenticationFailed, Corrupt, KafkaIOError, TlsFailed, TokenServerUnavailable
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import ClientCredentials, Tls
from kafka_io.net.token_server import TokenCache, request_token
from tests.brokers.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer
from tests.fakes.tls import CA, serving
from tests.kafka_io.net.test_canary import CANARY, assert_silent

WHERE = SecretReference("env", "PENSTOCK_TEST_SECRET")


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHERE.name, CLIENT_SECRET)


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with TokenServer(subject="alice") as running:
        yield running


def credentials(server: TokenServer, *, scope: str | None = None) -> ClientCredentials:
    """The settings for a token server."""
    url = f"{server.url}/token"
    return ClientCredentials(
        url=url, client_id=CLIENT_ID, client_secret=WHERE, scope=scope, allow_secret_over_plaintext=True
    )


def test_a_token_is_requested_with_id_secret_and_scope(server: TokenServer) -> None:
    token = request_token(credentials(server, scope="kafka read"), timeout_s=20)
    assert token.secret.reveal().count(b".") == 2
    assert token.lifetime_s == 3600
    assert server.requests == [{"grant_type": "client_credentials", "scope": "kafka read"}]


@pytest.mark.parametrize("expires_in", [None, 0])
def test_without_a_lifetime_in_the_answer_that_of_the_token_counts(server: TokenServer, expires_in: int | None) -> None:
    server.lifetime_s = 100
    server.failure = (200, json.dumps({"access_token": server.token(), "expires_in": expires_in}).encode())
    assert request_token(credentials(server), timeout_s=20).lifetime_s == 100


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "a.WzFd.c", "a.e30.c", "a.bnVsbA.c", "a..c"])
def test_a_token_without_a_lifetime_is_used_once(server: TokenServer, token: str) -> None:
    server.failure = (200, json.dumps({"access_token": token}).encode())
    cache = TokenCache()
    assert [cache.token(credentials(server), timeout_s=20).reveal() for _ in range(2)] == [token.encode()] * 2
    assert len(server.requests) == 2


def test_a_token_is_renewed_after_four_fifths_of_its_lifetime(server: TokenServer) -> None:
    now_s = [1000.0]
    cache = TokenCache(clock=lambda: now_s[0])
    first = cache.token(credentials(server), timeout_s=20)
    for age_s, requests in ((2879.0, 1), (2881.0, 2)):
        now_s[0] = 1000.0 + age_s
        assert (cache.token(credentials(server), timeout_s=20) is first) == (requests == 1)
        assert len(server.requests) == requests


def test_threads_share_a_token_until_a_broker_refuses_it(server: TokenServer) -> None:
    cache = TokenCache()
    threads = [Thread(target=cache.token, args=(credentials(server),), kwargs={"timeout_s": 20}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 1
    cache.forget(credentials(server))
    cache.token(credentials(server), timeout_s=20)
    assert len(server.requests) == 2
    cache.token(credentials(server, scope="other"), timeout_s=20)
    assert len(server.requests) == 3


def test_a_refused_client_is_an_error_without_the_secret(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHERE.name, CANARY)
    message = (
        rf"the token server {server.url}/token answers 401: invalid_client: wrong secret \*\*\*; check `client_id`"
    )
    with pytest.raises(AuthenticationFailed, match=message) as raised:
        request_token(credentials(server), timeout_s=20)
    assert_silent(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, b"<html>", TokenServerUnavailable),
        (429, b"{}", TokenServerUnavailable),
        (400, b'{"error":"invalid_scope"}', AuthenticationFailed),
        (302, b"", AuthenticationFailed),
        (200, b"{}", Corrupt),
        (200, b"CANARY", Corrupt),
        (200, b'{"access_token":["CANARY"]}', Corrupt),
        (200, b"[" * 100_000, Corrupt),
        (200, b"x" * 300_000, Corrupt),
    ],
)
def test_an_answer_without_a_token_is_an_error_that_names_the_server(
    server: TokenServer, status: int, body: bytes, kind: type[KafkaIOError]
) -> None:
    server.failure = (status, body.replace(b"CANARY", CANARY.encode()))
    with pytest.raises(kind, match=f"the token server {server.url}/token") as raised:
        request_token(credentials(server), timeout_s=20)
    assert raised.value.retriable == (kind is TokenServerUnavailable)
    assert_silent(raised.value)


def test_a_token_server_that_cannot_be_reached_is_named_and_tried_again() -> None:
    with TokenServer(subject="alice") as server:
        pass
    with pytest.raises(KafkaIOError, match=f"the token server {server.url}/token: cannot connect") as raised:
        request_token(credentials(server), timeout_s=20)
    assert raised.value.retriable


@pytest.mark.parametrize("ca", [CA, None])
def test_the_token_server_must_prove_its_identity(ca: str | None) -> None:  # faults X07, X10
    with TokenServer(subject="alice", tls=serving()) as server:
        settings = ClientCredentials(
            url=f"{server.url}/token", client_id=CLIENT_ID, client_secret=WHERE, tls=Tls(ca=ca) if ca else None
        )
        if ca:
            assert request_token(settings, timeout_s=20).lifetime_s == 3600
        else:
            with pytest.raises(
                TlsFailed, match=f"the token server {server.url}/token: the server's certificate is not"
            ):
                request_token(settings, timeout_s=20)
    assert len(server.requests) == (1 if ca else 0)
