"""Bytes that should be text: what is not UTF-8 is told apart, and written as hexadecimal behind a mark."""

import numpy as np

from kafka_io.records.compiling import kernel, part
from kafka_io.records.kernels.scalars import Bytes, Int32s, copy

# U+FFFD in UTF-8.
MARK = np.array([0xEF, 0xBF, 0xBD], np.uint8)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


@kernel
def escaped_bytes(content: Bytes, ends: Int32s) -> int:
    """What the texts take once those that are none, or begin with MARK, are escaped.

    Args:
        content: the texts, one after the other.
        ends: where each ends; one longer, entry 0 is where the first begins.
    """
    total = 0
    for row in range(len(ends) - 1):
        start, end = int(ends[row]), int(ends[row + 1])
        total += end - start if _is_plain(content, start, end) else len(MARK) + 2 * (end - start)
    return total


@kernel
def escape(content: Bytes, ends: Int32s, texts: Bytes, text_ends: Int32s) -> None:
    """Fill `texts`, which is as long as `escaped_bytes` says, and `text_ends`, which is as long as `ends`."""
    at = 0
    text_ends[0] = 0
    for row in range(len(ends) - 1):
        start, end = int(ends[row]), int(ends[row + 1])
        if _is_plain(content, start, end):
            copy(content, start, end - start, texts, at)
            at += end - start
        else:
            copy(MARK, 0, len(MARK), texts, at)
            at += len(MARK)
            for i in range(start, end):
                texts[at] = _DIGITS[content[i] >> 4]
                texts[at + 1] = _DIGITS[content[i] & 0xF]
                at += 2
        text_ends[row + 1] = at


@part
def _is_plain(content: Bytes, at: int, end: int) -> bool:
    """Whether the bytes from `at` to `end` are UTF-8 that does not begin with MARK."""
    marked = end - at >= len(MARK)
    for i in range(len(MARK)):
        marked = marked and content[at + i] == MARK[i]
    while at < end and not marked:
        size = _character(content, at, end)
        if size == 0:
            return False
        at += size
    return not marked


@part
def _character(content: Bytes, at: int, end: int) -> int:
    """The bytes of the character at `at`, 0 for none: too long a form, half of a pair, above U+10FFFF, or cut."""
    first = content[at]
    if first < 0x80:
        return 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or at + size > end:
        return 0
    second = content[at + 1]
    least = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    most = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    if second < least or second > most:
        return 0
    for i in range(2, size):
        if content[at + i] & 0xC0 != 0x80:
            return 0
    return size
