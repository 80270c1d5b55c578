"""Our TLS and SASL against a real broker: it accepts valid credentials, and each refusal becomes the right error."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import AuthenticationFailed, BrokerError, ConnectionLost, NetworkError, TlsFailed
from kafka_io.net.deadline import Deadline
from kafka_io.net.sasl.authentication import authenticate
from kafka_io.net.sasl.mechanisms import mechanism_of
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import MechanismName, Sasl, Tls
from kafka_io.net.stream import Stream
from kafka_io.net.tls import tls_context
from kafka_io.wire.framing import framed
from tests.brokers.secure import MECHANISMS, SecureBroker, unsecured_token

pytestmark = pytest.mark.brokers

TIMEOUT_S = 20.0
API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
FRAMINGS = [0, 1]  # versions of SaslHandshake: bare frames follow v0, SaslAuthenticate requests follow v1


class RawConnection:
    """A connection on which the test sends requests that it encodes itself."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def exchange(self, data: bytes) -> bytes:
        """Send a frame and return the frame of the answer."""
        self._stream.send(framed(data), Deadline.after(TIMEOUT_S))
        (size,) = struct.unpack(">i", self._received(4))
        return self._received(size)

    def ask(self, key: int, version: int, body: bytes = b"") -> bytes:
        """Send a request and return the body of the answer."""
        return self.exchange(struct.pack(">hhih", key, version, 1, -1) + body)[4:]

    def authenticate(self, token: bytes) -> bytes:
        """Send a token in SaslAuthenticate v0 and return the token of the answer."""
        answer = self.ask(AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
        code, size = struct.unpack_from(">hh", answer)
        if code:
            raise BrokerError(answer[4 : 4 + size].decode(), code=code)
        return answer[4 + max(size, 0) + 4 :]

    def log_in(self, sasl: Sasl, framing: int) -> None:
        """Log in: handshake, then all tokens of the mechanism."""
        name = sasl.mechanism.encode()
        assert self.ask(HANDSHAKE, framing, struct.pack(">h", len(name)) + name)[:2] == bytes(2)
        authenticate(mechanism_of(sasl), self.authenticate if framing else self.exchange)

    def _received(self, count: int) -> bytes:
        space, received = memoryview(bytearray(count)), 0
        while received < count:
            received += self._stream.receive_into(space[received:], Deadline.after(TIMEOUT_S))
        return bytes(space)


@contextmanager
def connected(secure: SecureBroker, listener: str, tls: Tls | None) -> Iterator[RawConnection]:
    """Connect to a listener for the length of a `with` block."""
    host, port = secure.bootstrap(listener).split(":")
    stream = Stream.connect(host, int(port), Deadline.after(TIMEOUT_S), None if tls is None else tls_context(tls))
    try:
        yield RawConnection(stream)
    finally:
        stream.close()


@pytest.fixture
def login(tmp_path: Path) -> Callable[..., Sasl]:
    """Creates the settings of a mechanism; the secret is in a file."""

    def login(mechanism: MechanismName, secret: str) -> Sasl:
        (tmp_path / "secret").write_text(secret + "\n")
        reference = SecretReference("file", str(tmp_path / "secret"))
        credentials: dict[str, Any] = {"username": "alice", "password": reference}
        return Sasl(mechanism=mechanism, **({"token": reference} if mechanism == "OAUTHBEARER" else credentials))

    return login


def trusting(secure: SecureBroker) -> Tls:
    """TLS settings that trust the broker's authority."""
    return Tls(ca=str(secure.authority))


def with_certificate(secure: SecureBroker) -> Tls:
    """TLS settings that trust the broker's authority and send a client certificate."""
    return Tls(ca=str(secure.authority), certificate=str(secure.client.certificate), key=str(secure.client.key))


def test_a_request_is_answered_over_tls_with_and_without_a_client_certificate(secure: SecureBroker) -> None:
    for listener, tls in (("SSL", trusting(secure)), ("MTLS", with_certificate(secure))):
        with connected(secure, listener, tls) as connection:
            assert connection.ask(API_VERSIONS, 0)[:2] == bytes(2)


def test_a_broker_with_a_certificate_of_an_unknown_authority_is_refused(secure: SecureBroker) -> None:  # fault X07
    with pytest.raises(TlsFailed, match="certificate is not valid"), connected(secure, "SSL", Tls()):
        pass


def test_a_connection_without_the_required_client_certificate_is_an_error(secure: SecureBroker) -> None:
    # The alert comes after the handshake. If our request reaches a closed socket first, the reset hides the alert.
    with pytest.raises((TlsFailed, ConnectionLost)), connected(secure, "MTLS", trusting(secure)) as connection:
        connection.ask(API_VERSIONS, 0)


def test_the_error_of_plaintext_to_a_tls_port_names_tls(secure: SecureBroker) -> None:  # fault W16
    with pytest.raises((TlsFailed, ConnectionLost), match="TLS"), connected(secure, "SSL", None) as connection:
        connection.ask(API_VERSIONS, 0)


def test_the_error_of_tls_to_a_plaintext_port_names_tls(secure: SecureBroker) -> None:  # fault W16
    with (
        pytest.raises(NetworkError, match="does this port speak TLS"),
        connected(secure, "SASL_PLAINTEXT", trusting(secure)),
    ):
        pass


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_requests_are_answered_after_a_login_with_the_right_secret(
    secure: SecureBroker, login: Callable[..., Sasl], mechanism: str, listener: str, framing: int
) -> None:
    secret = unsecured_token() if mechanism == "OAUTHBEARER" else secure.password
    with connected(secure, listener, trusting(secure) if listener == "SASL_SSL" else None) as connection:
        connection.log_in(login(mechanism, secret), framing)
        assert connection.ask(API_VERSIONS, 0)[:2] == bytes(2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_secret_is_an_authentication_error(
    secure: SecureBroker, login: Callable[..., Sasl], mechanism: str
) -> None:
    secret = unsecured_token(lifetime_s=-3600) if mechanism == "OAUTHBEARER" else "wrong"
    with connected(secure, "SASL_SSL", trusting(secure)) as connection, pytest.raises(AuthenticationFailed) as caught:
        connection.log_in(login(mechanism, secret), 1)
    assert secret not in str(caught.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_secret_in_bare_frames_ends_the_connection(
    secure: SecureBroker, login: Callable[..., Sasl], mechanism: str
) -> None:
    with (
        connected(secure, "SASL_PLAINTEXT", None) as connection,
        pytest.raises(ConnectionLost, match="during authentication"),
    ):
        connection.log_in(login(mechanism, "wrong"), 0)
