"""SCRAM against the example of the RFC, a server written from the RFC, another client, and servers that lie."""

import base64
import re
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.net.sasl.scram import ScramClient

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.scram import Scram, ScramName
from kafka_io.net.secret import Secret
from tests.oracles.scram import ScramServer

NAMES = get_args(ScramName)
DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NONCE = "rOprNGfwEbeRWgbNEkqO"
# RFC 7677, section 3.
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
LAST = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_LAST = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client(name: ScramName = "SCRAM-SHA-256", username: str = "user", password: str = "pencil") -> Scram:
    return Scram(name, username, Secret(password.encode()), nonce=NONCE)


def server(name: ScramName, username: str = "user", password: str = "pencil") -> ScramServer:
    return ScramServer(DIGESTS[name], username, password, salt=b"some salt", iterations=4096, nonce="%theirs")


def test_scram_sends_the_example_of_the_rfc() -> None:
    scram = client()
    assert scram.first() == FIRST
    assert scram.answer(SERVER_FIRST) == LAST
    assert scram.answer(SERVER_LAST) is None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(username=st.text(min_size=1), password=st.text(min_size=1))
def test_client_and_server_authenticate_each_other_with_any_name_and_password(
    name: ScramName, username: str, password: str
) -> None:
    scram, scram_server = client(name, username, password), server(name, username, password)
    last = scram.answer(scram_server.first(scram.first()))
    assert last is not None
    assert scram.answer(scram_server.last(last)) is None
    assert scram_server.authenticated


@pytest.mark.parametrize("name", NAMES)
def test_another_implementation_of_the_client_accepts_the_server_of_these_tests(name: ScramName) -> None:
    judge, other = server(name), ScramClient("user", "pencil", name)
    other.process_server_first_message(judge.first(other.first_message()))
    other.process_server_final_message(judge.last(other.final_message()))
    assert judge.authenticated


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_password_is_an_error_with_the_reason_of_the_server(name: ScramName) -> None:
    scram, scram_server = client(name, password="guess"), server(name)
    last = scram.answer(scram_server.first(scram.first()))
    assert last is not None
    with pytest.raises(AuthenticationFailed, match=f"{name}: the broker refuses us: invalid-proof") as raised:
        scram.answer(scram_server.last(last))
    assert not raised.value.retriable


def test_every_authentication_has_its_own_nonce() -> None:
    firsts = {Scram("SCRAM-SHA-256", "user", Secret(b"pencil")).first() for _ in range(100)}
    assert len(firsts) == 100
    assert all(re.fullmatch(rb"n,,n=user,r=[!-+\--~]{20,}", first) for first in firsts)


def test_a_user_name_cannot_end_its_field() -> None:
    assert client(username="a=b,r=x").first() == b"n,,n=a=3Db=2Cr=3Dx,r=" + NONCE.encode()


def changed(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda message: message.replace(old, new)


@pytest.mark.parametrize(
    ("lie", "message"),
    [  # fault X09
        (changed(b"r=rOpr", b"r=xOpr"), "the broker's nonce does not continue ours"),
        (changed(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""), "the broker's nonce does not continue ours"),
        (changed(b"i=4096", b"i=1"), "1 iterations; 4096 to 1000000 are accepted"),
        (changed(b"i=4096", b"i=4095"), "4095 iterations"),
        (changed(b"i=4096", b"i=1000001"), "1000001 iterations"),
        (changed(b"i=4096", b"i=2147483647"), "2147483647 iterations"),
        (changed(b"i=4096", b"i=1000000000"), "1000000000 iterations"),
        (changed(b"i=4096", b"i=" + b"9" * 10_000), "not one of SCRAM"),
        (changed(b"i=4096", b"i=0"), "not one of SCRAM"),
        (changed(b"i=4096", b"i=-4096"), "not one of SCRAM"),
        (changed(b"i=4096", b"i=4096.0"), "not one of SCRAM"),
        (changed(b"i=4096", b""), "not one of SCRAM"),
        (changed(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s="), "not one of SCRAM"),
        (changed(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s=W22ZaJ0SNY7soEsUEjb6gQ"), "not base64"),
        (changed(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s=\xff\xff"), "not one of SCRAM"),
        (changed(b"r=rOpr", b"m=must-know,r=rOpr"), "not one of SCRAM"),
        (lambda _: b"", "not one of SCRAM"),
        (lambda _: b"\0" * 1000, "not one of SCRAM"),
        (lambda _: SERVER_LAST, "not one of SCRAM"),
        (lambda _: b"e=unknown-user", "the broker refuses us: unknown-user"),
        (lambda _: b"e=pencil\nFATAL \x1b[31m" + b"x" * 1000, r"refuses us: \*\*\*\?FATAL \?\[31mx{1,200}$"),
    ],
)
def test_an_invalid_first_message_is_refused(lie: Callable[[bytes], bytes], message: str) -> None:
    scram = client()
    scram.first()
    with pytest.raises(AuthenticationFailed, match=message):
        scram.answer(lie(SERVER_FIRST))


@pytest.mark.parametrize(
    ("last", "message"),
    [  # fault X09
        (b"v=" + base64.b64encode(bytes(32)), "the broker's proof is wrong"),
        (b"v=" + base64.b64encode(bytes(31)), "the broker's proof is wrong"),
        (SERVER_LAST[:-4], "the broker's proof is wrong"),
        (SERVER_LAST[:-1], "not base64"),
        (b"v=", "not one of SCRAM"),
        (b"", "not one of SCRAM"),
        (b"x=1," + SERVER_LAST, "not one of SCRAM"),
        (SERVER_FIRST, "not one of SCRAM"),
        (b"e=other-error", "the broker refuses us: other-error"),
    ],
)
def test_a_broker_without_a_valid_proof_is_refused(last: bytes, message: str) -> None:
    scram = client()
    scram.first()
    scram.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match=message):
        scram.answer(last)


def test_optional_extensions_are_ignored() -> None:
    scram = client()
    scram.first()
    assert scram.answer(SERVER_FIRST + b",x=1") is not None
    with pytest.raises(AuthenticationFailed, match="proof is wrong"):  # the extension is part of what both sign
        scram.answer(SERVER_LAST + b",y=2")


def test_a_message_after_the_proofs_is_refused() -> None:
    scram = client()
    scram.first()
    scram.answer(SERVER_FIRST)
    scram.answer(SERVER_LAST)
    with pytest.raises(AuthenticationFailed, match="after the end of the mechanism"):
        scram.answer(SERVER_LAST)
