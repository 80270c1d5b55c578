"""Avro values to rows in buffers: one kernel that runs a program, so no schema is ever compiled.

A program reads the fields of one writer's schema in their order, and puts each into a buffer of the table's columns, or
skips it. All programs fill the same buffers, so the writer's schema may change from value to value.
"""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int32s, Int64s, little_int32, little_int64, varlong
from kafka_io.jit.utf8 import is_utf8
from kafka_io.values.kernels.avro_buffers import full, put_bytes, put_decimal, put_raw, put_uuid
from kafka_io.values.kernels.avro_program import (
    BAD_BOOLEAN,
    BAD_BRANCH,
    BAD_COUNT,
    BAD_LENGTH,
    BAD_NUMBER,
    BAD_SYMBOL,
    BAD_TEXT,
    BLOCK,
    BOOLEAN,
    BYTES_OP,
    CALL,
    CUT,
    DECIMAL,
    DECIMAL_FIXED,
    DOUBLE,
    END,
    ENUM,
    FAULT_OP,
    FAULT_POSITION,
    FIXED,
    FLOAT,
    FREE_ITEMS,
    FULL,
    ITEM_END,
    JUMP,
    LAST_WITH_NUMBER,
    LITTLE_UINT32,
    LONG,
    LONG_TO_DOUBLE,
    MAX_DEPTH,
    NODE,
    NULL,
    OK,
    OP,
    OPTION,
    OUT_OF_RANGE,
    RAW_END,
    REFUSE,
    REFUSED,
    RETURN,
    SCALED,
    SKIP_BOOLEAN,
    SKIP_ENUM,
    SKIP_FIXED,
    SKIP_LONG,
    SKIP_TEXT,
    STRUCT,
    TEXT,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    UNION,
    UUID,
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
    put_null,
    put_number,
    put_real,
)

_INT32_MIN, _INT32_MAX, _INT64_MAX = -(1 << 31), (1 << 31) - 1, (1 << 63) - 1


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
            failures[4 * failed + 2] = work[FAULT_OP]
            failures[4 * failed + 3] = work[FAULT_POSITION] - start
            done[0] = failed + 1
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
def _value(  # noqa: PLR0912, PLR0915 - one branch for each op
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
    number = 0
    while True:
        # numba checks a signed index for being negative.
        place = np.uint64(pc)
        op = program[place, OP]
        node = program[place, NODE]
        before = position
        status = OK
        following = pc + 1
        if op <= LAST_WITH_NUMBER:
            # Most numbers have one byte.
            if position < end and data[position] < 0x80:
                zigzag = np.int64(data[position])
                number = int((zigzag >> 1) ^ -(zigzag & 1))
                position += 1
            else:
                number, position = varlong(data, position, end)
                if position == BAD_POSITION:
                    work[FAULT_OP] = pc
                    work[FAULT_POSITION] = before
                    return BAD_NUMBER
            if op <= LONG_TO_DOUBLE or op == SKIP_LONG:
                if program[place, B] and (number < _INT32_MIN or number > _INT32_MAX):
                    status = BAD_NUMBER
                elif op == LONG:
                    put_number(node, number, nodes, cells, valid, counts)
                elif op == SCALED:
                    factor = program[place, A]
                    if factor > 0:
                        if number > program[place, C] or number < -program[place, C]:
                            status = OUT_OF_RANGE
                        else:
                            put_number(node, number * factor, nodes, cells, valid, counts)
                    else:
                        put_number(node, number // -factor, nodes, cells, valid, counts)
                elif op == LONG_TO_DOUBLE:
                    put_real(node, float(number) * float(program[place, A]), nodes, reals, valid, counts)
            elif op == OPTION:
                if number == program[place, B]:
                    put_null(node, nodes, cells, valid, counts)
                    following = program[place, A]
                elif number != 1 - program[place, B]:
                    status = BAD_BRANCH
            elif op == UNION:
                if number < 0 or number >= program[place, A]:
                    status = BAD_BRANCH
                else:
                    following = program[pc + 1 + number, A]
            elif op == ENUM:
                if number < 0 or number >= program[place, B]:
                    status = BAD_SYMBOL
                else:
                    symbol = program[place, A] + number
                    first = symbol_ends[symbol]
                    status = put_bytes(
                        symbols, first, symbol_ends[symbol + 1] - first, node, nodes, cells, valid, content, counts,
                        work,
                    )  # fmt: skip
            elif op == SKIP_ENUM:
                if number < 0 or number >= program[place, B]:
                    status = BAD_SYMBOL
            elif op == BLOCK:
                status, following, depth, free_items = _block(
                    number, end - position, pc, depth, free_items, program, nodes, cells, valid, counts, work
                )
            elif number < 0 or number > end - position:
                status = BAD_LENGTH
            else:
                if op in (TEXT, SKIP_TEXT):
                    if not is_utf8(data, position, position + number):
                        status = BAD_TEXT
                    elif op == TEXT:
                        status = put_bytes(data, position, number, node, nodes, cells, valid, content, counts, work)
                elif op == BYTES_OP:
                    status = put_bytes(data, position, number, node, nodes, cells, valid, content, counts, work)
                elif op == DECIMAL:
                    status = put_decimal(data, position, number, node, nodes, cells, valid, counts, scratch)
                position += number
        elif op == STRUCT:
            valid[nodes[node, VALID] + counts[node]] = 1
            counts[node] += 1
        elif op == NULL:
            put_null(node, nodes, cells, valid, counts)
        elif op == JUMP:
            following = program[place, A]
        elif op == DOUBLE:
            if end - position < 8:
                status = CUT
            else:
                put_number(node, little_int64(data, position), nodes, cells, valid, counts)
                position += 8
        elif op in (BOOLEAN, SKIP_BOOLEAN):
            if position >= end:
                status = CUT
            elif data[position] > 1:
                status = BAD_BOOLEAN
            else:
                if op == BOOLEAN:
                    put_number(node, int(data[position]), nodes, cells, valid, counts)
                position += 1
        elif op == ITEM_END:
            work[depth - 1] -= 1
            following = program[place, A] + (2 if work[depth - 1] > 0 else 0)
        elif op == END:
            if position == end:
                return OK
            status = TOO_LONG
        elif op in (FLOAT, LITTLE_UINT32):
            if end - position < 4:
                status = CUT
            elif op == FLOAT:
                bits[0] = little_int32(data, position)
                put_real(node, float_of_bits[0], nodes, reals, valid, counts)
            else:
                put_number(node, little_int32(data, position) & 0xFFFFFFFF, nodes, cells, valid, counts)
            position += 4
        elif op in (FIXED, SKIP_FIXED, DECIMAL_FIXED, UUID):
            size = program[place, A]
            if size > end - position:
                status = CUT
            elif op == FIXED:
                status = put_bytes(data, position, size, node, nodes, cells, valid, content, counts, work)
            elif op == DECIMAL_FIXED:
                status = put_decimal(data, position, size, node, nodes, cells, valid, counts, scratch)
            elif op == UUID:
                status = put_uuid(data, position, node, nodes, cells, valid, content, counts, work)
            position += size
        elif op == REFUSE:
            status = REFUSED
        elif op == RETURN:
            depth -= 1
            following = work[depth]
        elif op == RAW_END:
            depth -= 1
            status = put_raw(
                data, work[depth], position, program[place, A], node, nodes, cells, valid, content, counts, work
            )
        elif depth >= MAX_DEPTH:
            status = TOO_DEEP
        else:
            # LIST, CALL or RAW: something begins. Of a list, the stack contains how many items are left in the block.
            work[depth] = pc + 1 if op == CALL else position
            following = program[place, A] if op == CALL else pc + 1
            depth += 1
        if status != OK:
            work[FAULT_OP] = pc
            work[FAULT_POSITION] = before
            return status
        pc = following


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
