"""The loops over bytes: arrays in, arrays filled, a status returned. Only numba is known here, and integers.

Each is right with the compiler off too (NUMBA_DISABLE_JIT=1): bytes are widened before they are shifted. Nothing is
raised; the faces (batches.py, columns.py) turn a status into an error with its place. Arrays of bytes come read-only,
so that each kernel is compiled once.
"""

import numpy as np
import numpy.typing as npt

from kafka_io.records.compiling import kernel
from kafka_io.records.layout import (
    CODEC_MASK,
    CRC_BYTES,
    HEADER_BYTES,
    LARGEST_MAGIC,
    LEAST_LENGTH,
    LENGTH_BYTES,
)

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

WHOLE = 0  # a message is there, all of it
END = 1  # the set is read to its end
CUT = 2  # the last message is not all there
PAUSED = 3  # the columns hold as much as was asked for; go on from here
WRAPPER = 4  # a compressed message stands here, for the face to open
BAD_LENGTH = 5
BAD_MAGIC = 6
BAD_CRC = 7

# What a row takes in the columns beside its value: offset, inner, end of value.
ROW_BYTES = 8 + 4 + 4

_CRC_POLYNOMIAL = 0xEDB88320


def _crc_tables() -> npt.NDArray[np.uint32]:
    """Table k holds the CRC of each byte followed by k zero bytes (slicing by 8)."""
    tables = np.empty((8, 256), np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(_CRC_POLYNOMIAL), crc >> 1)
    tables[0] = crc
    for k in range(1, 8):
        tables[k] = tables[0][tables[k - 1] & 0xFF] ^ (tables[k - 1] >> 8)
    return tables


_CRC_TABLES = _crc_tables()


@kernel
def _uint32(data: Bytes, at: int) -> int:
    """Big-endian."""
    value = np.int64(0)
    for i in range(4):
        value = (value << 8) | np.int64(data[at + i])
    return int(value)


@kernel
def _crc32(data: Bytes, start: int, end: int) -> int:
    # Unsigned throughout: numba tests each signed index for being negative (20 bytes: 2.4 GB/s, and 1.5 signed).
    tables = _CRC_TABLES
    byte = np.uint64(0xFF)
    crc = np.uint64(0xFFFFFFFF)
    at, stop = np.uint64(start), np.uint64(end)
    while at + np.uint64(8) <= stop:
        word = crc
        for i in range(8):
            word ^= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
        crc = np.uint64(0)
        for i in range(8):
            crc ^= np.uint64(tables[7 - i, (word >> np.uint64(8 * i)) & byte])
        at += np.uint64(8)
    while at < stop:
        crc = (crc >> np.uint64(8)) ^ np.uint64(tables[0, (crc ^ np.uint64(data[at])) & byte])
        at += np.uint64(1)
    return int(np.int64(crc ^ np.uint64(0xFFFFFFFF)))


@kernel
def _bounds(data: Bytes, at: int) -> tuple[int, int, int]:
    """The message at `at`: (WHOLE, where its payload starts, where it ends), or what is wrong with it.

    A message that is cut is judged by as much of it as there is.
    """
    left = len(data) - at
    if left < LENGTH_BYTES:
        return CUT, at, at
    length = _uint32(data, at)
    if length >= 1 << 31:
        length -= 1 << 32
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
def decode(  # noqa: PLR0917 - as PLR0913: arrays one by one
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
        if _crc32(data, payload, end) != _uint32(data, payload - CRC_BYTES):
            return BAD_CRC, at, row, used
        values[used : used + end - payload] = data[payload:end]
        offsets[row] = base + step * at
        inner[row] = (1 - step) * (row - first)
        row += 1
        used += end - payload
        ends[row] = used
        at = end
    return END, at, row, used
