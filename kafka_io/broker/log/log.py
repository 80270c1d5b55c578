"""The log of one partition (seed 003, 5.5; facts, 2 and 4).

Writers take the lock. Readers take none: the segments are an immutable tuple, swapped whole, so a reader that has the
tuple sees one state of the log while segments are added or deleted (copy-on-write, seed 003, "Deletes").
"""

import re
import threading
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.durable import sync_names
from kafka_io.broker.log.recovery import recover
from kafka_io.broker.log.retention import Retention
from kafka_io.broker.log.segment import SUFFIX, Region, Segment
from kafka_io.errors import Corrupt, OffsetOutOfRange, Where
from kafka_io.v07.messages import EARLIEST_TIME, LATEST_TIME, Bytes

_NAME = re.compile("[0-9]+" + re.escape(SUFFIX))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """When a log rolls and when it flushes by itself."""

    segment_bytes: int
    roll_ms: int
    flush_messages: int


class Log:
    """Segments one after the other; appended to at the end, deleted from the front."""

    def __init__(
        self, directory: Path, segments: Sequence[Segment], limits: LogLimits, *, clock: ClockMs, where: Where
    ) -> None:
        self._directory = directory
        self._segments = tuple(segments)
        self._limits = limits
        self._clock = clock
        self._where = where
        self._lock = threading.Lock()
        self._unflushed_messages = 0
        self.recovered_bytes = 0

    @classmethod
    def open(cls, directory: Path, limits: LogLimits, *, clock: ClockMs, where: Where) -> Self:
        """The log kept in `directory`, which is made when it is missing; its last segment is recovered.

        Raises:
            Corrupt: a segment does not end where the next begins: bytes are missing that recovery must not hide.
        """
        directory.mkdir(exist_ok=True)
        paths = (path for path in directory.iterdir() if _NAME.fullmatch(path.name))
        segments = sorted(map(Segment.open, paths), key=lambda segment: segment.start)
        for one, following in pairwise(segments):
            if one.end != following.start:
                raise Corrupt(f"{one.path.name} ends at {one.end}, the next segment starts at {following.start}", where)
        if not segments:
            segments = [Segment.create(directory, 0)]
            sync_names(directory, directory.parent)
        log = cls(directory, segments, limits, clock=clock, where=where)
        log.recovered_bytes = recover(log.segments[-1])
        return log

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The log's segments as they are now, never none."""
        return self._segments

    def append(self, data: Bytes, messages: int) -> None:
        """Write `data`, a valid set of `messages` messages, at the end; seen by readers once it is flushed."""
        with self._lock:
            now_ms = self._clock()
            if self._is_due(self._segments[-1], now_ms):
                self._roll()
            self._segments[-1].append(data, now_ms)
            self._unflushed_messages += messages
            if self._unflushed_messages >= self._limits.flush_messages:
                self._flush()

    def read(self, offset: int, max_size: int) -> Region | None:
        """At most `max_size` bytes from `offset` to the end of its segment; None at the end of the log.

        Raises:
            OffsetOutOfRange: the flushed log does not reach from below to above `offset`.
        """
        segments = self._segments
        earliest, latest = segments[0].start, segments[-1].end
        if not earliest <= offset <= latest:
            raise OffsetOutOfRange(f"the log holds [{earliest}, {latest})", self._where.at(offset), 1)
        if offset == latest:
            return None
        following = bisect_right(segments, offset, key=lambda segment: segment.start)
        return segments[following - 1].region(offset, max_size)

    def offsets_before(self, time_ms: int, most: int) -> tuple[int, ...]:
        """At most `most` starts of segments last written to at `time_ms` or before, descending.

        LATEST_TIME gives the end first, EARLIEST_TIME the first start alone. The end of a log counts as a start
        written to now, unless its last segment is empty (facts, 4).

        Raises:
            Corrupt: `most` is negative.
        """
        if most < 0:
            raise Corrupt(f"{most} offsets were asked for", self._where)
        segments = self._segments
        starts = [(segment.start, segment.modified_ms) for segment in segments]
        if (latest := segments[-1].end) > segments[-1].start:
            starts.append((latest, self._clock()))
        known = _count_until(starts, time_ms)
        return tuple(start for start, _ in reversed(starts[:known]))[:most]

    def flush(self) -> None:
        """Make everything written so far durable and visible."""
        with self._lock:
            self._flush()

    def clean(self, retention: Retention) -> int:
        """Delete what `retention` no longer keeps; how many segments that were.

        A log is never left without a segment: an empty one takes over at its end.
        """
        with self._lock:  # an append between the count and the deletion would be deleted with its old segment
            count = retention.count_expired(self._segments, self._clock())
            if count == len(self._segments):
                count -= self._replace_last()
            expired, self._segments = self._segments[:count], self._segments[count:]
        for segment in expired:
            segment.path.unlink()
        return count

    def close(self) -> None:
        """Flush, and close the files; nothing may read them after."""
        self.flush()
        for segment in self._segments:
            segment.close()

    def _is_due(self, active: Segment, now_ms: int) -> bool:
        """Asked before an append, so a segment overshoots by the last one (facts, 2)."""
        if active.size > self._limits.segment_bytes:
            return True
        return active.first_append_ms is not None and now_ms - active.first_append_ms > self._limits.roll_ms

    def _roll(self) -> None:
        # The flush comes first: only the last segment may end beyond what readers see.
        self._flush()
        self._segments = (*self._segments, Segment.create(self._directory, self._segments[-1].end))
        sync_names(self._directory)

    def _flush(self) -> None:
        self._segments[-1].flush()
        self._unflushed_messages = 0

    def _replace_last(self) -> int:
        """Ready the log to lose all its segments; how many of them must stay after all."""
        last = self._segments[-1]
        if last.size:
            self._roll()
            return 0
        last.touch()  # its successor would have the same name
        return 1


def _count_until(starts: Sequence[tuple[int, int]], time_ms: int) -> int:
    """How many of `starts` an OFFSETS request of this time may be answered with, counted from the front."""
    if time_ms == LATEST_TIME:
        return len(starts)
    if time_ms == EARLIEST_TIME:
        return 1
    young = (index for index, (_, modified_ms) in enumerate(reversed(starts)) if modified_ms <= time_ms)
    return len(starts) - next(young, len(starts))
