"""A segment of a 0.7 log: `<offset of its first byte>.kafka`, a file of messages and nothing else.

Readers see bytes up to `flushed_bytes`.
"""

import os
from pathlib import Path
from typing import ClassVar

from kafka_io.errors import Where
from kafka_io.testing.segment_file import FileRegion, SegmentFile
from kafka_io.testing.v07.log.recovery import count_valid_bytes
from kafka_io.wire.primitives import Octets


class LogSegment07(SegmentFile):
    """An open segment of a 0.7 log. Offsets are byte positions in the log."""

    SUFFIX: ClassVar[str] = ".kafka"

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        super().__init__(path, start, descriptor=descriptor)
        self._size = self.flushed_bytes = self.file_bytes

    @property
    def size(self) -> int:
        """The size in bytes, flushed or not."""
        return self._size

    @property
    def end(self) -> int:
        """The offset after the last flushed byte."""
        return self.start + self.flushed_bytes

    def load(self, where: Where) -> None:
        """A 0.7 log has no index, so there is nothing to prepare."""

    def recover(self) -> int:
        """Cut off the incomplete or corrupt end of the file. Returns the number of bytes removed."""
        with self.content() as data:
            self._size = count_valid_bytes(data)
        return self.truncate(self._size)

    def append(self, data: Octets, now_ms: int) -> None:
        """Write `data` at the end: all of it, or nothing if the disk refuses."""
        self._size = self.write(data, now_ms)

    def touch(self) -> None:
        """Set the modification time to now."""
        os.utime(self.descriptor)

    def region(self, offset: int, max_size: int) -> FileRegion:
        """At most `max_size` flushed bytes from `offset` on. A negative size stays negative [kafka-0.7: Fetch]."""
        position = offset - self.start
        return FileRegion(segment=self, position=position, count=min(max_size, self.flushed_bytes - position))
