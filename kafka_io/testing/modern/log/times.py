"""Offsets by time (KIP-79). Headers contain the largest timestamp; a batch is decoded to find the record itself."""

from dataclasses import dataclass

import pyarrow as pa

from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.testing.modern.log.header import BatchHeader
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.modern.log.segment import LogSegment


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    """The offset of a record, and its timestamp in ms."""

    offset: int
    time_ms: int


def first_record_since(log: PartitionLog, time_ms: int) -> TimestampOffset | None:
    """The first record whose timestamp is `time_ms` or later; None if there is none."""
    start = log.start
    for segment in log.segments:
        if segment.max_timestamp < time_ms or segment.end <= start:
            continue
        for position, header in segment.headers():
            if header.max_timestamp >= time_ms and header.next_offset > start and not header.is_control:
                for record in _decode_times(segment, position, header, start):
                    if record.time_ms >= time_ms:
                        return record
    return None


def record_with_max_timestamp(log: PartitionLog) -> TimestampOffset | None:
    """The first of the records with the largest timestamp (KIP-734); None if no record has a timestamp."""
    start, newest = log.start, TimestampOffset(-1, -1)
    # From the end, where the newest record usually is. Then most of the other batches need not be decoded.
    for segment in reversed(log.segments):
        if segment.end <= start or segment.max_timestamp < newest.time_ms:
            continue
        for position, header in reversed(list(segment.headers())):
            if header.next_offset > start and header.max_timestamp >= newest.time_ms and not header.is_control:
                records = (newest, *_decode_times(segment, position, header, start))
                newest = max(records, key=lambda record: (record.time_ms, -record.offset))
    return newest if newest.time_ms >= 0 else None


def _decode_times(segment: LogSegment, position: int, header: BatchHeader, start: int) -> list[TimestampOffset]:
    """The records of one batch from offset `start` on."""
    requested = RequestedOffsets(start=max(start, header.base_offset))
    records: list[TimestampOffset] = []
    for decoded in decode(segment.read(position, header.size), requested, columns=("offset", "timestamp")):
        offsets, times = (column.cast(pa.int64()).to_pylist() for column in decoded.batch.columns)
        records += map(TimestampOffset, offsets, times)
    return records
