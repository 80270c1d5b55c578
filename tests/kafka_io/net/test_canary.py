"""A secret that is read, used, echoed and refused on every path is found in nothing that anyone could log (fault X01).

Not even in the locals of the frames an error came through, which Python's own tracebacks leave out and other printers
of them show.
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
from kafka_io.net.sasl.choosing import mechanism_of
from kafka_io.net.sasl.mechanism import authenticate
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
    """A transport that fails with what it makes of the token."""

    def ask(token: bytes) -> bytes:
        raise error(token) from OSError(f"while sending {token!r}")

    return ask


def wrong_proof(_: bytes) -> bytes:
    """A SCRAM server whose proof is for another password, and to the others one who asks for more."""
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
    """All that could be printed of an error by anyone."""
    yield str(error)
    yield repr(error)
    yield repr(pickle.dumps(error))
    yield "".join(traceback.format_exception(error))
    yield "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    record = logging.LogRecord("penstock", logging.ERROR, __file__, 1, "%s", (error,), (type(error), error, None))
    yield logging.Formatter().format(record)
    printed = Console(file=io.StringIO(), width=400)
    printed.print(
        Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True, locals_max_string=9999)
    )
    assert isinstance(printed.file, io.StringIO)
    yield printed.file.getvalue()
    yield from (repr(frame.f_locals) for frame in frames(error))


def frames(error: BaseException | None) -> Iterator[FrameType]:
    """Those of the error and of all that it came from, also where that is kept from view."""
    if error is not None:
        yield from (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        yield from frames(error.__cause__)
        yield from frames(error.__context__)


def assert_silent(error: BaseException) -> None:
    """No text of the error holds the secret."""
    for text in shown(error):
        assert CANARY not in text


@pytest.mark.parametrize("sasl", SASLS, ids=lambda sasl: sasl.mechanism)
@pytest.mark.parametrize("name", FAILING)
def test_a_failed_authentication_does_not_tell_the_secret(sasl: Sasl, name: str) -> None:
    with pytest.raises(KafkaIOError) as caught, error_context(Where(cluster="main")):
        authenticate(mechanism_of(sasl), FAILING[name])
    assert_silent(caught.value)


@pytest.mark.parametrize("sasl", SASLS, ids=lambda sasl: sasl.mechanism)
@pytest.mark.parametrize("script", [[hear, reset], [hear], [stall]], ids=["reset", "closed", "silent"])
def test_a_connection_that_breaks_meanwhile_does_not_tell_the_secret(
    sasl: Sasl, script: list[Callable[..., None]]
) -> None:
    with HostileServer(script) as server:
        stream = Stream.connect("127.0.0.1", server.port, Deadline.after(20))

        def ask(token: bytes) -> bytes:
            request = framed(token)
            stream.send(request, Deadline.after(0.3))
            stream.receive_into(memoryview(bytearray(4)), Deadline.after(0.3))
            return request

        with closing(stream), pytest.raises(KafkaIOError) as caught:
            authenticate(mechanism_of(sasl), ask)
    assert_silent(caught.value)


@pytest.mark.parametrize("sasl", [SASLS[0], SASLS[3]], ids=lambda sasl: sasl.mechanism)
def test_a_secret_that_cannot_be_sent_is_not_told(tmp_path: Path, sasl: Sasl) -> None:
    file = tmp_path / "secret"
    file.write_bytes(CANARY.encode() + b"\0")
    elsewhere = SecretReference("file", str(file))
    sasl = replace(sasl, password=sasl.password and elsewhere, token=sasl.token and elsewhere)
    with pytest.raises(KafkaIOError) as caught:
        mechanism_of(sasl)
    assert_silent(caught.value)


@pytest.mark.parametrize("certificate", ["loader.pem", "ca.pem", "none.pem"])
def test_a_keys_password_that_does_not_fit_is_not_told(certificate: str) -> None:
    tls = Tls(ca=CA, certificate=str(GOLDEN / certificate), key=str(GOLDEN / "encrypted.key"), key_password=WHERE)
    with pytest.raises(KafkaIOError) as caught:
        tls_context(tls)
    assert_silent(caught.value)


@pytest.mark.parametrize("sasl", SASLS, ids=lambda sasl: sasl.mechanism)
def test_what_is_set_and_what_is_in_use_hold_references_only(sasl: Sasl) -> None:  # fault X02
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


def test_the_canary_would_be_found() -> None:
    """The eyes of this file are open: the same texts, of an error that does tell."""
    with pytest.raises(ValueError, match="tweet") as caught:
        raise ValueError(CANARY)
    assert sum(CANARY in text for text in shown(caught.value)) >= 5
