"""Offsets by time (KIP-79): batches tell their newest record, and one of them is opened to find the record itself."""

from dataclasses import dataclass

import pyarrow as pa

from kafka_io.broker.modern.log.header import BatchHeader
from kafka_io.broker.modern.log.log import Log
from kafka_io.broker.modern.log.segment import Segment
from kafka_io.records.entries import Asked
from kafka_io.records.logs import decode


@dataclass(frozen=True, slots=True)
class Found:
    """A record's offset and time in milliseconds."""

    offset: int
    time_ms: int


def first_at(log: Log, time_ms: int) -> Found | None:
    """The first record that is as late as `time_ms`; None when none is."""
    start = log.start
    for segment in log.segments:
        if segment.max_time < time_ms or segment.next <= start:
            continue
        for position, header in segment.headers():
            if header.max_time >= time_ms and header.next > start and not header.is_control:
                later = [one for one in _times(segment, position, header, start) if one.time_ms >= time_ms]
                if later:
                    return later[0]
    return None


def newest(log: Log) -> Found | None:
    """The first of the records with the latest time (KIP-734); None when no record has a time."""
    start, best = log.start, Found(-1, -1)
    for segment in reversed(log.segments):
        if segment.next <= start or segment.max_time < best.time_ms:
            continue
        for position, header in reversed(list(segment.headers())):
            if header.next > start and header.max_time >= best.time_ms and not header.is_control:
                found = (best, *_times(segment, position, header, start))
                best = max(found, key=lambda one: (one.time_ms, -one.offset))
    return best if best.time_ms >= 0 else None


def _times(segment: Segment, position: int, header: BatchHeader, start: int) -> list[Found]:
    at = max(start, header.base)
    found: list[Found] = []
    for decoded in decode(segment.read(position, header.size), Asked(at=at), columns=("offset", "timestamp")):
        offsets, times = (column.cast(pa.int64()).to_pylist() for column in decoded.batch.columns)
        found += map(Found, offsets, times)
    return found
