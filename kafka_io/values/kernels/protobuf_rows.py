"""Protobuf messages to rows in buffers: one kernel that runs a program, so no schema is ever compiled.

A program has a table of message types, with a row for each place where a type is used. The row leads to the fields of
the type, in ascending order of their numbers, and to what happens at the end of a message to buffers without a value.
The fields of a value may come in any order. If a scalar comes twice, the last one counts. A buffer can only be appended
to, so these values have the result UNUSUAL: a message in several parts, a oneof with two members, a map with the same
key twice. The caller writes such a value again in the usual form, and decodes that.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int32s, Int64s, little_int32, little_int64
from kafka_io.jit.utf8 import is_utf8
from kafka_io.values.kernels.avro_buffers import put_bytes
from kafka_io.values.kernels.column_buffers import ROOT, Float32s, Float64s, put_null, put_number
from kafka_io.values.kernels.protobuf_buffers import (
    close_message,
    field_of,
    make_room,
    put_raw,
    put_symbol,
    put_value,
    symbol_of,
)
from kafka_io.values.kernels.protobuf_program import (
    BAD_GROUP,
    BAD_LENGTH,
    BAD_NUMBER,
    BAD_TAG,
    BAD_TEXT,
    BAD_TIME,
    BYTES_OP,
    CLOSED,
    CONTENT_END,
    CUT,
    DURATION,
    ENTRY,
    ENUM,
    FAULT_FIELD,
    FAULT_POSITION,
    FIRST,
    FIXED32,
    FIXED64,
    FLAGS,
    FULL,
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
    OK,
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


@kernel
def decode_rows(
    data: ByteArray,
    starts: Int32s,
    ends: Int32s,
    entries: Int32s,
    canonical: ByteArray,
    row: int,
    messages: Int64s,
    fields: Int64s,
    closes: Int64s,
    texts: ByteArray,
    text_ends: Int64s,
    enum_numbers: Int64s,
    enum_texts: Int64s,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    saved: Int64s,
    inner: Int64s,
    work: Int64s,
    stack: Int64s,
    bits: Int32s,
    float_of_bits: Float32s,
    scratch: ByteArray,
    failures: Int64s,
    done: Int64s,
) -> tuple[int, int]:
    """Append rows until the end, or until a buffer is full: (OK or FULL, the next row).

    Args:
        data: all values.
        starts: start of each message.
        ends: end of each message.
        entries: each value's message type as an index of `messages`; -1 for a row of nulls.
        canonical: 1 for a value that is in the usual form, so that UNUSUAL is not a result.
        row: the first row.
        messages: see above.
        fields: see above.
        closes: see above.
        texts: all names of enums and default texts, one after the other.
        text_ends: the end of each text, after a 0.
        enum_numbers: the numbers of each enum in ascending order.
        enum_texts: the text of each number.
        nodes: see `column_buffers`.
        cells: see `column_buffers`.
        reals: the same memory as `cells`, as doubles.
        valid: see `column_buffers`; RAW_VALUE marks a value that is kept as its bytes.
        content: see `column_buffers`.
        counts: items of each buffer.
        saved: room for a copy of `counts`.
        inner: the buffers inside lists and maps; all others have as many items as there are rows.
        work: see above.
        stack: MAX_DEPTH + 1 rows.
        bits: one int32.
        float_of_bits: the same memory, as a float.
        scratch: 16 bytes.
        failures: output: row, status, field and position for each value that does not decode.
        done: number of failures so far.
    """
    while row < len(entries):
        entry = int(entries[row])
        if entry < 0:
            put_null(ROOT, nodes, cells, valid, counts)
            row += 1
            continue
        row_count = counts[ROOT]
        for node in inner:
            saved[node] = counts[node]
        start = int(starts[row])
        status = _value(
            data, start, int(ends[row]), entry, row, canonical[row] == 1, messages, fields, closes, texts, text_ends,
            enum_numbers, enum_texts, nodes, cells, reals, valid, content, counts, work, stack, bits, float_of_bits,
            scratch,
        )  # fmt: skip
        if status != OK:
            for node in range(len(counts)):
                counts[node] = row_count
            for node in inner:
                counts[node] = saved[node]
            if status == FULL:
                return FULL, row
            put_null(ROOT, nodes, cells, valid, counts)
            failed = done[0]
            failures[4 * failed] = row
            failures[4 * failed + 1] = status
            failures[4 * failed + 2] = work[FAULT_FIELD]
            failures[4 * failed + 3] = work[FAULT_POSITION] - start
            done[0] = failed + 1
        row += 1
    return OK, row


@device_function
def _value(  # noqa: PLR0912, PLR0915 - one branch for each kind of field
    data: ByteArray,
    position: int,
    end: int,
    message: int,
    row: int,
    canonical: bool,
    messages: Int64s,
    fields: Int64s,
    closes: Int64s,
    texts: ByteArray,
    text_ends: Int64s,
    enum_numbers: Int64s,
    enum_texts: Int64s,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
    stack: Int64s,
    bits: Int32s,
    float_of_bits: Float32s,
    scratch: ByteArray,
) -> int:
    """Append one row; the status, with FAULT_FIELD and FAULT_POSITION if it is not OK."""
    depth = 0
    group = 0  # the number of the group that is the open message, or 0
    item = counts[ROOT]
    first = messages[message, FIRST]
    last = messages[message, LAST]
    packed_end = -1  # end of the packed list that is being read
    field = -1
    while True:
        before = position
        status = OK
        child = -1  # the message that begins
        child_end = end
        child_group = 0
        limit = end
        wire = 0
        is_closing = False
        is_unknown = False
        if position < packed_end:
            wire = fields[field, WIRE]
            limit = packed_end
        elif position >= end:
            field = -1
            if group:
                status = CUT
            else:
                is_closing = True
                status, child = close_message(
                    message, item, canonical, row, messages, closes, texts, text_ends, nodes, cells, valid, content,
                    counts, work,
                )  # fmt: skip
                child_end = end
        else:
            packed_end = -1
            tag = int(np.int64(data[position]))
            if tag < 0x80:
                position += 1
            else:
                tag, position = read_tag(data, position, end)
            wire = tag & 7
            number = tag >> 3
            field = -1
            if position == BAD_POSITION or number == 0:
                status = BAD_TAG
            elif wire == GROUP_END:
                if number != group:
                    status = BAD_GROUP
                else:
                    # The next step closes the message. `end` is that of the message around it after that.
                    group = 0
                    end = position
                    continue
            else:
                # The fields of most messages are numbered from 1.
                guess = first + number - 1
                field = (
                    guess if guess < last and fields[guess, NUMBER] == number else field_of(fields, first, last, number)
                )
                if field < 0:
                    position = skip_value(data, position, end, number, wire, depth, stack, work)
                    if position < 0:
                        status = -position
                    elif messages[message, KIND] != ENTRY:
                        continue
                    else:
                        is_unknown = True
                elif wire != fields[field, WIRE] and fields[field, OP] != REFUSE:
                    if wire == LENGTH and fields[field, FLAGS] & PACKABLE:
                        size, position = read_size(data, position, end)
                        if position != BAD_POSITION:
                            packed_end = position + size
                            continue
                        status = BAD_LENGTH
                    else:
                        status = WRONG_WIRE
        if status == OK and not is_closing and not is_unknown:
            op = fields[field, OP]
            node = fields[field, NODE]
            flags = fields[field, FLAGS]
            value = 0
            size = 0
            if op == REFUSE:
                status = REFUSED
            elif wire == VARINT:
                if position < limit and data[position] < 0x80:
                    value = int(np.int64(data[position]))
                    position += 1
                else:
                    value, position = read_varint(data, position, limit)
                    if position == BAD_POSITION:
                        status = BAD_NUMBER
            elif wire == FIXED64:
                if limit - position < 8:
                    status = CUT
                else:
                    value = little_int64(data, position)
                    position += 8
            elif wire == FIXED32:
                if limit - position < 4:
                    status = CUT
                else:
                    value = little_int32(data, position)
                    position += 4
            elif wire == LENGTH:
                size, position = read_size(data, position, limit)
                if position == BAD_POSITION:
                    status = BAD_LENGTH
            elif op != MESSAGE:
                # A group that is not taken apart.
                after = skip_value(data, position, limit, fields[field, NUMBER], wire, depth, stack, work)
                status = -after if after < 0 else OK
                size = work[CONTENT_END] - position
            symbol = -1
            if status == OK and op == ENUM:
                value = ((value & LOW_32) ^ SIGN_32) - SIGN_32
                symbol = symbol_of(enum_numbers, fields[field, A], fields[field, B], value)
                is_unknown = symbol < 0 and flags & CLOSED != 0
            if status == OK and not is_unknown:
                status = make_room(field, item, flags, fields, nodes, counts, work)
            if status == OK and not is_unknown:
                if op <= LAST_NUMBER:
                    if node >= 0:
                        put_value(
                            op, node, value, flags, nodes, cells, reals, valid, counts, bits, float_of_bits
                        )  # fmt: skip
                elif op == ENUM:
                    if node >= 0:
                        status = put_symbol(
                            symbol, value, node, enum_texts, texts, text_ends, nodes, cells, valid, content, counts,
                            work, scratch,
                        )  # fmt: skip
                elif op == MESSAGE:
                    child = fields[field, A]
                    child_group = fields[field, NUMBER] if wire == GROUP else 0
                    child_end = end if wire == GROUP else position + size
                else:
                    if op == STRING and not is_utf8(data, position, position + size):
                        status = BAD_TEXT
                    elif op in (STRING, BYTES_OP):
                        if node >= 0:
                            status = put_bytes(data, position, size, node, nodes, cells, valid, content, counts, work)
                    elif op == JSON:
                        if node >= 0:
                            status = put_raw(
                                data, position, size, fields[field, A], row, node, nodes, cells, valid, content, counts,
                                work,
                            )  # fmt: skip
                    else:
                        status, value = read_time(data, position, position + size, op == DURATION, depth, stack, work)
                        if status == BAD_TIME and not canonical:
                            # Another part of it may follow.
                            status = UNUSUAL
                        if status == OK and node >= 0:
                            put_number(node, value, nodes, cells, valid, counts)
                    position += size
                    if wire == GROUP:
                        _, position = read_tag(data, position, limit)
        if is_unknown:
            # google.protobuf keeps a number that a closed enum lacks as an unknown field, and an entry of a map as a
            # whole if a part of it is unknown.
            if canonical and messages[message, KIND] == ENTRY:
                counts[messages[message, MESSAGE_NODE]] = item
                if fields[last - 1, NODE] >= 0:
                    counts[fields[last - 1, NODE]] = item
                position = end
                is_closing = True
            elif canonical:
                continue
            else:
                status = UNUSUAL
        if status == OK and child >= 0:
            if depth + 1 > MAX_DEPTH:
                status = TOO_DEEP
            else:
                stack[depth, OPEN_MESSAGE] = message
                stack[depth, OPEN_END] = limit
                stack[depth, OPEN_GROUP] = group
                stack[depth, OPEN_ITEM] = item
                depth += 1
                message = child
                end = child_end
                group = child_group
                if messages[message, KIND] != SKIPPED:
                    item = counts[messages[message, MESSAGE_NODE]]
                first = messages[message, FIRST]
                last = messages[message, LAST]
                packed_end = -1
                continue
        if status != OK:
            work[FAULT_FIELD] = field
            work[FAULT_POSITION] = before
            return status
        if is_closing:
            if depth == 0:
                return OK
            depth -= 1
            message = stack[depth, OPEN_MESSAGE]
            end = stack[depth, OPEN_END]
            group = stack[depth, OPEN_GROUP]
            item = stack[depth, OPEN_ITEM]
            first = messages[message, FIRST]
            last = messages[message, LAST]
