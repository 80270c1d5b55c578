"""The columns that kernels fill."""

from typing import NamedTuple

from kafka_io.records.compiling import kernel
from kafka_io.records.kernels.scalars import Bytes, Int32s, Int64s, clear_bit, copy

# What is asked for, as bits; the arrays of the other columns stay empty.
OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS = 1, 2, 4, 8, 16, 32

# What is filled so far, by place in `Target.filled`.
ROWS, KEY_BYTES, VALUE_BYTES, HEADER_ROWS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(6)
KEY_NULLS, VALUE_NULLS, HEADER_VALUE_NULLS = range(6, 9)
# Where a kernel met what it could not take: row of the batch's table, record of its batch, byte.
FAULT_BATCH, FAULT_RECORD, FAULT_AT = range(9, 12)
COUNTERS = 12


class Target(NamedTuple):
    """Arrow buffers. An array of ends is one longer than its column and begins with 0; validity bits begin set."""

    offsets: Int64s
    timestamps: Int64s
    timestamp_types: Int32s
    key_ends: Int32s
    keys: Bytes
    key_valid: Bytes
    value_ends: Int32s
    values: Bytes
    value_valid: Bytes
    header_ends: Int32s
    header_key_ends: Int32s
    header_keys: Bytes
    header_value_ends: Int32s
    header_values: Bytes
    header_value_valid: Bytes
    filled: Int64s


@kernel
def put(  # noqa: PLR0917 - arrays one by one: to hand a Target on costs more than what is done with it
    data: Bytes, at: int, size: int, row: int, used: int, ends: Int32s, content: Bytes, valid: Bytes
) -> int:
    """A key or value of `size` bytes at `at`, -1 for null, becomes that of `row`; how many bytes are used then."""
    if size > 0:
        copy(data, at, size, content, used)
        used += size
    elif size < 0:
        clear_bit(valid, row)
    ends[row + 1] = used
    return used
