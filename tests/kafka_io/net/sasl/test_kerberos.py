"""The messages of GSSAPI (RFC 4752) with a fake of the library: what a broker may send, and what is refused."""

from collections.abc import Callable

import pytest

from kafka_io.errors import AuthenticationFailed, BrokerError, ConnectionLost, Where
from kafka_io.net.sasl.authentication import authenticate
from kafka_io.net.sasl.kerberos import Gssapi
from tests.fakes.kerberos import CHOICE, OFFER, PROOF, TICKET, FakeContext

CLOSED = ConnectionLost("closed", Where(broker="1@kafka:9092"))


class FakeServer:
    """A broker that gives these answers, one after the other. `tokens` has what it received."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.tokens: list[bytes] = []

    def exchange(self, token: bytes) -> bytes:
        """The next answer."""
        self.tokens.append(token)
        return self._answers.pop(0)


def log_in(*answers: bytes, context: FakeContext | None = None) -> list[bytes]:
    """The tokens that a broker with these answers receives."""
    server = FakeServer(*answers)
    authenticate(Gssapi(context or FakeContext()), server.exchange)
    return server.tokens


def test_no_security_layer_and_no_other_identity_is_chosen() -> None:
    assert log_in(PROOF, OFFER, b"") == [TICKET, b"", CHOICE]


def test_a_token_that_answers_the_proof_is_sent() -> None:
    answers = (PROOF, OFFER, b"")
    assert log_in(*answers, context=FakeContext(b"more"))[:2] == [TICKET, b"more"]


def test_none_is_chosen_of_all_layers_and_the_size_of_a_message_is_not_compared() -> None:
    for offer in (b"\x07\x00\xff\xff", b"\x01\x00\x00\x00"):
        assert log_in(PROOF, b"signed:" + offer, b"")[-1] == CHOICE


def test_in_bare_frames_nothing_is_expected_after_the_last_token() -> None:  # a broker before 1.0 sends no frame
    server, sent = FakeServer(PROOF, OFFER), list[bytes]()
    authenticate(Gssapi(FakeContext()), server.exchange, send_last=sent.append)
    assert (server.tokens, sent) == ([TICKET, b""], [CHOICE])


@pytest.mark.parametrize(
    ("answers", "message"),
    [  # fault X17
        ((b"garbage",), "the token is wrong"),
        ((b"",), "the token is wrong"),
        ((b"unfinished",), "sent no proof of its identity"),
        ((b"x" * 65_537,), "has 65537 bytes; up to 65536 are accepted"),
        ((PROOF, b""), "the token is wrong"),
        ((PROOF, OFFER.removeprefix(b"signed:")), "the token is wrong"),
        ((PROOF, b"signed:"), "has 0 bytes instead of 4"),
        ((PROOF, b"signed:\x01\x00\x00"), "has 3 bytes instead of 4"),
        ((PROOF, OFFER + b"\x00"), "has 5 bytes instead of 4"),
        ((PROOF, b"signed:" + b"x" * 65_536), "up to 65536 are accepted"),
        ((PROOF, b"signed:\x06\x01\x00\x00"), "demands a security layer"),
        ((PROOF, b"signed:\x00\x00\x00\x00"), "demands a security layer"),
        ((PROOF, OFFER, b"more"), "sent 4 bytes after the end"),
    ],
)
def test_a_broker_that_does_not_follow_the_rfc_is_refused(answers: tuple[bytes, ...], message: str) -> None:
    with pytest.raises(AuthenticationFailed, match=f"GSSAPI: .*{message}") as raised:
        log_in(*answers)
    assert not raised.value.retriable


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_broker_that_refuses_or_closes_at_any_step_is_an_error_with_its_place(step: int) -> None:
    def failing(error: Exception) -> Callable[[bytes], bytes]:
        answers = [PROOF, OFFER, b""][:step]

        def exchange(_: bytes) -> bytes:
            if answers:
                return answers.pop(0)
            raise error

        return exchange

    with pytest.raises(AuthenticationFailed, match="GSSAPI: invalid credentials"):
        authenticate(Gssapi(FakeContext()), failing(BrokerError("invalid credentials", CLOSED.where, 58)))
    with pytest.raises(AuthenticationFailed) as refused:  # fault X05
        authenticate(Gssapi(FakeContext()), failing(BrokerError("\x1b[31m" + "x" * 10_000, CLOSED.where, 58)))
    assert refused.value.reason.isprintable()
    assert len(refused.value.reason) < 300
    with pytest.raises(ConnectionLost, match="closed during authentication") as lost:
        authenticate(Gssapi(FakeContext()), failing(CLOSED))
    assert lost.value.where == CLOSED.where
