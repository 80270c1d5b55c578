"""Our messages are the bytes that the genuine producer wrote."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.records.build import message, message_set
from tests.golden_v07 import captured
from tests.kafka_io.records.v07_decoding import decoded_rows
from tests.oracles import sets_v07

PAYLOADS = st.lists(st.binary(max_size=30), max_size=8)


def produced(name: str) -> str:
    (captured_hex,) = (record["message_set_hex"] for record in captured("produce") if record["id"] == name)
    return str(captured_hex)


def test_messages_of_both_magics_are_the_captured_bytes() -> None:
    assert message_set([b"raw-0", b"raw-1"]).hex() == produced("produce-plain")
    assert message_set([b"old-0", b"old-1"], magic=0).hex() == produced("produce-magic0")
    assert message(b"attr4", attributes=4).hex() == produced("produce-attr-extra-bits")


def test_a_snappy_set_is_the_captured_bytes() -> None:
    assert message_set([b"s1"], codec=2).hex() == produced("produce-snappy-xerial")


@settings(deadline=None)
@given(payloads=PAYLOADS, codec=st.sampled_from([0, 1, 2]), magic=st.sampled_from([0, 1]))
def test_a_message_set_decodes_to_its_payloads(payloads: list[bytes], codec: int, magic: int) -> None:
    data = message_set(payloads, codec=codec, magic=magic)
    rows = decoded_rows(data)
    assert [value for _, _, value in rows] == payloads
    assert rows == sets_v07.decode(data, base=0)


@pytest.mark.parametrize(("magic", "attributes"), [(2, 0), (-1, 0), (0, 1)])
def test_a_message_of_an_unknown_layout_is_refused(magic: int, attributes: int) -> None:
    with pytest.raises(ValueError, match="no message has"):
        message(b"", magic=magic, attributes=attributes)
