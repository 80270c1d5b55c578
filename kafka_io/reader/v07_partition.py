"""Reads a range of one partition of a 0.7 broker.

Exactly the bytes `[start, stop)` are read. A short answer does not mean the end of the log: a fetch never crosses the
end of a segment [kafka-0.7: Fetch].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import Corrupt, LogShort, TooLarge, Where, error_context
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.reader.fetch_loop import Pending, read_pipelined
from kafka_io.reader.reader import FetchSizes
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits
from kafka_io.records.v07_decoder import decode_v07
from kafka_io.records.v07_message_set import first_length, whole_bytes
from kafka_io.v07.messages import (
    LATEST_TIME,
    AnyAnswer,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    MultiFetchRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
)

MAX_SEGMENTS = 1_000_000  # a genuine broker keeps the file of every segment open: it cannot have so many


@dataclass(frozen=True, slots=True, kw_only=True)
class _FetchedMessages:
    """The whole messages of one answer; `first_bytes` is the length of its first message, None if even that is cut."""

    offset: int
    messages: memoryview
    received_bytes: int
    first_bytes: int | None

    @property
    def next_offset(self) -> int:
        """The offset after the last whole message."""
        return self.offset + len(self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition07:
    """One partition of `topic` on the broker at the other end of `connection`."""

    connection: BrokerConnection07
    topic: str
    id: BrokerPartition
    cluster: str | None = None
    sizes: FetchSizes = field(default_factory=FetchSizes)
    limits: DecodeLimits = field(default_factory=DecodeLimits)

    @property
    def where(self) -> Where:
        """The partition as the context of errors."""
        return Where(cluster=self.cluster, topic=self.topic, partition=str(self.id)).within(self.connection.where)

    def bounds(self) -> Bounds:
        """Earliest and latest offset, and the starts of the segments between them [kafka-0.7: OFFSETS].

        All of them come in one answer, so retention cannot delete a segment between two of them.

        Raises:
            Corrupt: the offsets are not valid.
            TooLarge: there are more than MAX_SEGMENTS of them.
            NetworkError: no answer; a genuine broker closes the connection if it does not have the partition.
        """
        with error_context(self.where):
            return _bounds(self.segment_offsets(LATEST_TIME, MAX_SEGMENTS))

    def segment_offsets(self, time_ms: int, max_count: int) -> tuple[int, ...]:
        """Starts of segments that were last written to at a time or before, newest first.

        For LATEST_TIME the first of them is the end of the log. Raises what `bounds` does, except TooLarge.
        """
        with error_context(self.where):
            answer = self.connection.request(OffsetsRequest07(self.topic, self.id.partition, time_ms, max_count))
            assert isinstance(answer, OffsetsAnswer07)
            ErrorCode07.check(answer.error, self.where)
            if any(offset < 0 for offset in answer.offsets):
                raise Corrupt(f"the broker answered with offsets that are not valid: {list(answer.offsets[:5])}")
            return answer.offsets

    def fetch(self, offset: int, size: int) -> FetchRequest07:
        """The request for at most `size` bytes from `offset` on."""
        return FetchRequest07(self.topic, self.id.partition, offset, size)

    def read(self, start: int, stop: int, *, first: FetchAnswer07 | None = None) -> Iterator[DecodedBatch]:
        """All messages in `[start, stop)` as Arrow batches; the last batch's `next_offset` is `stop`.

        Args:
            start: the offset of a message.
            stop: the offset after a message.
            first: the answer to a fetch at `start` of the whole range or of `fetch_bytes`, if there is one already (see
                `fetch_firsts`).

        Raises:
            OffsetOutOfRange: the broker no longer holds the whole range.
            Corrupt: the bytes are not valid messages, or a message crosses `stop`.
            TooLarge: a message is above `max_fetch_bytes`, or decompresses to more than `max_decompressed_bytes`.
            LogShort: the log ends before `stop`.
            NetworkError: the broker could not be reached, also after all retries.
        """

        def send_ahead(offset: int, size: int) -> Pending[_FetchedMessages]:
            pending = self.connection.request_ahead(self.fetch(offset, min(size, stop - offset)))
            return lambda: self._fetched(pending.answer(), offset, stop)

        def larger_size(fetched: _FetchedMessages, size: int) -> int:
            return self._larger_size(fetched, min(size, stop - fetched.offset), stop)

        with error_context(self.where):
            yield from read_pipelined(
                start,
                stop,
                self.sizes.fetch_bytes,
                fetch=lambda offset, size: self._fetch(offset, min(size, stop - offset), stop),
                send_ahead=send_ahead,
                decode=self._decode,
                larger_size=larger_size,
                first=self._fetched(first, start, stop),
            )

    def _fetch(self, offset: int, size: int, stop: int) -> _FetchedMessages:
        with error_context(self.where.at_offset(offset)):
            answer = self.connection.request(self.fetch(offset, size), accepted=_not_empty)
            fetched = self._fetched(answer, offset, stop)
        assert fetched is not None
        return fetched

    def _fetched(self, answer: AnyAnswer | None, offset: int, stop: int) -> _FetchedMessages | None:
        """The messages before `stop` in an answer; None for no answer or an empty one, which says nothing."""
        if not _says_something(answer):
            return None
        assert isinstance(answer, FetchAnswer07)
        ErrorCode07.check(answer.error, self.where.at_offset(offset))
        data = memoryview(answer.message_set)[: stop - offset]
        return _FetchedMessages(
            offset=offset,
            messages=data[: whole_bytes(data, base=offset, where=self.where)],
            received_bytes=len(data),
            first_bytes=first_length(data),
        )

    def _decode(self, fetched: _FetchedMessages) -> Iterator[DecodedBatch]:
        return decode_v07(fetched.messages, base=fetched.offset, limits=self.limits, where=self.where)

    def _larger_size(self, fetched: _FetchedMessages, size: int, stop: int) -> int:
        needed = fetched.first_bytes or fetched.received_bytes + 1
        where = self.where.at_offset(fetched.offset)
        if fetched.received_bytes < size or fetched.offset + needed > stop:
            raise Corrupt(f"a message of {needed} bytes runs past the end of the log or slice", where)
        return self.sizes.next_larger(size, needed, where)


def fetch_firsts(
    connection: BrokerConnection07, fetches: Sequence[tuple[Partition07, int, int]]
) -> list[FetchAnswer07]:
    """The first bytes of many small ranges in one MULTIFETCH.

    The answers are for `Partition07.read(first=...)`, which also raises the errors that they hold.

    Args:
        connection: to the broker that holds all the partitions.
        fetches: partition, offset and size of each fetch.

    Raises:
        NetworkError: the broker could not be reached, also after all retries.
        WireError: the answer does not fit the request (fault W11).
    """
    requests = tuple(partition.fetch(offset, size) for partition, offset, size in fetches)
    answer = connection.request(MultiFetchRequest07(requests))
    assert isinstance(answer, MultiFetchAnswer07)
    return list(answer.answers)


def _bounds(offsets: tuple[int, ...]) -> Bounds:
    """The bounds of a log from its end and the starts of all its segments, in descending order."""
    if not offsets or list(offsets) != sorted(offsets, reverse=True):
        raise Corrupt(f"the broker answered with offsets that are not valid: {list(offsets[:5])}")
    if len(offsets) == MAX_SEGMENTS:
        raise TooLarge(f"the log has {MAX_SEGMENTS} segments or more")
    latest, earliest = offsets[0], offsets[-1]
    starts = tuple(sorted(set(offsets) - {latest, earliest}))
    return Bounds(earliest=earliest, latest=latest, segment_starts=starts)


def _says_something(answer: AnyAnswer | None) -> bool:
    """Whether an answer to a fetch has bytes or an error."""
    assert answer is None or isinstance(answer, FetchAnswer07)
    return answer is not None and bool(answer.error or len(answer.message_set))


def _not_empty(answer: AnyAnswer) -> None:
    """Refuse an empty answer, so that the request is sent again.

    The bytes were there when the slice was planned. Their absence may pass, because a broker shows messages only once
    they are flushed; or the log was truncated.
    """
    if not _says_something(answer):
        raise LogShort("the broker's log ends before the planned range does: it was truncated")
