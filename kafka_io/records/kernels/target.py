"""The columns that kernels fill."""

from typing import NamedTuple

from kafka_io.records.compiling import part
from kafka_io.records.kernels.scalars import Bytes, Int32s, Int64s, clear_bit, copy

# What is asked for, as bits; the arrays of the other columns stay empty.
OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS = 1, 2, 4, 8, 16, 32

# What is filled so far, by place in `Target.filled`.
ROWS, KEY_BYTES, VALUE_BYTES, HEADER_ROWS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(6)
KEY_NULLS, VALUE_NULLS, HEADER_VALUE_NULLS = range(6, 9)
# Where a kernel met what it could not take: row of the batch in its table, record of the batch.
FAULT_BATCH, FAULT_RECORD = range(9, 11)
COUNTERS = 11

# What a row takes in the columns beside key, value and headers: offset, timestamp, its type, three ends.
ROW_BYTES = 8 + 8 + 4 + 4 + 4 + 4


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


@part
def put_key(data: Bytes, at: int, size: int, target: Target) -> None:
    """The key of the row that comes next: `size` bytes at `at`, or null for -1."""
    filled = target.filled
    row, used = filled[ROWS], filled[KEY_BYTES]
    if size > 0:
        copy(data, at, size, target.keys, used)
        used += size
        filled[KEY_BYTES] = used
    elif size < 0:
        clear_bit(target.key_valid, row)
        filled[KEY_NULLS] += 1
    target.key_ends[row + 1] = used


@part
def put_value(data: Bytes, at: int, size: int, target: Target) -> None:
    """The value of the row that comes next: `size` bytes at `at`, or null for -1."""
    filled = target.filled
    row, used = filled[ROWS], filled[VALUE_BYTES]
    if size > 0:
        copy(data, at, size, target.values, used)
        used += size
        filled[VALUE_BYTES] = used
    elif size < 0:
        clear_bit(target.value_valid, row)
        filled[VALUE_NULLS] += 1
    target.value_ends[row + 1] = used


@part
def put_header(data: Bytes, key_at: int, key_size: int, value_at: int, value_size: int, target: Target) -> None:
    """One more header; a `value_size` of -1 is null."""
    filled = target.filled
    row, key_bytes, value_bytes = filled[HEADER_ROWS], filled[HEADER_KEY_BYTES], filled[HEADER_VALUE_BYTES]
    copy(data, key_at, key_size, target.header_keys, key_bytes)
    if value_size > 0:
        copy(data, value_at, value_size, target.header_values, value_bytes)
        value_bytes += value_size
    elif value_size < 0:
        clear_bit(target.header_value_valid, row)
        filled[HEADER_VALUE_NULLS] += 1
    row, key_bytes = row + 1, key_bytes + key_size
    target.header_key_ends[row], target.header_value_ends[row] = key_bytes, value_bytes
    filled[HEADER_ROWS], filled[HEADER_KEY_BYTES], filled[HEADER_VALUE_BYTES] = row, key_bytes, value_bytes


@part
def put_row(offset: int, timestamp: int, timestamp_type: int, wanted: int, target: Target) -> None:
    """The rest of that row, which ends it; the headers put since the row before are its own."""
    filled = target.filled
    row = filled[ROWS]
    if wanted & OFFSET:
        target.offsets[row] = offset
    if wanted & TIMESTAMP:
        target.timestamps[row] = timestamp
    if wanted & TIMESTAMP_TYPE:
        target.timestamp_types[row] = timestamp_type
    filled[ROWS] = row + 1
    if wanted & HEADERS:
        target.header_ends[row + 1] = filled[HEADER_ROWS]
