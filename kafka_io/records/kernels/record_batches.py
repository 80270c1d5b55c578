"""Kernels for record batches (format 2). `layout.py` has the positions of the fields."""

import numpy as np

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import ByteArray, Int64s, int32, int64, uint32, varint, varlong, wrapped_sum
from kafka_io.records.kernels.column_arrays import (
    FAULT_BATCH,
    FAULT_RECORD,
    HEADER_ROWS,
    HEADERS,
    ColumnArrays,
    put_header,
    put_row,
)
from kafka_io.records.kernels.entry_header import entry_bounds
from kafka_io.records.kernels.status_codes import (
    BAD_COUNT,
    BAD_END,
    BAD_FIELD,
    BAD_LENGTH,
    BAD_OFFSET,
    BAD_VARINT,
    END,
    FULL,
    PAUSED,
    WHOLE,
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
)

# Columns of the batch table. A batch is at [START, STOP) of the data, its records at [BODY, STOP). NEEDED is the first
# offset that no batch before it has: BASE says where the batch begins, but no checksum covers it.
START, BODY, STOP, BASE, LAST, ATTRIBUTES, COUNT, BASE_TIME, MAX_TIME, PRODUCER, CRC, NEEDED = range(12)
FIELDS = 12


@kernel
def list_batches(
    data: ByteArray, position: int, last_offset: int, min_end: int, high_watermark: int, table: Int64s
) -> tuple[int, int, int]:
    """List the complete batches from `position` on: (status, position where it stopped, number of batches).

    Args:
        data: the entries of a fetch answer.
        position: where to begin.
        last_offset: last offset of the previous batch; each batch must begin above it.
        min_end: the first batch must end above this offset.
        high_watermark: all batches must end below this offset.
        table: output, shape (n, FIELDS): one row per batch.
    """
    row = 0
    while position < len(data):
        status, end = entry_bounds(data, position, BATCH_MAGIC, BATCH_MAGIC)
        if status != WHOLE:
            return status, position, row
        if row == len(table):
            return PAUSED, position, row
        base = int64(data, position)
        delta = int32(data, position + BATCH_LAST_DELTA_AT)
        count = int32(data, position + BATCH_COUNT_AT)
        # Corrupt numbers must not overflow, so a sum is formed only after its parts were compared.
        if delta < 0 or base <= last_offset or base <= min_end - delta or base >= high_watermark - delta:
            return BAD_OFFSET, position, row
        if count < 0 or count > delta + 1:
            return BAD_COUNT, position, row
        table[row, NEEDED] = min_end + 1
        last_offset = min_end = base + delta
        table[row, START] = position
        table[row, BODY] = position + BATCH_BYTES
        table[row, STOP] = end
        table[row, BASE] = base
        table[row, LAST] = last_offset
        table[row, ATTRIBUTES] = (np.int64(data[position + BATCH_ATTRIBUTES_AT]) << 8) | data[
            position + BATCH_ATTRIBUTES_AT + 1
        ]
        table[row, COUNT] = count
        table[row, BASE_TIME] = int64(data, position + BATCH_BASE_TIME_AT)
        table[row, MAX_TIME] = int64(data, position + BATCH_MAX_TIME_AT)
        table[row, PRODUCER] = int64(data, position + BATCH_PRODUCER_AT)
        table[row, CRC] = uint32(data, position + BATCH_CRC_AT)
        row += 1
        position = end
    return END, position, row


@kernel
def decode(
    data: ByteArray,
    batches: Int64s,
    wanted: int,
    start_offset: int,
    stop_offset: int,
    max_headers: int,
    columns: ColumnArrays,
) -> int:
    """Decode the records of uncompressed batches to rows.

    Returns END or the error of the record that `columns.filled[FAULT_BATCH]` and `[FAULT_RECORD]` name.

    Args:
        data: the bytes that hold the records.
        batches: shape (n, FIELDS), see `list_batches`.
        wanted: columns to fill, as bits. Headers that are not requested are not parsed.
        start_offset: rows with a lower offset are dropped.
        stop_offset: rows with this offset or a higher one are dropped.
        max_headers: maximum number of headers in the columns.
        columns: arrays with room for all that the records can hold.
    """
    for index in range(len(batches)):
        columns.filled[FAULT_BATCH] = index
        batch = batches[index]
        position, stop, base = batch[BODY], batch[STOP], batch[BASE]
        appended = batch[ATTRIBUTES] & APPEND_TIME
        # Offset deltas must grow within a batch; compaction leaves holes.
        previous_delta = -1
        for record in range(batch[COUNT]):
            columns.filled[FAULT_RECORD] = record
            status, end, time_delta, delta, key_size, key, value_size, value = _parse_record(data, position, stop)
            if status != END:
                return status
            if delta <= previous_delta or delta > batch[LAST] - base:
                return BAD_OFFSET
            previous_delta = delta
            offset = base + delta
            is_requested = start_offset <= offset < stop_offset
            if wanted & HEADERS:
                max_stored = max_headers if is_requested else -1
                status = _headers(data, value + max(value_size, 0), end, max_stored, columns)
                if status != END:
                    return status
            position = end
            if is_requested:
                timestamp = batch[MAX_TIME] if appended else wrapped_sum(batch[BASE_TIME], time_delta)
                put_row(data, key, key_size, value, value_size, offset, timestamp, appended >> 3, wanted, columns)
        columns.filled[FAULT_RECORD] = batch[COUNT]
        if position != stop:
            return BAD_END
    return END


@kernel
def first_key(data: ByteArray, position: int, stop: int) -> tuple[int, int, int]:
    """Key of the record at `position`: (END, size or -1 for null, position of the key), or an error."""
    status, _, _, _, key_size, key, _, _ = _parse_record(data, position, stop)
    return status, key_size, key


@device_function
def _parse_record(data: ByteArray, position: int, stop: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Parse the record at `position`, except its headers.

    Returns (END, end of the record, timestamp delta, offset delta, key size, key position, value size, value position),
    or an error status and zeros. A size of -1 is null.
    """
    length, position = varint(data, position, stop)
    if position < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    if length < 1 or length > stop - position:
        return BAD_LENGTH, 0, 0, 0, 0, 0, 0, 0
    end = position + length
    time_delta, position = varlong(data, position + 1, end)  # skip the record's attributes: no bit has a meaning
    if position < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    delta, position = varint(data, position, end)
    if position < 0:
        return BAD_VARINT, 0, 0, 0, 0, 0, 0, 0
    status, key_size, key, position = _sized_field(data, position, end, -1)
    if status != END:
        return status, 0, 0, 0, 0, 0, 0, 0
    status, value_size, value, position = _sized_field(data, position, end, -1)
    # A header count of at least one byte follows the value.
    if status == END and value_size >= end - value:
        status = BAD_FIELD
    return status, end, time_delta, delta, key_size, key, value_size, value


@device_function
def _headers(data: ByteArray, position: int, end: int, max_headers: int, columns: ColumnArrays) -> int:
    """Parse the headers of one record, from `position` to `end`.

    `max_headers` is the number of headers that the columns may hold; with -1 the headers are checked but not stored.
    """
    count, position = varint(data, position, end)
    if position < 0:
        return BAD_VARINT
    if count < 0:
        return BAD_COUNT
    for _ in range(count):
        status, key_size, key, position = _sized_field(data, position, end, 0)
        if status != END:
            return status
        status, value_size, value, position = _sized_field(data, position, end, -1)
        if status != END:
            return status
        if max_headers >= 0:
            if columns.filled[HEADER_ROWS] >= max_headers:
                return FULL
            put_header(data, key, key_size, value, value_size, columns)
    return END if position == end else BAD_END


@device_function
def _sized_field(data: ByteArray, position: int, end: int, min_size: int) -> tuple[int, int, int, int]:
    """A varint size and as many bytes: (END, size, position of the bytes, position after them), or an error.

    A `min_size` of -1 allows null, whose size is -1.
    """
    size, start = varint(data, position, end)
    if start < 0:
        return BAD_VARINT, 0, 0, 0
    if size < min_size or size > end - start:
        return BAD_FIELD, 0, 0, 0
    return END, size, start, start + max(size, 0)
