"""Scan the headers of a fetch answer without decoding it: the reader can send the next fetch before it decodes."""

from dataclasses import dataclass
from struct import Struct

import numpy as np

from kafka_io.compression import BytesLike
from kafka_io.errors import NOWHERE, Where
from kafka_io.jit.scalars import Int64s
from kafka_io.records.kernels import legacy_messages, record_batches, status_codes
from kafka_io.records.layout import BATCH_EPOCH_AT, CONTROL, ENTRY_BYTES, ENTRY_LENGTH_AT
from kafka_io.records.record_set import RecordSet, RequestedOffsets

_MAX_BATCHES = 1024
_ENTRY = Struct(">qi")  # offset, and length of what follows


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderScan:
    """The whole entries at the start of a fetch answer.

    Args:
        whole_bytes: their size; an incomplete entry may follow.
        next_offset: the first offset after them, at most the requested stop; the requested start if there is no entry.
        min_records: the least number of requested records that they hold. Only control batches are left out: a header
            does not show that a transaction was aborted.
        max_records: the largest number. It differs from the least one only if records were compacted in a batch that
            the request cuts, and for messages of formats 0 and 1, which may hold any number of messages.
        max_epoch: the largest leader epoch of their batches before the requested stop; -1 if there is none. Messages of
            formats 0 and 1 have no epoch.
    """

    whole_bytes: int
    next_offset: int
    min_records: int
    max_records: int
    max_epoch: int = -1


def first_entry_bytes(data: BytesLike) -> int | None:
    """Size of the first entry according to its header; None when `data` is shorter than the header."""
    if len(data) < ENTRY_BYTES:
        return None
    return ENTRY_BYTES + int.from_bytes(data[ENTRY_LENGTH_AT:ENTRY_BYTES], "big", signed=True)


def scan_headers(data: BytesLike, requested: RequestedOffsets, *, where: Where = NOWHERE) -> HeaderScan:
    """Scan the entry headers in `data`. Only `decoder.decode` verifies the content.

    Raises:
        Corrupt: a length or offset is invalid.
        Unsupported: a magic above 2.
    """
    record_set = RecordSet(data, requested, where)
    min_records = max_records = 0
    max_epoch = -1
    while not record_set.ended:
        is_old = record_set.magic in (0, 1)
        added_min, added_max, epoch = _skip_messages(record_set) if is_old else _skip_batches(record_set)
        min_records, max_records = min_records + added_min, max_records + added_max
        max_epoch = max(max_epoch, epoch)
    return HeaderScan(
        whole_bytes=record_set.position,
        next_offset=record_set.next_offset,
        min_records=min_records,
        max_records=max_records,
        max_epoch=max_epoch,
    )


def _skip_batches(record_set: RecordSet) -> tuple[int, int, int]:
    """Skip batches; returns the least and the largest number of requested records in them, and the largest epoch."""
    table = np.empty((_MAX_BATCHES, record_batches.FIELDS), np.int64)
    status, position, count = record_set.list_batches(table)
    records = _requested_records(table[:count], record_set.requested)
    epoch = _max_epoch(table[:count], record_set)
    if count:
        record_set.advance_to(int(table[count - 1, record_batches.LAST]))
    record_set.stop_at(position, status)
    return (*records, epoch)


def _max_epoch(batches: Int64s, record_set: RecordSet) -> int:
    """The largest leader epoch of the batches that begin before the requested stop; -1 without one."""
    starts = batches[batches[:, record_batches.BASE] < record_set.requested.stop, record_batches.START]
    epochs = record_set.array[starts[:, np.newaxis] + np.arange(BATCH_EPOCH_AT, BATCH_EPOCH_AT + 4)]
    return int(epochs.view(">i4").max(initial=-1))


def _requested_records(batches: Int64s, requested: RequestedOffsets) -> tuple[int, int]:
    batches = batches[(batches[:, record_batches.ATTRIBUTES] & CONTROL) == 0]
    base, stop = batches[:, record_batches.BASE], batches[:, record_batches.LAST] + 1
    count = batches[:, record_batches.COUNT]
    inside = np.minimum(stop, requested.stop) - np.maximum(base, requested.start)
    inside = np.maximum(inside, 0)
    outside = stop - base - inside
    return int(np.maximum(count - outside, 0).sum()), int(np.minimum(count, inside).sum())


def _skip_messages(record_set: RecordSet) -> tuple[int, int, int]:
    """Skip messages of formats 0 and 1; returns the same as `_skip_batches`."""
    start = record_set.next_offset
    status, position, last = legacy_messages.measure(record_set.array, record_set.position)
    if position > record_set.position:
        if not record_set.min_end < last < record_set.requested.high_watermark:
            status, position, last = status_codes.BAD_OFFSET, *_before_bad_offset(record_set)
        if last > record_set.min_end:
            record_set.advance_to(last)
    record_set.stop_at(position, status)
    return 0, record_set.next_offset - start, -1


def _before_bad_offset(record_set: RecordSet) -> tuple[int, int]:
    """Skip the messages up to the first whose offset is out of order: its position, and the last offset before it."""
    position, last = record_set.position, record_set.min_end
    while True:
        offset, length = _ENTRY.unpack_from(record_set.view, position)
        if not last < offset < record_set.requested.high_watermark:
            return position, last
        position, last = position + ENTRY_BYTES + length, offset
