"""Header keys that are not UTF-8: detect and escape them."""

import numpy as np

from kafka_io.records.compiling import device_function, kernel
from kafka_io.records.kernels.scalars import ByteArray, Int32s, copy

# U+FFFD, the replacement character, in UTF-8.
MARK = np.array([0xEF, 0xBF, 0xBD], np.uint8)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


@kernel
def escaped_bytes(content: ByteArray, ends: Int32s) -> int:
    """Size of the texts after escaping those that are not UTF-8 or begin with MARK.

    Args:
        content: the texts, one after the other.
        ends: n + 1 positions: the start of the first text, and the end of each.
    """
    total = 0
    for row in range(len(ends) - 1):
        start, end = int(ends[row]), int(ends[row + 1])
        total += end - start if _is_plain(content, start, end) else len(MARK) + 2 * (end - start)
    return total


@kernel
def escape(content: ByteArray, ends: Int32s, texts: ByteArray, text_ends: Int32s) -> None:
    """Write the escaped texts.

    Args:
        content: as for `escaped_bytes`.
        ends: as for `escaped_bytes`.
        texts: output of the size that `escaped_bytes` returned.
        text_ends: output, as long as `ends`.
    """
    position = 0
    text_ends[0] = 0
    for row in range(len(ends) - 1):
        start, end = int(ends[row]), int(ends[row + 1])
        if _is_plain(content, start, end):
            copy(content, start, end - start, texts, position)
            position += end - start
        else:
            copy(MARK, 0, len(MARK), texts, position)
            position += len(MARK)
            for i in range(start, end):
                texts[position] = _DIGITS[content[i] >> 4]
                texts[position + 1] = _DIGITS[content[i] & 0xF]
                position += 2
        text_ends[row + 1] = position


@device_function
def _is_plain(content: ByteArray, position: int, end: int) -> bool:
    """Whether the bytes from `position` to `end` are UTF-8 and do not begin with MARK."""
    marked = end - position >= len(MARK)
    for i in range(len(MARK)):
        marked = marked and content[position + i] == MARK[i]
    while position < end and not marked:
        size = _character(content, position, end)
        if size == 0:
            return False
        position += size
    return not marked


@device_function
def _character(content: ByteArray, position: int, end: int) -> int:
    """Size of the UTF-8 character at `position`; 0 if it is invalid.

    Invalid are: overlong forms, surrogates, code points above U+10FFFF, and incomplete characters. All of these show in
    the first two bytes, so only the allowed range of the second byte depends on the first (Unicode standard, table
    3-7).
    """
    first = content[position]
    if first < 0x80:
        return 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or position + size > end:
        return 0
    second = content[position + 1]
    lowest = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    highest = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    if second < lowest or second > highest:
        return 0
    for i in range(2, size):
        if content[position + i] & 0xC0 != 0x80:
            return 0
    return size
