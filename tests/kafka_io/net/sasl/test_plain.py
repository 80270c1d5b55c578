"""PLAIN: RFC 4616's bytes, and nothing that could be read as other fields."""

import pytest

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.plain import Plain
from kafka_io.net.secret import Secret


def test_speaks_the_rfcs_example() -> None:
    plain = Plain("tim", Secret(b"tanstaaftanstaaf"))
    assert plain.first() == b"\0tim\0tanstaaftanstaaf"
    plain.answer(b"")


def test_a_name_is_utf_8_and_a_password_whatever_it_is() -> None:
    assert Plain("\u00e9", Secret(b"\xff")).first() == b"\0\xc3\xa9\0\xff"


@pytest.mark.parametrize(("username", "password"), [("tim\0root", b"x"), ("tim", b"x\0y")])
def test_a_nul_is_refused(username: str, password: bytes) -> None:
    with pytest.raises(AuthenticationFailed, match="NUL"):
        Plain(username, Secret(password))


def test_a_broker_that_asks_for_more_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="but the mechanism has none"):
        Plain("tim", Secret(b"x")).answer(b"and your card number?")
