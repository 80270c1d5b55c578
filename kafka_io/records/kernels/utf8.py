"""Header keys that are not UTF-8: detect and escape them."""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import ByteArray, Int32s, copy
from kafka_io.jit.utf8 import character_size
from kafka_io.records.kernels.status_codes import END, FULL

# U+FFFD, the replacement character, in UTF-8.
MARK = np.array([0xEF, 0xBF, 0xBD], np.uint8)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


@kernel
def escape(content: ByteArray, ends: Int32s, texts: ByteArray, text_ends: Int32s) -> int:
    """Write the texts and escape those that are not UTF-8 or begin with MARK: END, or FULL if `texts` is too small.

    Args:
        content: the texts, one after the other.
        ends: n + 1 positions: the start of the first text, and the end of each.
        texts: output. An escaped text is MARK and two digits for each of its bytes.
        text_ends: output, as long as `ends`.
    """
    position = 0
    text_ends[0] = 0
    for row in range(len(ends) - 1):
        start, end = int(ends[row]), int(ends[row + 1])
        is_plain = _is_plain(content, start, end)
        text_end = position + (end - start if is_plain else len(MARK) + 2 * (end - start))
        if text_end > len(texts):
            return FULL
        if is_plain:
            copy(content, start, end - start, texts, position)
        else:
            copy(MARK, 0, len(MARK), texts, position)
            for i in range(end - start):
                texts[position + len(MARK) + 2 * i] = _DIGITS[content[start + i] >> 4]
                texts[position + len(MARK) + 2 * i + 1] = _DIGITS[content[start + i] & 0xF]
        position = text_ends[row + 1] = text_end
    return END


@device_function
def _is_plain(content: ByteArray, position: int, end: int) -> bool:
    """Whether the bytes from `position` to `end` are UTF-8 and do not begin with MARK."""
    marked = end - position >= len(MARK)
    for i in range(len(MARK)):
        marked = marked and content[position + i] == MARK[i]
    while position < end and not marked:
        size = character_size(content, position, end)
        if size == 0:
            return False
        position += size
    return not marked
