"""Values of Avro into buffers."""

import numpy as np

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import ByteArray, float_of_bits, little_int32, little_int64
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
    INEXACT,
    LITTLE_UINT32,
    LONG,
    LONG_TO_DOUBLE,
    OUT_OF_RANGE,
    SCALED,
    SKIP_BOOLEAN,
    SKIP_ENUM,
    SKIP_TEXT,
    TEXT,
    UUID,
    A,
    AvroProgram,
    B,
    C,
)
from kafka_io.values.kernels.column_buffers import (
    BYTES,
    CONTENT,
    OK,
    BufferArrays,
    full,
    put_as_real,
    put_bytes,
    put_end,
    put_number,
    put_pair,
    put_real,
    used_bytes,
)
from kafka_io.values.kernels.times import FIRST_DAY, LAST_DAY

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1
# 10^38 as two halves.
_TOP_HIGH, _TOP_LOW = 10**38 >> 64, 10**38 & 0xFFFFFFFFFFFFFFFF
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (4, 6, 8, 10)
_UUID_BYTES, _UUID_TEXT_BYTES = 16, 36


@device_function
def put_uuid(data: ByteArray, position: int, node: int, buffers: BufferArrays) -> int:
    """Append 16 bytes to a buffer of texts in the form 8-4-4-4-12: OK or FULL."""
    used = used_bytes(node, buffers)
    if used + _UUID_TEXT_BYTES > buffers.nodes[node, BYTES]:
        return full(node, _UUID_TEXT_BYTES, 0, buffers)
    content, target = buffers.content, buffers.nodes[node, CONTENT] + used
    for i in range(_UUID_BYTES):
        if i in _DASHES:
            content[target] = 0x2D
            target += 1
        content[target] = _DIGITS[data[position + i] >> 4]
        content[target + 1] = _DIGITS[data[position + i] & 0xF]
        target += 2
    put_end(node, used + _UUID_TEXT_BYTES, buffers)
    return OK


@device_function
def put_decimal(data: ByteArray, position: int, size: int, node: int, buffers: BufferArrays) -> int:
    """Append a big-endian number of any size to a buffer of decimals: OK, or BIG_DECIMAL from 39 digits on."""
    sign = -1 if size > 0 and data[position] >= 0x80 else 0
    for i in range(size - 16):
        if data[position + i] != sign & 0xFF:
            return BIG_DECIMAL
    high = low = np.int64(sign)
    for i in range(max(size - 16, 0), size):
        high = (high << 8) | ((low >> 56) & 0xFF)
        low = (low << 8) | np.int64(data[position + i])
    # The sign may differ if more than 16 bytes were given.
    if (high < 0) != (sign < 0):
        return BIG_DECIMAL
    if sign == 0:
        if high > _TOP_HIGH or (high == _TOP_HIGH and (low < 0 or low >= _TOP_LOW)):
            return BIG_DECIMAL
    elif high < -_TOP_HIGH - 1 or (high == -_TOP_HIGH - 1 and (low >= 0 or low <= -_TOP_LOW)):
        return BIG_DECIMAL
    put_pair(node, int(low), int(high), buffers)
    return OK


@device_function
def put_long(op: int, number: int, place: int, node: int, program: AvroProgram, buffers: BufferArrays) -> int:
    """Append an int or long, unless it is skipped: the status. A negative factor of SCALED divides and rounds down."""
    factor = program.ops[place, A]
    if program.ops[place, B] != 0 and (number < _INT32_MIN or number > _INT32_MAX):
        return BAD_NUMBER
    units_per_day = program.ops[place, C]
    if units_per_day and not FIRST_DAY * units_per_day <= number < (LAST_DAY + 1) * units_per_day:
        return OUT_OF_RANGE
    if op in (SCALED, LONG_TO_DOUBLE):
        number = number // -factor if factor <= 0 else number * factor
    if op == LONG_TO_DOUBLE:
        return OK if put_as_real(node, number, buffers) else INEXACT
    if op in (LONG, SCALED):
        put_number(node, number, buffers)
    return OK


@device_function
def put_symbol(op: int, number: int, place: int, node: int, program: AvroProgram, buffers: BufferArrays) -> int:
    """Append the symbol of an enum, unless it is skipped: the status."""
    if number < 0 or number >= program.ops[place, B]:
        return BAD_SYMBOL
    if op == SKIP_ENUM:
        return OK
    symbol = program.ops[place, A] + number
    first = program.symbol_ends[symbol]
    return put_bytes(program.symbols, first, program.symbol_ends[symbol + 1] - first, node, buffers)


@device_function
def put_sized(op: int, data: ByteArray, position: int, size: int, node: int, buffers: BufferArrays) -> int:
    """Append a text, bytes or a decimal whose length precedes it, unless it is skipped: the status."""
    if op in (TEXT, SKIP_TEXT) and not is_utf8(data, position, position + size):
        return BAD_TEXT
    if op in (TEXT, BYTES_OP):
        return put_bytes(data, position, size, node, buffers)
    if op == DECIMAL:
        return put_decimal(data, position, size, node, buffers)
    return OK


@device_function
def put_fixed(  # noqa: PLR0912 - one branch for each op
    op: int, data: ByteArray, position: int, end: int, size: int, node: int, buffers: BufferArrays
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
        put_number(node, little_int64(data, position), buffers)
    elif op == FLOAT:
        put_real(node, float_of_bits(little_int32(data, position)), buffers)
    elif op == LITTLE_UINT32:
        put_number(node, little_int32(data, position) & 0xFFFFFFFF, buffers)
    elif op in (BOOLEAN, SKIP_BOOLEAN):
        if data[position] > 1:
            return BAD_BOOLEAN, position
        if op == BOOLEAN:
            put_number(node, int(data[position]), buffers)
    elif op == FIXED_TEXT and not is_utf8(data, position, position + size):
        return BAD_TEXT, position
    elif op in (FIXED, FIXED_TEXT):
        status = put_bytes(data, position, size, node, buffers)
    elif op == DECIMAL_FIXED:
        status = put_decimal(data, position, size, node, buffers)
    elif op == UUID:
        status = put_uuid(data, position, node, buffers)
    return status, position + size
