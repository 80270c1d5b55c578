"""Our TLS and SASL before a real broker: whom it lets in, and how its refusals reach us."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import AuthenticationFailed, BrokerError, ConnectionLost, NetworkError, TlsFailed
from kafka_io.net.deadline import Deadline
from kafka_io.net.sasl.choosing import mechanism_of
from kafka_io.net.sasl.mechanism import authenticate
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import MechanismName, Sasl, Tls
from kafka_io.net.stream import Stream
from kafka_io.net.tls import tls_context
from kafka_io.wire.framing import framed
from tests.brokers.secure import MECHANISMS, SecureBroker, unsecured_token

pytestmark = pytest.mark.brokers

WITHIN_S = 20.0
API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
FRAMINGS = [0, 1]  # versions of SaslHandshake: bare frames follow the first, SaslAuthenticate requests the second


class Talk:
    """Requests made by hand, one at a time."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def bare(self, data: bytes) -> bytes:
        """A frame for a frame."""
        self._stream.send(framed(data), Deadline.after(WITHIN_S))
        (size,) = struct.unpack(">i", self._received(4))
        return self._received(size)

    def ask(self, key: int, version: int, body: bytes = b"") -> bytes:
        """The body of an answer."""
        return self.bare(struct.pack(">hhih", key, version, 1, -1) + body)[4:]

    def authenticate(self, token: bytes) -> bytes:
        """A token for a token, in SaslAuthenticate 0."""
        answer = self.ask(AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
        code, size = struct.unpack_from(">hh", answer)
        if code:
            raise BrokerError(answer[4 : 4 + size].decode(), code=code)
        return answer[4 + max(size, 0) + 4 :]

    def log_in(self, sasl: Sasl, framing: int) -> None:
        """All of a login."""
        name = sasl.mechanism.encode()
        assert self.ask(HANDSHAKE, framing, struct.pack(">h", len(name)) + name)[:2] == bytes(2)
        authenticate(mechanism_of(sasl), self.authenticate if framing else self.bare)

    def _received(self, count: int) -> bytes:
        space, have = memoryview(bytearray(count)), 0
        while have < count:
            have += self._stream.receive_into(space[have:], Deadline.after(WITHIN_S))
        return bytes(space)


@contextmanager
def talking(locked: SecureBroker, listener: str, tls: Tls | None) -> Iterator[Talk]:
    """To that listener."""
    host, port = locked.bootstrap(listener).split(":")
    stream = Stream.connect(host, int(port), Deadline.after(WITHIN_S), None if tls is None else tls_context(tls))
    try:
        yield Talk(stream)
    finally:
        stream.close()


@pytest.fixture
def login(tmp_path: Path) -> Callable[..., Sasl]:
    """The login by a mechanism; its secret is in a file."""

    def login(mechanism: MechanismName, secret: str) -> Sasl:
        (tmp_path / "secret").write_text(secret + "\n")
        reference = SecretReference("file", str(tmp_path / "secret"))
        words: dict[str, Any] = {"username": "alice", "password": reference}
        return Sasl(mechanism=mechanism, **({"token": reference} if mechanism == "OAUTHBEARER" else words))

    return login


def trusting(locked: SecureBroker) -> Tls:
    """TLS with trust in the broker's authority."""
    return Tls(ca=str(locked.authority))


def showing(locked: SecureBroker) -> Tls:
    """The same, with our own certificate."""
    return Tls(ca=str(locked.authority), certificate=str(locked.client.certificate), key=str(locked.client.key))


def test_tls_with_and_without_our_certificate(locked: SecureBroker) -> None:
    for listener, tls in (("SSL", trusting(locked)), ("MTLS", showing(locked))):
        with talking(locked, listener, tls) as talk:
            assert talk.ask(API_VERSIONS, 0)[:2] == bytes(2)


def test_a_broker_of_an_unknown_authority_is_refused(locked: SecureBroker) -> None:  # fault X07
    with pytest.raises(TlsFailed, match="certificate is not valid"), talking(locked, "SSL", Tls()):
        pass


def test_a_broker_that_misses_our_certificate_refuses_us(locked: SecureBroker) -> None:
    # Its alert comes after the handshake; where our request met a closed socket first, its reset hides the alert.
    with pytest.raises((TlsFailed, ConnectionLost)), talking(locked, "MTLS", trusting(locked)) as talk:
        talk.ask(API_VERSIONS, 0)


def test_plain_text_to_a_tls_port_is_told(locked: SecureBroker) -> None:  # fault W16
    with pytest.raises((TlsFailed, ConnectionLost), match="TLS"), talking(locked, "SSL", None) as talk:
        talk.ask(API_VERSIONS, 0)


def test_tls_to_a_plain_port_is_told(locked: SecureBroker) -> None:  # fault W16
    with (
        pytest.raises(NetworkError, match="does this port speak TLS"),
        talking(locked, "SASL_PLAINTEXT", trusting(locked)),
    ):
        pass


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_secret_lets_us_in(
    locked: SecureBroker, login: Callable[..., Sasl], mechanism: str, listener: str, framing: int
) -> None:
    secret = unsecured_token() if mechanism == "OAUTHBEARER" else locked.password
    with talking(locked, listener, trusting(locked) if listener == "SASL_SSL" else None) as talk:
        talk.log_in(login(mechanism, secret), framing)
        assert talk.ask(API_VERSIONS, 0)[:2] == bytes(2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_secret_is_an_authentication_that_failed(
    locked: SecureBroker, login: Callable[..., Sasl], mechanism: str
) -> None:
    secret = unsecured_token(lifetime_s=-3600) if mechanism == "OAUTHBEARER" else "wrong"
    with talking(locked, "SASL_SSL", trusting(locked)) as talk, pytest.raises(AuthenticationFailed) as caught:
        talk.log_in(login(mechanism, secret), 1)
    assert secret not in str(caught.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_secret_in_bare_frames_is_a_connection_that_ends(
    locked: SecureBroker, login: Callable[..., Sasl], mechanism: str
) -> None:
    with talking(locked, "SASL_PLAINTEXT", None) as talk, pytest.raises(ConnectionLost, match="during authentication"):
        talk.log_in(login(mechanism, "wrong"), 0)
