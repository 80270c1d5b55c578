"""The log of one partition: record batches, found by the offsets of their records.

Writers take the lock. Readers take none: the segments are an immutable tuple, swapped whole, so a reader that has the
tuple sees one state of the log while segments are added or deleted. With no replicas the high watermark is the end of
the log: what is written is seen at once, and on the disk after the next flush, as in a genuine cluster of one broker.
"""

import logging
import shutil
import threading
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.durable import sync_names
from kafka_io.broker.modern.json_file import JsonFile
from kafka_io.broker.modern.log.header import BatchHeader, stamp
from kafka_io.broker.modern.log.producers import Producers
from kafka_io.broker.modern.log.recovery import open_segments
from kafka_io.broker.modern.log.retention import Retention
from kafka_io.broker.modern.log.segment import Region, Segment
from kafka_io.broker.modern.log.transactions import AbortedRange, LogTransactions, marker
from kafka_io.errors import OffsetOutOfRange, Where

logger = logging.getLogger(__name__)

_START_FILE = "log-start.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """When a log begins a new segment."""

    segment_bytes: int
    roll_ms: int


class Log:
    """Segments one after the other; appended to at the end, deleted from the front."""

    def __init__(
        self,
        directory: Path,
        segments: Sequence[Segment],
        limits: LogLimits,
        *,
        clock: ClockMs,
        where: Where,
    ) -> None:
        self._directory = directory
        self._segments = tuple(segments)
        self._limits = limits
        self._clock = clock
        self.where = where
        self._lock = threading.Lock()
        self._start_file = JsonFile(directory / _START_FILE)
        self._start: int = max(segments[0].base, self._start_file.read({}).get("start", 0))
        self._producers = Producers()
        self._transactions = LogTransactions()
        for segment in segments:
            for position, header in segment.headers():
                self._producers.note(header)
                self._transactions.note(header, segment.read(position, header.size) if header.is_control else b"")

    @classmethod
    def open(cls, directory: Path, limits: LogLimits, *, clock: ClockMs, where: Where) -> Self:
        """The log kept in `directory`, which is made when it is missing; a torn tail is cut off.

        Raises:
            Corrupt: batches are missing in its midst.
        """
        directory.mkdir(exist_ok=True)
        segments = open_segments(directory, where)
        if not segments:
            segments = [Segment.create(directory, 0)]
            sync_names(directory, directory.parent)
        elif cut := segments[-1].truncate():
            logger.warning("%d bytes cut off after the last whole batch [%s]", cut, where)
        return cls(directory, segments, limits, clock=clock, where=where)

    @property
    def start(self) -> int:
        """The first offset that may be read."""
        return self._start

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self._segments[-1].next

    @property
    def stable(self) -> int:
        """The offset before which no transaction is open: the last stable offset (KIP-98)."""
        return self._transactions.stable(self.end)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The log's segments as they are now, never none."""
        return self._segments

    def append(self, batch: bytearray | memoryview, header: BatchHeader) -> int:
        """Give the batch its place at the end; its first offset, or that of the same batch if it is there already.

        Raises:
            BrokerError: its producer is out of order or replaced.
            OSError: the disk refuses; nothing is written.
        """
        with self._lock:
            stored = self._producers.stored(header)
            if stored is not None:
                return stored.base
            return self._append(batch, header)

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the marker that ends the producer's transaction, if it has one open here.

        Raises:
            OSError: the disk refuses.
        """
        with self._lock:
            if self._transactions.has_open(producer_id):
                batch = marker(producer_id, epoch, self._clock(), commit=commit)
                self._append(batch, BatchHeader.parse(batch))

    def region(self, offset: int, most: int, *, whole: bool, stop: int | None = None) -> Region | None:
        """At most `most` bytes from the batch that holds `offset`; None at the end of the log.

        Args:
            offset: where to begin.
            most: bytes; the last batch may be cut.
            whole: the first batch is given in full, however large it is (KIP-74).
            stop: the base of the batch before which to end.

        Raises:
            OffsetOutOfRange: the log does not reach from below to above `offset`.
        """
        segments, start = self._segments, self._start
        end = segments[-1].next
        if not start <= offset <= end:
            raise OffsetOutOfRange(f"the log holds [{start}, {end})", self.where.at(offset), 1)
        if offset == end or (stop is not None and offset >= stop):
            return None
        following = bisect_right(segments, offset, key=lambda segment: segment.base)
        segment = segments[following - 1]
        position, header = segment.find(offset)
        most = max(most, header.size) if whole else most
        reach = segment.reach
        last = reach.size if stop is None or stop >= reach.next else segment.find(stop)[0]
        return Region(segment=segment, position=position, count=max(0, min(most, last - position)))

    def aborted(self, start: int, stop: int) -> Sequence[AbortedRange]:
        """The aborted transactions that touch the offsets `[start, stop)`."""
        return self._transactions.aborted(start, stop)

    def delete_before(self, offset: int) -> int:
        """Give up the records before `offset`; where the log starts now, which is never lower than before.

        Raises:
            OffsetOutOfRange: the log ends before.
        """
        with self._lock:
            if not 0 <= offset <= self.end:
                raise OffsetOutOfRange(f"the log ends at {self.end}", self.where.at(offset), 1)
            self._move_start(max(self._start, offset))
            count = sum(segment.next <= self._start for segment in self._segments[:-1])
            self._drop(count)
            return self._start

    def clean(self, retention: Retention) -> int:
        """Delete what `retention` no longer keeps; how many segments that were.

        A log is never left without a segment: an empty one takes over at its end.
        """
        with self._lock:
            count = retention.count_expired(self._segments, self._clock())
            if count == len(self._segments):
                if self._segments[-1].size:
                    self._roll()
                else:
                    count -= 1  # its successor would have the same name
            if count:
                # Before the files go: after a crash between the two, the start is right with either.
                self._move_start(max(self._start, self._segments[count].base))
                self._drop(count)
            return count

    def flush(self) -> None:
        """Bring everything written so far to the disk; appends go on meanwhile."""
        self._segments[-1].flush()

    def close(self) -> None:
        """Flush, and close the files; nothing may read them after."""
        self.flush()
        for segment in self._segments:
            segment.close()

    def remove(self) -> None:
        """Delete the log from the disk. Who reads it goes on reading; nobody may find it any more."""
        with self._lock:
            shutil.rmtree(self._directory)

    def _append(self, batch: bytearray | memoryview, header: BatchHeader) -> int:
        now_ms = self._clock()
        if self._is_due(self._segments[-1], header.size, now_ms):
            self._roll()
        placed = replace(header, base=self.end)
        stamp(batch, placed.base)
        # A reader that sees the batch must see its transaction open; one that has ended may look open a little longer.
        if not placed.is_control:
            self._transactions.note(placed, batch)
        self._segments[-1].append(batch, placed, now_ms)
        if placed.is_control:
            self._transactions.note(placed, batch)
        self._producers.note(placed)
        return placed.base

    def _is_due(self, active: Segment, more: int, now_ms: int) -> bool:
        if active.size and active.size + more > self._limits.segment_bytes:
            return True
        return active.first_append_ms is not None and now_ms - active.first_append_ms > self._limits.roll_ms

    def _roll(self) -> None:
        # The flush comes first: only the last segment may have a tail that the disk never got.
        self._segments[-1].flush()
        self._segments = (*self._segments, Segment.create(self._directory, self.end))
        sync_names(self._directory)

    def _move_start(self, start: int) -> None:
        self._start_file.write({"start": start})
        self._start = start
        self._transactions.forget_before(start)

    def _drop(self, count: int) -> None:
        dropped, self._segments = self._segments[:count], self._segments[count:]
        for segment in dropped:
            segment.path.unlink()
