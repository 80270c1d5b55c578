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
    ITEMS,
    LIST,
    ROOT,
    STRUCT,
    Float64s,
    close_struct,
    put_end,
    put_null,
)
from kafka_io.values.kernels.json_program import (
    BEGINS,
    BRACKETS,
    FAULT_NODE,
    FAULT_POSITION,
    FIRST_KEY,
    FIRST_SLOT,
    HAS_NEW_KEY,
    LAST_KEYS,
    LATE_COUNTS,
    MAX_DEPTH,
    MEMBER,
    NAME,
    NAME_SIZE,
    NEXT_KEY,
    NO_KEY,
    OP,
    OPEN_NODES,
    OTHER,
    READ_JSON,
    READ_LIST,
    READ_MAP,
    READ_STRUCT,
    SLOT_MASK,
    WATCHED,
)
from kafka_io.values.kernels.json_scalars import put_map_key, put_scalar
from kafka_io.values.kernels.json_statuses import (
    BAD_SEPARATOR,
    CUT,
    DUPLICATE_KEY,
    EMPTY,
    FULL,
    INTO_TEXT,
    NOT_A_KEY,
    OK,
    SECOND_DOCUMENT,
    TOO_DEEP,
    WRONG_TYPE,
)
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
    row: int,
    nodes: Int64s,
    program: Int64s,
    keys: Int64s,
    slots: Int64s,
    names: ByteArray,
    scratch: ByteArray,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    saved: Int64s,
    work: Int64s,
    new_keys: ByteArray,
    failures: Int64s,
    failed: int,
) -> tuple[int, int, int]:
    """Append rows until the end, or until a buffer is full: (OK or FULL, the next row, number of failures).

    Args:
        data: all documents.
        starts: start of each document; negative if there is none, which gives a null row.
        ends: end of each document.
        row: the first row.
        nodes: see `column_buffers`; the last three nodes are those of late numbers: text, node, item.
        program: see above.
        keys: see above.
        slots: hash tables of keys: the key, or 0.
        names: the bytes of all keys.
        scratch: room for a key with escapes; a longer key is not a key of any member.
        cells: see `column_buffers`.
        reals: the same memory as `cells`, as doubles.
        valid: see `column_buffers`.
        content: see `column_buffers`.
        counts: items of each buffer.
        saved: room for a copy of `counts`.
        work: WORK_SIZE numbers; FAULT_NODE is the node that is full, FAULT_POSITION its items with those of the row.
        new_keys: gets 1 for each document that has a key without a column in a watched struct, and there another value
            than null, {} and [].
        failures: row, status, node and position for each document that is refused.
        failed: number of failures so far.
    """
    while row < len(starts):
        if starts[row] < 0:
            put_null(ROOT, nodes, cells, valid, counts)
            row += 1
            continue
        for node in range(len(counts)):
            saved[node] = counts[node]
        work[HAS_NEW_KEY] = 0
        status = _document(
            data,
            np.int64(starts[row]),  # type: ignore[arg-type] # for numba
            np.int64(ends[row]),  # type: ignore[arg-type]
            nodes,
            program,
            keys,
            slots,
            names,
            scratch,
            cells,
            reals,
            valid,
            content,
            counts,
            work,
        )
        if status != OK:
            items = counts[work[FAULT_NODE]]
            for node in range(len(counts)):
                counts[node] = saved[node]
            if status == FULL:
                work[FAULT_POSITION] = items
                return FULL, row, failed
            put_null(ROOT, nodes, cells, valid, counts)
            failures[failed, 0] = row
            failures[failed, 1] = status
            failures[failed, 2] = work[FAULT_NODE]
            failures[failed, 3] = work[FAULT_POSITION] - starts[row]
            failed += 1
        new_keys[row] = work[HAS_NEW_KEY]
        row += 1
    return OK, row, failed


@merged
def _document(  # noqa: PLR0912 - one branch for each kind of character
    data: ByteArray,
    position: int,
    end: int,
    nodes: Int64s,
    program: Int64s,
    keys: Int64s,
    slots: Int64s,
    names: ByteArray,
    scratch: ByteArray,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> int:
    """Append one document as a row; the status, with FAULT_NODE and FAULT_POSITION set if it is not OK."""
    depth = 0
    node = ROOT
    phase = _VALUE
    status = OK
    work[FAULT_NODE] = ROOT
    position = after_blanks(data, position, end)
    work[FAULT_POSITION] = position
    if position >= end:
        return EMPTY
    while status == OK and phase != _END:
        work[FAULT_POSITION] = position
        work[FAULT_NODE] = node
        if phase == _VALUE:
            status, position, node, depth, phase = _value(
                data, position, end, node, depth, nodes, program, cells, reals, valid, content, counts, work
            )
        elif phase == _AFTER:
            status, position, node, phase = _after_value(data, position, end, node, depth, program, work)
        elif phase == _CLOSE:
            if program[node, OP] == READ_STRUCT:
                close_struct(node, nodes, cells, valid, counts)
            else:
                put_end(node, counts[node + 1], nodes, cells, valid, counts)
            depth -= 1
            position += 1
            phase = _AFTER
        else:
            container = node
            if phase == _KEY:
                status, position, node = _to_member(
                    data, position, end, node, program, keys, slots, names, scratch, counts, work, depth
                )
            elif phase == _ITEM:
                node += 1
                status = OK if counts[node] < nodes[node, ITEMS] else FULL
            else:
                node += 1
                status, position = put_map_key(data, position, end, node, nodes, cells, valid, content, counts)
                node += 1 if status == OK else 0
            phase = _AFTER if node == container else _VALUE
            if status == INTO_TEXT:
                depth, text = _text_around(program, work, depth)
                opened = work[OPEN_NODES + depth]
                _undo(opened, work[LATE_COUNTS + depth], nodes, cells, counts)
                status, position, node, phase = OK, work[BEGINS + depth], text, _VALUE
            elif status != OK:
                work[FAULT_NODE] = node
    return status


@merged
def _value(
    data: ByteArray,
    position: int,
    end: int,
    node: int,
    depth: int,
    nodes: Int64s,
    program: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> tuple[int, int, int, int, int]:
    """Append the value at `position`, or begin its members or items: (status, position, node, depth, phase).

    The phase is again _VALUE if another column takes the value, or the value around it.
    """
    if position >= end:
        return CUT, position, node, depth, _VALUE
    read = program[node, OP]
    byte = data[position]
    status = WRONG_TYPE
    after = position
    if byte == LOWER_N and node != ROOT:
        after = literal_end(data, position, end)
        if after < 0:
            return -after, position, node, depth, _VALUE
        put_null(node, nodes, cells, valid, counts)
        status = OK
    elif read > READ_MAP:
        status, after = put_scalar(
            data, position, end, node, nodes, program, cells, reals, valid, content, counts, work, depth
        )
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
        work[FAULT_NODE] = node if after == 0 else len(counts) - 3
    elif status >= WRONG_TYPE:
        outside = _with_other(node, program, work, depth)
        if outside == depth:
            return OK, position, program[node, OTHER], depth, _VALUE
        if outside >= 0:
            node = work[OPEN_NODES + outside]
            _undo(node, work[LATE_COUNTS + outside], nodes, cells, counts)
            return OK, work[BEGINS + outside], program[node, OTHER], outside, _VALUE
        status = _refusal(data, position, end, status, work, depth)
    return status, position, node, depth, _VALUE


@merged
def _after_value(
    data: ByteArray, position: int, end: int, node: int, depth: int, program: Int64s, work: Int64s
) -> tuple[int, int, int, int]:
    """Read what follows a value: (status, position, node of the struct, list or map around it, phase)."""
    position = after_blanks(data, position, end)
    if depth == 0:
        return OK if position >= end else SECOND_DOCUMENT, position, node, _END
    if position >= end:
        return CUT, position, node, _AFTER
    node = work[OPEN_NODES + depth - 1]
    read = program[node, OP]
    if data[position] == COMMA:
        return OK, after_blanks(data, position + 1, end), node, _KEY + read
    if data[position] == (CLOSE_LIST if read == READ_LIST else CLOSE_OBJECT):
        return OK, position, node, _CLOSE
    return BAD_SEPARATOR, position, node, _AFTER


@device_function
def _with_other(node: int, program: Int64s, work: Int64s, depth: int) -> int:
    """The depth of the innermost value around a refused one, or of that itself, whose key has another column; or -1."""
    while program[node, OTHER] == ROOT:
        depth -= 1
        if depth < 0:
            return -1
        node = work[OPEN_NODES + depth]
    return depth


@device_function
def _text_around(program: Int64s, work: Int64s, depth: int) -> tuple[int, int]:
    """The depth of the innermost open value whose key also has a column of JSON text, and that column; -1 if none."""
    while depth > 0:
        depth -= 1
        node = program[work[OPEN_NODES + depth], OTHER]
        while node != ROOT:
            if program[node, OP] == READ_JSON:
                return depth, node
            node = program[node, OTHER]
    return -1, ROOT


@subroutine
def _undo(opened: int, late_count: int, nodes: Int64s, cells: Int64s, counts: Int64s) -> None:
    """Take out what an open struct, list or map has got so far: its buffers have as many items as before it began."""
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
    program: Int64s,
    keys: Int64s,
    slots: Int64s,
    names: ByteArray,
    scratch: ByteArray,
    counts: Int64s,
    work: Int64s,
    depth: int,
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
    position, key = _key(data, position + 1, end, struct, last, program, keys, slots, names, scratch)
    if position < 0:
        return -position, position, struct
    if key == NO_KEY:
        if program[struct, WATCHED] != 0 and not is_nothing(data, position, end):
            work[HAS_NEW_KEY] = 1
            if _text_around(program, work, depth)[0] >= 0:
                return INTO_TEXT, position, struct
        position = value_end(data, position, end, work[BRACKETS:FAULT_NODE], depth)
        return OK if position >= 0 else -position, position, struct
    work[LAST_KEYS + depth - 1] = key
    first = member = keys[key, MEMBER]
    while member != ROOT:
        if counts[member] != counts[struct]:
            return DUPLICATE_KEY, position, member
        member = program[member, OTHER]
    return OK, position, first


@subroutine
def _refusal(data: ByteArray, position: int, end: int, status: int, work: Int64s, depth: int) -> int:
    """The reason why the value at `position` is refused: it is not valid JSON, or otherwise `status`."""
    stop = value_end(data, position, end, work[BRACKETS:FAULT_NODE], depth)
    return -stop if stop < 0 else status


@merged
def _key(
    data: ByteArray,
    position: int,
    end: int,
    struct: int,
    last: int,
    program: Int64s,
    keys: Int64s,
    slots: Int64s,
    names: ByteArray,
    scratch: ByteArray,
) -> tuple[int, int]:
    """The key whose text begins at `position`: (start of its value, key); NO_KEY if it has no column.

    Documents of a topic mostly have the same keys in the same order, so the key that followed `last` in an earlier
    document is tried first. `last` is NO_KEY before the first key.
    """
    key = program[struct, FIRST_KEY] if last == NO_KEY else keys[last, NEXT_KEY]
    if key != NO_KEY:
        size = keys[key, NAME_SIZE]
        if (
            position + size < end
            and data[position + size] == QUOTE
            and _equal(data, position, names, keys[key, NAME], size)
        ):
            return after_colon(data, position + size + 1, end), key
    stop, has_escapes = text_end(data, position, end)
    if stop < 0:
        return stop, NO_KEY
    key = NO_KEY
    if has_escapes:
        if stop - position <= len(scratch):
            size = unescape(data, position, stop, scratch, 0)
            key = _lookup(scratch, 0, size, struct, program, keys, slots, names)
    else:
        key = _lookup(data, position, stop - position, struct, program, keys, slots, names)
        if key != NO_KEY and last == NO_KEY:
            program[struct, FIRST_KEY] = key
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
def _lookup(
    data: ByteArray,
    position: int,
    size: int,
    struct: int,
    program: Int64s,
    keys: Int64s,
    slots: Int64s,
    names: ByteArray,
) -> int:
    """The key of a struct with these bytes, or NO_KEY."""
    mask = program[struct, SLOT_MASK]
    slot = hash_of(data, position, size) & mask
    while True:
        key = slots[program[struct, FIRST_SLOT] + slot]
        if key == NO_KEY:
            return NO_KEY
        if keys[key, NAME_SIZE] == size and _equal(data, position, names, keys[key, NAME], size):
            return int(key)
        slot = (slot + 1) & mask
