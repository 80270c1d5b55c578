"""A segment of a 0.7 log: `<offset of its first byte>.kafka`, a file of messages and nothing else.

One thread at a time writes a segment (under the lock of its log); any number of threads read it. Readers see bytes up
to `flushed`. That number grows only after the bytes it covers are on disk.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kafka_io.testing.segment_file import SegmentFile
from kafka_io.wire.primitives import Octets


class LogSegment07(SegmentFile):
    """An open segment of a 0.7 log. Offsets are byte positions in the log."""

    SUFFIX: ClassVar[str] = ".kafka"

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        super().__init__(path, start, descriptor=descriptor)
        self._size = self.flushed = self.file_bytes

    @property
    def size(self) -> int:
        """The size in bytes, flushed or not."""
        return self._size

    @property
    def end(self) -> int:
        """The offset after the last flushed byte."""
        return self.start + self.flushed

    def append(self, data: Octets, now_ms: int) -> None:
        """Write `data` at the end: all of it, or nothing if the disk refuses."""
        self._size = self.write(data, now_ms)

    def flush(self) -> None:
        """Force what was written to the disk. Only after that do readers see it."""
        size = self._size
        if self.flushed < size:
            os.fsync(self.descriptor)
            self.flushed = size

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(self.descriptor, size)
        os.fsync(self.descriptor)
        self._size = self.flushed = size

    def touch(self) -> None:
        """Set the modification time to now."""
        os.utime(self.descriptor)

    def region(self, offset: int, max_size: int) -> "FileRegion07":
        """At most `max_size` flushed bytes from `offset` on. A negative size stays negative [kafka-0.7: Fetch]."""
        position = offset - self.start
        return FileRegion07(segment=self, position=position, count=min(max_size, self.flushed - position))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRegion07:
    """Bytes of a segment for sendfile. The reference keeps the file readable after its deletion."""

    segment: LogSegment07
    position: int
    count: int
