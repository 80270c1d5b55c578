"""Column buffers: the growing columns that decoders of values fill.

A buffer holds the items of one column, or of one part of a nested column. The buffers of a schema form a tree whose
nodes are numbered in preorder; node 0 is the row itself. The items of all buffers are in three arrays:

    cells     int64: a number (1 cell per item), a decimal (2, the lower half first), or the end of each text, list or
              map (1, after a first cell that is 0)
    valid     uint8: 1 for a value, 0 for null
    content   uint8: the bytes of texts

The node table says where each buffer begins in them. A buffer is only ever appended to, so a row is undone by setting
all counts back. All buffers inside a struct have as many items as the struct: while a struct is open, a member whose
count is greater than the struct's has its value already.
"""

from typing import NamedTuple

import numpy as np

from kafka_io.jit.compiling import device_function, merged
from kafka_io.jit.scalars import ByteArray, Int64s, copy

# Columns of the node table.
BUFFER_KIND = 0  # one of the kinds below
END = 1  # the node after the last one inside this node
CELL = 2  # position of the first cell
VALID = 3  # position of the first validity byte
ITEMS = 4  # items that the buffer has room for
CONTENT = 5  # position of the first byte of content
BYTES = 6  # bytes that the buffer has room for
NODE_COLUMNS = 7

# Kinds of buffers. A list has one node directly inside, a map has two: key and value.
STRUCT, NUMBER, PAIR, TEXT, LIST, MAP = range(6)
ROOT = 0
_AFTER_INT64 = float(1 << 63)

# Columns of the table of failures. The place is an op, field or node, the position is that within the value.
FAILED_ROW, FAILED_STATUS, FAILED_PLACE, FAILED_POSITION = range(4)
FAILURE_COLUMNS = 4
# Parts of `notes`: the number of failures so far; then, of the buffer that was found full, the node, the number of
# bytes that it needs in addition, and the number of items that it needs in all.
FAILED, FULL_NODE, NEEDED_BYTES, NEEDED_ITEMS = range(4)
NOTES = 4

# Results of all kernels that fill buffers; each has others after them.
OK, FULL = range(2)

# In front of the bytes of a raw value, which becomes JSON after the kernel, is the number of its type, in 4 bytes. Its
# validity byte is RAW_VALUE.
RAW_PREFIX = 4
RAW_VALUE = 2


class BufferArrays(NamedTuple):
    """The buffers of a schema as kernels take them.

    Args:
        nodes: the node table.
        cells: see above, as `valid` and `content`.
        valid: it has RAW_VALUE for a raw value.
        content: see above.
        counts: items of each buffer.
        notes: output, see above.
    """

    nodes: Int64s
    cells: Int64s
    valid: ByteArray
    content: ByteArray
    counts: Int64s
    notes: Int64s


class RowArrays(NamedTuple):
    """The arrays that kernels use when a row begins and ends. More arrays in `BufferArrays` would compile more slowly.

    Args:
        inner: the buffers inside lists and maps; all others have as many items as there are rows.
        saved: room for a copy of `counts`.
        failures: output, a row for each value that does not decode.
    """

    inner: Int64s
    saved: Int64s
    failures: Int64s


@device_function
def put_null(node: int, buffers: BufferArrays) -> None:
    """Append a null to a buffer, and to all buffers inside it that have as many items."""
    nodes, cells, counts = buffers.nodes, buffers.cells, buffers.counts
    end = nodes[node, END]
    while node < end:
        buffer_kind = nodes[node, BUFFER_KIND]
        item = counts[node]
        cell = nodes[node, CELL] + item
        buffers.valid[nodes[node, VALID] + item] = 0
        counts[node] = item + 1
        if buffer_kind >= LIST:
            cells[cell + 1] = counts[node + 1]
            node = nodes[node, END]
            continue
        if buffer_kind == NUMBER:
            cells[cell] = 0
        elif buffer_kind == TEXT:
            cells[cell + 1] = cells[cell]
        elif buffer_kind == PAIR:
            cells[cell + item] = 0
            cells[cell + item + 1] = 0
        node += 1


@device_function
def put_item(node: int, buffers: BufferArrays) -> int:
    """Count one more item that is not null, which is all that a struct needs; returns its index."""
    item = buffers.counts[node]
    buffers.valid[buffers.nodes[node, VALID] + item] = 1
    buffers.counts[node] = item + 1
    return int(item)


@merged
def close_struct(node: int, buffers: BufferArrays) -> None:
    """Append a struct whose members are in their buffers; a member without a value becomes null."""
    nodes, counts = buffers.nodes, buffers.counts
    item = counts[node]
    member = node + 1
    while member < nodes[node, END]:
        if counts[member] == item:
            put_null(member, buffers)
        member = nodes[member, END]
    put_item(node, buffers)


@device_function
def put_number(node: int, number: int, buffers: BufferArrays) -> None:
    """Append a number to a buffer of numbers."""
    item = put_item(node, buffers)
    buffers.cells[buffers.nodes[node, CELL] + item] = number


@device_function
def put_real(node: int, number: float, buffers: BufferArrays) -> None:
    """Append a double to a buffer of numbers."""
    put_number(node, int(np.float64(number).view(np.int64)), buffers)


@device_function
def put_as_real(node: int, number: int, buffers: BufferArrays) -> bool:
    """Append an integer to a buffer of doubles, unless a double would round it: whether it was appended."""
    real = np.float64(number)
    if real >= _AFTER_INT64 or np.int64(real) != number:
        return False
    put_real(node, real, buffers)
    return True


@device_function
def put_pair(node: int, low: int, high: int, buffers: BufferArrays) -> None:
    """Append a decimal, the two halves of its unscaled number, to a buffer of pairs."""
    cell = buffers.nodes[node, CELL] + 2 * put_item(node, buffers)
    buffers.cells[cell] = low
    buffers.cells[cell + 1] = high


@device_function
def put_end(node: int, end: int, buffers: BufferArrays) -> None:
    """Append a text, list or map whose content ends at `end`."""
    item = put_item(node, buffers)
    buffers.cells[buffers.nodes[node, CELL] + item + 1] = end


@device_function
def used_bytes(node: int, buffers: BufferArrays) -> int:
    """Bytes of content in a buffer of texts."""
    return int(buffers.cells[buffers.nodes[node, CELL] + buffers.counts[node]])


@device_function
def put_bytes(source: ByteArray, start: int, size: int, node: int, buffers: BufferArrays) -> int:
    """Append a text or bytes to a buffer: OK or FULL."""
    used = used_bytes(node, buffers)
    if used + size > buffers.nodes[node, BYTES]:
        return full(node, size, 0, buffers)
    copy(source, start, size, buffers.content, buffers.nodes[node, CONTENT] + used)
    put_end(node, used + size, buffers)
    return OK


@device_function
def put_raw(source: ByteArray, start: int, size: int, type_number: int, node: int, buffers: BufferArrays) -> int:
    """Append a raw value to a buffer of texts: OK or FULL."""
    used = used_bytes(node, buffers)
    if used + RAW_PREFIX + size > buffers.nodes[node, BYTES]:
        return full(node, RAW_PREFIX + size, 0, buffers)
    content, target = buffers.content, buffers.nodes[node, CONTENT] + used
    for i in range(RAW_PREFIX):
        content[target + i] = (type_number >> (8 * i)) & 0xFF
    copy(source, start, size, content, target + RAW_PREFIX)
    put_end(node, used + RAW_PREFIX + size, buffers)
    buffers.valid[buffers.nodes[node, VALID] + buffers.counts[node] - 1] = RAW_VALUE
    return OK


@device_function
def full(node: int, needed_bytes: int, needed_items: int, buffers: BufferArrays) -> int:
    """Note which buffer is full, and what it needs: FULL."""
    buffers.notes[FULL_NODE] = node
    buffers.notes[NEEDED_BYTES] = needed_bytes
    buffers.notes[NEEDED_ITEMS] = needed_items
    return FULL


@merged
def begin_row(buffers: BufferArrays, rows: RowArrays) -> None:
    """Keep the counts of buffers that are inside lists and maps, so that `undo_row` can set them back."""
    for node in rows.inner:
        rows.saved[node] = buffers.counts[node]


@merged
def undo_row(row: int, status: int, place: int, position: int, buffers: BufferArrays, rows: RowArrays) -> None:
    """Remove what a row has appended. Unless a buffer is full, the row becomes null, and its value a failure."""
    for node in range(len(buffers.counts)):
        buffers.counts[node] = row
    for node in rows.inner:
        buffers.counts[node] = rows.saved[node]
    if status == FULL:
        return
    put_null(ROOT, buffers)
    failures, failed = rows.failures, buffers.notes[FAILED]
    failures[failed, FAILED_ROW] = row
    failures[failed, FAILED_STATUS] = status
    failures[failed, FAILED_PLACE] = place
    failures[failed, FAILED_POSITION] = position
    buffers.notes[FAILED] = failed + 1
