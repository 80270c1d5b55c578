"""Header keys: the kernel accepts the same bytes as UTF-8 as Python does, and escapes all others."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.jit.scalars import read_only
from kafka_io.records.kernels import utf8
from kafka_io.records.kernels.status_codes import END, FULL

MARK = "\ufffd"
# Bytes at the limits of what UTF-8 allows.
EDGES = st.sampled_from(b"\x00A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff")
PIECES = st.lists(EDGES, max_size=6).map(bytes) | st.text(max_size=4).map(str.encode) | st.just(MARK.encode())


def escaped(keys: list[bytes]) -> list[str]:
    """The keys as text, if their texts have exactly the room that they need."""
    content, ends = read_only(b"".join(keys)), np.cumsum([0, *map(len, keys)], dtype=np.int32)
    text = np.empty(sum(len(in_python(key).encode()) for key in keys), np.uint8)
    text_ends = np.empty(len(ends), np.int32)
    assert utf8.escape(content, ends, text, text_ends) == END
    if len(text):
        assert utf8.escape(content, ends, text[:-1].copy(), text_ends.copy()) == FULL
    return [text[start:end].tobytes().decode() for start, end in pairwise(text_ends)]


def in_python(key: bytes) -> str:
    """The text of a key, by Python's own decoder."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return MARK + key.hex()
    return MARK + key.hex() if text.startswith(MARK) else text


# fault R25
@settings(deadline=None)
@given(keys=st.lists(st.lists(PIECES, max_size=3).map(b"".join), max_size=5))
def test_bytes_that_are_not_utf_8_are_written_in_hexadecimal(keys: list[bytes]) -> None:
    assert escaped(keys) == list(map(in_python, keys))


# fault R25
def test_every_pair_of_first_bytes_is_accepted_or_refused_as_in_python() -> None:
    pairs = [bytes((first, second)) for first in range(0x80, 256) for second in range(0, 256, 3)]
    keys = [pair + ending for pair in pairs for ending in (b"", b"\x80\xbf")]
    assert escaped(keys) == list(map(in_python, keys))
