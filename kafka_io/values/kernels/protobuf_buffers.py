"""Values of Protobuf fields into buffers, and the ends of messages."""

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import float_of_bits, place_of
from kafka_io.values.kernels.column_buffers import (
    BUFFER_KIND,
    BYTES,
    CELL,
    CONTENT,
    ITEMS,
    OK,
    PAIR,
    TEXT,
    BufferArrays,
    full,
    put_as_real,
    put_bytes,
    put_end,
    put_item,
    put_null,
    put_number,
    put_pair,
    put_raw,
    put_real,
    used_bytes,
)
from kafka_io.values.kernels.protobuf_program import (
    BOOL,
    CLOSE_FIRST,
    CLOSE_LAST,
    CLOSE_NODE,
    CLOSE_OP,
    CLOSE_VALUE,
    ENTRY,
    FLOAT,
    INEXACT,
    INT32,
    KIND,
    MAX_COMPARED_KEYS,
    MERGED,
    MESSAGE,
    MESSAGE_NODE,
    NODE,
    OP,
    PUT_LIST,
    PUT_MESSAGE,
    PUT_NULL,
    PUT_NUMBER,
    PUT_PAIR,
    PUT_TEXT,
    REPEATED,
    RING,
    SINT32,
    SINT64,
    STRUCT,
    TO_DOUBLE,
    UINT32,
    UINT64,
    UNUSUAL,
    B,
    ProtobufProgram,
)
from kafka_io.values.kernels.protobuf_wire import LOW_32, SIGN_32

_INT64_MAX = (1 << 63) - 1


@device_function
def symbol_of(number: int, first: int, count: int, program: ProtobufProgram) -> int:
    """Index of an enum's number in `enum_numbers`; -1 if the enum has no such number."""
    guess = first + number
    if 0 <= number < count and program.enum_numbers[guess] == number:
        return int(guess)
    return place_of(number, program.enum_numbers, first, first + count)


@device_function
def make_room(field: int, item: int, flags: int, program: ProtobufProgram, buffers: BufferArrays) -> int:
    """Prepare the buffer of a field for a value: OK, FULL, or UNUSUAL."""
    fields, counts = program.fields, buffers.counts
    node = fields[field, NODE]
    if flags & REPEATED:
        for buffer in (node, fields[field, B] if fields[field, OP] == MESSAGE else -1):
            if buffer >= 0 and counts[buffer] + 1 > buffers.nodes[buffer, ITEMS]:
                return full(buffer, 0, counts[buffer] + 1, buffers)
        return OK
    other = fields[field, RING]
    while other >= 0 and other != field:
        if fields[other, NODE] >= 0 and counts[fields[other, NODE]] > item:
            return UNUSUAL
        other = fields[other, RING]
    if node >= 0 and counts[node] > item:
        if flags & MERGED:
            return UNUSUAL
        counts[node] = item
    return OK


@device_function
def put_value(op: int, node: int, value: int, flags: int, buffers: BufferArrays) -> int:
    """Append a number to its buffer: OK, or INEXACT if the buffer is one of doubles, and would round it."""
    if op == FLOAT:
        put_real(node, float_of_bits(value), buffers)
        return OK
    if op == UINT64:
        put_pair(node, value, 0, buffers)
        return OK
    if op == INT32:
        value = ((value & LOW_32) ^ SIGN_32) - SIGN_32
    elif op == UINT32:
        value &= LOW_32
    elif op == SINT32:
        value &= LOW_32
        value = (value >> 1) ^ -(value & 1)
    elif op == SINT64:
        value = ((value >> 1) & _INT64_MAX) ^ -(value & 1)
    elif op == BOOL:
        value = 1 if value != 0 else 0
    if flags & TO_DOUBLE:
        return OK if put_as_real(node, value, buffers) else INEXACT
    put_number(node, value, buffers)
    return OK


@device_function
def put_symbol(symbol: int, number: int, node: int, program: ProtobufProgram, buffers: BufferArrays) -> int:
    """Append the name of an enum's number, or its digits if it has none: OK or FULL."""
    if symbol >= 0:
        return put_text(program.enum_texts[symbol], node, program, buffers)
    is_negative = 1 if number < 0 else 0
    remaining_digits = -number if is_negative else number
    size = is_negative + 1
    while remaining_digits >= 10 ** (size - is_negative):
        size += 1
    used = used_bytes(node, buffers)
    if used + size > buffers.nodes[node, BYTES]:
        return full(node, size, 0, buffers)
    start = buffers.nodes[node, CONTENT] + used
    for i in range(size):
        buffers.content[start + size - 1 - i] = 0x30 + remaining_digits % 10
        remaining_digits //= 10
    if is_negative:
        buffers.content[start] = 0x2D
    put_end(node, used + size, buffers)
    return OK


@device_function
def put_text(text: int, node: int, program: ProtobufProgram, buffers: BufferArrays) -> int:
    """Append one of the texts of the program: OK or FULL."""
    start = program.text_ends[text]
    return put_bytes(program.texts, start, program.text_ends[text + 1] - start, node, buffers)


@device_function
def close_message(
    message: int, item: int, canonical: bool, program: ProtobufProgram, buffers: BufferArrays
) -> tuple[int, int]:
    """End a message: (status, -1), or OK and the message without bytes that must come first."""
    messages, closes, counts = program.messages, program.closes, buffers.counts
    for place in range(messages[message, CLOSE_FIRST], messages[message, CLOSE_LAST]):
        node = closes[place, CLOSE_NODE]
        if counts[node] > item:
            continue
        op = closes[place, CLOSE_OP]
        value = closes[place, CLOSE_VALUE]
        status = OK
        if op == PUT_LIST:
            put_end(node, counts[node + 1], buffers)
        elif op == PUT_NULL:
            put_null(node, buffers)
        elif op == PUT_NUMBER:
            put_number(node, value, buffers)
        elif op == PUT_PAIR:
            put_pair(node, value, 0, buffers)
        elif op == PUT_TEXT:
            status = put_text(value, node, program, buffers)
        elif op == PUT_MESSAGE:
            return OK, value
        else:
            status = put_raw(program.texts, 0, 0, value, node, buffers)
        if status != OK:
            return status, -1
    kind = messages[message, KIND]
    node = messages[message, MESSAGE_NODE]
    if kind == STRUCT:
        put_item(node, buffers)
    elif kind == ENTRY and not canonical and _has_key(node, item, buffers):
        return UNUSUAL, -1
    return OK, -1


@device_function
def _has_key(node: int, item: int, buffers: BufferArrays) -> bool:
    """Whether the map that is open may have the key of its last entry already."""
    nodes, cells, content = buffers.nodes, buffers.cells, buffers.content
    first = cells[nodes[node - 1, CELL] + buffers.counts[node - 1]]
    if item - first > MAX_COMPARED_KEYS:
        return True
    buffer_kind = nodes[node, BUFFER_KIND]
    cell = nodes[node, CELL]
    for other in range(first, item):
        if buffer_kind == TEXT:
            size = cells[cell + item + 1] - cells[cell + item]
            if cells[cell + other + 1] - cells[cell + other] == size:
                start = nodes[node, CONTENT] + cells[cell + item]
                other_start = nodes[node, CONTENT] + cells[cell + other]
                place = 0
                while place < size and content[start + place] == content[other_start + place]:
                    place += 1
                if place == size:
                    return True
        else:
            width = 2 if buffer_kind == PAIR else 1
            if cells[cell + width * item] == cells[cell + width * other]:
                return True
    return False
