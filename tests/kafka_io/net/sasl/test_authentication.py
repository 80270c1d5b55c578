"""Authentication with every mechanism, independent of the transport of its tokens."""

from collections.abc import Callable
from contextlib import closing

import pytest

from kafka_io.errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectionLost,
    DeadlineExceeded,
    KafkaIOError,
    SecretMissing,
    Where,
)
from kafka_io.net.deadline import Deadline
from kafka_io.net.sasl.authentication import authenticate
from kafka_io.net.sasl.mechanisms import Plain, mechanism_of
from kafka_io.net.sasl.scram import Scram
from kafka_io.net.secret import Secret, SecretReference
from kafka_io.net.security import MechanismName, Sasl, Security, Tls
from kafka_io.net.stream import Stream
from kafka_io.net.tls import tls_context
from kafka_io.wire.framing import framed
from tests.fakes.hostile import HostileServer, hear, send
from tests.fakes.tls import CA, over_tls, serving
from tests.oracles.scram import ScramServer

PASSWORD = SecretReference("env", "KAFKA_PASSWORD")
PLACE = Where(broker="1@127.0.0.1:9092")


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "pencil")


def failing(error: Exception) -> Callable[[bytes], bytes]:
    """A broker that answers each token with `error`."""

    def ask(_: bytes) -> bytes:
        raise error

    return ask


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("PLAIN", b"\0user\0pencil"),
        ("SCRAM-SHA-256", b"n,,n=user,r="),
        ("SCRAM-SHA-512", b"n,,n=user,r="),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer pencil\x01\x01"),
    ],
)
def test_the_mechanism_is_that_of_the_settings(name: MechanismName, first: bytes) -> None:
    by_token = Sasl(mechanism="OAUTHBEARER", token=PASSWORD)
    sasl = by_token if name == "OAUTHBEARER" else Sasl(mechanism=name, username="user", password=PASSWORD)
    mechanism = mechanism_of(sasl)
    assert mechanism.name == name
    assert mechanism.first().startswith(first)


def test_a_renewed_token_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sasl = Sasl(mechanism="OAUTHBEARER", token=PASSWORD)
    mechanism_of(sasl)
    monkeypatch.setenv("KAFKA_PASSWORD", "crayon")
    assert b"crayon" in mechanism_of(sasl).first()


def test_an_error_names_a_missing_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD")
    with pytest.raises(SecretMissing, match="env:KAFKA_PASSWORD"):
        mechanism_of(Sasl(mechanism="PLAIN", username="user", password=PASSWORD))


@pytest.mark.parametrize(("name", "digest"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_scram_takes_both_steps(name: MechanismName, digest: str) -> None:
    server = ScramServer(digest, "user", "pencil", salt=b"salt", iterations=4096, nonce="theirs")
    steps = iter((server.first, server.last))

    def ask(token: bytes) -> bytes:
        return next(steps)(token)

    authenticate(mechanism_of(Sasl(mechanism=name, username="user", password=PASSWORD)), ask)
    assert server.authenticated


def test_a_broker_that_ends_scram_before_its_proof_is_refused() -> None:  # fault X09
    with pytest.raises(AuthenticationFailed):
        authenticate(Scram("SCRAM-SHA-256", "user", Secret(b"pencil")), lambda _: b"")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (BrokerError("wrong password", PLACE, 58), AuthenticationFailed, "PLAIN: wrong password"),
        (BrokerError("is pencil\nyours?", PLACE, 58), AuthenticationFailed, r"PLAIN: is \*\*\*\?yours\?"),
        (ConnectionLost("closed", PLACE), ConnectionLost, "closed during authentication; a broker before 1.0"),
        (DeadlineExceeded("late", PLACE), DeadlineExceeded, "late"),
    ],
)
def test_the_error_of_a_refusal_has_its_location(error: KafkaIOError, kind: type[KafkaIOError], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        authenticate(Plain("user", Secret(b"pencil")), failing(error))
    assert raised.value.where == PLACE
    assert raised.value.retriable is kind.retriable


def test_a_secret_is_sent_over_tls_only_after_the_broker_proved_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    security = Security(tls=Tls(ca=CA), sasl=Sasl(mechanism="PLAIN", username="user", password=PASSWORD))
    assert security.tls is not None
    assert security.sasl is not None
    # The bare frames of brokers before 1.0; the answer to PLAIN is an empty one.
    with HostileServer([over_tls(serving(), hear, send(framed(b"")))]) as server:
        deadline = Deadline.after(20)
        stream = Stream.connect("127.0.0.1", server.port, deadline, tls_context(security.tls))

        def ask(token: bytes) -> bytes:
            stream.send(framed(token), deadline)
            size = bytearray(4)
            assert stream.receive_into(memoryview(size), deadline) == 4
            assert not any(size)
            return b""

        with closing(stream):
            authenticate(mechanism_of(security.sasl), ask)
        assert server.requests == [b"\0user\0pencil"]
