"""Values of Protobuf fields into buffers, and the ends of messages."""

from kafka_io.jit.compiling import device_function
from kafka_io.jit.scalars import ByteArray, Int32s, Int64s, copy
from kafka_io.values.kernels.avro_buffers import full, put_bytes
from kafka_io.values.kernels.column_buffers import (
    BUFFER_KIND,
    BYTES,
    CELL,
    CONTENT,
    ITEMS,
    PAIR,
    TEXT,
    VALID,
    Float32s,
    Float64s,
    put_end,
    put_null,
    put_number,
    put_pair,
    put_real,
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
    INT32,
    KIND,
    MAX_COMPARED_KEYS,
    MERGED,
    MESSAGE,
    MESSAGE_NODE,
    NODE,
    NUMBER,
    OK,
    OP,
    PUT_LIST,
    PUT_MESSAGE,
    PUT_NULL,
    PUT_NUMBER,
    PUT_PAIR,
    PUT_TEXT,
    RAW_PREFIX,
    RAW_VALUE,
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
)
from kafka_io.values.kernels.protobuf_wire import LOW_32, SIGN_32

_INT64_MAX = (1 << 63) - 1
_MAX_DIGITS = 11


@device_function
def field_of(fields: Int64s, first: int, last: int, number: int) -> int:
    """The index of the field with this number; -1 if the message has no such field."""
    low = first
    high = last
    while low < high:
        middle = (low + high) // 2
        if fields[middle, NUMBER] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < last and fields[low, NUMBER] == number else -1


@device_function
def symbol_of(enum_numbers: Int64s, first: int, count: int, number: int) -> int:
    """Index of an enum's number in `enum_numbers`; -1 if the enum has no such number."""
    guess = first + number
    if 0 <= number < count and enum_numbers[guess] == number:
        return int(guess)
    low = first
    high = first + count
    while low < high:
        middle = (low + high) // 2
        if enum_numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < first + count and enum_numbers[low] == number else -1


@device_function
def make_room(field: int, item: int, flags: int, fields: Int64s, nodes: Int64s, counts: Int64s, work: Int64s) -> int:
    """Prepare the buffer of a field for a value: OK, FULL, or UNUSUAL."""
    node = fields[field, NODE]
    if flags & REPEATED:
        for buffer in (node, fields[field, B] if fields[field, OP] == MESSAGE else -1):
            if buffer >= 0 and counts[buffer] + 1 > nodes[buffer, ITEMS]:
                return full(buffer, 0, counts[buffer] + 1, work)
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
def put_value(
    op: int,
    node: int,
    value: int,
    flags: int,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    counts: Int64s,
    bits: Int32s,
    float_of_bits: Float32s,
) -> None:
    """Append a number to its buffer."""
    if op == FLOAT:
        bits[0] = value
        put_real(node, float(float_of_bits[0]), nodes, reals, valid, counts)
        return
    if op == UINT64:
        put_pair(node, value, 0, nodes, cells, valid, counts)
        return
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
        put_real(node, float(value), nodes, reals, valid, counts)
    else:
        put_number(node, value, nodes, cells, valid, counts)


@device_function
def put_symbol(
    symbol: int,
    number: int,
    node: int,
    enum_texts: Int64s,
    texts: ByteArray,
    text_ends: Int64s,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
    scratch: ByteArray,
) -> int:
    """Append the name of an enum's number, or its digits if it has none: OK or FULL."""
    if symbol >= 0:
        text = enum_texts[symbol]
        start = text_ends[text]
        return put_bytes(
            texts, start, text_ends[text + 1] - start, node, nodes, cells, valid, content, counts, work
        )  # fmt: skip
    remaining_digits = -number if number < 0 else number
    place = _MAX_DIGITS
    while remaining_digits > 0 or place == _MAX_DIGITS:
        place -= 1
        scratch[place] = 0x30 + remaining_digits % 10
        remaining_digits //= 10
    if number < 0:
        place -= 1
        scratch[place] = 0x2D
    return put_bytes(scratch, place, _MAX_DIGITS - place, node, nodes, cells, valid, content, counts, work)


@device_function
def put_raw(
    data: ByteArray,
    start: int,
    size: int,
    number: int,
    row: int,
    node: int,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> int:
    """Append the number of a type, the row and the bytes of a value to a buffer of texts: OK or FULL."""
    item = counts[node]
    used = cells[nodes[node, CELL] + item]
    if used + RAW_PREFIX + size > nodes[node, BYTES]:
        return full(node, RAW_PREFIX + size, 0, work)
    target = nodes[node, CONTENT] + used
    for i in range(4):
        content[target + i] = (number >> (8 * i)) & 0xFF
        content[target + 4 + i] = (row >> (8 * i)) & 0xFF
    copy(data, start, size, content, target + RAW_PREFIX)
    put_end(node, used + RAW_PREFIX + size, nodes, cells, valid, counts)
    valid[nodes[node, VALID] + item] = RAW_VALUE
    return OK


@device_function
def close_message(
    message: int,
    item: int,
    canonical: bool,
    row: int,
    messages: Int64s,
    closes: Int64s,
    texts: ByteArray,
    text_ends: Int64s,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> tuple[int, int]:
    """End a message: (status, -1), or OK and the message without bytes that must come first."""
    for place in range(messages[message, CLOSE_FIRST], messages[message, CLOSE_LAST]):
        node = closes[place, CLOSE_NODE]
        if counts[node] > item:
            continue
        op = closes[place, CLOSE_OP]
        value = closes[place, CLOSE_VALUE]
        status = OK
        if op == PUT_LIST:
            put_end(node, counts[node + 1], nodes, cells, valid, counts)
        elif op == PUT_NULL:
            put_null(node, nodes, cells, valid, counts)
        elif op == PUT_NUMBER:
            put_number(node, value, nodes, cells, valid, counts)
        elif op == PUT_PAIR:
            put_pair(node, value, 0, nodes, cells, valid, counts)
        elif op == PUT_TEXT:
            start = text_ends[value]
            status = put_bytes(
                texts, start, text_ends[value + 1] - start, node, nodes, cells, valid, content, counts, work
            )  # fmt: skip
        elif op == PUT_MESSAGE:
            return OK, value
        else:
            status = put_raw(texts, 0, 0, value, row, node, nodes, cells, valid, content, counts, work)
        if status != OK:
            return status, -1
    kind = messages[message, KIND]
    node = messages[message, MESSAGE_NODE]
    if kind == STRUCT:
        valid[nodes[node, VALID] + item] = 1
        counts[node] = item + 1
    elif kind == ENTRY and not canonical and _has_key(node, item, nodes, cells, content, counts):
        return UNUSUAL, -1
    return OK, -1


@device_function
def _has_key(node: int, item: int, nodes: Int64s, cells: Int64s, content: ByteArray, counts: Int64s) -> bool:
    """Whether the map that is open may have the key of its last entry already."""
    first = cells[nodes[node - 1, CELL] + counts[node - 1]]
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
