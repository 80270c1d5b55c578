"""A log's segments as they are found on disk: each walked through by its headers, the last one also by its checksums.

A segment is flushed before it gets a successor, so only the last one can have a torn tail (seed 003, "Guarantees"). It
is cut off behind the last batch that is whole.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from kafka_io.broker.modern.log.header import BatchHeader, whole_batches
from kafka_io.broker.modern.log.segment import SUFFIX, Segment
from kafka_io.errors import Corrupt, Where, WireError
from kafka_io.records.checksums import crc32c
from kafka_io.records.layout import BATCH_ATTRIBUTES_AT

_NAME = re.compile("[0-9]{20}" + re.escape(SUFFIX))


def open_segments(directory: Path, where: Where) -> list[Segment]:
    """The segments in `directory` by their base, all batches noted; none when there are none.

    Raises:
        Corrupt: one does not end where the next begins: batches are missing that recovery must not hide.
    """
    paths = sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))
    segments = [Segment.open(path) for path in paths]
    for segment in segments[:-1]:
        _note_all(segment, where)
    for segment in segments[-1:]:
        _note_valid(segment)
    for one, following in pairwise(segments):
        if one.next != following.base:
            raise Corrupt(f"{one.path.name} ends at {one.next}, the next segment starts at {following.base}", where)
    return segments


def _note_all(segment: Segment, where: Where) -> None:
    with segment.content() as data:
        for _, header in whole_batches(data):
            segment.note(header)
    if segment.size != segment.file_bytes:
        raise Corrupt(f"{segment.path.name} has no whole batch at byte {segment.size}", where.at(segment.next))


def _note_valid(segment: Segment) -> None:
    with segment.content() as data:
        for header in _valid_batches(data, segment.base):
            segment.note(header)


def _valid_batches(data: memoryview, base: int) -> Iterator[BatchHeader]:
    """The batches up to the first that is torn, corrupt or out of order."""
    try:
        for at, header in whole_batches(data):
            with data[at + BATCH_ATTRIBUTES_AT : at + header.size] as covered:
                if header.base < base or crc32c(covered) != header.crc:
                    return
            base = header.next
            yield header
    except WireError:
        return
