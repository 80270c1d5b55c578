"""Fields: round trips, and typed errors for what is cut or lies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import Corrupt, Truncated
from kafka_io.wire.primitives import Reader, int16, int32, int64, string


@given(st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), st.text())
def test_what_is_written_is_read(small: int, middle: int, large: int, text: str) -> None:
    reader = Reader(int16(small) + int32(middle) + int64(large) + string(text))
    assert (reader.int16(), reader.int32(), reader.int64(), reader.string()) == (small, middle, large, text)
    reader.end()


@pytest.mark.parametrize("take", [Reader.int16, Reader.int32, Reader.int64, Reader.string])
@pytest.mark.parametrize("data", [b"", b"\x00"])
def test_a_field_that_is_cut_is_truncated(take: object, data: bytes) -> None:
    with pytest.raises(Truncated):
        take(Reader(data))  # type: ignore[operator]


def test_a_count_never_passes_the_bytes_left() -> None:  # W09
    for count in (2**31 - 1, -7, 2):
        with pytest.raises(Corrupt):
            Reader(int32(count) + b"12345678").count(each=8)
    assert Reader(int32(1) + b"12345678").count(each=8) == 1


def test_a_string_must_be_utf8_and_have_a_length() -> None:
    with pytest.raises(Corrupt, match="UTF-8"):
        Reader(int16(1) + b"\xff").string()
    with pytest.raises(Corrupt, match="length"):
        Reader(int16(-1)).string()


def test_bytes_left_over_are_refused() -> None:  # W12
    with pytest.raises(Corrupt, match="3 bytes left over"):
        Reader(b"abc").end()
