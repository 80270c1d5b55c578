"""The column arrays that kernels fill: one layout for all generations."""

from typing import NamedTuple

from kafka_io.records.compiling import device_function
from kafka_io.records.kernels.scalars import ByteArray, Int32s, Int64s, clear_bit, copy

# Columns as bits. Arrays of columns that are not requested stay empty and must not be written.
OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, INNER = 1, 2, 4, 8, 16, 32, 64

# Indexes of the counters in `ColumnArrays.filled`.
ROWS, KEY_BYTES, VALUE_BYTES, HEADER_ROWS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(6)
KEY_NULLS, VALUE_NULLS, HEADER_VALUE_NULLS = range(6, 9)
# After an error in a record batch: index of the batch in its table, and of the record in the batch.
FAULT_BATCH, FAULT_RECORD = range(9, 11)
COUNTERS = 11

# Bytes of a row beside its key, value and headers: offset, timestamp, timestamp type, three ends.
ROW_BYTES = 8 + 8 + 4 + 4 + 4 + 4
# The same for a row of 0.7: offset, inner, end of the value.
ROW_BYTES_07 = 8 + 4 + 4


class ColumnArrays(NamedTuple):
    """The buffers of the Arrow arrays, one item per row (header arrays: per header).

    `*_ends` are Arrow's offsets into the content array of the same column: n + 1 items, the first is 0. `*_valid` are
    bitmaps with one bit per item; all bits are set before the kernel runs, and it clears those of nulls. `filled` holds
    the counters.
    """

    offsets: Int64s
    inner: Int32s
    timestamps: Int64s
    timestamp_types: Int32s
    key_ends: Int32s
    keys: ByteArray
    key_valid: ByteArray
    value_ends: Int32s
    values: ByteArray
    value_valid: ByteArray
    header_ends: Int32s
    header_key_ends: Int32s
    header_keys: ByteArray
    header_value_ends: Int32s
    header_values: ByteArray
    header_value_valid: ByteArray
    filled: Int64s


@device_function
def put_key(data: ByteArray, position: int, size: int, columns: ColumnArrays) -> None:
    """Write the key of the next row: `size` bytes at `position`, or null for -1. `put_row` ends the row."""
    filled = columns.filled
    row, used = filled[ROWS], filled[KEY_BYTES]
    if size > 0:
        copy(data, position, size, columns.keys, used)
        used += size
        filled[KEY_BYTES] = used
    elif size < 0:
        clear_bit(columns.key_valid, row)
        filled[KEY_NULLS] += 1
    columns.key_ends[row + 1] = used


@device_function
def put_value(data: ByteArray, position: int, size: int, columns: ColumnArrays) -> None:
    """Write the value of the next row: `size` bytes at `position`, or null for -1."""
    filled = columns.filled
    row, used = filled[ROWS], filled[VALUE_BYTES]
    if size > 0:
        copy(data, position, size, columns.values, used)
        used += size
        filled[VALUE_BYTES] = used
    elif size < 0:
        clear_bit(columns.value_valid, row)
        filled[VALUE_NULLS] += 1
    columns.value_ends[row + 1] = used


@device_function
def put_header(
    data: ByteArray, key_position: int, key_size: int, value_position: int, value_size: int, columns: ColumnArrays
) -> None:
    """Write one more header of the next row; a `value_size` of -1 is null."""
    filled = columns.filled
    row, key_bytes, value_bytes = filled[HEADER_ROWS], filled[HEADER_KEY_BYTES], filled[HEADER_VALUE_BYTES]
    copy(data, key_position, key_size, columns.header_keys, key_bytes)
    if value_size > 0:
        copy(data, value_position, value_size, columns.header_values, value_bytes)
        value_bytes += value_size
    elif value_size < 0:
        clear_bit(columns.header_value_valid, row)
        filled[HEADER_VALUE_NULLS] += 1
    row, key_bytes = row + 1, key_bytes + key_size
    columns.header_key_ends[row], columns.header_value_ends[row] = key_bytes, value_bytes
    filled[HEADER_ROWS], filled[HEADER_KEY_BYTES], filled[HEADER_VALUE_BYTES] = row, key_bytes, value_bytes


@device_function
def put_row(offset: int, timestamp: int, timestamp_type: int, wanted: int, columns: ColumnArrays) -> None:
    """End the row: write its other columns and count it. All headers since the previous row belong to it."""
    filled = columns.filled
    row = filled[ROWS]
    if wanted & OFFSET:
        columns.offsets[row] = offset
    if wanted & TIMESTAMP:
        columns.timestamps[row] = timestamp
    if wanted & TIMESTAMP_TYPE:
        columns.timestamp_types[row] = timestamp_type
    filled[ROWS] = row + 1
    if wanted & HEADERS:
        columns.header_ends[row + 1] = filled[HEADER_ROWS]
