"""The segments of a partition's log, for both embedded brokers: when a new one begins, and which are deleted.

Writers take the lock. Readers take none: the segments are an immutable tuple that is replaced as a whole. A reader that
has the tuple sees one state of the log while segments are added or deleted (copy-on-write) [kafka-0.7: Log].
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from kafka_io.errors import Corrupt, Where
from kafka_io.testing.data_dir import sync_names
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.segment_file import LogRetention, SegmentFile

SegmentT = TypeVar("SegmentT", bound=SegmentFile)


class SegmentedLog(ABC, Generic[SegmentT]):
    """Consecutive segments: records are appended to the last one, and the first ones are deleted."""

    def __init__(self, directory: Path, segments: Sequence[SegmentT], *, clock: ClockMs, where: Where) -> None:
        self._directory = directory
        self._segments = tuple(segments)
        self._clock = clock
        self.where = where
        self._lock = threading.Lock()

    @property
    def segments(self) -> tuple[SegmentT, ...]:
        """The present segments; there is at least one."""
        return self._segments

    @abstractmethod
    def flush(self) -> None:
        """Make everything written so far durable."""

    def clean(self, retention: LogRetention) -> int:
        """Delete the segments that `retention` no longer keeps. Returns their number.

        A log always has a segment. When all segments have expired, an empty one follows at the end of the log. If the
        last segment is empty itself it stays: a new one would have the same file name.
        """
        with self._lock:  # an append between the count and the deletion would be deleted with its segment
            count = retention.count_expired(self._segments, self._clock())
            last = self._segments[-1]
            if count == len(self._segments) and last.size:
                self._roll()
            elif count == len(self._segments):
                self._keep_empty(last)
                count -= 1
            if count:
                self._delete_segments(count)
            return count

    def close(self) -> None:
        """Flush, and close the files. The log can no longer be read."""
        self.flush()
        for segment in self._segments:
            segment.close()

    @abstractmethod
    def _keep_empty(self, segment: SegmentT) -> None:
        """The empty last segment has expired and stays."""

    def _flush(self) -> None:
        self._segments[-1].flush()

    def _roll(self) -> None:
        """Begin a new segment at the end of the log.

        The flush comes first. Recovery after a crash checks the last segment only, so no other segment may have bytes
        that are not on disk.
        """
        self._flush()
        last = self._segments[-1]
        self._segments = (*self._segments, type(last).create(self._directory, last.end))
        sync_names(self._directory)

    def _delete_segments(self, count: int) -> None:
        """Delete the first `count` segments. A reader that has one of them can still read it: its file stays open."""
        deleted, self._segments = self._segments[:count], self._segments[count:]
        for segment in deleted:
            segment.path.unlink()


def check_contiguous(segments: Sequence[SegmentFile], where: Where) -> None:
    """Check that each segment ends where the next one begins.

    Raises:
        Corrupt: one does not. Bytes are missing in the middle of the log, and recovery must not hide that.
    """
    for segment, following in pairwise(segments):
        if segment.end != following.start:
            reason = f"{segment.path.name} ends at {segment.end}, the next segment starts at {following.start}"
            raise Corrupt(reason, where)
