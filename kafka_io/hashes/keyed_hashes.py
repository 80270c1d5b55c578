"""Hashes of an Arrow column under a key: HMAC-SHA256, cut to 128 bits, as texts that begin with the id of the key."""

import hashlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.hashes.kernels.hmac_sha256 import (
    BLOCK,
    DIGEST_WORDS,
    HASH_BYTES,
    INITIAL_STATE,
    WORK_SIZE,
    hash_values,
    state_after_block,
)
from kafka_io.jit.scalars import read_only

_INNER, _OUTER = 0x36, 0x5C  # RFC 2104
_SAMPLE = 4_096


class KeyedHash:
    """Hashes texts and bytes with one key. Equal bytes have equal hashes; without the key a hash says nothing else.

    >>> import pyarrow as pa
    >>> KeyedHash("k1", b"key")(pa.array(["The quick brown fox jumps over the lazy dog", None])).to_pylist()
    ['k1:f7bc83f430538424b13298e6aa6fb143', None]

    Args:
        id_: the id of the key, which each hash begins with.
        key: the key; of any size, as of every HMAC.
    """

    def __init__(self, id_: str, key: bytes) -> None:
        block = (hashlib.sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
        self._prefix = read_only(f"{id_}:".encode())
        work = np.zeros(WORK_SIZE, np.uint32)
        self._states = np.tile(INITIAL_STATE, 2)
        for part, pad in enumerate((_INNER, _OUTER)):
            state = self._states[part * DIGEST_WORDS : (part + 1) * DIGEST_WORDS]
            state_after_block(read_only(bytes(byte ^ pad for byte in block)), state, work)

    def __call__(self, values: pa.Array) -> pa.StringArray:
        """The hash of each text, or of each value of bytes; null stays null."""
        return self.of_each(values, lambda texts: texts)

    def of_each(self, values: pa.Array, as_texts: Callable[[pa.Array], pa.Array]) -> pa.StringArray:
        """The hash of the text of each value; `as_texts` gives the texts of values without nulls. Null stays null."""
        to_hash, places = _without_nulls(values)
        hashes = self.of_distinct(as_texts(to_hash))
        return hashes if places is None else hashes.take(places)

    def of_distinct(self, values: pa.Array) -> pa.StringArray:
        """The hashes of texts, or of values of bytes, without nulls; each is hashed, also if it is there twice."""
        count, size = len(values), len(self._prefix) + 2 * HASH_BYTES
        texts = np.empty(count * size, np.uint8)
        _, ends, data = values.buffers()
        positions = np.frombuffer(ends, np.int32)[values.offset : values.offset + count + 1]
        positions.flags.writeable = False
        work = np.zeros(WORK_SIZE, np.uint32)  # threads share this object
        hash_values(read_only(data or b""), positions, self._states, self._prefix, work, texts)
        ends_of_texts = np.arange(count + 1, dtype=np.int32) * size
        return pa.StringArray.from_buffers(count, pa.py_buffer(ends_of_texts), pa.py_buffer(texts))


def _without_nulls(values: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Values to hash, and which of them each row has; the second is None if each row has its own.

    If values repeat, each different one is there once. If most of them differ, to find those that repeat would cost
    more than it saves. In s of D values, s^2 / 2D repeat: so the repeats in a sample say how many values there are.
    """
    repeats = _SAMPLE - pc.count_distinct(values.slice(0, _SAMPLE), mode="all").as_py()
    if 2 * repeats * len(values) > _SAMPLE**2:
        encoded = values.dictionary_encode()
        return encoded.dictionary, encoded.indices
    if not values.null_count:
        return values, None
    is_valid = values.is_valid()
    places = pc.subtract(pc.cumulative_sum(is_valid.cast(pa.int32())), 1)
    return values.drop_null(), pc.if_else(is_valid, places, pa.scalar(None, pa.int32()))


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    KeyedHash("", b"")(pa.array([""]))
