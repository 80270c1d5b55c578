"""The log of one 0.7 partition: its offsets are byte positions, and readers see flushed bytes only.

See [kafka-0.7: Log, Fetch, OFFSETS].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from kafka_io.errors import Corrupt, Where
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.segment_file import FileRegion
from kafka_io.testing.segmented_log import SegmentedLog
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.log.segment import LogSegment07
from kafka_io.v07.messages import EARLIEST_TIME, LATEST_TIME
from kafka_io.wire.primitives import Octets


class PartitionLog07(SegmentedLog[LogSegment07, BrokerConfig07]):
    """The log of one partition of a 0.7 broker."""

    SEGMENT_TYPE: ClassVar[type[LogSegment07]] = LogSegment07

    def __init__(
        self, directory: Path, segments: Sequence[LogSegment07], config: BrokerConfig07, *, clock: ClockMs, where: Where
    ) -> None:
        super().__init__(directory, segments, config, clock=clock, where=where)
        self._unflushed_messages = 0

    def append(self, data: Octets, messages: int) -> None:
        """Write `data`, a valid set of `messages` messages, at the end. Readers see it after the next flush."""
        with self._lock:
            now_ms = self._clock()
            # The size of this append does not count: a segment exceeds its limit by its last append [kafka-0.7: Log].
            self._roll_if_due(now_ms, is_full=self._segments[-1].size > self._config.segment_bytes)
            self._segments[-1].append(data, now_ms)
            self._unflushed_messages += messages
            if self._unflushed_messages >= self._config.flush_messages:
                self._flush()

    def read(self, offset: int, max_size: int) -> FileRegion | None:
        """At most `max_size` bytes from `offset` to the end of its segment; None at the end of the log.

        Raises:
            OffsetOutOfRange: `offset` is before the start or after the end of the flushed log.
        """
        segment = self._segment_of(offset)
        return None if segment is None else segment.region(offset, max_size)

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
