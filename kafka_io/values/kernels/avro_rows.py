"""Avro values to rows in buffers: one kernel that runs a program, so no schema is ever compiled.

A program reads the fields of one writer's schema in their order, and puts each into a buffer of the table's columns, or
skips it. All programs fill the same buffers, so the writer's schema may change from value to value.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int32s, Int64s, place_of, varlong
from kafka_io.values.kernels.avro_buffers import put_fixed, put_long, put_sized, put_symbol
from kafka_io.values.kernels.avro_program import (
    BAD_BRANCH,
    BAD_COUNT,
    BAD_LENGTH,
    BAD_NUMBER,
    BLOCK,
    CALL,
    END,
    ENUM,
    FREE_ITEMS,
    ITEM_END,
    JUMP,
    LAST_FIXED,
    LAST_WITH_NUMBER,
    LONG_TO_DOUBLE,
    MAX_DEPTH,
    NODE,
    NULL,
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
    SYMBOL,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    UNION,
    A,
    AvroProgram,
    B,
    C,
)
from kafka_io.values.kernels.column_buffers import (
    FULL,
    ITEMS,
    OK,
    ROOT,
    BufferArrays,
    RowArrays,
    begin_row,
    full,
    put_end,
    put_item,
    put_null,
    put_raw,
    undo_row,
)

_INT64_MAX = (1 << 63) - 1


@kernel
def decode_rows(
    data: ByteArray,
    ends: Int32s,
    starts: Int32s,
    ids: Int32s,
    program: AvroProgram,
    stack: Int64s,
    unknown: ByteArray,
    buffers: BufferArrays,
    rows: RowArrays,
) -> int:
    """Append rows until the end, or until a buffer is full: OK or FULL. It continues after the rows in the buffers.

    Args:
        data: all values.
        ends: n + 1 positions, of which the last n are the ends of the values.
        starts: start of each body; -1 for a value that is null or has no frame, which becomes a row of nulls.
        ids: id of each value's schema.
        program: the programs of the schemas.
        stack: MAX_DEPTH numbers: what CALL, RAW and lists that are open need at their end.
        unknown: output, 1 for each value whose schema has no program; it becomes a row of nulls.
        buffers: see `column_buffers`.
        rows: the place of a failure is an op.
    """
    last_id = -1
    entry = -1
    row = int(buffers.counts[ROOT])
    while row < len(ids):
        start = int(starts[row])
        if start >= 0 and ids[row] != last_id:
            last_id = ids[row]
            place = place_of(last_id, program.ids, 0, len(program.ids))
            entry = int(program.entries[place]) if place >= 0 else -1
        if start < 0 or entry < 0:
            unknown[row] = start >= 0
            put_null(ROOT, buffers)
            row += 1
            continue
        begin_row(buffers, rows)
        status, place, position = _value(data, start, int(ends[row + 1]), entry, program, stack, buffers)
        if status != OK:
            undo_row(row, status, place, position - start, buffers, rows)
            if status == FULL:
                return FULL
        row += 1
    return OK


@device_function
def _value(  # noqa: PLR0912 - one branch for each kind of op
    data: ByteArray, position: int, end: int, pc: int, program: AvroProgram, stack: Int64s, buffers: BufferArrays
) -> tuple[int, int, int]:
    """Run the program at op `pc` over one value: (status, the last op, the position before what it has read)."""
    ops = program.ops
    depth = 0
    free_items = FREE_ITEMS + end - position
    while True:
        # numba checks a signed index for being negative.
        place = np.uint64(pc)
        op = ops[place, OP]
        node = ops[place, NODE]
        before = position
        status = OK
        following = pc + 1
        if op <= LAST_WITH_NUMBER:
            number, position = _number(data, position, end)
            if position == BAD_POSITION:
                status = BAD_NUMBER
            elif op <= LONG_TO_DOUBLE or op == SKIP_LONG:
                status = put_long(op, number, place, node, program, buffers)  # type: ignore[arg-type] # for numba
            elif op in (OPTION, UNION):
                status, following = _branch(op, number, pc, node, ops, buffers)
            elif op == BLOCK:
                status, following, depth, free_items = _block(
                    number, end - position, pc, depth, free_items, ops, stack, buffers
                )
            elif op in (ENUM, SKIP_ENUM):
                status = put_symbol(op, number, place, node, program, buffers)  # type: ignore[arg-type]
            elif number < 0 or number > end - position:
                status = BAD_LENGTH
            else:
                status = put_sized(op, data, position, number, node, buffers)
                position += number
        elif op <= LAST_FIXED or op in (SKIP_FIXED, SKIP_BOOLEAN):
            status, position = put_fixed(op, data, position, end, ops[place, A], node, buffers)
        elif op == SYMBOL:
            status = put_symbol(op, 0, place, node, program, buffers)  # type: ignore[arg-type]
        elif op == END:
            if position == end:
                return OK, pc, position
            status = TOO_LONG
        else:
            status, following, depth = _structure(op, data, position, pc, depth, node, ops, stack, buffers)
        if status != OK:
            return status, pc, before
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
def _branch(op: int, number: int, pc: int, node: int, ops: Int64s, buffers: BufferArrays) -> tuple[int, int]:
    """Choose a branch of a union: (status, next op)."""
    if op == UNION:
        if number < 0 or number >= ops[pc, A]:
            return BAD_BRANCH, pc
        return OK, ops[pc + 1 + number, A]
    if number == ops[pc, B]:
        put_null(node, buffers)
        return OK, ops[pc, A]
    return OK if number == 1 - ops[pc, B] else BAD_BRANCH, pc + 1


@device_function
def _structure(
    op: int,
    data: ByteArray,
    position: int,
    pc: int,
    depth: int,
    node: int,
    ops: Int64s,
    stack: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int, int]:
    """Run an op that reads nothing: (status, next op, depth)."""
    if op == STRUCT:
        put_item(node, buffers)
        return OK, pc + 1, depth
    if op == NULL:
        put_null(node, buffers)
        return OK, pc + 1, depth
    if op == JUMP:
        return OK, ops[pc, A], depth
    if op == ITEM_END:
        stack[depth - 1] -= 1
        return OK, ops[pc, A] + (2 if stack[depth - 1] > 0 else 0), depth
    if op == REFUSE:
        return REFUSED, pc, depth
    if op == RETURN:
        return OK, stack[depth - 1], depth - 1
    if op == RAW_END:
        begin = stack[depth - 1]
        status = put_raw(data, begin, position - begin, ops[pc, A], node, buffers)
        return status, pc + 1, depth - 1
    if depth >= MAX_DEPTH:
        return TOO_DEEP, pc, depth
    # LIST, CALL or RAW: something begins. Of a list, the stack contains how many items are left in the block.
    stack[depth] = pc + 1 if op == CALL else position
    return OK, ops[pc, A] if op == CALL else pc + 1, depth + 1


@device_function
def _block(
    count: int,
    remaining_bytes: int,
    pc: int,
    depth: int,
    free_items: int,
    ops: Int64s,
    stack: Int64s,
    buffers: BufferArrays,
) -> tuple[int, int, int, int]:
    """Begin a block of an array or map, or end it at a count of 0: (status, next op, depth, free items left)."""
    node = ops[pc, NODE]
    if count == 0:
        if node >= 0:
            put_end(node, buffers.counts[node + 1], buffers)
        return OK, ops[pc, A], depth - 1, free_items
    # The size in bytes of a block with a negative count follows as the next op, and is not needed.
    following = pc + 1 if count < 0 else pc + 2
    fewest = ops[pc, B]
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
            if buffers.counts[inner] + count > buffers.nodes[inner, ITEMS]:
                return full(inner, 0, buffers.counts[inner] + count, buffers), pc, depth, free_items
            inner = ops[pc, C]
    stack[depth - 1] = count
    return OK, following, depth, free_items
