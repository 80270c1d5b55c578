"""The kernels accept the same bytes as UTF-8 as Python does, wherever they stand in an array."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.jit.scalars import little_int64, read_only
from kafka_io.jit.utf8 import is_utf8

EDGES = st.sampled_from(b"\x00A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff")
PIECES = (
    st.lists(EDGES, max_size=4).map(bytes) | st.text(max_size=4).map(str.encode) | st.just(b"eight or more letters")
)


def in_python(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.slow
@settings(deadline=None)
@given(text=st.lists(PIECES, max_size=4).map(b"".join), before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_bytes_are_utf_8_if_python_decodes_them(text: bytes, before: bytes, after: bytes) -> None:
    data = read_only(before + text + after)
    assert is_utf8(data, len(before), len(before) + len(text)) == in_python(text)


@settings(deadline=None)
@given(number=st.integers(-(2**63), 2**63 - 1), before=st.binary(max_size=9))
def test_a_word_is_little_endian_at_any_alignment(number: int, before: bytes) -> None:
    data = read_only(before + number.to_bytes(8, "little", signed=True))
    assert little_int64(data, len(before)) == number
