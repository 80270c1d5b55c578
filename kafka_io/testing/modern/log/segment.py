"""One segment of a log: the file `<offset of its first record, 20 digits>.log` with consecutive record batches.

One thread at a time writes a segment (under the lock of its log); any number of threads read it. Readers see what
`visible` covers. That value is replaced as a whole after the bytes are written, so its two numbers always belong
together. A sparse index in memory leads from an offset to its batch; it is built from the headers when the file is
opened.
"""

import mmap
import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kafka_io.compression import BytesLike
from kafka_io.errors import Truncated
from kafka_io.records.layout import BATCH_BYTES
from kafka_io.testing.modern.log.header import BatchHeader
from kafka_io.testing.segment_file import SegmentFile

_INDEX_INTERVAL_BYTES = 4096  # index.interval.bytes


@dataclass(frozen=True, slots=True)
class VisibleEnd:
    """The end of what readers see of a segment: the size in bytes, and the offset after the last record."""

    size: int
    offset: int


class LogSegment(SegmentFile):
    """An open segment of a log of record batches. Offsets are record numbers."""

    SUFFIX: ClassVar[str] = ".log"

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        super().__init__(path, start, descriptor=descriptor)
        self.visible = VisibleEnd(0, start)
        self.max_timestamp = -1
        self._flushed_bytes = 0
        self._index: list[tuple[int, int]] = []  # base offset and position of some batches

    @property
    def size(self) -> int:
        """The size in bytes of the batches that readers see."""
        return self.visible.size

    @property
    def end(self) -> int:
        """The offset after the last record that readers see."""
        return self.visible.offset

    @property
    def newest_ms(self) -> int:
        """The largest timestamp of the records. Without timestamps (message format 0) it is the time of the file."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms

    @contextmanager
    def content(self) -> Iterator[memoryview]:
        """All bytes of the file, valid inside the `with` block."""
        if self.file_bytes == 0:
            yield memoryview(b"")
            return
        with mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            yield view

    def track(self, header: BatchHeader) -> None:
        """Add the next batch in the file to the index and make it visible. All its bytes are in the file."""
        if not self._index or self.size - self._index[-1][1] >= _INDEX_INTERVAL_BYTES:
            self._index.append((header.base_offset, self.size))
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
        # The last step, because from here on readers, who take no lock, look for the batch in the index.
        self.visible = VisibleEnd(self.size + header.size, header.next_offset)

    def append(self, batch: BytesLike, header: BatchHeader, now_ms: int) -> None:
        """Write a batch at the end: all of it, or nothing if the disk refuses."""
        self.write(batch, now_ms)
        self.track(header)

    def flush(self) -> None:
        """Force what was written to the disk."""
        size = self.size
        if self._flushed_bytes < size:
            os.fsync(self.descriptor)
            self._flushed_bytes = size

    def truncate(self) -> int:
        """Cut the file after the last tracked batch. Returns the number of bytes that were removed."""
        surplus = self.file_bytes - self.size
        if surplus:
            os.ftruncate(self.descriptor, self.size)
            os.fsync(self.descriptor)
        return surplus

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """The position and header of each batch from the one at `position` on."""
        while position < self.size:
            header = BatchHeader.parse(self.read(position, BATCH_BYTES))
            yield position, header
            position += header.size

    def find(self, offset: int) -> tuple[int, BatchHeader]:
        """Position and header of the batch that contains `offset`, or of the next batch. `offset` is below `end`."""
        following = bisect_right(self._index, offset, key=lambda entry: entry[0])
        start = self._index[following - 1][1] if following else 0
        return next((position, header) for position, header in self.headers(start) if header.next_offset > offset)

    def read(self, position: int, count: int) -> bytes:
        """`count` bytes from `position` on.

        Raises:
            Truncated: the file is shorter than it was.
        """
        parts = []
        while count > 0:
            part = os.pread(self.descriptor, count, position)
            if not part:
                raise Truncated(f"{self.path.name} ends at byte {position}, {count} bytes are missing")
            parts.append(part)
            position, count = position + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRegion:
    """Bytes of a segment. The reference keeps the file readable after its deletion."""

    segment: LogSegment
    position: int
    count: int

    def read(self) -> bytes:
        """The bytes."""
        return self.segment.read(self.position, self.count)
