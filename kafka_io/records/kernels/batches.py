"""Record batches, magic 2."""

import numpy as np

from kafka_io.records.compiling import kernel, part
from kafka_io.records.kernels.outcomes import (
    BAD_COUNT,
    BAD_END,
    BAD_FIELD,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_OFFSET,
    BAD_VARINT,
    CUT,
    END,
    FULL,
    OTHER_FORMAT,
    PAUSED,
)
from kafka_io.records.kernels.scalars import Bytes, Int64s, int32, int64, uint32, varint, varlong, wrapped_sum
from kafka_io.records.kernels.target import (
    FAULT_BATCH,
    FAULT_RECORD,
    HEADER_ROWS,
    HEADERS,
    KEY,
    VALUE,
    Target,
    put_header,
    put_key,
    put_row,
    put_value,
)
from kafka_io.records.layout import (
    APPEND_TIME,
    BATCH_ATTRIBUTES_AT,
    BATCH_BASE_TIME_AT,
    BATCH_BYTES,
    BATCH_COUNT_AT,
    BATCH_CRC_AT,
    BATCH_LAST_DELTA_AT,
    BATCH_MAGIC,
    BATCH_MAX_TIME_AT,
    BATCH_PRODUCER_AT,
    ENTRY_BYTES,
    ENTRY_LENGTH_AT,
    LEAST_MESSAGE_BYTES,
    MAGIC_AT,
)

# A batch as a row of the table, by place. Its records are at [BODY, STOP).
START, BODY, STOP, BASE, LAST, ATTRIBUTES, COUNT, BASE_TIME, MAX_TIME, PRODUCER, CRC = range(11)
FIELDS = 11


@kernel
def list_batches(data: Bytes, at: int, floor: int, least: int, end: int, table: Int64s) -> tuple[int, int, int]:
    """The whole batches from `at` on as rows of `table`: (why it ended, where, rows).

    Args:
        data: entries of a log.
        at: where to begin.
        floor: the offset above which the first one must begin, and each other above the end of the one before it.
        least: the offset above which the first one must end.
        end: the offset below which all must end.
        table: a row of FIELDS for each batch.
    """
    row = 0
    while at < len(data):
        left = len(data) - at
        if left < ENTRY_BYTES:
            return CUT, at, row
        length = int32(data, at + ENTRY_LENGTH_AT)
        if length < LEAST_MESSAGE_BYTES[0] - ENTRY_BYTES:
            return BAD_LENGTH, at, row
        if left <= MAGIC_AT:
            return CUT, at, row
        magic = np.int64(data[at + MAGIC_AT])
        if magic < BATCH_MAGIC:
            return OTHER_FORMAT, at, row
        if magic > BATCH_MAGIC:
            return BAD_MAGIC, at, row
        if length < BATCH_BYTES - ENTRY_BYTES:
            return BAD_LENGTH, at, row
        if left < ENTRY_BYTES + length:
            return CUT, at, row
        if row == len(table):
            return PAUSED, at, row
        base = int64(data, at)
        delta = int32(data, at + BATCH_LAST_DELTA_AT)
        count = int32(data, at + BATCH_COUNT_AT)
        # Nothing is added before it is known to fit.
        if delta < 0 or base <= floor or base <= least - delta or base >= end - delta:
            return BAD_OFFSET, at, row
        if count < 0 or count > delta + 1:
            return BAD_COUNT, at, row
        floor = least = base + delta
        table[row, START] = at
        table[row, BODY] = at + BATCH_BYTES
        table[row, STOP] = at + ENTRY_BYTES + length
        table[row, BASE] = base
        table[row, LAST] = floor
        table[row, ATTRIBUTES] = (np.int64(data[at + BATCH_ATTRIBUTES_AT]) << 8) | data[at + BATCH_ATTRIBUTES_AT + 1]
        table[row, COUNT] = count
        table[row, BASE_TIME] = int64(data, at + BATCH_BASE_TIME_AT)
        table[row, MAX_TIME] = int64(data, at + BATCH_MAX_TIME_AT)
        table[row, PRODUCER] = int64(data, at + BATCH_PRODUCER_AT)
        table[row, CRC] = uint32(data, at + BATCH_CRC_AT)
        row += 1
        at += ENTRY_BYTES + length
    return END, at, row


@kernel
def decode(data: Bytes, batches: Int64s, wanted: int, low: int, high: int, headers: int, target: Target) -> int:
    """The records of plain batches become rows: END, or what is wrong with the one that `target.filled` names.

    Args:
        data: where the records are.
        batches: a row for each, see `list_batches`.
        wanted: columns to fill, as bits. Headers that are not wanted are not looked at.
        low: rows with a lower offset are left out.
        high: rows with this offset or a higher one are left out.
        headers: that the columns may hold at most.
        target: has room for all that the bytes of the records can hold.
    """
    for index in range(len(batches)):
        target.filled[FAULT_BATCH] = index
        status = _decode_batch(data, batches[index], wanted, low, high, headers, target)
        if status != END:
            return status
    return END


@kernel
def first_key(data: Bytes, at: int, stop: int) -> tuple[int, int, int]:
    """The key of the record at `at`: (END, its size or -1 for null, where it is), or what is wrong with the record."""
    status, _, _, _, key_size, key, _, _ = _record(data, at, stop)
    return status, key_size, key


@part
def _decode_batch(data: Bytes, batch: Int64s, wanted: int, low: int, high: int, headers: int, target: Target) -> int:
    at, stop, base = batch[BODY], batch[STOP], batch[BASE]
    appended = batch[ATTRIBUTES] & APPEND_TIME
    previous = -1
    for record in range(batch[COUNT]):
        target.filled[FAULT_RECORD] = record
        status, end, time_delta, delta, key_size, key, value_size, value = _record(data, at, stop)
        if status != END:
            return status
        if delta <= previous or delta > batch[LAST] - base:
            return BAD_OFFSET
        previous = delta
        offset = base + delta
        kept = low <= offset < high
        if wanted & HEADERS:
            status = _headers(data, value + max(value_size, 0), end, headers if kept else -1, target)
            if status != END:
                return status
        at = end
        if not kept:
            continue
        if wanted & KEY:
            put_key(data, key, key_size, target)
        if wanted & VALUE:
            put_value(data, value, value_size, target)
        timestamp = batch[MAX_TIME] if appended else wrapped_sum(batch[BASE_TIME], time_delta)
        put_row(offset, timestamp, appended >> 3, wanted, target)
    target.filled[FAULT_RECORD] = batch[COUNT]
    return END if at == stop else BAD_END


@part
def _record(data: Bytes, at: int, stop: int) -> tuple[int, int, int, int, int, int, int, int]:
    """The record at `at`: (END, where it ends, time delta, offset delta, size and place of key, and of value)."""
    length, at = varint(data, at, stop)
    if at < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    if length < 1 or length > stop - at:
        return BAD_LENGTH, 0, 0, 0, 0, 0, 0, 0
    end = at + length
    time_delta, at = varlong(data, at + 1, end)  # behind the record's attributes, which mean nothing yet
    if at < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    delta, at = varint(data, at, end)
    if at < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    key_size, key = varint(data, at, end)
    if key < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    if key_size < -1 or key_size > end - key:
        return BAD_FIELD, 0, 0, 0, 0, 0, 0, 0
    value_size, value = varint(data, key + max(key_size, 0), end)
    if value < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    # Behind the value there is at least a count of headers.
    if value_size < -1 or value_size >= end - value:
        return BAD_FIELD, 0, 0, 0, 0, 0, 0, 0
    return END, end, time_delta, delta, key_size, key, value_size, value


@part
def _headers(data: Bytes, at: int, end: int, most: int, target: Target) -> int:
    """The headers of one record, which end at `end`; there may be `most` in the columns, -1 to keep none of them."""
    count, at = varint(data, at, end)
    if at < 0:
        return BAD_VARINT
    if count < 0:
        return BAD_COUNT
    for _ in range(count):
        key_size, key = varint(data, at, end)
        if key < 0:
            return BAD_VARINT
        if key_size < 0 or key_size > end - key:
            return BAD_FIELD
        value_size, value = varint(data, key + key_size, end)
        if value < 0:
            return BAD_VARINT
        if value_size < -1 or value_size > end - value:
            return BAD_FIELD
        at = value + max(value_size, 0)
        if most >= 0:
            if target.filled[HEADER_ROWS] >= most:
                return FULL
            put_header(data, key, key_size, value, value_size, target)
    return END if at == end else BAD_END
