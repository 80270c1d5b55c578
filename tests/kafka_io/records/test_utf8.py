"""Bytes are told to be text as Python tells it, and what is none leads back to its bytes."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.records.kernels import utf8
from kafka_io.records.kernels.scalars import read_only

MARK = "\ufffd"
# Around where UTF-8's forms begin and end.
EDGES = st.sampled_from(b"\x00A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff")
PIECES = st.lists(EDGES, max_size=6).map(bytes) | st.text(max_size=4).map(str.encode) | st.just(MARK.encode())


def escaped(keys: list[bytes]) -> list[str]:
    content, ends = read_only(b"".join(keys)), np.cumsum([0, *map(len, keys)], dtype=np.int32)
    text = np.empty(utf8.escaped_bytes(content, ends), np.uint8)
    text_ends = np.empty(len(ends), np.int32)
    utf8.escape(content, ends, text, text_ends)
    return [text[start:end].tobytes().decode() for start, end in pairwise(text_ends)]


def as_python_tells(key: bytes) -> str:
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return MARK + key.hex()
    return MARK + key.hex() if text.startswith(MARK) else text


# fault R25
@settings(deadline=None)
@given(keys=st.lists(st.lists(PIECES, max_size=3).map(b"".join), max_size=5))
def test_what_is_no_text_is_written_as_hexadecimal(keys: list[bytes]) -> None:
    assert escaped(keys) == list(map(as_python_tells, keys))


# fault R25
def test_each_first_byte_with_each_second_is_judged_as_python_does() -> None:
    pairs = [bytes((first, second)) for first in range(0x80, 256) for second in range(0, 256, 3)]
    keys = [pair + rest for pair in pairs for rest in (b"", b"\x80\xbf")]
    assert escaped(keys) == list(map(as_python_tells, keys))
