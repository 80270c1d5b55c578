"""Protobuf messages to rows in buffers: one kernel that runs a program, so no schema is ever compiled.

A program has a table of message types, with a row for each place where a type is used. The row leads to the fields of
the type, in ascending order of their numbers, and to what happens at the end of a message to buffers without a value.
The fields of a value may come in any order. If a scalar comes twice, the last one counts. A buffer can only be appended
to, so some values have the result UNUSUAL: a message in several parts, a oneof with two members, and a map with the
same key twice. So has what google.protobuf keeps as an unknown field after its bytes were read. That is a number which
a closed enum lacks, or an entry of a map as a whole if a part of it is unknown. The caller writes such a value again in
the usual form, without unknown fields, and decodes that.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int32s, Int64s, little_int32, little_int64, place_of
from kafka_io.jit.utf8 import is_utf8
from kafka_io.values.kernels.column_buffers import (
    FULL,
    OK,
    ROOT,
    BufferArrays,
    RowArrays,
    begin_row,
    put_bytes,
    put_null,
    put_number,
    put_raw,
    undo_row,
)
from kafka_io.values.kernels.protobuf_buffers import close_message, make_room, put_symbol, put_value, symbol_of
from kafka_io.values.kernels.protobuf_program import (
    BAD_GROUP,
    BAD_LENGTH,
    BAD_NUMBER,
    BAD_TAG,
    BAD_TEXT,
    BAD_TIME,
    BYTES_OP,
    CLOSED,
    CUT,
    DURATION,
    ENTRY,
    ENUM,
    FIRST,
    FIXED32,
    FIXED64,
    FLAGS,
    GROUP,
    GROUP_END,
    JSON,
    KIND,
    LAST,
    LAST_NUMBER,
    LENGTH,
    MAX_DEPTH,
    MESSAGE,
    MESSAGE_NODE,
    NODE,
    NUMBER,
    OP,
    OPEN_END,
    OPEN_GROUP,
    OPEN_ITEM,
    OPEN_MESSAGE,
    PACKABLE,
    REFUSE,
    REFUSED,
    SKIPPED,
    STRING,
    TOO_DEEP,
    UNUSUAL,
    VARINT,
    WIRE,
    WRONG_WIRE,
    A,
    B,
    ProtobufProgram,
)
from kafka_io.values.kernels.protobuf_wire import (
    LOW_32,
    SIGN_32,
    read_size,
    read_tag,
    read_time,
    read_varint,
    skip_value,
)

# The result of one step through a message: a field with a known type, an unknown field, an end, or nothing to do.
_FIELD, _UNKNOWN, _GROUP_END, _MESSAGE_END, _NOTHING = range(5)


@kernel
def decode_rows(
    data: ByteArray,
    starts: Int32s,
    ends: Int32s,
    entries: Int32s,
    canonical: ByteArray,
    program: ProtobufProgram,
    stack: Int64s,
    buffers: BufferArrays,
    rows: RowArrays,
) -> int:
    """Append rows until the end, or until a buffer is full: OK or FULL. It continues after the rows in the buffers.

    Args:
        data: all values.
        starts: start of each message.
        ends: end of each message.
        entries: each value's message type as an index of `messages`; -1 for a row of nulls.
        canonical: 1 for a value that is in the usual form, so that UNUSUAL is not a result.
        program: the programs of the message types.
        stack: MAX_DEPTH + 1 rows.
        buffers: see `column_buffers`.
        rows: the place of a failure is a field.
    """
    row = int(buffers.counts[ROOT])
    while row < len(entries):
        entry = int(entries[row])
        if entry < 0:
            put_null(ROOT, buffers)
            row += 1
            continue
        begin_row(buffers, rows)
        start = int(starts[row])
        status, field, position = _value(
            data, start, int(ends[row]), entry, canonical[row] == 1, program, stack, buffers
        )
        if status != OK:
            undo_row(row, status, field, position - start, buffers, rows)
            if status == FULL:
                return FULL
        row += 1
    return OK


@device_function
def _value(  # noqa: PLR0912 - messages begin, continue and end in one loop
    data: ByteArray,
    position: int,
    end: int,
    message: int,
    canonical: bool,
    program: ProtobufProgram,
    stack: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int, int]:
    """Append one row: (status, the last field or -1, the position before it)."""
    messages, fields = program.messages, program.fields
    depth = 0
    group = 0  # the number of the group that is the open message, or 0
    item = buffers.counts[ROOT]
    first = messages[message, FIRST]
    last = messages[message, LAST]
    field, packed_end = -1, -1  # packed_end is the end of the packed list that is being read
    while True:
        before, limit = position, end
        child = -1  # the message that begins
        status, event, wire, size = OK, _FIELD, 0, 0
        if position < packed_end:
            wire = fields[field, WIRE]
            limit = packed_end
        elif position < end:
            status, event, position, field, wire, packed_end = _next_field(
                data, position, end, group, first, last, messages[message, KIND], fields, depth, stack
            )
            if event == _GROUP_END:
                # The next step closes the message. `end` is that of the message around it after that.
                group, end = 0, position
        elif group:
            status, field = CUT, -1
        else:
            event, field = _MESSAGE_END, -1
            status, child = close_message(message, item, canonical, program, buffers)
        if status == OK and event == _FIELD:
            status, event, position, size = _put_field(
                data, position, limit, field, wire, item, canonical, program, depth, stack, buffers
            )
            if event == _FIELD and fields[field, OP] == MESSAGE:
                child = fields[field, A]
        if status == OK and event == _UNKNOWN:
            status = UNUSUAL
        if status != OK or (child >= 0 and depth == MAX_DEPTH):
            return status if status != OK else TOO_DEEP, field, before
        if child >= 0:
            _push(stack, depth, message, limit, group, item)
            depth += 1
            message, packed_end = child, -1
            if event == _FIELD:  # otherwise the message has no bytes
                end = end if wire == GROUP else position + size
                group = fields[field, NUMBER] if wire == GROUP else 0
            if messages[message, KIND] != SKIPPED:
                item = buffers.counts[messages[message, MESSAGE_NODE]]
        elif event == _MESSAGE_END:
            if depth == 0:
                return OK, field, position
            depth -= 1
            message, end = stack[depth, OPEN_MESSAGE], stack[depth, OPEN_END]
            group, item = stack[depth, OPEN_GROUP], stack[depth, OPEN_ITEM]
        else:
            continue
        first, last = messages[message, FIRST], messages[message, LAST]


@device_function
def _push(stack: Int64s, depth: int, message: int, end: int, group: int, item: int) -> None:
    """Keep the state of the message around the one that begins."""
    stack[depth, OPEN_MESSAGE] = message
    stack[depth, OPEN_END] = end
    stack[depth, OPEN_GROUP] = group
    stack[depth, OPEN_ITEM] = item


@device_function
def _next_field(
    data: ByteArray,
    position: int,
    end: int,
    group: int,
    first: int,
    last: int,
    kind: int,
    fields: Int64s,
    depth: int,
    stack: Int64s,
) -> tuple[int, int, int, int, int, int]:
    """Read the tag at `position`: (status, event, position after it, field, wire type, end of a packed list or -1)."""
    tag = int(np.int64(data[position]))
    if tag < 0x80:
        position += 1
    else:
        tag, position = read_tag(data, position, end)
    wire = tag & 7
    number = tag >> 3
    if position == BAD_POSITION or number == 0:
        return BAD_TAG, _FIELD, position, -1, wire, -1
    if wire == GROUP_END:
        return OK if number == group else BAD_GROUP, _GROUP_END, position, -1, wire, -1
    # The fields of most messages are numbered from 1.
    guess = first + number - 1
    field = (
        guess if guess < last and fields[guess, NUMBER] == number else place_of(number, fields[:, NUMBER], first, last)
    )
    if field < 0:
        position, _ = skip_value(data, position, end, number, wire, depth, stack)
        event = _UNKNOWN if kind == ENTRY else _NOTHING
        return -position if position < 0 else OK, event, position, -1, wire, -1
    if wire == fields[field, WIRE] or fields[field, OP] == REFUSE:
        return OK, _FIELD, position, field, wire, -1
    if wire != LENGTH or not fields[field, FLAGS] & PACKABLE:
        return WRONG_WIRE, _FIELD, position, field, wire, -1
    size, position = read_size(data, position, end)
    if position == BAD_POSITION:
        return BAD_LENGTH, _FIELD, position, field, wire, -1
    return OK, _NOTHING, position, field, wire, position + size


@device_function
def _read_field(
    data: ByteArray,
    position: int,
    limit: int,
    field: int,
    wire: int,
    fields: Int64s,
    depth: int,
    stack: Int64s,
) -> tuple[int, int, int, int]:
    """Read a number or a length: (status, position after it, number, length)."""
    if fields[field, OP] == REFUSE:
        return REFUSED, position, 0, 0
    if wire == VARINT:
        if position < limit and data[position] < 0x80:
            return OK, position + 1, int(np.int64(data[position])), 0
        value, position = read_varint(data, position, limit)
        return BAD_NUMBER if position == BAD_POSITION else OK, position, value, 0
    if wire == FIXED64:
        if limit - position < 8:
            return CUT, position, 0, 0
        return OK, position + 8, little_int64(data, position), 0
    if wire == FIXED32:
        if limit - position < 4:
            return CUT, position, 0, 0
        return OK, position + 4, little_int32(data, position), 0
    if wire == LENGTH:
        size, position = read_size(data, position, limit)
        return BAD_LENGTH if position == BAD_POSITION else OK, position, 0, size
    if fields[field, OP] == MESSAGE:
        return OK, position, 0, 0
    # A group that is not taken apart.
    after, inside_end = skip_value(data, position, limit, fields[field, NUMBER], wire, depth, stack)
    return -after if after < 0 else OK, position, 0, inside_end - position


@device_function
def _put_field(
    data: ByteArray,
    position: int,
    limit: int,
    field: int,
    wire: int,
    item: int,
    canonical: bool,
    program: ProtobufProgram,
    depth: int,
    stack: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int, int, int]:
    """Append the value of a field: (status, event, position after it, length). Of a message only its length is read."""
    fields = program.fields
    op = fields[field, OP]
    node = fields[field, NODE]
    flags = fields[field, FLAGS]
    status, position, value, size = _read_field(data, position, limit, field, wire, fields, depth, stack)
    symbol = -1
    if status == OK and op == ENUM:
        value = ((value & LOW_32) ^ SIGN_32) - SIGN_32
        symbol = symbol_of(value, fields[field, A], fields[field, B], program)
        if symbol < 0 and flags & CLOSED != 0:
            return OK, _UNKNOWN, position, 0
    if status == OK:
        status = make_room(field, item, flags, program, buffers)
    if status != OK or op == MESSAGE:
        return status, _FIELD, position, size
    if op <= LAST_NUMBER:
        if node >= 0:
            status = put_value(op, node, value, flags, buffers)
    elif op == ENUM:
        if node >= 0:
            status = put_symbol(symbol, value, node, program, buffers)
    else:
        status = _put_content(op, data, position, size, fields[field, A], canonical, node, depth, stack, buffers)
        position += size
        if wire == GROUP:
            _, position = read_tag(data, position, limit)
    return status, _FIELD, position, size


@device_function
def _put_content(
    op: int,
    data: ByteArray,
    position: int,
    size: int,
    type_number: int,
    canonical: bool,
    node: int,
    depth: int,
    stack: Int64s,
    buffers: BufferArrays,
) -> int:
    """Append `size` bytes as a text, bytes, a time, or a raw value of the type `type_number`: the status."""
    if op in (STRING, BYTES_OP):
        if op == STRING and not is_utf8(data, position, position + size):
            return BAD_TEXT
        return put_bytes(data, position, size, node, buffers) if node >= 0 else OK
    if op == JSON:
        return put_raw(data, position, size, type_number, node, buffers) if node >= 0 else OK
    status, value = read_time(data, position, position + size, op == DURATION, depth, stack)
    if status == BAD_TIME and not canonical:
        # Another part of it may follow.
        return UNUSUAL
    if status == OK and node >= 0:
        put_number(node, value, buffers)
    return status
