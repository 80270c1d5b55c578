"""UTF-8 in byte arrays."""

import numpy as np

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import ByteArray, little_int64

# The high bit of each of the first n bytes of a little-endian word, for n from 0 to 8.
_HIGH_BITS = np.array([int.from_bytes(b"\x80" * size + bytes(8 - size), "little", signed=True) for size in range(9)])


@device_function
def is_utf8(data: ByteArray, position: int, end: int) -> bool:
    """Whether the bytes from `position` to `end` are UTF-8."""
    while position < end:
        # Most texts are ASCII, and eight bytes without a high bit need one test. After `end` are other values.
        if position + 8 <= len(data):
            size = min(end - position, 8)
            if little_int64(data, position) & _HIGH_BITS[size] == 0:
                position += size
                continue
        size = character_size(data, position, end)
        if size == 0:
            return False
        position += size
    return True


@device_function
def character_size(data: ByteArray, position: int, end: int) -> int:
    """Size of the UTF-8 character at `position`; 0 if it is invalid.

    Invalid are: overlong forms, surrogates, code points above U+10FFFF, and incomplete characters. All of these show in
    the first two bytes, so only the allowed range of the second byte depends on the first (Unicode standard, table
    3-7).
    """
    first = data[position]
    if first < 0x80:
        return 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or position + size > end:
        return 0
    second = data[position + 1]
    lowest = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    highest = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    if second < lowest or second > highest:
        return 0
    for i in range(2, size):
        if data[position + i] & 0xC0 != 0x80:
            return 0
    return size
