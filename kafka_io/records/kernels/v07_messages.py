"""Kernels for the message sets of 0.7."""

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import ByteArray, Int32s, Int64s, copy, int32, uint32
from kafka_io.records.kernels.column_arrays import ROW_BYTES_07, ROWS, VALUE_BYTES
from kafka_io.records.kernels.crc32 import crc32
from kafka_io.records.kernels.status_codes import BAD_CRC, BAD_LENGTH, BAD_MAGIC, CUT, END, PAUSED, WHOLE, WRAPPER
from kafka_io.records.layout import (
    CODEC_MASK,
    CRC_BYTES,
    HEADER_BYTES,
    LARGEST_MAGIC,
    LENGTH_BYTES,
    MIN_LENGTH,
)


@device_function
def _bounds(data: ByteArray, position: int) -> tuple[int, int, int]:
    """Check the header of the message at `position`: (WHOLE, start of its payload, its end), or an error.

    An incomplete message is checked as far as its bytes go.
    """
    remaining = len(data) - position
    if remaining < LENGTH_BYTES:
        return CUT, position, position
    length = int32(data, position)
    magic = int(data[position + LENGTH_BYTES]) if remaining > LENGTH_BYTES else 0
    header = HEADER_BYTES[magic] if magic <= LARGEST_MAGIC else MIN_LENGTH
    if length < header:
        return BAD_LENGTH, position, position
    if magic > LARGEST_MAGIC:
        return BAD_MAGIC, position, position
    if remaining < LENGTH_BYTES + length:
        return CUT, position, position
    return WHOLE, position + LENGTH_BYTES + header, position + LENGTH_BYTES + length


@kernel
def measure(data: ByteArray) -> tuple[int, int, int]:
    """Skip the whole messages of a set: (status, position where it stopped, size of the largest payload)."""
    position = 0
    largest = 0
    while position < len(data):
        status, payload, end = _bounds(data, position)
        if status != WHOLE:
            return status, position, largest
        largest = max(largest, end - payload)
        position = end
    return END, position, largest


@kernel
def decode(
    data: ByteArray,
    position: int,
    base: int,
    step: int,
    first_row: int,
    max_bytes: int,
    offsets: Int64s,
    inner: Int32s,
    value_ends: Int32s,
    values: ByteArray,
    filled: Int64s,
) -> tuple[int, int]:
    """Append the plain messages from `position` on as rows: (status, position of the message that was not decoded).

    The columns are separate arguments and no ColumnArrays: a compressed set is often small, and to pass the 17 arrays
    of that tuple takes longer than to decode ten messages.

    Args:
        data: a message set.
        position: position of the first message to decode.
        base: offset of the set's first byte, or of the message that it was compressed in.
        step: offsets grow by this for each byte of the set: 1, or 0 in a compressed set.
        first_row: the row whose `inner` is 0, for a compressed set.
        max_bytes: stop before a message once the columns hold so many bytes.
        offsets: column; has room for all that `data` can hold, as all columns here.
        inner: column, the index inside a compressed message.
        value_ends: where each value ends in `values`; entry 0 is 0.
        values: the payloads, one after the other.
        filled: counters of `column_arrays`; ROWS and VALUE_BYTES are updated.
    """
    row, used = filled[ROWS], filled[VALUE_BYTES]
    status = END
    while position < len(data):
        if used + ROW_BYTES_07 * row >= max_bytes:
            status = PAUSED
            break
        status, payload, end = _bounds(data, position)
        if status != WHOLE:
            break
        if data[position + LENGTH_BYTES] == 1 and data[position + LENGTH_BYTES + 1] & CODEC_MASK:
            status = WRAPPER
            break
        if crc32(data, payload, end) != uint32(data, payload - CRC_BYTES):
            status = BAD_CRC
            break
        copy(data, payload, end - payload, values, used)
        offsets[row] = base + step * position
        inner[row] = (1 - step) * (row - first_row)
        row += 1
        used += end - payload
        value_ends[row] = used
        position = end
        status = END
    filled[ROWS], filled[VALUE_BYTES] = row, used
    return status, position
