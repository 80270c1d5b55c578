"""The column arrays that kernels fill: one layout for all generations."""

from typing import NamedTuple

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import ByteArray, Int32s, Int64s, clear_bit, copy

# Columns as bits: those of `schema.SCHEMA` in their order, then `inner` of 0.7. The arrays of a column that is not
# requested stay empty and must not be written.
COLUMNS = OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, INNER = 1, 2, 4, 8, 16, 32, 64

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
def put_row(
    data: ByteArray,
    key: int,
    key_size: int,
    value: int,
    value_size: int,
    offset: int,
    timestamp: int,
    timestamp_type: int,
    wanted: int,
    columns: ColumnArrays,
) -> None:
    """Write and count the next row: its key is the `key_size` bytes at `key`, or null for -1; likewise its value.

    All headers that were put since the previous row belong to it.
    """
    filled = columns.filled
    row = filled[ROWS]
    if wanted & KEY:
        ends, valid = columns.key_ends, columns.key_valid
        _put_bytes(data, key, key_size, row, columns.keys, ends, valid, filled, KEY_BYTES, KEY_NULLS)
    if wanted & VALUE:
        ends, valid = columns.value_ends, columns.value_valid
        _put_bytes(data, value, value_size, row, columns.values, ends, valid, filled, VALUE_BYTES, VALUE_NULLS)
    if wanted & OFFSET:
        columns.offsets[row] = offset
    if wanted & TIMESTAMP:
        columns.timestamps[row] = timestamp
    if wanted & TIMESTAMP_TYPE:
        columns.timestamp_types[row] = timestamp_type
    filled[ROWS] = row + 1
    if wanted & HEADERS:
        columns.header_ends[row + 1] = filled[HEADER_ROWS]


@device_function
def put_header(data: ByteArray, key: int, key_size: int, value: int, value_size: int, columns: ColumnArrays) -> None:
    """Write and count one more header of the next row; a `value_size` of -1 is null. A key is never null."""
    filled, keys, values = columns.filled, columns.header_keys, columns.header_values
    header, used = filled[HEADER_ROWS], filled[HEADER_KEY_BYTES]
    copy(data, key, key_size, keys, used)
    filled[HEADER_KEY_BYTES] = columns.header_key_ends[header + 1] = used + key_size
    ends, valid = columns.header_value_ends, columns.header_value_valid
    _put_bytes(data, value, value_size, header, values, ends, valid, filled, HEADER_VALUE_BYTES, HEADER_VALUE_NULLS)
    filled[HEADER_ROWS] = header + 1


@device_function
def _put_bytes(
    data: ByteArray,
    position: int,
    size: int,
    item: int,
    content: ByteArray,
    ends: Int32s,
    valid: ByteArray,
    filled: Int64s,
    bytes_counter: int,
    nulls_counter: int,
) -> None:
    """Write item number `item` of a binary column: `size` bytes at `position` of `data`, or null for -1."""
    used = filled[bytes_counter]
    if size > 0:
        copy(data, position, size, content, used)
        used += size
        filled[bytes_counter] = used
    elif size < 0:
        clear_bit(valid, item)
        filled[nulls_counter] += 1
    ends[item + 1] = used
