"""Fields are read as written; incomplete and invalid fields are errors."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import Corrupt, Truncated
from kafka_io.wire.primitives import (
    WireReader,
    boolean,
    int8,
    int16,
    int32,
    int64,
    uuid,
    uvarint,
)


@given(st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), st.text())
def test_numbers_and_text_are_read_as_written(small: int, middle: int, large: int, text: str) -> None:
    reader = WireReader(int16(small) + int32(middle) + int64(large) + text.encode())
    assert (reader.int16(), reader.int32(), reader.int64()) == (small, middle, large)
    assert reader.text(reader.unread_bytes) == text
    reader.end()


@given(st.integers(-(2**7), 2**7 - 1), st.booleans(), st.uuids())
def test_int8_booleans_and_ids_are_read_as_written(number: int, flag: bool, topic_id: UUID) -> None:
    reader = WireReader(int8(number) + boolean(flag) + uuid(topic_id))
    assert (reader.int8(), reader.boolean(), reader.uuid()) == (number, flag, topic_id)
    reader.end()


@pytest.mark.parametrize("byte", [b"\x01", b"\x02", b"\xff"])
def test_every_byte_except_0_is_true(byte: bytes) -> None:
    assert WireReader(byte).boolean()
    assert not WireReader(b"\x00").boolean()


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**31, "8080808008"), (2**32 - 1, "ffffffff0f")],
)
def test_varints_have_seven_bits_per_byte_the_lowest_first(value: int, data: str) -> None:
    assert uvarint(value).hex() == data
    assert WireReader(bytes.fromhex(data)).uvarint() == value


@given(st.integers(0, 2**32 - 1))
def test_every_varint_is_read_as_written(value: int) -> None:
    reader = WireReader(uvarint(value))
    assert reader.uvarint() == value
    reader.end()


@pytest.mark.parametrize("data", ["ffffffff1f", "8080808010", "ffffffffff01", "808080808000"])
def test_a_varint_of_more_than_32_bits_is_refused(data: str) -> None:
    with pytest.raises(Corrupt, match="32 bits"):
        WireReader(bytes.fromhex(data)).uvarint()


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_number_that_does_not_fit_a_varint_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match="no place"):
        uvarint(value)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_an_incomplete_varint_is_truncated(data: bytes) -> None:
    with pytest.raises(Truncated):
        WireReader(data).uvarint()


@pytest.mark.parametrize("length", [-1, -(2**31)])
def test_a_negative_length_is_refused(length: int) -> None:
    with pytest.raises(Corrupt):
        WireReader(b"1234").view(length)


@pytest.mark.parametrize(
    "take",
    [
        WireReader.int16,
        WireReader.int32,
        WireReader.int64,
        WireReader.uuid,
    ],
)
@pytest.mark.parametrize("data", [b"", b"\x00"])
def test_an_incomplete_field_is_truncated(take: object, data: bytes) -> None:
    with pytest.raises(Truncated):
        take(WireReader(data))  # type: ignore[operator]


def test_a_count_above_the_bytes_that_are_left_is_refused() -> None:  # fault W09
    for count in (2**31 - 1, -7, 2):
        with pytest.raises(Corrupt):
            WireReader(b"12345678").bounded(count, 8, 10)
    assert WireReader(b"12345678").bounded(1, 8, 10) == 1


def test_a_count_above_the_maximum_of_its_field_is_refused() -> None:  # fault H02
    with pytest.raises(Corrupt, match="above the maximum of 7"):
        WireReader(b"12345678").bounded(8, 1, 7)
    assert WireReader(b"12345678").bounded(7, 1, 7) == 7


def test_a_string_must_be_utf8_and_have_a_valid_length() -> None:
    with pytest.raises(Corrupt, match="UTF-8"):
        WireReader(b"\xff").text(1)
    with pytest.raises(Corrupt, match="length"):
        WireReader(b"").text(-1)


def test_bytes_after_the_last_field_are_refused() -> None:  # fault W12
    with pytest.raises(Corrupt, match="3 bytes left over"):
        WireReader(b"abc").end()
