"""The log of one 0.7 partition: its offsets are byte positions, and readers see flushed bytes only.

See [kafka-0.7: Log, Fetch, OFFSETS].
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_io.errors import Corrupt, OffsetOutOfRange, Where
from kafka_io.testing.data_dir import sync_names
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.segmented_log import SegmentedLog, check_contiguous
from kafka_io.testing.v07.log.recovery import recover
from kafka_io.testing.v07.log.segment import FileRegion07, LogSegment07
from kafka_io.v07.messages import EARLIEST_TIME, LATEST_TIME
from kafka_io.wire.primitives import Octets

_SEGMENT_NAME = re.compile("[0-9]+" + re.escape(LogSegment07.SUFFIX))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits07:
    """When a log begins a new segment, and after how many messages it flushes by itself."""

    segment_bytes: int
    roll_ms: int
    flush_messages: int


class PartitionLog07(SegmentedLog[LogSegment07]):
    """The log of one partition of a 0.7 broker."""

    def __init__(
        self, directory: Path, segments: Sequence[LogSegment07], limits: LogLimits07, *, clock: ClockMs, where: Where
    ) -> None:
        super().__init__(directory, segments, clock=clock, where=where)
        self._limits = limits
        self._unflushed_messages = 0
        self.recovered_bytes = 0

    @classmethod
    def open(cls, directory: Path, limits: LogLimits07, *, clock: ClockMs, where: Where) -> Self:
        """The log in `directory`, which is created if it does not exist. The last segment is recovered.

        Raises:
            Corrupt: bytes are missing between two segments.
        """
        directory.mkdir(exist_ok=True)
        paths = (path for path in directory.iterdir() if _SEGMENT_NAME.fullmatch(path.name))
        segments = sorted(map(LogSegment07.open, paths), key=lambda segment: segment.start)
        check_contiguous(segments, where)
        if not segments:
            segments = [LogSegment07.create(directory, 0)]
            sync_names(directory, directory.parent)
        log = cls(directory, segments, limits, clock=clock, where=where)
        log.recovered_bytes = recover(log.segments[-1])
        return log

    def append(self, data: Octets, messages: int) -> None:
        """Write `data`, a valid set of `messages` messages, at the end. Readers see it after the next flush."""
        with self._lock:
            now_ms = self._clock()
            if self._is_roll_due(now_ms):
                self._roll()
            self._segments[-1].append(data, now_ms)
            self._unflushed_messages += messages
            if self._unflushed_messages >= self._limits.flush_messages:
                self._flush()

    def read(self, offset: int, max_size: int) -> FileRegion07 | None:
        """At most `max_size` bytes from `offset` to the end of its segment; None at the end of the log.

        Raises:
            OffsetOutOfRange: `offset` is before the start or after the end of the flushed log.
        """
        segments = self._segments
        earliest, latest = segments[0].start, segments[-1].end
        if not earliest <= offset <= latest:
            raise OffsetOutOfRange(f"the log holds [{earliest}, {latest})", self.where.at_offset(offset), 1)
        if offset == latest:
            return None
        following = bisect_right(segments, offset, key=lambda segment: segment.start)
        return segments[following - 1].region(offset, max_size)

    def offsets_before(self, time_ms: int, max_offsets: int) -> tuple[int, ...]:
        """At most `max_offsets` starts of segments that were last written to at `time_ms` or before, descending.

        LATEST_TIME gives the end of the log first, EARLIEST_TIME gives the first start alone. The end of the log counts
        as a start that is written to now, unless the last segment is empty [kafka-0.7: OFFSETS].

        Raises:
            Corrupt: `max_offsets` is negative.
        """
        if max_offsets < 0:
            raise Corrupt(f"the request asks for {max_offsets} offsets", self.where)
        segments = self._segments
        starts = [(segment.start, segment.modified_ms) for segment in segments]
        if (latest := segments[-1].end) > segments[-1].start:
            starts.append((latest, self._clock()))
        count = _count_until(starts, time_ms)
        return tuple(start for start, _ in reversed(starts[:count]))[:max_offsets]

    def flush(self) -> None:
        """Make everything written so far durable and visible."""
        with self._lock:
            self._flush()

    def _is_roll_due(self, now_ms: int) -> bool:
        """Whether the next append needs a new segment.

        The size of that append does not count, so a segment exceeds its limit by its last append [kafka-0.7: Log].
        """
        active = self._segments[-1]
        return active.size > self._limits.segment_bytes or active.is_older_than(self._limits.roll_ms, now_ms)

    def _flush(self) -> None:
        super()._flush()
        self._unflushed_messages = 0

    def _keep_empty(self, segment: LogSegment07) -> None:
        # A genuine broker sets the time too; the OFFSETS request sees it.
        segment.touch()


def _count_until(starts: Sequence[tuple[int, int]], time_ms: int) -> int:
    """How many of the pairs (start, time of the last write), from the first on, OFFSETS may answer for `time_ms`."""
    if time_ms == LATEST_TIME:
        return len(starts)
    if time_ms == EARLIEST_TIME:
        return 1
    newer = (index for index, (_, modified_ms) in enumerate(reversed(starts)) if modified_ms <= time_ms)
    return len(starts) - next(newer, len(starts))
