"""PLAIN sends RFC 4616's bytes, OAUTHBEARER those of RFC 7628, and neither lets a value end its field."""

import pytest

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.mechanisms import OAuthBearer, Plain
from kafka_io.net.secret import Secret

TOKEN = b"vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="


def test_plain_sends_the_example_of_the_rfc() -> None:
    plain = Plain("tim", Secret(b"tanstaaftanstaaf"))
    assert plain.first() == b"\0tim\0tanstaaftanstaaf"
    plain.answer(b"")


def test_a_name_is_sent_as_utf_8_and_a_password_unchanged() -> None:
    assert Plain("\u00e9", Secret(b"\xff")).first() == b"\0\xc3\xa9\0\xff"


@pytest.mark.parametrize(("username", "password"), [("tim\0root", b"x"), ("tim", b"x\0y")])
def test_plain_refuses_a_nul_character(username: str, password: bytes) -> None:
    with pytest.raises(AuthenticationFailed, match="NUL"):
        Plain(username, Secret(password))


def test_plain_refuses_a_broker_that_requests_another_step() -> None:
    with pytest.raises(AuthenticationFailed, match="but the mechanism has none"):
        Plain("tim", Secret(b"x")).answer(b"and your card number?")


def test_oauthbearer_sends_the_bytes_of_the_rfc() -> None:
    bearer = OAuthBearer(Secret(TOKEN))
    assert bearer.first() == b"n,,\x01auth=Bearer " + TOKEN + b"\x01\x01"
    bearer.answer(b"")


def test_oauthbearer_sends_extensions_after_the_token() -> None:  # the message of KIP-342
    bearer = OAuthBearer(Secret(b"x.y.z"), {"logicalCluster": "lkc-1", "identityPoolId": "pool-1"})
    assert bearer.first() == b"n,,\x01auth=Bearer x.y.z\x01logicalCluster=lkc-1\x01identityPoolId=pool-1\x01\x01"


@pytest.mark.parametrize("token", [b"a\x01host=evil", b"a b", b"a\nb", b"=", b"a=b", b"\xff", "\u00e9".encode()])
def test_a_token_with_characters_that_bearer_tokens_cannot_have_is_refused(token: bytes) -> None:
    with pytest.raises(AuthenticationFailed, match="characters that bearer tokens cannot have"):
        OAuthBearer(Secret(token))


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        (b'{"status":"invalid_token","scope":"kafka"}', "refuses the token: invalid_token$"),
        (b'{"status":"\\u001b[31m' + TOKEN + b'"}', r"refuses the token: \?\[31m\*\*\*$"),  # fault X05
        (b'{"status":7}', "refuses the token: 7$"),
        (b'{"status":null}', "the broker gives no reason"),
        (b"[]", "the broker gives no reason"),
        (b"\xff\xfe", "the broker gives no reason"),
        (b"[" * 100_000, "the broker gives no reason"),
        (b'{"status":"' + b"x" * 100_000 + b'"}', "refuses the token: x{200}$"),
    ],
)
def test_a_refusal_contains_the_brokers_reason_and_nothing_else_of_its_answer(challenge: bytes, message: str) -> None:
    with pytest.raises(AuthenticationFailed, match=message) as raised:
        OAuthBearer(Secret(TOKEN)).answer(challenge)
    assert not raised.value.retriable
