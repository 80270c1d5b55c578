"""The log of one partition from 0.8 on: record batches that are found by the offsets of their records.

The broker has no replicas, so the high watermark is the end of the log: readers see records as soon as they are
written. Records are on disk after the next flush, as in a genuine cluster of one broker.
"""

import shutil
from typing import ClassVar

from kafka_io.errors import OffsetOutOfRange
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.modern.log.header import BatchHeader, stamp
from kafka_io.testing.modern.log.producers import ProducerStates
from kafka_io.testing.modern.log.segment import LogSegment
from kafka_io.testing.modern.log.transactions import LogTransactions, marker
from kafka_io.testing.segment_file import FileRegion
from kafka_io.testing.segmented_log import SegmentedLog

_START_FILE = "log-start.json"
_START_KEY = "start"


class PartitionLog(SegmentedLog[LogSegment, ModernBrokerConfig]):
    """The log of one partition of a broker from 0.8 on."""

    SEGMENT_TYPE: ClassVar[type[LogSegment]] = LogSegment

    @property
    def start(self) -> int:
        """The first offset that can be read."""
        return self._start

    @property
    def last_stable_offset(self) -> int:
        """The offset before which no transaction is open (KIP-98)."""
        return self.transactions.last_stable_offset(self.end)

    def append(self, batch: bytearray | memoryview) -> int:
        """Write a valid batch at the end. Returns its base offset, or that of the same batch if it is stored already.

        Raises:
            BrokerError: a batch of the producer is missing before this one, or a newer producer has its id.
            OSError: the disk refuses; nothing is written.
        """
        with self._lock:
            duplicate = self._producers.find_duplicate(BatchHeader.parse(batch))
            return self._append(batch) if duplicate is None else duplicate.base_offset

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the marker that ends the transaction of the producer, if it has an open one in this log.

        Raises:
            OSError: the disk refuses.
        """
        with self._lock:
            if self.transactions.has_open(producer_id):
                self._append(marker(producer_id, epoch, self._clock(), commit=commit))

    def region(self, offset: int, max_bytes: int, *, whole: bool, stop: int | None = None) -> FileRegion | None:
        """At most `max_bytes` from the batch that contains `offset` on; None at the end of the log.

        Args:
            offset: the first offset that the reader wants.
            max_bytes: the limit. It may cut the last batch.
            whole: the first batch is complete even if it is larger than the limit (KIP-74).
            stop: the base offset of the batch before which the region ends.

        Raises:
            OffsetOutOfRange: `offset` is before the start or after the end of the log.
        """
        segment = self._segment_of(offset)
        if segment is None or (stop is not None and offset >= stop):
            return None
        position, header = segment.find(offset)
        max_bytes = max(max_bytes, header.size) if whole else max_bytes
        visible = segment.visible  # read once: a writer may replace it at any time
        end_position = visible.size if stop is None or stop >= visible.offset else segment.find(stop)[0]
        return FileRegion(segment=segment, position=position, count=max(0, min(max_bytes, end_position - position)))

    def delete_before(self, offset: int) -> int:
        """Delete the records before `offset`. Returns the start of the log, which never moves back.

        Raises:
            OffsetOutOfRange: `offset` is after the end of the log.
        """
        with self._lock:
            if not 0 <= offset <= self.end:
                raise OffsetOutOfRange(f"the log ends at {self.end}", self.where.at_offset(offset), 1)
            self._move_start(offset)
            self._delete_segments(sum(segment.end <= self._start for segment in self._segments[:-1]))
            return self._start

    def remove(self) -> None:
        """Delete the log from the disk. Readers that have its segments can still read them.

        The caller makes sure that nobody finds the log any more.
        """
        with self._lock:
            shutil.rmtree(self._directory)

    def _restore(self) -> None:
        self._start_file = JsonFile(self._directory / _START_FILE, dict[str, int])
        self._start: int = max(self._segments[0].start, self._start_file.read({}).get(_START_KEY, 0))
        self._producers = ProducerStates()
        self.transactions = LogTransactions()
        for segment in self._segments:
            for position, header in segment.headers():
                self._producers.track(header)
                self.transactions.track(header, segment.read(position, header.size) if header.is_control else b"")

    def _append(self, batch: bytearray | memoryview) -> int:
        stamp(batch, self.end)
        header, now_ms = BatchHeader.parse(batch), self._clock()
        size = self._segments[-1].size
        self._roll_if_due(now_ms, is_full=size > 0 and size + header.size > self._config.segment_bytes)
        # Readers take no lock. A reader of committed records that sees the batch must also see that its transaction is
        # open, so the transaction is tracked before the batch is visible. A marker is tracked after it is visible: in
        # between the transaction looks open a little longer than it is, which does no harm.
        if not header.is_control:
            self.transactions.track(header, batch)
        self._segments[-1].append(batch, header, now_ms)
        if header.is_control:
            self.transactions.track(header, batch)
        self._producers.track(header)
        return header.base_offset

    def _delete_segments(self, count: int) -> None:
        # The start moves before the files are deleted: after a crash in between, it is right with and without them.
        self._move_start(self._segments[count].start)
        super()._delete_segments(count)

    def _move_start(self, start: int) -> None:
        """Move the start of the log forward; it never moves back."""
        if start > self._start:
            self._start_file.write({_START_KEY: start})
            self._start = start
            self.transactions.forget_before(start)
