"""One file of a log: `<offset of its first record, 20 digits>.log`, nothing but record batches one after the other.

A segment is written by one thread at a time (its log's lock) and read by any number of others. Readers see what its
`reach` covers, a value that is replaced as a whole after the bytes are written. A sparse index in memory tells where to
look for an offset; it is made anew from the headers when the file is opened.
"""

import mmap
import os
import weakref
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_io.broker.modern.log.header import BatchHeader
from kafka_io.compression import Bytes
from kafka_io.errors import Truncated
from kafka_io.records.layout import BATCH_BYTES

SUFFIX = ".log"
_INDEX_BYTES = 4096  # between two entries of the index; index.interval.bytes


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a segment goes: its bytes, and the offset behind its last record."""

    size: int
    next: int


class Segment:
    """An open segment file.

    The descriptor lives as long as anybody holds the segment: retention unlinks the file, a fetch that is being read
    goes on, and the last holder's end closes it.
    """

    def __init__(self, path: Path, base: int, *, descriptor: int) -> None:
        self.path = path
        self.base = base
        self.reach = Reach(0, base)
        self.max_time = -1
        self.first_append_ms: int | None = None
        self._flushed = 0
        self._index: list[tuple[int, int]] = []
        self._descriptor = descriptor
        self.close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The segment in an existing file; what is in it must be noted, batch by batch."""
        return cls(path, int(path.name.removesuffix(SUFFIX)), descriptor=os.open(path, os.O_RDWR))

    @classmethod
    def create(cls, directory: Path, base: int) -> Self:
        """A new, empty segment.

        Raises:
            FileExistsError: the log already has one of this base.
        """
        path = directory / f"{base:020d}{SUFFIX}"
        return cls(path, base, descriptor=os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))

    @property
    def size(self) -> int:
        """The bytes that readers see."""
        return self.reach.size

    @property
    def next(self) -> int:
        """The offset behind the last record that readers see."""
        return self.reach.next

    @property
    def file_bytes(self) -> int:
        """The size of the file; more than `size` while it is being opened."""
        return os.fstat(self._descriptor).st_size

    @property
    def modified_ms(self) -> int:
        """When the file was last written to."""
        return os.fstat(self._descriptor).st_mtime_ns // 1_000_000

    @contextmanager
    def content(self) -> Iterator[memoryview]:
        """All bytes of the file, as long as the block lasts."""
        if self.file_bytes == 0:
            yield memoryview(b"")
            return
        with mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            yield view

    def note(self, header: BatchHeader) -> None:
        """The batch of `header` is the next one in the file, all of it."""
        if not self._index or self.size - self._index[-1][1] >= _INDEX_BYTES:
            self._index.append((header.base, self.size))
        self.max_time = max(self.max_time, header.max_time)
        self.reach = Reach(self.size + header.size, header.next)  # last: from here on readers see it

    def append(self, batch: Bytes, header: BatchHeader, now_ms: int) -> None:
        """Write a batch at the end; all of it or, when the disk refuses, none of it."""
        rest = memoryview(batch)
        at = self.size
        try:
            while rest:
                written = os.pwrite(self._descriptor, rest, at)
                rest, at = rest[written:], at + written
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        if self.first_append_ms is None:
            self.first_append_ms = now_ms
        self.note(header)

    def flush(self) -> None:
        """Bring what was written to the disk."""
        size = self.size
        if self._flushed < size:
            os.fsync(self._descriptor)
            self._flushed = size

    def truncate(self) -> int:
        """Cut off what is not noted; how many bytes that were."""
        surplus = self.file_bytes - self.size
        if surplus:
            os.ftruncate(self._descriptor, self.size)
            os.fsync(self._descriptor)
        return surplus

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from the one at `position` on, each with where it is."""
        while position < self.size:
            header = BatchHeader.parse(self.read(position, BATCH_BYTES))
            yield position, header
            position += header.size

    def find(self, offset: int) -> tuple[int, BatchHeader]:
        """The batch that holds `offset`, which must be below `next`, or else the first one behind it."""
        following = bisect_right(self._index, offset, key=lambda entry: entry[0])
        start = self._index[following - 1][1] if following else 0
        return next((at, header) for at, header in self.headers(start) if header.next > offset)

    def read(self, position: int, count: int) -> bytes:
        """`count` bytes from `position` on.

        Raises:
            Truncated: the file is shorter than it was.
        """
        parts = []
        while count > 0:
            part = os.pread(self._descriptor, count, position)
            if not part:
                raise Truncated(f"{self.path.name} ends at byte {position}, {count} bytes short")
            parts.append(part)
            position, count = position + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Bytes of a segment; holding it keeps the file readable after its deletion."""

    segment: Segment
    position: int
    count: int

    def read(self) -> bytes:
        """The bytes."""
        return self.segment.read(self.position, self.count)
