"""OAUTHBEARER: RFC 7628's bytes, the broker's reasons, and no token that breaks out of its field."""

import pytest

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.oauthbearer import OAuthBearer
from kafka_io.net.secret import Secret

TOKEN = b"vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="


def test_speaks_as_the_rfc_says() -> None:
    bearer = OAuthBearer(Secret(TOKEN))
    assert bearer.first() == b"n,,\x01auth=Bearer " + TOKEN + b"\x01\x01"
    bearer.answer(b"")


@pytest.mark.parametrize("token", [b"a\x01host=evil", b"a b", b"a\nb", b"=", b"a=b", b"\xff", "\u00e9".encode()])
def test_what_no_bearer_token_can_hold_is_refused(token: bytes) -> None:
    with pytest.raises(AuthenticationFailed, match="characters that bearer tokens cannot have"):
        OAuthBearer(Secret(token))


@pytest.mark.parametrize(
    ("challenge", "said"),
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
def test_the_brokers_reason_is_told_and_no_more(challenge: bytes, said: str) -> None:
    with pytest.raises(AuthenticationFailed, match=said) as caught:
        OAuthBearer(Secret(TOKEN)).answer(challenge)
    assert not caught.value.retriable
