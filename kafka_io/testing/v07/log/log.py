"""The log of one 0.7 partition: its offsets are byte positions, and readers see flushed bytes only.

See [kafka-0.7: Log, Fetch, OFFSETS].
"""

import os
from typing import ClassVar

from kafka_io.testing.segment_file import FileRegion
from kafka_io.testing.segmented_log import SegmentedLog
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.log.segment import LogSegment07
from kafka_io.wire.primitives import Octets


class PartitionLog07(SegmentedLog[LogSegment07, BrokerConfig07]):
    """The log of one partition of a 0.7 broker."""

    SEGMENT_TYPE: ClassVar[type[LogSegment07]] = LogSegment07

    _unflushed_messages = 0

    def append(self, data: Octets, messages: int) -> None:
        """Write `data`, a valid set of `messages` messages, at the end. Readers see it after the next flush."""
        with self._lock:
            now_ms = self._clock()
            # The size of this append does not count: a segment exceeds its limit by its last append [kafka-0.7: Log].
            self._roll_if_due(now_ms, is_full=self._segments[-1].size > self._config.segment_bytes)
            self._segments[-1].write(data, now_ms)
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

    def flush(self) -> None:
        """Make everything written so far durable and visible."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        super()._flush()
        self._unflushed_messages = 0

    def _keep_empty(self, segment: LogSegment07) -> None:
        os.utime(segment.descriptor)  # a genuine broker sets the time to now too; the OFFSETS request sees it
