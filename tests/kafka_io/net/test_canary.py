"""No text that anyone could log contains a secret, however its use fails (fault X01).

The local variables of the frames in a traceback do not contain it either: some loggers print them.
"""

import io
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

import msgspec
import pytest
from rich.console import Console
from rich.traceback import Traceback

from kafka_io.errors import BrokerError, ConnectionLost, DeadlineExceeded, KafkaIOError, Where, error_context
from kafka_io.net.deadline import Deadline
from kafka_io.net.sasl.authentication import authenticate
from kafka_io.net.sasl.mechanisms import mechanism_of
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Sasl, Security, Tls
from kafka_io.net.stream import Stream
from kafka_io.net.tls import tls_context
from kafka_io.wire.framing import framed
from tests.fakes.hostile import HostileServer, hear, reset, stall
from tests.fakes.tls import CA, GOLDEN
from tests.oracles.scram import ScramServer

CANARY = "canary-tweet-tweet"
WHERE = SecretReference("env", "PENSTOCK_TEST_SECRET")
SASLS = [
    Sasl(mechanism="PLAIN", username="loader", password=WHERE, allow_secret_over_plaintext=True),
    Sasl(mechanism="SCRAM-SHA-256", username="loader", password=WHERE),
    Sasl(mechanism="SCRAM-SHA-512", username="loader", password=WHERE),
    Sasl(mechanism="OAUTHBEARER", token=WHERE, allow_secret_over_plaintext=True),
]
Ask = Callable[[bytes], bytes]


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHERE.name, CANARY)


def raising(error: Callable[[bytes], Exception]) -> Ask:
    """A transport that fails with an error which may contain the token."""

    def ask(token: bytes) -> bytes:
        raise error(token) from OSError(f"while sending {token!r}")

    return ask


def wrong_proof(_: bytes) -> bytes:
    """A SCRAM server that proves another password; for other mechanisms it requests another step."""
    server = ScramServer("sha256", "loader", "another", salt=b"salt", iterations=4096, nonce="theirs")
    return server.first(_) if _.startswith(b"n,,n=") else b"v=AAAA"


def echo(text: str) -> Ask:
    """A broker that answers with the secret."""
    return lambda _: text.format(CANARY).encode()


FAILING: dict[str, Ask] = {
    "refused": raising(lambda _: BrokerError("no", Where(), 58)),
    "refused with an echo": raising(lambda token: BrokerError(f"{token!r} {CANARY}", Where(), 58)),
    "closed": raising(lambda _: ConnectionLost("gone")),
    "late, with an echo": raising(lambda token: DeadlineExceeded(f"no answer to {token!r}")),
    "echoed": echo("{0}"),
    "echoed as the reason of SCRAM": echo("e={0}"),
    "echoed as the reason of OAUTHBEARER": echo('{{"status":"{0}"}}'),
    "a wrong proof": wrong_proof,
}


def shown(error: BaseException) -> Iterator[str]:
    """All texts that a program could print of an error."""
    yield str(error)
    yield repr(error)
    yield repr(pickle.dumps(error))
    yield "".join(traceback.format_exception(error))
    yield "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    record = logging.LogRecord("penstock", logging.ERROR, __file__, 1, "%s", (error,), (type(error), error, None))
    yield logging.Formatter().format(record)
    printed = Console(file=io.StringIO(), width=400)
    printed.print(
        Traceback.from_exception(
            type(error), error, error.__traceback__, show_locals=True, locals_max_string=9999, extra_lines=0
        )
    )
    assert isinstance(printed.file, io.StringIO)
    yield printed.file.getvalue()
    yield from (repr(frame.f_locals) for frame in frames(error))


def frames(error: BaseException | None) -> Iterator[FrameType]:
    """The frames of the error, its cause and its context."""
    if error is not None:
        yield from (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        yield from frames(error.__cause__)
        yield from frames(error.__context__)


def assert_silent(error: BaseException) -> None:
    """Check that no text of the error contains the secret."""
    for text in shown(error):
        assert CANARY not in text


@pytest.mark.parametrize("sasl", SASLS, ids=lambda sasl: sasl.mechanism)
@pytest.mark.parametrize("name", FAILING)
def test_a_failed_authentication_does_not_show_the_secret(sasl: Sasl, name: str) -> None:
    with pytest.raises(KafkaIOError) as raised, error_context(Where(cluster="main")):
        authenticate(mechanism_of(sasl), FAILING[name])
    assert_silent(raised.value)


@pytest.mark.parametrize("sasl", SASLS, ids=lambda sasl: sasl.mechanism)
@pytest.mark.parametrize("script", [[hear, reset], [hear], [stall]], ids=["reset", "closed", "silent"])
def test_a_connection_that_breaks_during_the_login_does_not_show_the_secret(
    sasl: Sasl, script: list[Callable[..., None]]
) -> None:
    with HostileServer(script) as server:
        stream = Stream.connect("127.0.0.1", server.port, Deadline.after(20))

        def ask(token: bytes) -> bytes:
            request = framed(token)
            stream.send(request, Deadline.after(0.3))
            stream.receive_into(memoryview(bytearray(4)), Deadline.after(0.3))
            return request

        with closing(stream), pytest.raises(KafkaIOError) as raised:
            authenticate(mechanism_of(sasl), ask)
    assert_silent(raised.value)


@pytest.mark.parametrize("sasl", [SASLS[0], SASLS[3]], ids=lambda sasl: sasl.mechanism)
def test_a_secret_that_cannot_be_sent_is_not_shown(tmp_path: Path, sasl: Sasl) -> None:
    file = tmp_path / "secret"
    file.write_bytes(CANARY.encode() + b"\0")
    elsewhere = SecretReference("file", str(file))
    sasl = replace(sasl, password=sasl.password and elsewhere, token=sasl.token and elsewhere)
    with pytest.raises(KafkaIOError) as raised:
        mechanism_of(sasl)
    assert_silent(raised.value)


@pytest.mark.parametrize("certificate", ["loader.pem", "ca.pem", "none.pem"])
def test_a_wrong_key_password_is_not_shown(certificate: str) -> None:
    tls = Tls(ca=CA, certificate=str(GOLDEN / certificate), key=str(GOLDEN / "encrypted.key"), key_password=WHERE)
    with pytest.raises(KafkaIOError) as raised:
        tls_context(tls)
    assert_silent(raised.value)


@pytest.mark.parametrize("sasl", SASLS, ids=lambda sasl: sasl.mechanism)
def test_settings_and_mechanisms_show_only_references(sasl: Sasl) -> None:  # fault X02
    security = Security(tls=Tls(ca=CA, certificate=CA, key_password=WHERE), sasl=sasl)
    mechanism = mechanism_of(sasl)
    for text in (
        repr(security),
        msgspec.json.encode(security).decode(),
        repr(pickle.dumps(security)),
        repr(vars(mechanism)),
    ):
        assert CANARY not in text
    with suppress(TypeError):  # what holds a secret does not travel
        assert CANARY not in repr(pickle.dumps(mechanism))


def test_these_checks_find_a_secret_that_is_shown() -> None:
    """The checks fail for an error whose message is the secret."""
    with pytest.raises(ValueError, match="tweet") as raised:
        raise ValueError(CANARY)
    assert sum(CANARY in text for text in shown(raised.value)) >= 5
