"""Opening the segments of a log on disk: all headers are read, and the checksums of the last segment are verified.

A segment is flushed before the next one begins. So only the last segment can have an incomplete end after a crash
[kafka-0.8: Log recovery]. It is cut after the last valid batch.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from kafka_io.errors import Corrupt, Where, WireError
from kafka_io.records.crc32c import crc32c
from kafka_io.records.layout import BATCH_ATTRIBUTES_AT
from kafka_io.testing.modern.log.header import BatchHeader, whole_batches
from kafka_io.testing.modern.log.segment import LogSegment
from kafka_io.testing.segmented_log import check_contiguous

_SEGMENT_NAME = re.compile("[0-9]{20}" + re.escape(LogSegment.SUFFIX))


def open_segments(directory: Path, where: Where) -> list[LogSegment]:
    """The segments in `directory`, ordered by base offset, with all their valid batches indexed.

    Raises:
        Corrupt: records are missing between two segments, or a segment before the last one has an invalid batch.
    """
    paths = sorted(path for path in directory.iterdir() if _SEGMENT_NAME.fullmatch(path.name))
    segments = [LogSegment.open(path) for path in paths]
    for segment in segments[:-1]:
        _index_all(segment, where)
    for segment in segments[-1:]:
        _index_valid(segment)
    check_contiguous(segments, where)
    return segments


def _index_all(segment: LogSegment, where: Where) -> None:
    """Index the batches of a segment that is complete.

    Raises:
        Corrupt: it is not.
    """
    with segment.content() as data:
        for _, header in whole_batches(data):
            segment.track(header)
    if segment.size != segment.file_bytes:
        raise Corrupt(f"{segment.path.name} has no whole batch at byte {segment.size}", where.at_offset(segment.end))


def _index_valid(segment: LogSegment) -> None:
    with segment.content() as data:
        for header in _valid_batches(data, segment.start):
            segment.track(header)


def _valid_batches(data: memoryview, min_offset: int) -> Iterator[BatchHeader]:
    """The batches before the first one that is incomplete, corrupt, or not in the order of offsets."""
    try:
        for position, header in whole_batches(data):
            with data[position + BATCH_ATTRIBUTES_AT : position + header.size] as checksummed:
                if header.base_offset < min_offset or crc32c(checksummed) != header.crc:
                    return
            min_offset = header.next_offset
            yield header
    except WireError:
        return
