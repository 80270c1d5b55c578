"""Messages of formats 0 and 1: entries of a log, or of a set compressed in one of them."""

import numpy as np

from kafka_io.records.compiling import kernel, part
from kafka_io.records.kernels.crc32 import crc32
from kafka_io.records.kernels.outcomes import (
    BAD_CRC,
    BAD_END,
    BAD_FIELD,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_OFFSET,
    CUT,
    END,
    OTHER_FORMAT,
    PAST,
    PAUSED,
    WHOLE,
    WRAPPER,
)
from kafka_io.records.kernels.scalars import Bytes, int32, int64, uint32
from kafka_io.records.kernels.target import (
    KEY,
    KEY_BYTES,
    ROW_BYTES,
    ROWS,
    VALUE,
    VALUE_BYTES,
    Target,
    put_key,
    put_row,
    put_value,
)
from kafka_io.records.layout import (
    APPEND_TIME,
    BATCH_MAGIC,
    ENTRY_BYTES,
    ENTRY_LENGTH_AT,
    LEAST_MESSAGE_BYTES,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_CRC_AT,
    MESSAGE_KEY_AT,
    MESSAGE_TIMESTAMP_AT,
    MODERN_CODEC_MASK,
)

NO_TIMESTAMP = NO_TIMESTAMP_TYPE = -1
ANY_MAGIC = -1

_LENGTH_BYTES = 4


@part
def _bounds(data: Bytes, at: int) -> tuple[int, int]:
    """The message at `at`: (WHOLE, where it ends), or what is wrong with it, judged by as much of it as there is."""
    left = len(data) - at
    if left < ENTRY_BYTES:
        return CUT, at
    length = int32(data, at + ENTRY_LENGTH_AT)
    if length < LEAST_MESSAGE_BYTES[0] - ENTRY_BYTES:
        return BAD_LENGTH, at
    if left <= MAGIC_AT:
        return CUT, at
    magic = np.int64(data[at + MAGIC_AT])
    if magic == BATCH_MAGIC:
        return OTHER_FORMAT, at
    if magic > BATCH_MAGIC:
        return BAD_MAGIC, at
    if length < LEAST_MESSAGE_BYTES[magic] - ENTRY_BYTES:
        return BAD_LENGTH, at
    if left < ENTRY_BYTES + length:
        return CUT, at
    return WHOLE, at + ENTRY_BYTES + length


@kernel
def is_compressed(data: Bytes, at: int, floor: int, ceiling: int) -> bool:
    """Whether the message at `at` is whole, compressed, and has an offset above `floor` and up to `ceiling`."""
    status, _ = _bounds(data, at)
    if status != WHOLE:
        return False
    return floor < int64(data, at) <= ceiling and bool(data[at + MESSAGE_ATTRIBUTES_AT] & MODERN_CODEC_MASK)


@kernel
def measure(data: Bytes, at: int) -> tuple[int, int, int]:
    """Hop over the whole messages from `at` on, not into them: (why it ended, where, the last one's offset or -1)."""
    last = -1
    while at < len(data):
        status, end = _bounds(data, at)
        if status != WHOLE:
            return status, at, last
        last = int64(data, at)
        at = end
    return END, at, last


@kernel
def decode(
    data: Bytes,
    at: int,
    magic: int,
    shift: int,
    floor: int,
    ceiling: int,
    append_time: int,
    wanted: int,
    low: int,
    high: int,
    past: int,
    most: int,
    target: Target,
) -> tuple[int, int, int]:
    """Plain messages from `at` on become rows: (why it stopped, where, the offset of the last one or `floor`).

    Args:
        data: entries of a log, or a decompressed set.
        at: where to begin in it.
        magic: the only one that may come, or ANY_MAGIC.
        shift: what to add to each offset.
        floor: the offset above which the first one must be, and each other above the one before it.
        ceiling: the offset that none may pass.
        append_time: the time of them all, or NO_TIMESTAMP if they have their own.
        wanted: columns to fill, as bits.
        low: rows with a lower offset are left out.
        high: rows with this offset or a higher one are left out.
        past: reading stops at this offset.
        most: stop before a message once the columns hold so many bytes.
        target: has room for all that the bytes can hold.
    """
    filled = target.filled
    while at < len(data):
        if filled[KEY_BYTES] + filled[VALUE_BYTES] + ROW_BYTES * filled[ROWS] >= most:
            return PAUSED, at, floor
        status, end = _bounds(data, at)
        if status != WHOLE:
            return status, at, floor
        if magic >= 0 and data[at + MAGIC_AT] != magic:
            return BAD_MAGIC, at, floor
        offset = int64(data, at)
        if offset > ceiling - shift or offset <= floor - shift:
            return BAD_OFFSET, at, floor
        offset += shift
        if data[at + MESSAGE_ATTRIBUTES_AT] & MODERN_CODEC_MASK:
            # Its offset is that of the last message inside: some may be wanted whatever it is.
            return WRAPPER, at, floor
        if offset >= past:
            return PAST, at, floor
        status, key_size, key, value_size, value = _content(data, at, end)
        if status != WHOLE:
            return status, at, floor
        if low <= offset < high:
            if wanted & KEY:
                put_key(data, key, key_size, target)
            if wanted & VALUE:
                put_value(data, value, value_size, target)
            put_row(offset, _time(data, at, append_time), _time_type(data, at, append_time), wanted, target)
        floor = offset
        at = end
    return END, at, floor


@part
def _content(data: Bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    """The message at `at`: (WHOLE, size and place of its key, and of its value)."""
    if crc32(data, at + MAGIC_AT, end) != uint32(data, at + MESSAGE_CRC_AT):
        return BAD_CRC, 0, 0, 0, 0
    key = at + MESSAGE_KEY_AT[data[at + MAGIC_AT]] + _LENGTH_BYTES
    key_size = int32(data, key - _LENGTH_BYTES)
    if key_size < -1 or key_size > end - key - _LENGTH_BYTES:
        return BAD_FIELD, 0, 0, 0, 0
    value = key + max(key_size, 0) + _LENGTH_BYTES
    value_size = int32(data, value - _LENGTH_BYTES)
    if value_size < -1 or value_size > end - value:
        return BAD_FIELD, 0, 0, 0, 0
    if value + max(value_size, 0) != end:
        return BAD_END, 0, 0, 0, 0
    return WHOLE, key_size, key, value_size, value


@part
def _time(data: Bytes, at: int, append_time: int) -> int:
    if data[at + MAGIC_AT] == 0:
        return NO_TIMESTAMP
    return int64(data, at + MESSAGE_TIMESTAMP_AT) if append_time == NO_TIMESTAMP else append_time


@part
def _time_type(data: Bytes, at: int, append_time: int) -> int:
    if data[at + MAGIC_AT] == 0:
        return NO_TIMESTAMP_TYPE
    return 1 if append_time != NO_TIMESTAMP or data[at + MESSAGE_ATTRIBUTES_AT] & APPEND_TIME else 0
