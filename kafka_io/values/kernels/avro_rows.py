"""Avro values to rows in buffers: one kernel that runs a program, so no schema is ever compiled.

A program reads the fields of one writer's schema in their order, and puts each into a buffer of the table's columns, or
skips it. All programs fill the same buffers, so the writer's schema may change from value to value.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int32s, Int64s, varlong
from kafka_io.values.kernels.avro_buffers import full, put_fixed, put_long, put_raw, put_sized, put_symbol
from kafka_io.values.kernels.avro_program import (
    BAD_BRANCH,
    BAD_COUNT,
    BAD_LENGTH,
    BAD_NUMBER,
    BLOCK,
    CALL,
    END,
    ENUM,
    FAULT_OP,
    FAULT_POSITION,
    FREE_ITEMS,
    FULL,
    ITEM_END,
    JUMP,
    LAST_FIXED,
    LAST_WITH_NUMBER,
    LONG_TO_DOUBLE,
    MAX_DEPTH,
    NODE,
    NULL,
    OK,
    OP,
    OPTION,
    RAW_END,
    REFUSE,
    REFUSED,
    RETURN,
    SKIP_BOOLEAN,
    SKIP_ENUM,
    SKIP_FIXED,
    SKIP_LONG,
    STRUCT,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    UNION,
    A,
    B,
    C,
)
from kafka_io.values.kernels.column_buffers import (
    ITEMS,
    ROOT,
    VALID,
    Float32s,
    Float64s,
    put_end,
    put_failure,
    put_null,
    undo_row,
)

_INT64_MAX = (1 << 63) - 1


@kernel
def decode_rows(
    data: ByteArray,
    ends: Int32s,
    starts: Int32s,
    ids: Int32s,
    row: int,
    known_ids: Int64s,
    entries: Int64s,
    program: Int64s,
    symbols: ByteArray,
    symbol_ends: Int64s,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    saved: Int64s,
    inner: Int64s,
    work: Int64s,
    bits: Int32s,
    float_of_bits: Float32s,
    scratch: ByteArray,
    missing: Int32s,
    failures: Int64s,
    done: Int64s,
) -> tuple[int, int]:
    """Append rows until the end, or until a buffer is full: (OK or FULL, the next row).

    Args:
        data: all values.
        ends: n + 1 positions, of which the last n are the ends of the values.
        starts: start of each body; -1 for a value that is null or has no frame, which becomes a row of nulls.
        ids: id of each value's schema.
        row: the first row.
        known_ids: ids of the schemas that have a program, in ascending order.
        entries: the first op of each program.
        program: all programs, one after the other.
        symbols: all symbols of enums, one after the other.
        symbol_ends: the end of each symbol, after a 0.
        nodes: see `column_buffers`.
        cells: see `column_buffers`.
        reals: the same memory as `cells`, as doubles.
        valid: see `column_buffers`; RAW_VALUE marks a value that is kept as its bytes.
        content: see `column_buffers`.
        counts: items of each buffer.
        saved: room for a copy of `counts`.
        inner: the buffers inside lists and maps; all others have as many items as there are rows.
        work: see above.
        bits: one int32.
        float_of_bits: the same memory, as a float.
        scratch: 16 bytes.
        missing: output, ids of schemas without a program, some of them repeated.
        failures: output: row, status, op and position for each value that does not decode.
        done: numbers of failures and of missing ids so far.
    """
    last_id = -1
    entry = -1
    while row < len(ids):
        start = int(starts[row])
        if start < 0:
            put_null(ROOT, nodes, cells, valid, counts)
            row += 1
            continue
        if ids[row] != last_id:
            last_id = ids[row]
            entry = _entry(last_id, known_ids, entries)
        if entry < 0:
            if done[1] == 0 or missing[done[1] - 1] != last_id:
                missing[done[1]] = last_id
                done[1] += 1
            put_null(ROOT, nodes, cells, valid, counts)
            row += 1
            continue
        row_count = counts[ROOT]
        for node in inner:
            saved[node] = counts[node]
        status = _value(
            data, start, int(ends[row + 1]), entry, program, symbols, symbol_ends, nodes, cells, reals, valid, content,
            counts, work, bits, float_of_bits, scratch,
        )  # fmt: skip
        if status != OK:
            undo_row(row_count, saved, inner, counts)
            if status == FULL:
                return FULL, row
            put_null(ROOT, nodes, cells, valid, counts)
            put_failure(row, status, int(work[FAULT_OP]), int(work[FAULT_POSITION] - start), failures, done)
        row += 1
    return OK, row


@device_function
def _entry(schema_id: int, known_ids: Int64s, entries: Int64s) -> int:
    """The first op of a schema's program; -1 if it has none."""
    low = 0
    high = len(known_ids)
    while low < high:
        middle = (low + high) // 2
        if known_ids[middle] < schema_id:
            low = middle + 1
        else:
            high = middle
    if low < len(known_ids) and known_ids[low] == schema_id:
        return int(entries[low])
    return -1


@device_function
def _value(  # noqa: PLR0912 - one branch for each kind of op
    data: ByteArray,
    position: int,
    end: int,
    pc: int,
    program: Int64s,
    symbols: ByteArray,
    symbol_ends: Int64s,
    nodes: Int64s,
    cells: Int64s,
    reals: Float64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
    bits: Int32s,
    float_of_bits: Float32s,
    scratch: ByteArray,
) -> int:
    """Run the program at op `pc` over one value; the status, with FAULT_OP and FAULT_POSITION if it is not OK."""
    depth = 0
    free_items = FREE_ITEMS + end - position
    while True:
        # numba checks a signed index for being negative.
        place = np.uint64(pc)
        op = program[place, OP]
        node = program[place, NODE]
        before = position
        status = OK
        following = pc + 1
        if op <= LAST_WITH_NUMBER:
            number, position = _number(data, position, end)
            if position == BAD_POSITION:
                status = BAD_NUMBER
            elif op <= LONG_TO_DOUBLE or op == SKIP_LONG:
                status = put_long(
                    op, number, program[place, A], program[place, B] != 0, program[place, C], node, nodes, cells, reals,
                    valid, counts,
                )  # fmt: skip
            elif op in (OPTION, UNION):
                status, following = _branch(op, number, pc, node, program, nodes, cells, valid, counts)
            elif op == BLOCK:
                status, following, depth, free_items = _block(
                    number, end - position, pc, depth, free_items, program, nodes, cells, valid, counts, work
                )
            elif op in (ENUM, SKIP_ENUM):
                status = put_symbol(
                    op, number, program[place, A], program[place, B], node, symbols, symbol_ends, nodes, cells, valid,
                    content, counts, work,
                )  # fmt: skip
            elif number < 0 or number > end - position:
                status = BAD_LENGTH
            else:
                status = put_sized(
                    op, data, position, number, node, nodes, cells, valid, content, counts, work, scratch
                )
                position += number
        elif op <= LAST_FIXED or op in (SKIP_FIXED, SKIP_BOOLEAN):
            status, position = put_fixed(
                op, data, position, end, program[place, A], node, nodes, cells, reals, valid, content, counts, work,
                bits, float_of_bits, scratch,
            )  # fmt: skip
        elif op == END:
            if position == end:
                return OK
            status = TOO_LONG
        else:
            status, following, depth = _structure(
                op, data, position, pc, depth, node, program, nodes, cells, valid, content, counts, work
            )
        if status != OK:
            work[FAULT_OP] = pc
            work[FAULT_POSITION] = before
            return status
        pc = following


@device_function
def _number(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A varint before `end`: (number, position after it), or a value and BAD_POSITION."""
    # Most numbers have one byte.
    if position < end and data[position] < 0x80:
        zigzag = np.int64(data[position])
        return int((zigzag >> 1) ^ -(zigzag & 1)), position + 1
    return varlong(data, position, end)


@device_function
def _branch(
    op: int,
    number: int,
    pc: int,
    node: int,
    program: Int64s,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    counts: Int64s,
) -> tuple[int, int]:
    """Choose a branch of a union: (status, next op)."""
    if op == UNION:
        if number < 0 or number >= program[pc, A]:
            return BAD_BRANCH, pc
        return OK, program[pc + 1 + number, A]
    if number == program[pc, B]:
        put_null(node, nodes, cells, valid, counts)
        return OK, program[pc, A]
    return OK if number == 1 - program[pc, B] else BAD_BRANCH, pc + 1


@device_function
def _structure(
    op: int,
    data: ByteArray,
    position: int,
    pc: int,
    depth: int,
    node: int,
    program: Int64s,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    content: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> tuple[int, int, int]:
    """Run an op that reads nothing: (status, next op, depth)."""
    if op == STRUCT:
        valid[nodes[node, VALID] + counts[node]] = 1
        counts[node] += 1
        return OK, pc + 1, depth
    if op == NULL:
        put_null(node, nodes, cells, valid, counts)
        return OK, pc + 1, depth
    if op == JUMP:
        return OK, program[pc, A], depth
    if op == ITEM_END:
        work[depth - 1] -= 1
        return OK, program[pc, A] + (2 if work[depth - 1] > 0 else 0), depth
    if op == REFUSE:
        return REFUSED, pc, depth
    if op == RETURN:
        return OK, work[depth - 1], depth - 1
    if op == RAW_END:
        begin, number = work[depth - 1], program[pc, A]
        status = put_raw(data, begin, position, number, node, nodes, cells, valid, content, counts, work)
        return status, pc + 1, depth - 1
    if depth >= MAX_DEPTH:
        return TOO_DEEP, pc, depth
    # LIST, CALL or RAW: something begins. Of a list, the stack contains how many items are left in the block.
    work[depth] = pc + 1 if op == CALL else position
    return OK, program[pc, A] if op == CALL else pc + 1, depth + 1


@device_function
def _block(
    count: int,
    remaining_bytes: int,
    pc: int,
    depth: int,
    free_items: int,
    program: Int64s,
    nodes: Int64s,
    cells: Int64s,
    valid: ByteArray,
    counts: Int64s,
    work: Int64s,
) -> tuple[int, int, int, int]:
    """Begin a block of an array or map, or end it at a count of 0: (status, next op, depth, free items left)."""
    node = program[pc, NODE]
    if count == 0:
        if node >= 0:
            put_end(node, counts[node + 1], nodes, cells, valid, counts)
        return OK, program[pc, A], depth - 1, free_items
    # The size in bytes of a block with a negative count follows as the next op, and is not needed.
    following = pc + 1 if count < 0 else pc + 2
    fewest = program[pc, B]
    if count < 0:
        if count < -_INT64_MAX:
            return BAD_COUNT, pc, depth, free_items
        count = -count
    if fewest > 0:
        if count > remaining_bytes // fewest:
            return BAD_COUNT, pc, depth, free_items
    else:
        if count > free_items:
            return TOO_MANY, pc, depth, free_items
        free_items -= count
    if node >= 0:
        inner = node + 1
        for _ in range(2):
            if counts[inner] + count > nodes[inner, ITEMS]:
                return full(inner, 0, counts[inner] + count, work), pc, depth, free_items
            inner = program[pc, C]
    work[depth - 1] = count
    return OK, following, depth, free_items
