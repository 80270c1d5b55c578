"""The file of a log segment, for the logs of all generations.

One thread at a time writes a segment (under the lock of its log); any number of threads read it.
"""

import mmap
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from kafka_io.compression import BytesLike
from kafka_io.errors import Truncated, Where


@dataclass(frozen=True, slots=True)
class VisibleEnd:
    """The end of what readers see of a segment: the size in bytes, and the offset after the last record."""

    size: int
    offset: int


class SegmentFile(ABC):
    """An open segment file, named `<start, 20 digits><suffix>`.

    `size` is the number of bytes written, of which the first `flushed_bytes` are on disk. Readers see what `visible`
    covers. That value is replaced as a whole, so its two numbers always belong together.

    The descriptor stays open as long as any object refers to the segment. So a fetch can continue to read a segment
    whose file retention has already unlinked; the last reference closes the descriptor.
    """

    SUFFIX: ClassVar[str]
    visible: VisibleEnd

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        self.path = path
        self.start = start
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.flushed_bytes = 0  # a process that was killed may have left bytes that are not on disk
        self.first_append_ms: int | None = None
        self.close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The segment of an existing file, whose name contains its start."""
        return cls(path, int(path.stem), descriptor=os.open(path, os.O_RDWR))

    @classmethod
    def create(cls, directory: Path, start: int) -> Self:
        """A new, empty segment.

        Raises:
            FileExistsError: the log already has a segment with this start.
        """
        path = directory / f"{start:020d}{cls.SUFFIX}"
        return cls(path, start, descriptor=os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))

    @property
    def end(self) -> int:
        """The offset after the last one that readers see."""
        return self.visible.offset

    @abstractmethod
    def load(self, where: Where) -> None:
        """Prepare a file that another segment follows. The broker flushed it completely, so it must be whole.

        Raises:
            Corrupt: the file is damaged; the error contains `where`.
        """

    @abstractmethod
    def recover(self) -> int:
        """Prepare the last file of a log: cut off what a crash left at its end. Returns the number of bytes removed."""

    @property
    def modified_ms(self) -> int:
        """When the file was last written to. The file system keeps it across restarts, and tests set it."""
        return os.fstat(self.descriptor).st_mtime_ns // 1_000_000

    @property
    def newest_ms(self) -> int:
        """The time by which retention judges the segment: when it was last written to."""
        return self.modified_ms

    def is_older_than(self, age_ms: int, now_ms: int) -> bool:
        """Whether the first append since the file was opened is more than `age_ms` ago."""
        return self.first_append_ms is not None and now_ms - self.first_append_ms > age_ms

    @contextmanager
    def content(self) -> Iterator[memoryview]:
        """All bytes of the file, valid inside the `with` block."""
        if self.size == 0:  # an empty file cannot be mapped
            yield memoryview(b"")
            return
        with mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            yield view

    def read(self, position: int, count: int) -> bytes:
        """`count` bytes from `position` on.

        Raises:
            Truncated: the file is shorter than it was.
        """
        parts = []
        while count > 0:
            part = os.pread(self.descriptor, count, position)
            if not part:
                raise self.truncated(position, count)
            parts.append(part)
            position, count = position + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def truncated(self, position: int, missing_bytes: int) -> Truncated:
        """The error for a file that ends at `position`, where more bytes were."""
        return Truncated(f"{self.path.name} ends at byte {position}, {missing_bytes} bytes are missing")

    def write(self, data: BytesLike, now_ms: int) -> None:
        """Write all of `data` at the end, or nothing if the disk refuses.

        Raises:
            OSError: the disk refuses. A part that was written already is cut off again.
        """
        unwritten, position = memoryview(data), self.size
        try:
            while unwritten:
                count = os.pwrite(self.descriptor, unwritten, position)
                unwritten, position = unwritten[count:], position + count
        except OSError:
            os.ftruncate(self.descriptor, self.size)
            raise
        if position > self.size and self.first_append_ms is None:
            self.first_append_ms = now_ms
        self.size = position

    def flush(self) -> None:
        """Force what was written to the disk."""
        size = self.size
        if self.flushed_bytes < size:
            os.fsync(self.descriptor)
            self.flushed_bytes = size

    def truncate(self, size: int) -> int:
        """Cut the file to `size` bytes. Returns the number of bytes removed."""
        removed_bytes, self.size = self.size - size, size
        if removed_bytes:
            os.ftruncate(self.descriptor, size)
            os.fsync(self.descriptor)
        return removed_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRegion:
    """Bytes of a segment. The reference keeps the file readable after its deletion."""

    segment: SegmentFile
    position: int
    count: int

    def read(self) -> bytes:
        """The bytes."""
        return self.segment.read(self.position, self.count)
