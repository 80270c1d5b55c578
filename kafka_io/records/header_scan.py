"""Scan the headers of a fetch answer without decoding it: the reader can send the next fetch before it decodes."""

from dataclasses import dataclass

import numpy as np

from kafka_io.compression import BytesLike
from kafka_io.errors import NOWHERE, Where
from kafka_io.records.kernels import legacy_messages, record_batches, status_codes
from kafka_io.records.layout import ENTRY_BYTES, ENTRY_LENGTH_AT
from kafka_io.records.record_set import RecordSet, RequestedOffsets

_MAX_BATCHES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderScan:
    """The whole entries at the start of a fetch answer.

    Args:
        whole_bytes: their size; an incomplete entry may follow.
        next_offset: the first offset after them, at most the requested stop; the requested start if there is no entry.
    """

    whole_bytes: int
    next_offset: int


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
    while not record_set.ended:
        if record_set.magic in (0, 1):
            _skip_messages(record_set)
        else:
            _skip_batches(record_set)
    return HeaderScan(whole_bytes=record_set.position, next_offset=record_set.next_offset)


def _skip_batches(record_set: RecordSet) -> None:
    table = np.empty((_MAX_BATCHES, record_batches.FIELDS), np.int64)
    status, position, count = record_set.list_batches(table)
    if count:
        record_set.advance_to(int(table[count - 1, record_batches.LAST]))
    record_set.stop_at(position, status)


def _skip_messages(record_set: RecordSet) -> None:
    status, position, last = legacy_messages.measure(record_set.array, record_set.position)
    if position > record_set.position:
        if not record_set.min_end < last < record_set.requested.high_watermark:
            status, position = status_codes.BAD_OFFSET, record_set.position
        else:
            record_set.advance_to(last)
    record_set.stop_at(position, status)
