"""The log of one partition from 0.8 on: record batches that are found by the offsets of their records.

The broker has no replicas, so the high watermark is the end of the log: readers see records as soon as they are
written. Records are on disk after the next flush, as in a genuine cluster of one broker.
"""

import logging
import shutil
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from kafka_io.errors import OffsetOutOfRange, Where
from kafka_io.testing.data_dir import sync_names
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.modern.log.header import BatchHeader, stamp
from kafka_io.testing.modern.log.producers import ProducerStates
from kafka_io.testing.modern.log.recovery import open_segments
from kafka_io.testing.modern.log.segment import FileRegion, LogSegment
from kafka_io.testing.modern.log.transactions import AbortedTransactionRange, LogTransactions, marker
from kafka_io.testing.segmented_log import SegmentedLog

logger = logging.getLogger(__name__)

_START_FILE = "log-start.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """When a log begins a new segment."""

    segment_bytes: int
    roll_ms: int


class PartitionLog(SegmentedLog[LogSegment]):
    """The log of one partition of a broker from 0.8 on."""

    def __init__(
        self, directory: Path, segments: Sequence[LogSegment], limits: LogLimits, *, clock: ClockMs, where: Where
    ) -> None:
        super().__init__(directory, segments, clock=clock, where=where)
        self._limits = limits
        self._start_file = JsonFile(directory / _START_FILE)
        self._start: int = max(segments[0].start, self._start_file.read({}).get("start", 0))
        self._producers = ProducerStates()
        self._transactions = LogTransactions()
        for segment in segments:
            for position, header in segment.headers():
                self._producers.track(header)
                self._transactions.track(header, segment.read(position, header.size) if header.is_control else b"")

    @classmethod
    def open(cls, directory: Path, limits: LogLimits, *, clock: ClockMs, where: Where) -> Self:
        """The log in `directory`, which is created if it does not exist. An incomplete end is cut off.

        Raises:
            Corrupt: batches are missing in the middle of the log.
        """
        directory.mkdir(exist_ok=True)
        segments = open_segments(directory, where)
        if not segments:
            segments = [LogSegment.create(directory, 0)]
            sync_names(directory, directory.parent)
        elif removed_bytes := segments[-1].truncate():
            logger.warning("%d bytes cut off after the last whole batch [%s]", removed_bytes, where)
        return cls(directory, segments, limits, clock=clock, where=where)

    @property
    def start(self) -> int:
        """The first offset that can be read."""
        return self._start

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self._segments[-1].end

    @property
    def last_stable_offset(self) -> int:
        """The offset before which no transaction is open (KIP-98)."""
        return self._transactions.last_stable_offset(self.end)

    def append(self, batch: bytearray | memoryview, header: BatchHeader) -> int:
        """Write the batch at the end. Returns its base offset, or that of the same batch if it is stored already.

        Raises:
            BrokerError: a batch of the producer is missing before this one, or a newer producer has its id.
            OSError: the disk refuses; nothing is written.
        """
        with self._lock:
            duplicate = self._producers.find_duplicate(header)
            if duplicate is not None:
                return duplicate.base_offset
            return self._append(batch, header)

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the marker that ends the transaction of the producer, if it has an open one in this log.

        Raises:
            OSError: the disk refuses.
        """
        with self._lock:
            if self._transactions.has_open(producer_id):
                batch = marker(producer_id, epoch, self._clock(), commit=commit)
                self._append(batch, BatchHeader.parse(batch))

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
        segments, start = self._segments, self._start
        end = segments[-1].end
        if not start <= offset <= end:
            raise OffsetOutOfRange(f"the log holds [{start}, {end})", self.where.at_offset(offset), 1)
        if offset == end or (stop is not None and offset >= stop):
            return None
        following = bisect_right(segments, offset, key=lambda segment: segment.start)
        segment = segments[following - 1]
        position, header = segment.find(offset)
        max_bytes = max(max_bytes, header.size) if whole else max_bytes
        visible = segment.visible
        end_position = visible.size if stop is None or stop >= visible.offset else segment.find(stop)[0]
        return FileRegion(segment=segment, position=position, count=max(0, min(max_bytes, end_position - position)))

    def aborted_transactions(self, start: int, stop: int) -> Sequence[AbortedTransactionRange]:
        """The aborted transactions that touch the offsets `[start, stop)`."""
        return self._transactions.aborted(start, stop)

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

    def flush(self) -> None:
        """Force everything written so far to the disk. It takes no lock, so appends continue meanwhile."""
        self._flush()

    def remove(self) -> None:
        """Delete the log from the disk. Readers that have its segments can still read them.

        The caller makes sure that nobody finds the log any more.
        """
        with self._lock:
            shutil.rmtree(self._directory)

    def _append(self, batch: bytearray | memoryview, header: BatchHeader) -> int:
        now_ms = self._clock()
        if self._is_roll_due(header.size, now_ms):
            self._roll()
        stored = replace(header, base_offset=self.end)
        stamp(batch, stored.base_offset)
        # Readers take no lock. A reader of committed records that sees the batch must also see that its transaction is
        # open, so the transaction is tracked before the batch is visible. A marker is tracked after it is visible: in
        # between the transaction looks open a little longer than it is, which does no harm.
        if not stored.is_control:
            self._transactions.track(stored, batch)
        self._segments[-1].append(batch, stored, now_ms)
        if stored.is_control:
            self._transactions.track(stored, batch)
        self._producers.track(stored)
        return stored.base_offset

    def _is_roll_due(self, batch_bytes: int, now_ms: int) -> bool:
        """Whether a batch of this size needs a new segment."""
        active = self._segments[-1]
        is_full = active.size > 0 and active.size + batch_bytes > self._limits.segment_bytes
        return is_full or active.is_older_than(self._limits.roll_ms, now_ms)

    def _keep_empty(self, segment: LogSegment) -> None:
        """Nothing changes: unlike in 0.7, the segment keeps its time."""

    def _delete_segments(self, count: int) -> None:
        # The start moves before the files are deleted: after a crash in between, it is right with and without them.
        self._move_start(self._segments[count].start)
        super()._delete_segments(count)

    def _move_start(self, start: int) -> None:
        """Move the start of the log forward; it never moves back."""
        if start > self._start:
            self._start_file.write({"start": start})
            self._start = start
            self._transactions.forget_before(start)
