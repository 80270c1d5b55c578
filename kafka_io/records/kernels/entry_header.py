"""The header that all entries of a log begin with, from 0.8 on: messages of formats 0 and 1, and record batches."""

import numpy as np

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import ByteArray, int32
from kafka_io.records.kernels.status_codes import BAD_LENGTH, BAD_MAGIC, CUT, OTHER_FORMAT, WHOLE
from kafka_io.records.layout import BATCH_MAGIC, ENTRY_BYTES, ENTRY_LENGTH_AT, MAGIC_AT, MIN_ENTRY_BYTES


@device_function
def entry_bounds(data: ByteArray, position: int, min_magic: int, max_magic: int) -> tuple[int, int]:
    """Check the header of the entry at `position`: (WHOLE, its end), or (status, position).

    An entry of a magic below `min_magic` or above `max_magic` is left to another kernel: OTHER_FORMAT.

    An incomplete entry is checked as far as its bytes go. Otherwise an invalid length would look like an entry that a
    larger fetch completes.
    """
    remaining = len(data) - position
    if remaining < ENTRY_BYTES:
        return CUT, position
    length = int32(data, position + ENTRY_LENGTH_AT)
    if length < MIN_ENTRY_BYTES[0] - ENTRY_BYTES:
        return BAD_LENGTH, position
    if remaining <= MAGIC_AT:
        return CUT, position
    magic = np.int64(data[position + MAGIC_AT])
    if magic > BATCH_MAGIC:
        return BAD_MAGIC, position
    if magic < min_magic or magic > max_magic:
        return OTHER_FORMAT, position
    if length < MIN_ENTRY_BYTES[magic] - ENTRY_BYTES:
        return BAD_LENGTH, position
    if remaining < ENTRY_BYTES + length:
        return CUT, position
    return WHOLE, position + ENTRY_BYTES + length
