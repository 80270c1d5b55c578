"""Record batches, magic 2."""

import numpy as np

from kafka_io.records.compiling import kernel
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
    OTHER_FORMAT,
    PAUSED,
)
from kafka_io.records.kernels.scalars import Bytes, Int32s, Int64s, int32, int64, uint32, varint, varlong, wrapped_sum
from kafka_io.records.kernels.target import (
    FAULT_BATCH,
    FAULT_RECORD,
    HEADER_KEY_BYTES,
    HEADER_ROWS,
    HEADER_VALUE_BYTES,
    HEADER_VALUE_NULLS,
    HEADERS,
    KEY,
    KEY_BYTES,
    KEY_NULLS,
    OFFSET,
    ROWS,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    VALUE_BYTES,
    VALUE_NULLS,
    Target,
    put,
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
def decode(  # noqa: PLR0917 - as PLR0913: arrays one by one
    data: Bytes, batches: Int64s, wanted: int, low: int, high: int, target: Target
) -> int:
    """The records of plain batches become rows: END, or what is wrong with the one that `target.filled` names.

    Args:
        data: where the records are.
        batches: a row for each, see `list_batches`.
        wanted: columns to fill, as bits. Headers that are not wanted are not looked at.
        low: rows with a lower offset are left out.
        high: rows with this offset or a higher one are left out.
        target: has room for all that the bytes of the records can hold.
    """
    for index in range(len(batches)):
        target.filled[FAULT_BATCH] = index
        status = _decode_batch(data, batches[index], wanted, low, high, target)
        if status != END:
            return status
    return END


@kernel
def _decode_batch(data: Bytes, batch: Int64s, wanted: int, low: int, high: int, target: Target) -> int:
    # What is in a tuple is counted each time it is taken out, so all of it is, once.
    offsets, timestamps, timestamp_types = target.offsets, target.timestamps, target.timestamp_types
    key_ends, keys, key_valid = target.key_ends, target.keys, target.key_valid
    value_ends, values, value_valid = target.value_ends, target.values, target.value_valid
    header_ends, header_key_ends, header_keys = target.header_ends, target.header_key_ends, target.header_keys
    header_value_ends, header_values = target.header_value_ends, target.header_values
    header_value_valid, filled = target.header_value_valid, target.filled
    row, key_bytes, value_bytes = filled[ROWS], filled[KEY_BYTES], filled[VALUE_BYTES]
    at, stop = batch[BODY], batch[STOP]
    base, base_time = batch[BASE], batch[BASE_TIME]
    most_delta = batch[LAST] - base
    appended = batch[ATTRIBUTES] & APPEND_TIME
    previous = -1
    for record in range(batch[COUNT]):
        filled[FAULT_RECORD] = record
        length, at = varint(data, at, stop)
        if at < 0:
            return BAD_VARINT
        if length < 1 or length > stop - at:
            return BAD_LENGTH
        end = at + length
        time_delta, at = varlong(data, at + 1, end)  # behind the record's attributes, which mean nothing yet
        if at < 0:
            return BAD_VARINT
        delta, at = varint(data, at, end)
        if at < 0:
            return BAD_VARINT
        if delta <= previous or delta > most_delta:
            return BAD_OFFSET
        previous = delta
        key_size, key = varint(data, at, end)
        if key < 0:
            return BAD_VARINT
        if key_size < -1 or key_size > end - key:
            return BAD_FIELD
        value_size, value = varint(data, key + max(key_size, 0), end)
        if value < 0:
            return BAD_VARINT
        if value_size < -1 or value_size > end - value:
            return BAD_FIELD
        at = value + max(value_size, 0)
        if at == end:
            return BAD_END  # a count of headers is always there
        offset = base + delta
        kept = low <= offset < high
        if wanted & HEADERS:
            status = _decode_headers(
                data,
                at,
                end,
                kept,
                header_key_ends,
                header_keys,
                header_value_ends,
                header_values,
                header_value_valid,
                filled,
            )
            if status != END:
                return status
        at = end
        if not kept:
            continue
        if wanted & OFFSET:
            offsets[row] = offset
        if wanted & TIMESTAMP:
            timestamps[row] = batch[MAX_TIME] if appended else wrapped_sum(base_time, time_delta)
        if wanted & TIMESTAMP_TYPE:
            timestamp_types[row] = appended >> 3
        if wanted & KEY:
            key_bytes = put(data, key, key_size, row, key_bytes, key_ends, keys, key_valid)
            filled[KEY_NULLS] += key_size < 0
        if wanted & VALUE:
            value_bytes = put(data, value, value_size, row, value_bytes, value_ends, values, value_valid)
            filled[VALUE_NULLS] += value_size < 0
        row += 1
        if wanted & HEADERS:
            header_ends[row] = filled[HEADER_ROWS]
    filled[FAULT_RECORD] = batch[COUNT]
    filled[ROWS], filled[KEY_BYTES], filled[VALUE_BYTES] = row, key_bytes, value_bytes
    return END if at == stop else BAD_END


@kernel
def _decode_headers(  # noqa: PLR0917 - arrays one by one, see `put`
    data: Bytes,
    at: int,
    end: int,
    kept: bool,
    key_ends: Int32s,
    keys: Bytes,
    value_ends: Int32s,
    values: Bytes,
    value_valid: Bytes,
    filled: Int64s,
) -> int:
    """The headers of one record, which `end` there."""
    count, at = varint(data, at, end)
    if at < 0:
        return BAD_VARINT
    if count < 0:
        return BAD_COUNT
    row, key_bytes, value_bytes = filled[HEADER_ROWS], filled[HEADER_KEY_BYTES], filled[HEADER_VALUE_BYTES]
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
        if kept:
            key_bytes = put(data, key, key_size, row, key_bytes, key_ends, keys, value_valid)
            value_bytes = put(data, value, value_size, row, value_bytes, value_ends, values, value_valid)
            filled[HEADER_VALUE_NULLS] += value_size < 0
            row += 1
    if at != end:
        return BAD_END
    filled[HEADER_ROWS], filled[HEADER_KEY_BYTES], filled[HEADER_VALUE_BYTES] = row, key_bytes, value_bytes
    return END
