"""The log of one partition, for all generations: when a segment begins, which are deleted, and recovery at the start.

Writers take the lock. Readers take none: the segments are an immutable tuple that is replaced as a whole. A reader that
has the tuple sees one state of the log while segments are added or deleted (copy-on-write) [kafka-0.7: Log].
"""

import logging
import math
import re
import threading
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from kafka_io.errors import Corrupt, OffsetOutOfRange, Where
from kafka_io.messages.list_offsets import EARLIEST_TIME, LATEST_TIME
from kafka_io.testing.config import BrokerConfig
from kafka_io.testing.data_dir import sync_names
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.segment_file import SegmentFile

logger = logging.getLogger(__name__)

SegmentT = TypeVar("SegmentT", bound=SegmentFile)
ConfigT = TypeVar("ConfigT", bound=BrokerConfig)

_SEGMENT_START = re.compile("[0-9]+")


class SegmentedLog(Generic[SegmentT, ConfigT]):
    """Consecutive segments: records are appended to the last one, and the first ones are deleted."""

    SEGMENT_TYPE: ClassVar[type[Any]]

    def __init__(
        self, directory: Path, segments: Sequence[SegmentT], config: ConfigT, *, clock: ClockMs, where: Where
    ) -> None:
        self._directory = directory
        self._segments = tuple(segments)
        self._config = config
        self._clock = clock
        self.where = where
        self._lock = threading.Lock()

    @classmethod
    def open(cls, directory: Path, config: ConfigT, *, clock: ClockMs, where: Where) -> Self:
        """The log in `directory`, which is created if it does not exist. An incomplete end is cut off.

        A segment is flushed before the next one begins. So a crash can damage only the last one, and damage in another
        segment is an error.

        Raises:
            Corrupt: records are missing between two segments, or a segment before the last one is damaged.
        """
        directory.mkdir(exist_ok=True)
        segment_type = cls.SEGMENT_TYPE
        paths = (path for path in directory.glob(f"*{segment_type.SUFFIX}") if _SEGMENT_START.fullmatch(path.stem))
        segments: list[SegmentT] = sorted(map(segment_type.open, paths), key=lambda segment: segment.start)
        if not segments:
            segments = [segment_type.create(directory, 0)]
            sync_names(directory, directory.parent)
        for segment in segments[:-1]:
            segment.load(where)
        _check_contiguous(segments, where)
        if removed_bytes := segments[-1].recover():
            logger.warning("recovery removed %d bytes after the last whole message [%s]", removed_bytes, where)
        log = cls(directory, segments, config, clock=clock, where=where)
        log._restore()
        return log

    @property
    def segments(self) -> tuple[SegmentT, ...]:
        """The present segments; there is at least one."""
        return self._segments

    @property
    def start(self) -> int:
        """The first offset that can be read."""
        return self._segments[0].start

    @property
    def end(self) -> int:
        """The offset after the last record that readers see."""
        return self._segments[-1].end

    def flush(self) -> None:
        """Make everything written so far durable. It takes no lock, so appends continue meanwhile."""
        self._flush()

    def offsets_before(self, time_ms: int, max_offsets: int) -> tuple[int, ...]:
        """At most `max_offsets` starts of segments that were last written to at `time_ms` or before, descending.

        LATEST_TIME gives the end of the log first, EARLIEST_TIME gives the start of the log alone. The end of the log
        counts as a start that is written to now, unless the last segment is empty [kafka-0.7: OFFSETS].

        Raises:
            Corrupt: `max_offsets` is negative.
        """
        if max_offsets < 0:
            raise Corrupt(f"the request asks for {max_offsets} offsets", self.where)
        segments, log_start = self._segments, self.start
        starts = [(max(segment.start, log_start), segment.modified_ms) for segment in segments]
        if (end := segments[-1].end) > segments[-1].start:
            starts.append((end, self._clock()))
        count = _count_until(starts, time_ms)
        return tuple(start for start, _ in reversed(starts[:count]))[:max_offsets]

    def clean(self) -> int:
        """Delete the segments that retention no longer keeps. Returns their number.

        A log always has a segment. When all segments have expired, an empty one follows at the end of the log. If the
        last segment is empty itself it stays: a new one would have the same file name.
        """
        with self._lock:  # an append between the count and the deletion would be deleted with its segment
            count = self._count_expired()
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

    def _restore(self) -> None:
        """Restore what the log knows of its records, when it is opened."""

    def _keep_empty(self, segment: SegmentT) -> None:
        """The empty last segment has expired and stays."""

    def _segment_of(self, offset: int) -> SegmentT | None:
        """The segment that contains `offset`; None at the end of the log.

        Raises:
            OffsetOutOfRange: `offset` is before the start or after the end of the log.
        """
        # The tuple is read once. Retention may delete the segment meanwhile, but it can still be read.
        segments, start = self._segments, self.start
        end = segments[-1].end
        if not start <= offset <= end:
            raise OffsetOutOfRange(f"the log holds [{start}, {end})", self.where.at_offset(offset), 1)
        if offset == end:
            return None
        return segments[bisect_right(segments, offset, key=lambda segment: segment.start) - 1]

    def _flush(self) -> None:
        self._segments[-1].flush()

    def _roll_if_due(self, now_ms: int, *, is_full: bool) -> None:
        """Begin a new segment if the last one is full, or older than `roll_ms`."""
        if is_full or self._segments[-1].is_older_than(self._config.roll_ms, now_ms):
            self._roll()

    def _roll(self) -> None:
        """Begin a new segment at the end of the log.

        The flush comes first. Recovery after a crash checks the last segment only, so no other segment may have bytes
        that are not on disk.
        """
        self._flush()
        last = self._segments[-1]
        self._segments = (*self._segments, type(last).create(self._directory, last.end))
        sync_names(self._directory)

    def _count_expired(self) -> int:
        """The number of segments to delete, from the start of the log: those that are too old, or too much.

        Only whole segments are deleted, and the log keeps at least `retention_bytes`.
        """
        config, now_ms = self._config, self._clock()
        max_age_ms = math.inf if config.retention_ms is None else config.retention_ms
        too_old = takewhile(lambda segment: now_ms - segment.newest_ms > max_age_ms, self._segments)
        sizes = [segment.size for segment in self._segments]
        surplus_bytes = -1 if config.retention_bytes is None else sum(sizes) - config.retention_bytes
        too_much = takewhile(lambda deleted_bytes: deleted_bytes <= surplus_bytes, accumulate(sizes))
        return max(len(list(too_old)), len(list(too_much)))

    def _delete_segments(self, count: int) -> None:
        """Delete the first `count` segments. A reader that has one of them can still read it: its file stays open."""
        deleted, self._segments = self._segments[:count], self._segments[count:]
        for segment in deleted:
            segment.path.unlink()


def _check_contiguous(segments: Sequence[SegmentFile], where: Where) -> None:
    """Check that each segment ends where the next one begins.

    Raises:
        Corrupt: one does not. Bytes are missing in the middle of the log, and recovery must not hide that.
    """
    for segment, following in pairwise(segments):
        if segment.end != following.start:
            reason = f"{segment.path.name} ends at {segment.end}, the next segment starts at {following.start}"
            raise Corrupt(reason, where)


def _count_until(starts: Sequence[tuple[int, int]], time_ms: int) -> int:
    """The number of pairs (start, time of the last write), from the first on, that OFFSETS returns for `time_ms`.

    The times of files need not be in order. A genuine broker looks from the newest segment on, and takes all segments
    up to the first one that it finds.
    """
    if time_ms == LATEST_TIME:
        return len(starts)
    if time_ms == EARLIEST_TIME:
        return 1
    newer = (index for index, (_, modified_ms) in enumerate(reversed(starts)) if modified_ms <= time_ms)
    return len(starts) - next(newer, len(starts))
