"""Client credentials with a real broker: tokens of a token server, refused ones, and sessions that end (KIP-368)."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_io.brokers import negotiation
from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.brokers.negotiation import Connector
from kafka_io.errors import AuthenticationFailed, ConnectionLost, NetworkError
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import ClientCredentials, Sasl, Security
from kafka_io.net.token_server import TOKENS
from tests.brokers.secure import SESSION_S, SecureBroker
from tests.brokers.token_server import CLIENT_ID, CLIENT_SECRET

pytestmark = pytest.mark.brokers


@pytest.fixture
def security(secure: SecureBroker, tmp_path: Path) -> Iterator[Security]:
    """Settings with client credentials. The process begins and ends without a token."""
    (tmp_path / "secret").write_text(CLIENT_SECRET)
    server = ClientCredentials(
        url=f"{secure.token_server.url}/token",
        client_id=CLIENT_ID,
        client_secret=SecretReference("file", str(tmp_path / "secret")),
        allow_secret_over_plaintext=True,
    )
    sasl = Sasl(mechanism="OAUTHBEARER", client_credentials=server, allow_secret_over_plaintext=True)
    secure.token_server.requests.clear()
    yield Security(sasl=sasl)
    TOKENS.forget(server)


def connection_of(secure: SecureBroker, security: Security) -> ModernBrokerConnection:
    """A connection to the listener OAUTH, which is opened when it is first used."""
    (broker,) = parse_bootstrap(secure.bootstrap("OAUTH"))
    return ModernBrokerConnection(broker, Connector(timeout_s=20, max_answer_bytes=1_000_000, security=security))


def ask(connection: ModernBrokerConnection) -> None:
    """Send a request that the broker answers after a login only."""
    assert connection.request(MetadataRequest(topics=())).brokers


def test_a_token_of_the_server_is_accepted_and_renewed_before_the_session_ends(
    secure: SecureBroker, security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection_of(secure, security) as connection:
        ask(connection)
        opened = connection._connection
        for _ in range(2):
            time.sleep(SESSION_S)
            ask(connection)
        assert connection._connection is opened
        assert len(secure.token_server.requests) == 1
    # The broker does end sessions: a client that does not log in again loses its connection.
    monkeypatch.setattr(negotiation, "_SESSION_SHARE", 100)
    with connection_of(secure, security) as connection:
        ask(connection)
        time.sleep(SESSION_S + 0.5)
        with pytest.raises(ConnectionLost):
            ask(connection)


def test_after_a_broker_refused_a_token_another_one_is_requested(
    secure: SecureBroker, security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secure.token_server, "AUDIENCE", "others")
    with connection_of(secure, security) as connection:
        with pytest.raises(AuthenticationFailed, match=r"OAUTHBEARER: .*refuses the token: invalid_token"):
            ask(connection)
        monkeypatch.undo()
        ask(connection)
    assert len(secure.token_server.requests) == 2


def test_the_token_server_refuses_a_wrong_secret(secure: SecureBroker, security: Security, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x-y-z")
    with (
        connection_of(secure, security) as connection,
        pytest.raises(
            AuthenticationFailed, match=r"token server .*/token answers 401: invalid_client: wrong secret \*\*\*;"
        ),
    ):
        ask(connection)


def test_a_token_server_that_is_busy_is_a_temporary_error(secure: SecureBroker, security: Security) -> None:
    secure.token_server.failure = (503, b"")
    try:
        with connection_of(secure, security) as connection, pytest.raises(NetworkError, match="answers 503") as raised:
            ask(connection)
        assert raised.value.retriable
    finally:
        secure.token_server.failure = None


def test_extensions_are_sent_to_the_broker(secure: SecureBroker, security: Security) -> None:
    assert security.sasl is not None
    with connection_of(secure, Security(sasl=replace(security.sasl, extensions={"pool": "p-1"}))) as connection:
        ask(connection)
