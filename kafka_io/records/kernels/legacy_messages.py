"""Kernels for messages of formats 0 and 1: entries of a log, or of a set that was compressed in one message."""

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import ByteArray, int32, int64, uint32
from kafka_io.records.kernels.column_arrays import (
    KEY_BYTES,
    ROW_BYTES,
    ROWS,
    VALUE_BYTES,
    ColumnArrays,
    put_row,
)
from kafka_io.records.kernels.crc32 import crc32
from kafka_io.records.kernels.entry_header import entry_bounds
from kafka_io.records.kernels.status_codes import (
    BAD_CRC,
    BAD_END,
    BAD_FIELD,
    BAD_MAGIC,
    BAD_OFFSET,
    END,
    PAST,
    PAUSED,
    WHOLE,
    WRAPPER,
)
from kafka_io.records.layout import (
    APPEND_TIME,
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


@kernel
def is_compressed(data: ByteArray, position: int, last_offset: int, max_offset: int) -> bool:
    """Whether a whole, compressed message is at `position`, with an offset above `last_offset` up to `max_offset`."""
    status, _ = entry_bounds(data, position, 0, 1)
    if status != WHOLE:
        return False
    return last_offset < int64(data, position) <= max_offset and bool(
        data[position + MESSAGE_ATTRIBUTES_AT] & MODERN_CODEC_MASK
    )


@kernel
def measure(data: ByteArray, position: int) -> tuple[int, int, int]:
    """Skip the whole messages from `position` on: (status, position where it stopped, last offset or -1)."""
    last = -1
    while position < len(data):
        status, end = entry_bounds(data, position, 0, 1)
        if status != WHOLE:
            return status, position, last
        last = int64(data, position)
        position = end
    return END, position, last


@kernel
def find_holes(
    data: ByteArray, position: int, end: int, shift: int, next_offset: int, stop_offset: int
) -> tuple[int, int, int]:
    """Count messages and find holes: (messages, start of the first hole or -1, end of the last hole).

    Args:
        data: messages that `decode` has accepted.
        position: where they begin.
        end: where they end.
        shift: added to each offset, see `decode`.
        next_offset: messages with a lower offset are not counted.
        stop_offset: the offset after the last one to look at.
    """
    messages, first_start, last_stop = 0, -1, -1
    while position < end and next_offset < stop_offset:
        offset = min(int64(data, position) + shift, stop_offset)
        _, position = entry_bounds(data, position, 0, 1)
        if offset > next_offset:
            first_start = next_offset if first_start < 0 else first_start
            last_stop = offset
        if next_offset <= offset < stop_offset:
            messages += 1
        next_offset = max(next_offset, offset + 1)
    if next_offset < stop_offset:  # a compressed message of format 0 may have a higher offset than its last one inside
        first_start = next_offset if first_start < 0 else first_start
        last_stop = stop_offset
    return messages, first_start, last_stop


@kernel
def decode(
    data: ByteArray,
    position: int,
    magic: int,
    shift: int,
    append_time: int,
    last_offset: int,
    max_offset: int,
    wanted: int,
    start_offset: int,
    stop_offset: int,
    end_offset: int,
    max_bytes: int,
    columns: ColumnArrays,
) -> tuple[int, int, int]:
    """Decode uncompressed messages to rows: (status, position where it stopped, offset of the last one).

    Args:
        data: entries of a log, or a decompressed set.
        position: where to begin.
        magic: the only allowed magic, or ANY_MAGIC. A compressed set has the magic of its outer message.
        shift: added to each offset, for the relative offsets inside a compressed message of format 1.
        append_time: timestamp of all messages (LogAppendTime), or NO_TIMESTAMP if each has its own.
        last_offset: offset of the previous message; offsets must grow.
        max_offset: the highest allowed offset.
        wanted: columns to fill, as bits.
        start_offset: rows with a lower offset are dropped.
        stop_offset: rows with this offset or a higher one are dropped.
        end_offset: stop before the first message with this offset or a higher one.
        max_bytes: stop before a message once the columns hold this many bytes.
        columns: arrays with room for all that the data can hold.
    """
    filled = columns.filled
    while position < len(data):
        if filled[KEY_BYTES] + filled[VALUE_BYTES] + ROW_BYTES * filled[ROWS] >= max_bytes:
            return PAUSED, position, last_offset
        status, end = entry_bounds(data, position, 0, 1)
        if status != WHOLE:
            return status, position, last_offset
        if magic >= 0 and data[position + MAGIC_AT] != magic:
            return BAD_MAGIC, position, last_offset
        offset = int64(data, position)
        if offset > max_offset - shift or offset <= last_offset - shift:
            return BAD_OFFSET, position, last_offset
        offset += shift
        if data[position + MESSAGE_ATTRIBUTES_AT] & MODERN_CODEC_MASK:
            # A compressed message has the offset of its last inner message, so it may hold requested messages even
            # if that offset is at or after `end_offset`: test it before PAST.
            return WRAPPER, position, last_offset
        if offset >= end_offset:
            return PAST, position, last_offset
        status, key_size, key, value_size, value = _content(data, position, end)
        if status != WHOLE:
            return status, position, last_offset
        if start_offset <= offset < stop_offset:
            timestamp, timestamp_type = _timestamp(data, position, append_time)
            put_row(data, key, key_size, value, value_size, offset, timestamp, timestamp_type, wanted, columns)
        last_offset = offset
        position = end
    return END, position, last_offset


@device_function
def _content(data: ByteArray, position: int, end: int) -> tuple[int, int, int, int, int]:
    """Check the message at `position`: (WHOLE, key size, key position, value size, value position), or an error."""
    if crc32(data, position + MAGIC_AT, end) != uint32(data, position + MESSAGE_CRC_AT):
        return BAD_CRC, 0, 0, 0, 0
    key = position + MESSAGE_KEY_AT[data[position + MAGIC_AT]] + _LENGTH_BYTES
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


@device_function
def _timestamp(data: ByteArray, position: int, append_time: int) -> tuple[int, int]:
    """Timestamp of the message at `position` and its type, 0 for CreateTime or 1 for LogAppendTime.

    Format 0 has neither; both are -1 there.
    """
    if data[position + MAGIC_AT] == 0:
        return NO_TIMESTAMP, NO_TIMESTAMP_TYPE
    if append_time != NO_TIMESTAMP:
        return append_time, 1
    timestamp_type = 1 if data[position + MESSAGE_ATTRIBUTES_AT] & APPEND_TIME else 0
    return int64(data, position + MESSAGE_TIMESTAMP_AT), timestamp_type
