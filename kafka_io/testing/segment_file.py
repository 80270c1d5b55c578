"""The file of a log segment and the retention of segments, for both embedded brokers."""

import os
import weakref
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path
from typing import ClassVar, Self

from kafka_io.compression import BytesLike


class SegmentFile:
    """An open segment file, named `<start, 20 digits><suffix>`.

    The descriptor stays open as long as any object refers to the segment. So a fetch can continue to read a segment
    whose file retention has already unlinked; the last reference closes the descriptor.
    """

    SUFFIX: ClassVar[str]

    def __init__(self, path: Path, start: int, *, descriptor: int) -> None:
        self.path = path
        self.start = start
        self.descriptor = descriptor
        self.first_append_ms: int | None = None
        self.close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The segment of an existing file, whose name contains its start."""
        return cls(path, int(path.name.removesuffix(cls.SUFFIX)), descriptor=os.open(path, os.O_RDWR))

    @classmethod
    def create(cls, directory: Path, start: int) -> Self:
        """A new, empty segment.

        Raises:
            FileExistsError: the log already has a segment with this start.
        """
        path = directory / f"{start:020d}{cls.SUFFIX}"
        return cls(path, start, descriptor=os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))

    @property
    @abstractmethod
    def size(self) -> int:
        """The size in bytes of what is written."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The offset after the last one that readers see."""

    @abstractmethod
    def flush(self) -> None:
        """Force what was written to the disk."""

    @property
    def file_bytes(self) -> int:
        """The size of the file. While the log is being opened, it can be larger than `size`."""
        return os.fstat(self.descriptor).st_size

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

    def write(self, data: BytesLike, now_ms: int) -> int:
        """Write all of `data` at the end, or nothing if the disk refuses. Returns the new size.

        Raises:
            OSError: the disk refuses. A part that was written already is cut off again.
        """
        rest, position = memoryview(data), self.size
        try:
            while rest:
                written = os.pwrite(self.descriptor, rest, position)
                rest, position = rest[written:], position + written
        except OSError:
            os.ftruncate(self.descriptor, self.size)
            raise
        if position > self.size and self.first_append_ms is None:
            self.first_append_ms = now_ms
        return position


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRetention:
    """How long (in ms) and how much (in bytes) of a log is kept; None means no limit. Whole segments are deleted."""

    age_ms: int | None = None
    size_bytes: int | None = None

    def count_expired(self, segments: Sequence[SegmentFile], now_ms: int) -> int:
        """The number of segments to delete, counted from the start of the log."""
        return max(self._count_old(segments, now_ms), self._count_surplus(segments))

    def _count_old(self, segments: Sequence[SegmentFile], now_ms: int) -> int:
        age_ms = self.age_ms
        if age_ms is None:
            return 0
        return sum(1 for _ in takewhile(lambda segment: now_ms - segment.newest_ms > age_ms, segments))

    def _count_surplus(self, segments: Sequence[SegmentFile]) -> int:
        """The number of segments that can go while the log keeps at least `size_bytes`."""
        if self.size_bytes is None:
            return 0
        sizes = [segment.size for segment in segments]
        surplus = sum(sizes) - self.size_bytes
        return sum(1 for _ in takewhile(lambda deleted: deleted <= surplus, accumulate(sizes)))
