"""Values of Avro into buffers, and the note about a buffer that is full."""

import numpy as np

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import ByteArray, Int32s, Int64s, copy, int64, little_int32, little_int64
from kafka_io.jit.utf8 import is_utf8
from kafka_io.values.kernels.avro_program import (
    BAD_BOOLEAN,
    BAD_NUMBER,
    BAD_SYMBOL,
    BAD_TEXT,
    BIG_DECIMAL,
    BOOLEAN,
    BYTES_OP,
    CUT,
    DECIMAL,
    DECIMAL_FIXED,
    DOUBLE,
    FIXED,
    FIXED_TEXT,
    FLOAT,
    FULL,
    FULL_NODE,
    LITTLE_UINT32,
    LONG,
    LONG_TO_DOUBLE,
    NEEDED_BYTES,
    NEEDED_ITEMS,
    OK,
    OUT_OF_RANGE,
    RAW_PREFIX,
    RAW_VALUE,
    SCALED,
    SKIP_BOOLEAN,
    SKIP_ENUM,
    SKIP_TEXT,
    TEXT,
    UUID,
)
from kafka_io.values.kernels.column_buffers import (
    BYTES,
    CELL,
    CONTENT,
    VALID,
    Float32s,
    Float64s,
    put_end,
    put_number,
    put_pair,
    put_real,
)

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1
# 10^38 as two halves.
_TOP_HIGH, _TOP_LOW = 10**38 >> 64, 10**38 & 0xFFFFFFFFFFFFFFFF
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (4, 6, 8, 10)
_UUID_BYTES, _UUID_TEXT_BYTES = 16, 36


@device_function
def full(node: int, needed_bytes: int, needed_items: int, work: Int64s) -> int:
    """Note which buffer is full, and what it needs: FULL."""
    work[FULL_NODE] = node
    work[NEEDED_BYTES] = needed_bytes
    work[NEEDED_ITEMS] = needed_items
    return FULL


@device_function
def put_bytes(
    source: ByteArray,
    start: int,
    size: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> int:
    """Append a text or bytes to a buffer: OK or FULL."""
    used = cells[nodes[node, CELL] + counts[node]]
    if used + size > nodes[node, BYTES]:
        return full(node, size, 0, work)
    copy(source, start, size, content, nodes[node, CONTENT] + used)
    put_end(node, used + size, nodes, cells, valid, counts)
    return OK


@device_function
def put_raw(
    data: ByteArray,
    start: int,
    end: int,
    number: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> int:
    """Append the number of a type, and after it the bytes of its value, to a buffer of texts: OK or FULL."""
    item = counts[node]
    used = cells[nodes[node, CELL] + item]
    if used + RAW_PREFIX + end - start > nodes[node, BYTES]:
        return full(node, RAW_PREFIX + end - start, 0, work)
    start_of_item = nodes[node, CONTENT] + used
    for i in range(RAW_PREFIX):
        content[start_of_item + i] = (number >> (8 * i)) & 0xFF
    copy(data, start, end - start, content, start_of_item + RAW_PREFIX)
    put_end(node, used + RAW_PREFIX + end - start, nodes, cells, valid, counts)
    valid[nodes[node, VALID] + item] = RAW_VALUE
    return OK


@device_function
def put_uuid(
    data: ByteArray,
    position: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> int:
    """Append 16 bytes to a buffer of texts in the form 8-4-4-4-12: OK or FULL."""
    used = cells[nodes[node, CELL] + counts[node]]
    if used + _UUID_TEXT_BYTES > nodes[node, BYTES]:
        return full(node, _UUID_TEXT_BYTES, 0, work)
    target = nodes[node, CONTENT] + used
    for i in range(_UUID_BYTES):
        if i in _DASHES:
            content[target] = 0x2D
            target += 1
        content[target] = _DIGITS[data[position + i] >> 4]
        content[target + 1] = _DIGITS[data[position + i] & 0xF]
        target += 2
    put_end(node, used + _UUID_TEXT_BYTES, nodes, cells, valid, counts)
    return OK


@device_function
def put_decimal(
    data: ByteArray,
    position: int,
    size: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    counts: Int64s,
    scratch: ByteArray,
) -> int:
    """Append a big-endian number of any size to a buffer of decimals: OK, or BIG_DECIMAL from 39 digits on."""
    sign = 0xFF if size > 0 and data[position] >= 0x80 else 0
    for i in range(size - 16):
        if data[position + i] != sign:
            return BIG_DECIMAL
    for i in range(16):
        place = size - 16 + i
        scratch[i] = data[position + place] if place >= 0 else sign
    high = int64(scratch, 0)
    low = int64(scratch, 8)
    # The sign may differ if more than 16 bytes were given.
    if (scratch[0] >= 0x80) != (sign == 0xFF):
        return BIG_DECIMAL
    if sign == 0:
        if high > _TOP_HIGH or (high == _TOP_HIGH and (low < 0 or low >= _TOP_LOW)):
            return BIG_DECIMAL
    elif high < -_TOP_HIGH - 1 or (high == -_TOP_HIGH - 1 and (low >= 0 or low <= -_TOP_LOW)):
        return BIG_DECIMAL
    put_pair(node, low, high, nodes, cells, valid, counts)
    return OK


@device_function
def put_long(
    op: int,
    number: int,
    factor: int,
    is_int: bool,
    max_number: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    counts: Int64s,
) -> int:
    """Append an int or long, unless it is skipped: the status. A negative factor of SCALED divides and rounds down."""
    if is_int and (number < _INT32_MIN or number > _INT32_MAX):
        return BAD_NUMBER
    if op == LONG:
        put_number(node, number, nodes, cells, valid, counts)
    elif op == SCALED:
        if factor <= 0:
            put_number(node, number // -factor, nodes, cells, valid, counts)
        elif number > max_number or number < -max_number:
            return OUT_OF_RANGE
        else:
            put_number(node, number * factor, nodes, cells, valid, counts)
    elif op == LONG_TO_DOUBLE:
        put_real(node, float(number) * float(factor), nodes, reals, valid, counts)
    return OK


@device_function
def put_symbol(
    op: int,
    number: int,
    first_symbol: int,
    symbol_count: int,
    node: int,
    symbols: ByteArray,
    symbol_ends: Int64s,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> int:
    """Append the symbol of an enum, unless it is skipped: the status."""
    if number < 0 or number >= symbol_count:
        return BAD_SYMBOL
    if op == SKIP_ENUM:
        return OK
    symbol = first_symbol + number
    first = symbol_ends[symbol]
    size = symbol_ends[symbol + 1] - first
    return put_bytes(symbols, first, size, node, nodes, cells, valid, content, counts, work)


@device_function
def put_sized(
    op: int,
    data: ByteArray,
    position: int,
    size: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
    scratch: ByteArray,
) -> int:
    """Append a text, bytes or a decimal whose length precedes it, unless it is skipped: the status."""
    if op in (TEXT, SKIP_TEXT) and not is_utf8(data, position, position + size):
        return BAD_TEXT
    if op in (TEXT, BYTES_OP):
        return put_bytes(data, position, size, node, nodes, cells, valid, content, counts, work)
    if op == DECIMAL:
        return put_decimal(data, position, size, node, nodes, cells, valid, counts, scratch)
    return OK


@device_function
def put_fixed(  # noqa: PLR0912 - one branch for each op
    op: int,
    data: ByteArray,
    position: int,
    end: int,
    size: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
    bits: Int32s,
    float_of_bits: Float32s,
    scratch: ByteArray,
) -> tuple[int, int]:
    """Run an op that reads a fixed number of bytes, which is `size` for some ops: (status, position after them)."""
    if op == DOUBLE:
        size = 8
    elif op in (FLOAT, LITTLE_UINT32):
        size = 4
    elif op in (BOOLEAN, SKIP_BOOLEAN):
        size = 1
    if size > end - position:
        return CUT, position
    status = OK
    if op == DOUBLE:
        put_number(node, little_int64(data, position), nodes, cells, valid, counts)
    elif op == FLOAT:
        bits[0] = little_int32(data, position)
        put_real(node, float_of_bits[0], nodes, reals, valid, counts)
    elif op == LITTLE_UINT32:
        put_number(node, little_int32(data, position) & 0xFFFFFFFF, nodes, cells, valid, counts)
    elif op in (BOOLEAN, SKIP_BOOLEAN):
        if data[position] > 1:
            return BAD_BOOLEAN, position
        if op == BOOLEAN:
            put_number(node, int(data[position]), nodes, cells, valid, counts)
    elif op == FIXED_TEXT and not is_utf8(data, position, position + size):
        return BAD_TEXT, position
    elif op in (FIXED, FIXED_TEXT):
        status = put_bytes(data, position, size, node, nodes, cells, valid, content, counts, work)
    elif op == DECIMAL_FIXED:
        status = put_decimal(data, position, size, node, nodes, cells, valid, counts, scratch)
    elif op == UUID:
        status = put_uuid(data, position, node, nodes, cells, valid, content, counts, work)
    return status, position + size
