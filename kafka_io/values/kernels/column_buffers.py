"""Column buffers: the growing columns that decoders of values fill.

A buffer holds the items of one column, or of one part of a nested column. The buffers of a schema form a tree whose
nodes are numbered in preorder; node 0 is the row itself. The items of all buffers are in three arrays:

    cells     int64: a number (1 cell per item), a decimal (2, the lower half first), or the end of each text, list or
              map (1, after a first cell that is 0)
    valid     uint8: 1 for a value, 0 for null
    content   uint8: the bytes of texts

`nodes` says where each buffer begins in them. A buffer is only ever appended to, so a row is undone by setting all
counts back. All buffers inside a struct have as many items as the struct: while a struct is open, a member whose count
is greater than the struct's has its value already.
"""

import numpy as np
import numpy.typing as npt

from kafka_io.jit.compiling import device_function, merged
from kafka_io.jit.scalars import ByteArray, Int64s

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]

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


@device_function
def put_null(node: int, nodes: Int64s, cells: Int64s, valid: ByteArray, counts: Int64s) -> None:
    """Append a null to a buffer, and to all buffers inside it that have as many items."""
    end = nodes[node, END]
    while node < end:
        buffer_kind = nodes[node, BUFFER_KIND]
        item = counts[node]
        cell = nodes[node, CELL] + item
        valid[nodes[node, VALID] + item] = 0
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


@merged
def close_struct(node: int, nodes: Int64s, cells: Int64s, valid: ByteArray, counts: Int64s) -> None:
    """Append a struct whose members are in their buffers; a member without a value becomes null."""
    item = counts[node]
    member = node + 1
    while member < nodes[node, END]:
        if counts[member] == item:
            put_null(member, nodes, cells, valid, counts)
        member = nodes[member, END]
    valid[nodes[node, VALID] + item] = 1
    counts[node] = item + 1


@device_function
def put_number(node: int, number: int, nodes: Int64s, cells: Int64s, valid: ByteArray, counts: Int64s) -> None:
    """Append a number to a buffer of numbers."""
    item = counts[node]
    cells[nodes[node, CELL] + item] = number
    valid[nodes[node, VALID] + item] = 1
    counts[node] = item + 1


@device_function
def put_real(node: int, number: float, nodes: Int64s, reals: Float64s, valid: ByteArray, counts: Int64s) -> None:
    """Append a double to a buffer of numbers; `reals` is the memory of `cells` as doubles."""
    item = counts[node]
    reals[nodes[node, CELL] + item] = number
    valid[nodes[node, VALID] + item] = 1
    counts[node] = item + 1


@device_function
def put_pair(node: int, low: int, high: int, nodes: Int64s, cells: Int64s, valid: ByteArray, counts: Int64s) -> None:
    """Append a decimal, the two halves of its unscaled number, to a buffer of pairs."""
    item = counts[node]
    cell = nodes[node, CELL] + 2 * item
    cells[cell] = low
    cells[cell + 1] = high
    valid[nodes[node, VALID] + item] = 1
    counts[node] = item + 1


@device_function
def put_end(node: int, end: int, nodes: Int64s, cells: Int64s, valid: ByteArray, counts: Int64s) -> None:
    """Append a text, list or map whose content ends at `end`."""
    item = counts[node]
    cells[nodes[node, CELL] + item + 1] = end
    valid[nodes[node, VALID] + item] = 1
    counts[node] = item + 1


@device_function
def undo_row(row_count: int, saved: Int64s, inner: Int64s, counts: Int64s) -> None:
    """Remove what a row has appended. `saved` has the former counts of `inner`; all others had `row_count` items."""
    for node in range(len(counts)):
        counts[node] = row_count
    for node in inner:
        counts[node] = saved[node]


@device_function
def put_failure(row: int, status: int, place: int, position: int, failures: Int64s, done: Int64s) -> None:
    """Note a value that does not decode: its row, the status, the op or field, and the position within the value."""
    failed = done[0]
    failures[4 * failed] = row
    failures[4 * failed + 1] = status
    failures[4 * failed + 2] = place
    failures[4 * failed + 3] = position
    done[0] = failed + 1
