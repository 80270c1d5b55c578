"""One segment of a log: the file `<offset of its first record, 20 digits>.log` with consecutive record batches.

Readers see a batch as soon as it is written. A sparse index in memory leads from an offset to its batch; it is built
from the headers when the file is opened. A crash can leave an incomplete batch at the end of the last segment
[kafka-0.8: Log recovery].
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from kafka_io.compression import BytesLike
from kafka_io.errors import Corrupt, Where, WireError
from kafka_io.records.crc32c import crc32c
from kafka_io.records.layout import BATCH_ATTRIBUTES_AT, BATCH_BYTES
from kafka_io.testing.modern.log.header import BatchHeader, whole_batches
from kafka_io.testing.segment_file import SegmentFile, VisibleEnd

_INDEX_INTERVAL_BYTES = 4096  # index.interval.bytes


class LogSegment(SegmentFile):
    """An open segment of a log of record batches. Offsets are record numbers."""

    SUFFIX: ClassVar[str] = ".log"

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        super().__init__(path, start, descriptor=descriptor)
        self.visible = VisibleEnd(0, start)
        self.max_timestamp = -1
        self._index: list[tuple[int, int]] = []  # base offset and position of some batches

    @property
    def newest_ms(self) -> int:
        """The largest timestamp of the records. Without timestamps (message format 0) it is the time of the file."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms

    def load(self, where: Where) -> None:
        """Index all batches of a file that another segment follows.

        Raises:
            Corrupt: the file does not end after a whole batch.
        """
        with self.content() as data:
            for _, header in whole_batches(data):
                self.track(header)
        if self.visible.size != self.size:
            raise Corrupt(f"{self.path.name} has no whole batch at byte {self.visible.size}", where.at_offset(self.end))

    def recover(self) -> int:
        """Index the valid batches of the last file, and cut off the rest. Returns the number of bytes removed."""
        with self.content() as data:
            for header in _valid_batches(data, self.start):
                self.track(header)
        return self.truncate(self.visible.size)

    def track(self, header: BatchHeader) -> None:
        """Add the next batch in the file to the index and make it visible. All its bytes are in the file."""
        position = self.visible.size
        if not self._index or position - self._index[-1][1] >= _INDEX_INTERVAL_BYTES:
            self._index.append((header.base_offset, position))
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
        # The last step, because from here on readers, who take no lock, look for the batch in the index.
        self.visible = VisibleEnd(position + header.size, header.next_offset)

    def append(self, batch: BytesLike, header: BatchHeader, now_ms: int) -> None:
        """Write a batch at the end: all of it, or nothing if the disk refuses."""
        self.write(batch, now_ms)
        self.track(header)

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """The position and header of each batch from the one at `position` on."""
        while position < self.visible.size:
            header = BatchHeader.parse(self.read(position, BATCH_BYTES))
            yield position, header
            position += header.size

    def find(self, offset: int) -> tuple[int, BatchHeader]:
        """Position and header of the batch that contains `offset`, or of the next batch. `offset` is below `end`."""
        following = bisect_right(self._index, offset, key=lambda entry: entry[0])
        start = self._index[following - 1][1] if following else 0
        return next((position, header) for position, header in self.headers(start) if header.next_offset > offset)


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
