"""0.7's message sets."""

from kafka_io.records.compiling import kernel, part
from kafka_io.records.kernels.crc32 import crc32
from kafka_io.records.kernels.outcomes import BAD_CRC, BAD_LENGTH, BAD_MAGIC, CUT, END, PAUSED, WHOLE, WRAPPER
from kafka_io.records.kernels.scalars import Bytes, Int32s, Int64s, copy, int32, uint32
from kafka_io.records.layout import (
    CODEC_MASK,
    CRC_BYTES,
    HEADER_BYTES,
    LARGEST_MAGIC,
    LEAST_LENGTH,
    LENGTH_BYTES,
)

# What a row takes in the columns beside its value: offset, inner, end of value.
ROW_BYTES = 8 + 4 + 4


@part
def _bounds(data: Bytes, at: int) -> tuple[int, int, int]:
    """The message at `at`: (WHOLE, where its payload starts, where it ends), or what is wrong with it.

    A message that is cut is judged by as much of it as there is.
    """
    left = len(data) - at
    if left < LENGTH_BYTES:
        return CUT, at, at
    length = int32(data, at)
    magic = int(data[at + LENGTH_BYTES]) if left > LENGTH_BYTES else 0
    header = HEADER_BYTES[magic] if magic <= LARGEST_MAGIC else LEAST_LENGTH
    if length < header:
        return BAD_LENGTH, at, at
    if magic > LARGEST_MAGIC:
        return BAD_MAGIC, at, at
    if left < LENGTH_BYTES + length:
        return CUT, at, at
    return WHOLE, at + LENGTH_BYTES + header, at + LENGTH_BYTES + length


@kernel
def measure(data: Bytes) -> tuple[int, int, int]:
    """Hop over the whole messages of a set, not into them: (why it ended, where, the largest payload)."""
    at = 0
    largest = 0
    while at < len(data):
        status, payload, end = _bounds(data, at)
        if status != WHOLE:
            return status, at, largest
        largest = max(largest, end - payload)
        at = end
    return END, at, largest


@kernel
def decode(
    data: Bytes,
    at: int,
    base: int,
    step: int,
    first: int,
    most: int,
    offsets: Int64s,
    inner: Int32s,
    ends: Int32s,
    values: Bytes,
    row: int,
    used: int,
) -> tuple[int, int, int, int]:
    """Plain messages from `at` on become rows: (why it stopped, where, rows, bytes of values).

    Args:
        data: a message set.
        at: where to begin in it.
        base: offset of the set's first byte, or of the message that it was compressed in.
        step: offsets grow by this for each byte of the set: 1, or 0 in a compressed set, whose rows are counted.
        first: the row from which `inner` counts.
        most: stop before a message once the columns hold so many bytes.
        offsets: column, filled from `row` on.
        inner: column, likewise.
        ends: where each value ends; one longer than the other columns, entry 0 is 0.
        values: the payloads, filled from `used` on.
        row: rows filled so far.
        used: bytes of values so far.
    """
    while at < len(data):
        if used + ROW_BYTES * row >= most:
            return PAUSED, at, row, used
        status, payload, end = _bounds(data, at)
        if status != WHOLE:
            return status, at, row, used
        if data[at + LENGTH_BYTES] == 1 and data[at + LENGTH_BYTES + 1] & CODEC_MASK:
            return WRAPPER, at, row, used
        if crc32(data, payload, end) != uint32(data, payload - CRC_BYTES):
            return BAD_CRC, at, row, used
        copy(data, payload, end - payload, values, used)
        offsets[row] = base + step * at
        inner[row] = (1 - step) * (row - first)
        row += 1
        used += end - payload
        ends[row] = used
        at = end
    return END, at, row, used
