"""Values in JSON without values inside them to items of buffers."""

import numpy as np

from kafka_io.jit.compiling import device_function, merged, subroutine
from kafka_io.jit.scalars import ByteArray, Int64s, copy
from kafka_io.values.kernels.avro_buffers import put_decimal
from kafka_io.values.kernels.column_buffers import (
    BYTES,
    CONTENT,
    FULL,
    ITEMS,
    OK,
    BufferArrays,
    put_bytes,
    put_end,
    put_number,
    used_bytes,
)
from kafka_io.values.kernels.json_numbers import epoch, put_parsed_number
from kafka_io.values.kernels.json_program import (
    BAD_BASE64,
    BAD_DATE,
    BAD_TIME,
    BRACKETS,
    CUT,
    DOCUMENT_NOTES,
    EXTRA,
    NOT_A_KEY,
    OP,
    OUT_OF_RANGE,
    READ_BASE64,
    READ_BOOL,
    READ_DATE,
    READ_DECIMAL,
    READ_DECIMAL_BYTES,
    READ_EPOCH,
    READ_JSON,
    READ_STRING,
    READ_TIMESTAMP,
    WRONG_TYPE,
    WRONG_ZONE,
    JsonProgram,
)
from kafka_io.values.kernels.json_texts import (
    LOWER_F,
    LOWER_T,
    MINUS,
    NINE,
    QUOTE,
    ZERO,
    after_colon,
    literal_end,
    text_end,
    unescape,
    value_end,
)
from kafka_io.values.kernels.times import HAS_ZONE, NO_ZONE, scan_date, scan_timestamp

DECIMAL_TEXT = 48
"""The longest text of the bytes of a decimal. Those of 38 digits need 24 characters."""
_BASE64 = np.full(256, -1, np.int64)
_BASE64[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)] = range(64)
_PAD = ord("=")


@merged
def put_map_key(data: ByteArray, position: int, end: int, node: int, buffers: BufferArrays) -> tuple[int, int]:
    """Append the key of a map: (status, start of its value)."""
    if buffers.counts[node] >= buffers.nodes[node, ITEMS]:
        return FULL, position
    if position >= end:
        return CUT, position
    if data[position] != QUOTE:
        return NOT_A_KEY, position
    status, position = _text(data, position, end, node, READ_STRING, buffers)
    if status != OK:
        return status, position
    position = after_colon(data, position, end)
    return OK if position >= 0 else -position, position


@merged
def put_scalar(  # noqa: PLR0912
    data: ByteArray,
    position: int,
    end: int,
    node: int,
    depth: int,
    program: JsonProgram,
    work: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int]:
    """Append the value of a buffer without buffers inside it: (status, position after it).

    If the status is FULL, the position is 0 for the buffer itself, and 1 for those of late numbers.
    """
    read = program.readings[node, OP]
    byte = data[position]
    is_number = byte == MINUS or ZERO <= byte <= NINE
    status, after, number = WRONG_TYPE, 0, 0
    if read == READ_JSON:
        after = value_end(data, position, end, work[BRACKETS:DOCUMENT_NOTES], depth)
        if after < 0:
            return -after, 0
        status = put_bytes(data, position, after - position, node, buffers)
        return status, after if status == OK else 0
    if read == READ_DECIMAL_BYTES:
        if is_number:
            return put_parsed_number(data, position, end, node, READ_DECIMAL, program, work, buffers)
        return _decimal_bytes(data, position, end, node, program.scratch, buffers) if byte == QUOTE else (status, 0)
    if read >= READ_EPOCH:
        if is_number:
            status, after, number = epoch(data, position, end, read, program.readings[node, EXTRA])
    elif read >= READ_DATE:
        if byte == QUOTE:
            status, after, number = _time(data, position, end, read)
    elif read >= READ_STRING:
        if byte == QUOTE:
            return _text(data, position, end, node, read, buffers)
    elif read == READ_BOOL:
        if byte in (LOWER_T, LOWER_F):
            after = literal_end(data, position, end)
            status, number = OK if after >= 0 else -after, 1 if byte == LOWER_T else 0
    elif is_number or (byte == QUOTE and read == READ_DECIMAL):
        return put_parsed_number(data, position, end, node, read, program, work, buffers)
    if status == OK:
        put_number(node, number, buffers)
    return status, after


@device_function
def _text(data: ByteArray, position: int, end: int, node: int, read: int, buffers: BufferArrays) -> tuple[int, int]:
    """Append the text at `position`, the position of its quote: (status, position after it, or 0 if not OK)."""
    stop, has_escapes = text_end(data, position + 1, end)
    if stop < 0:
        return -stop, 0
    position += 1
    used = used_bytes(node, buffers)
    if used + stop - position > buffers.nodes[node, BYTES]:
        return FULL, 0
    base = buffers.nodes[node, CONTENT]
    if read == READ_BASE64:
        size = _from_base64(data, position, stop, buffers.content, base + used)
        if size < 0:
            return BAD_BASE64, 0
        used += size
    elif has_escapes:
        used = unescape(data, position, stop, buffers.content, base + used) - base
    else:
        copy(data, position, stop - position, buffers.content, base + used)
        used += stop - position
    put_end(node, used, buffers)
    return OK, stop + 1


@device_function
def _decimal_bytes(
    data: ByteArray, position: int, end: int, node: int, scratch: ByteArray, buffers: BufferArrays
) -> tuple[int, int]:
    """Append the decimal whose bytes are the base64 text at `position`: (status, position after it)."""
    stop, _has_escapes = text_end(data, position + 1, end)
    if stop < 0:
        return -stop, 0
    if stop - position > DECIMAL_TEXT:
        return OUT_OF_RANGE, 0
    size = _from_base64(data, position + 1, stop, scratch, 0)
    if size <= 0:
        return BAD_BASE64, 0
    return OK if put_decimal(scratch, 0, size, node, buffers) == OK else OUT_OF_RANGE, stop + 1


@subroutine
def _from_base64(data: ByteArray, position: int, stop: int, target: ByteArray, filled: int) -> int:
    """Decode base64 with padding into `target`; the number of bytes, or -1."""
    size = stop - position
    if size % 4 != 0:
        return -1
    padding = 0
    if size > 0 and data[stop - 1] == _PAD:
        padding = 2 if data[stop - 2] == _PAD else 1
    written = 0
    for start in range(position, stop, 4):
        group = 0
        for i in range(4):
            is_padding = start + i >= stop - padding
            digit = 0 if is_padding else _BASE64[data[start + i]]
            if digit < 0:
                return -1
            group = (group << 6) | digit
        for i in range(3 - (padding if start + 4 == stop else 0)):
            target[filled + written] = (group >> (16 - 8 * i)) & 0xFF
            written += 1
    return written


@subroutine
def _time(data: ByteArray, position: int, end: int, read: int) -> tuple[int, int, int]:
    """The date or timestamp whose quote is at `position`: (status, position after it, or 0 if not OK; number)."""
    stop, _has_escapes = text_end(data, position + 1, end)
    if stop < 0:
        return -stop, 0, 0
    if read == READ_DATE:
        after, number = scan_date(data, position + 1, stop)
        if after != stop:
            return BAD_DATE, 0, 0
    else:
        after, number, zone = scan_timestamp(data, position + 1, stop)
        if after != stop:
            return BAD_TIME, 0, 0
        if zone != (HAS_ZONE if read == READ_TIMESTAMP else NO_ZONE):
            return WRONG_ZONE, 0, 0
    return OK, stop + 1, number
