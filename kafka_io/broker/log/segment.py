"""One file of a log: `<offset of its first byte, 20 digits>.kafka`, nothing but messages one after the other.

A segment is written by one thread at a time (its log's lock) and read by any number of others. Readers see bytes up to
`flushed` only, a number that grows after the bytes it covers are on disk.
"""

import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_io.v07.messages import Bytes

SUFFIX = ".kafka"


class Segment:
    """An open segment file.

    The descriptor lives as long as anybody holds the segment: retention unlinks the file, a fetch that is being sent
    goes on reading it, and the last holder's end closes it.
    """

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        self.path = path
        self.start = start
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.flushed = self.size
        self.first_append_ms: int | None = None
        self.close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The segment in an existing file, named as the log names them."""
        return cls(path, int(path.name.removesuffix(SUFFIX)), descriptor=os.open(path, os.O_RDWR))

    @classmethod
    def create(cls, directory: Path, start: int) -> Self:
        """A new, empty segment.

        Raises:
            FileExistsError: the log already has one of this start.
        """
        path = directory / f"{start:020d}{SUFFIX}"
        return cls(path, start, descriptor=os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))

    @property
    def end(self) -> int:
        """The offset after its last flushed byte."""
        return self.start + self.flushed

    @property
    def modified_ms(self) -> int:
        """When it was last written to, from the file: it survives a restart, and tests set it."""
        return os.fstat(self.descriptor).st_mtime_ns // 1_000_000

    def append(self, data: Bytes, now_ms: int) -> None:
        """Write `data` at the end; all of it or, when the disk refuses, none of it."""
        rest = memoryview(data)
        at = self.size
        try:
            while rest:
                written = os.pwrite(self.descriptor, rest, at)
                rest, at = rest[written:], at + written
        except OSError:
            os.ftruncate(self.descriptor, self.size)
            raise
        if at > self.size and self.first_append_ms is None:
            self.first_append_ms = now_ms
        self.size = at

    def flush(self) -> None:
        """Bring what was written to the disk; then, not before, readers see it."""
        size = self.size
        if self.flushed < size:
            os.fsync(self.descriptor)
            self.flushed = size

    def truncate(self, size: int) -> None:
        """Cut the file down to `size` bytes."""
        os.ftruncate(self.descriptor, size)
        os.fsync(self.descriptor)
        self.size = self.flushed = size

    def touch(self) -> None:
        """Make it as young as a segment written to just now."""
        os.utime(self.descriptor)

    def region(self, offset: int, max_size: int) -> "Region":
        """At most `max_size` flushed bytes from `offset` on; a negative `max_size` stays one (facts, 2)."""
        position = offset - self.start
        return Region(segment=self, position=position, count=min(max_size, self.flushed - position))


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Bytes of a segment, for sendfile; holding it keeps the file readable after its deletion."""

    segment: Segment
    position: int
    count: int
