"""JSON documents to rows in buffers, in one pass over their bytes.

A program says for each buffer how a value is read, and for structs which key leads to which member. A row
that cannot be decoded is undone by setting the counts of all buffers back, and becomes a null row.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel, merged, subroutine
from kafka_io.jit.scalars import ByteArray, Int32s, Int64s
from kafka_io.values.kernels.column_buffers import (
    BUFFER_KIND,
    CELL,
    END,
    FULL,
    ITEMS,
    LIST,
    OK,
    ROOT,
    STRUCT,
    BufferArrays,
    RowArrays,
    begin_row,
    close_struct,
    full,
    put_end,
    put_null,
    undo_row,
)
from kafka_io.values.kernels.json_program import (
    BAD_SEPARATOR,
    BEGINS,
    BRACKETS,
    CUT,
    DOCUMENT_NOTES,
    DUPLICATE_KEY,
    EMPTY,
    FIRST_KEY,
    FIRST_SLOT,
    INTO_TEXT,
    LAST_KEYS,
    LATE_COUNTS,
    MAX_DEPTH,
    MEMBER,
    NAME,
    NAME_SIZE,
    NEW_KEY,
    NEXT_KEY,
    NO_KEY,
    NOT_A_KEY,
    OP,
    OPEN_NODES,
    OTHER,
    READ_JSON,
    READ_LIST,
    READ_MAP,
    READ_STRUCT,
    SECOND_DOCUMENT,
    SLOT_MASK,
    TOO_DEEP,
    WATCHED,
    WRONG_TYPE,
    JsonProgram,
)
from kafka_io.values.kernels.json_scalars import put_map_key, put_scalar
from kafka_io.values.kernels.json_texts import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMA,
    LOWER_N,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    after_blanks,
    after_colon,
    is_nothing,
    literal_end,
    text_end,
    unescape,
    value_end,
)

# Phases of a document.
_VALUE, _KEY, _ITEM, _MAP_KEY, _AFTER, _CLOSE, _END = range(7)
_FNV, _FNV_PRIME, _UINT32 = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


@kernel
def decode_rows(
    data: ByteArray,
    starts: Int32s,
    ends: Int32s,
    program: JsonProgram,
    work: Int64s,
    notes: ByteArray,
    buffers: BufferArrays,
    rows: RowArrays,
) -> int:
    """Append rows until the end, or until a buffer is full: OK or FULL. It continues after the rows in the buffers.

    Args:
        data: all documents.
        starts: start of each document; negative if there is none, which gives a null row.
        ends: end of each document.
        program: how the documents become rows. It also notes which keys follow each other.
        work: WORK_SIZE numbers.
        notes: gets NEW_KEY for each document that has a key without a column in a watched struct, and there another
            value than null, {} and []; and ROUNDED for one with a number that a double rounds.
        buffers: the last three nodes are those of late numbers: text, node, item.
        rows: the place of a failure is a node.
    """
    row = int(buffers.counts[ROOT])
    while row < len(starts):
        if starts[row] < 0:
            put_null(ROOT, buffers)
            row += 1
            continue
        begin_row(buffers, rows)
        work[DOCUMENT_NOTES] = 0
        start, end = np.int64(starts[row]), np.int64(ends[row])
        status, node, position = _document(data, start, end, program, work, buffers)  # type: ignore[arg-type] # for numba
        if status == FULL:
            full(node, end - start, buffers.counts[node] + 1, buffers)  # type: ignore[arg-type]
        if status != OK:
            undo_row(row, status, node, position - start, buffers, rows)  # type: ignore[arg-type]
            if status == FULL:
                return FULL
        notes[row] = work[DOCUMENT_NOTES]
        row += 1
    return OK


@merged
def _document(
    data: ByteArray, position: int, end: int, program: JsonProgram, work: Int64s, buffers: BufferArrays
) -> tuple[int, int, int]:
    """Append one document as a row: (status, the node of its last value, the position of its last step)."""
    depth = 0
    node = ROOT
    phase = _VALUE
    status = OK
    before = position = after_blanks(data, position, end)
    if position >= end:
        return EMPTY, node, position
    while status == OK and phase != _END:
        before = position
        if phase == _VALUE:
            status, position, node, depth, phase = _value(data, position, end, node, depth, program, work, buffers)
        elif phase == _AFTER:
            status, position, node, phase = _after_value(data, position, end, node, depth, program, work)
        elif phase == _CLOSE:
            if program.readings[node, OP] == READ_STRUCT:
                close_struct(node, buffers)
            else:
                put_end(node, buffers.counts[node + 1], buffers)
            depth -= 1
            position += 1
            phase = _AFTER
        else:
            container = node
            if phase == _KEY:
                status, position, node = _to_member(data, position, end, node, depth, program, work, buffers.counts)
            elif phase == _ITEM:
                node += 1
                status = OK if buffers.counts[node] < buffers.nodes[node, ITEMS] else FULL
            else:
                node += 1
                status, position = put_map_key(data, position, end, node, buffers)
                node += 1 if status == OK else 0
            phase = _AFTER if node == container else _VALUE
            if status == INTO_TEXT:
                depth, text = _text_around(program, work, depth)
                _undo(work[OPEN_NODES + depth], work[LATE_COUNTS + depth], buffers)
                status, position, node, phase = OK, work[BEGINS + depth], text, _VALUE
    return status, node, before


@merged
def _value(
    data: ByteArray,
    position: int,
    end: int,
    node: int,
    depth: int,
    program: JsonProgram,
    work: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int, int, int, int]:
    """Append the value at `position`, or begin its members or items: (status, position, node, depth, phase).

    The phase is again _VALUE if another column takes the value, or the value around it.
    """
    if position >= end:
        return CUT, position, node, depth, _VALUE
    counts = buffers.counts
    read = program.readings[node, OP]
    byte = data[position]
    status = WRONG_TYPE
    after = position
    if byte == LOWER_N and node != ROOT:
        after = literal_end(data, position, end)
        if after < 0:
            return -after, position, node, depth, _VALUE
        put_null(node, buffers)
        status = OK
    elif read > READ_MAP:
        status, after = put_scalar(data, position, end, node, depth, program, work, buffers)
    elif byte == (OPEN_LIST if read == READ_LIST else OPEN_OBJECT):
        if depth >= MAX_DEPTH:
            return TOO_DEEP, position, node, depth, _VALUE
        work[OPEN_NODES + depth] = node
        work[LAST_KEYS + depth] = NO_KEY
        work[BEGINS + depth] = position
        work[LATE_COUNTS + depth] = counts[len(counts) - 3]
        after = after_blanks(data, position + 1, end)
        is_empty = after < end and data[after] == (CLOSE_LIST if read == READ_LIST else CLOSE_OBJECT)
        return OK, after, node, depth + 1, _CLOSE if is_empty else _KEY + read
    if status == OK:
        return OK, after, node, depth, _AFTER
    if status == FULL:
        node = node if after == 0 else len(counts) - 3
    elif status >= WRONG_TYPE:
        outside = _with_other(node, program, work, depth)
        if outside == depth:
            return OK, position, program.readings[node, OTHER], depth, _VALUE
        if outside >= 0:
            node = work[OPEN_NODES + outside]
            _undo(node, work[LATE_COUNTS + outside], buffers)
            return OK, work[BEGINS + outside], program.readings[node, OTHER], outside, _VALUE
        status = _refusal(data, position, end, status, work, depth)
    return status, position, node, depth, _VALUE


@merged
def _after_value(
    data: ByteArray, position: int, end: int, node: int, depth: int, program: JsonProgram, work: Int64s
) -> tuple[int, int, int, int]:
    """Read what follows a value: (status, position, node of the struct, list or map around it, phase).

    If the status is not OK, the node is that of the value.
    """
    position = after_blanks(data, position, end)
    if depth == 0:
        return OK if position >= end else SECOND_DOCUMENT, position, node, _END
    if position >= end:
        return CUT, position, node, _AFTER
    around = work[OPEN_NODES + depth - 1]
    read = program.readings[around, OP]
    if data[position] == COMMA:
        return OK, after_blanks(data, position + 1, end), around, _KEY + read
    if data[position] == (CLOSE_LIST if read == READ_LIST else CLOSE_OBJECT):
        return OK, position, around, _CLOSE
    return BAD_SEPARATOR, position, node, _AFTER


@device_function
def _with_other(node: int, program: JsonProgram, work: Int64s, depth: int) -> int:
    """The depth of the innermost value around a refused one, or of that itself, whose key has another column; or -1."""
    while program.readings[node, OTHER] == ROOT:
        depth -= 1
        if depth < 0:
            return -1
        node = work[OPEN_NODES + depth]
    return depth


@device_function
def _text_around(program: JsonProgram, work: Int64s, depth: int) -> tuple[int, int]:
    """The depth of the innermost open value whose key also has a column of JSON text, and that column; -1 if none."""
    while depth > 0:
        depth -= 1
        node = program.readings[work[OPEN_NODES + depth], OTHER]
        while node != ROOT:
            if program.readings[node, OP] == READ_JSON:
                return depth, node
            node = program.readings[node, OTHER]
    return -1, ROOT


@subroutine
def _undo(opened: int, late_count: int, buffers: BufferArrays) -> None:
    """Take out what an open struct, list or map has got so far: its buffers have as many items as before it began."""
    nodes, cells, counts = buffers.nodes, buffers.cells, buffers.counts
    for node in range(opened, nodes[opened, END]):
        kind = nodes[node, BUFFER_KIND]
        if kind == STRUCT or kind >= LIST:
            count = counts[node] if kind == STRUCT else cells[nodes[node, CELL] + counts[node]]
            member = node + 1
            while member < nodes[node, END]:
                counts[member] = count
                member = nodes[member, END]
    for late in range(3):
        counts[len(counts) - 3 + late] = late_count


@merged
def _to_member(
    data: ByteArray,
    position: int,
    end: int,
    struct: int,
    depth: int,
    program: JsonProgram,
    work: Int64s,
    counts: Int64s,
) -> tuple[int, int, int]:
    """Go to the value of the member whose key is at `position`: (status, position, member).

    If the key has no column, its value is skipped, and the struct is returned instead of a member. The status is
    INTO_TEXT if a value around it has a column of JSON text besides its own: that keeps all keys.
    """
    if position >= end:
        return CUT, position, struct
    if data[position] != QUOTE:
        return NOT_A_KEY, position, struct
    last = work[LAST_KEYS + depth - 1]
    position, key = _key(data, position + 1, end, struct, last, program)
    if position < 0:
        return -position, position, struct
    if key == NO_KEY:
        if program.readings[struct, WATCHED] != 0 and not is_nothing(data, position, end):
            work[DOCUMENT_NOTES] |= NEW_KEY
            if _text_around(program, work, depth)[0] >= 0:
                return INTO_TEXT, position, struct
        position = value_end(data, position, end, work[BRACKETS:DOCUMENT_NOTES], depth)
        return OK if position >= 0 else -position, position, struct
    work[LAST_KEYS + depth - 1] = key
    first = member = program.keys[key, MEMBER]
    while member != ROOT:
        if counts[member] != counts[struct]:
            return DUPLICATE_KEY, position, member
        member = program.readings[member, OTHER]
    return OK, position, first


@subroutine
def _refusal(data: ByteArray, position: int, end: int, status: int, work: Int64s, depth: int) -> int:
    """The reason why the value at `position` is refused: it is not valid JSON, or otherwise `status`."""
    stop = value_end(data, position, end, work[BRACKETS:DOCUMENT_NOTES], depth)
    return -stop if stop < 0 else status


@merged
def _key(data: ByteArray, position: int, end: int, struct: int, last: int, program: JsonProgram) -> tuple[int, int]:
    """The key whose text begins at `position`: (start of its value, key); NO_KEY if it has no column.

    Documents of a topic mostly have the same keys in the same order, so the key that followed `last` in an earlier
    document is tried first. `last` is NO_KEY before the first key.
    """
    keys, scratch = program.keys, program.scratch
    key = program.readings[struct, FIRST_KEY] if last == NO_KEY else keys[last, NEXT_KEY]
    if key != NO_KEY:
        size = keys[key, NAME_SIZE]
        if (
            position + size < end
            and data[position + size] == QUOTE
            and _equal(data, position, program.names, keys[key, NAME], size)
        ):
            return after_colon(data, position + size + 1, end), key
    stop, has_escapes = text_end(data, position, end)
    if stop < 0:
        return stop, NO_KEY
    key = NO_KEY
    if has_escapes:
        if stop - position <= len(scratch):
            size = unescape(data, position, stop, scratch, 0)
            key = _lookup(scratch, 0, size, struct, program)
    else:
        key = _lookup(data, position, stop - position, struct, program)
        if key != NO_KEY and last == NO_KEY:
            program.readings[struct, FIRST_KEY] = key
        elif key != NO_KEY:
            keys[last, NEXT_KEY] = key
    return after_colon(data, stop + 1, end), key


@device_function
def _equal(left: ByteArray, position: int, right: ByteArray, start: int, size: int) -> bool:
    """Whether `size` bytes are equal."""
    for i in range(size):  # noqa: SIM110 - numba compiles no generators
        if left[position + i] != right[start + i]:
            return False
    return True


@kernel
def hash_of(data: ByteArray, position: int, size: int) -> int:
    """FNV-1a of a key, 32 bits."""
    value = _FNV
    for i in range(size):
        value = ((value ^ int(data[position + i])) * _FNV_PRIME) & _UINT32
    return value


@subroutine
def _lookup(data: ByteArray, position: int, size: int, struct: int, program: JsonProgram) -> int:
    """The key of a struct with these bytes, or NO_KEY."""
    keys = program.keys
    mask = program.readings[struct, SLOT_MASK]
    slot = hash_of(data, position, size) & mask
    while True:
        key = program.slots[program.readings[struct, FIRST_SLOT] + slot]
        if key == NO_KEY:
            return NO_KEY
        if keys[key, NAME_SIZE] == size and _equal(data, position, program.names, keys[key, NAME], size):
            return int(key)
        slot = (slot + 1) & mask
