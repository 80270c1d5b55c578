"""Reads a range of one partition of a 0.7 broker.

Exactly the bytes `[start, stop)` are read. A short answer does not mean the end of the log: a fetch never crosses the
end of a segment [kafka-0.7: Fetch].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import Corrupt, LogShort, TooLarge, Where, WireError, error_context
from kafka_io.model import MAX_OFFSET, Bounds, BrokerPartition
from kafka_io.reader.fetch_loop import FetchedChunk, Pending, read_pipelined
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.unreadable import UnreadableRange
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.layout import LARGEST_MAGIC, LENGTH_BYTES, MIN_LENGTH
from kafka_io.records.v07.decoder import decode_v07
from kafka_io.records.v07.message_set import first_length, whole_bytes
from kafka_io.v07.messages import (
    LATEST_TIME,
    MAX_OFFSETS,
    AnyAnswer,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    MultiFetchRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
)

_HEADER_BYTES = LENGTH_BYTES + MIN_LENGTH
MAX_SEGMENTS = MAX_OFFSETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition07:
    """One partition of `topic` on the broker that `connection` leads to."""

    connection: BrokerConnection07
    topic: str
    id: BrokerPartition
    cluster: str | None
    read_settings: ReadSettings

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
            # No log reaches 2^60 bytes, so a larger offset is an error of this partition alone (fault H01).
            if not all(0 <= offset <= MAX_OFFSET for offset in answer.offsets):
                raise Corrupt(f"the broker answered with offsets that are not valid: {list(answer.offsets[:5])}")
            return answer.offsets

    def fetch(self, offset: int, size: int) -> FetchRequest07:
        """The request for at most `size` bytes from `offset` on."""
        return FetchRequest07(self.topic, self.id.partition, offset, size)

    def read(
        self, start: int, stop: int, *, first: FetchAnswer07 | None = None, to_message: bool = False
    ) -> Iterator[DecodedBatch]:
        """All messages in `[start, stop)` as Arrow batches; the last batch's `next_offset` is `stop`.

        Args:
            start: the offset of a message.
            stop: the offset after a message; with `to_message` any offset before the end of the log.
            first: the answer to a fetch of the whole range, or of `fetch_bytes` at `start`, if there is one already
                (see `fetch_firsts`).
            to_message: also give the rest of the message that contains the byte before `stop`. The last batch's
                `next_offset` is then the offset after this message.

        Raises:
            OffsetOutOfRange: the broker no longer holds the whole range.
            Corrupt: the bytes are not valid messages, or a message crosses `stop`.
            TooLarge: a message is above `max_fetch_bytes`, or decompresses to more than `max_decompressed_bytes`.
            LogShort: the log ends before `stop`.
            NetworkError: the broker could not be reached, also after all retries.
        """
        sizes, end = self.read_settings.sizes, _End(stop, to_message)
        with error_context(self.where):
            yield from read_pipelined(
                start,
                stop,
                sizes,
                fetch=partial(self._fetch, end),
                send_ahead=partial(self._send_ahead, end),
                first=self._chunk(end, start, min(sizes.fetch_bytes, stop - start), first),
            )

    def unreadable(self, start: int, stop: int) -> UnreadableRange:
        """The unreadable part from `start`, where `read` cannot decode a message. It ends at `stop` or earlier.

        Offsets are bytes, so nothing but the length of the damaged message says where the next one starts. If no valid
        message starts there, the range ends at the next segment, because every segment starts with a message.

        Raises:
            KafkaIOError: the broker cannot be asked.
        """
        with error_context(self.where):
            header = self._bytes(start, min(stop - start, _HEADER_BYTES))
            length, max_bytes = first_length(header) or 0, self.read_settings.sizes.max_fetch_bytes
            if length <= max_bytes and self._starts_message(start, stop):
                return UnreadableRange(start=start, stop=start)
            next_offset = start + length
            is_end = next_offset == stop or (start < next_offset < stop and self._starts_message(next_offset, stop))
            # The length may be the damaged part (fault N03). Nothing but the start of a segment is then sure to be the
            # start of a message.
            if not is_end:
                starts = self.bounds().segment_starts
                next_offset = min((offset for offset in starts if start < offset < stop), default=stop)
            size = next_offset - start
            data = self._bytes(start, size) if size <= max_bytes else b""
            return UnreadableRange(start=start, stop=next_offset, data=data)

    def _starts_message(self, offset: int, stop: int) -> bool:
        """Whether a valid message is at `offset`. If it is too large to be fetched, only its header is checked."""
        header = self._bytes(offset, min(stop - offset, _HEADER_BYTES))
        length = first_length(header) or 0
        if not _HEADER_BYTES <= length <= stop - offset or header[LENGTH_BYTES] > LARGEST_MAGIC:
            return False
        if length > self.read_settings.sizes.max_fetch_bytes:
            return True
        try:
            for _ in decode_v07(self._bytes(offset, length), base=offset, limits=self.read_settings.limits):
                pass
        except WireError:
            return False
        return True

    def _bytes(self, offset: int, size: int) -> bytes:
        answer = self.connection.request(self.fetch(offset, size), accepted=_not_empty)
        assert isinstance(answer, FetchAnswer07)
        ErrorCode07.check(answer.error, self.where.at_offset(offset))
        return bytes(answer.message_set)

    def _fetch(self, end: "_End", offset: int, size: int) -> FetchedChunk:
        size = end.fetch_size(offset, size)
        with error_context(self.where.at_offset(offset)):
            answer = self.connection.request(self.fetch(offset, size), accepted=_not_empty)
            chunk = self._chunk(end, offset, size, answer)
        assert chunk is not None
        return chunk

    def _send_ahead(self, end: "_End", offset: int, size: int) -> Pending:
        size = end.fetch_size(offset, size)
        pending = self.connection.request_ahead(self.fetch(offset, size))
        return lambda: self._chunk(end, offset, size, pending())

    def _chunk(self, end: "_End", offset: int, size: int, answer: AnyAnswer | None) -> FetchedChunk | None:
        """The messages before the end of the range in the answer to a fetch; None for no answer or an empty one."""
        if not _has_content(answer):
            return None
        assert isinstance(answer, FetchAnswer07)
        where = self.where.at_offset(offset)
        ErrorCode07.check(answer.error, where)
        data = end.without_more(memoryview(answer.message_set), offset, self.where)
        # A message that does not fit into the answer is fetched again with more bytes. If the answer is shorter than
        # requested, or the message would end after the range, more bytes cannot help.
        whole = whole_bytes(data, base=offset, where=self.where)
        # If even the length is cut off, all that is known is that one byte more is needed. The loop doubles the size.
        needed_bytes = first_length(data) or len(data) + 1
        if not whole and (len(answer.message_set) < size or end.is_before(offset + needed_bytes)):
            raise Corrupt(f"a message of {needed_bytes} bytes runs past the end of the log or slice", where)
        return FetchedChunk(
            next_offset=offset + whole,
            needed_bytes=needed_bytes,
            batches=decode_v07(data[:whole], base=offset, limits=self.read_settings.limits, where=self.where),
        )


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a read: `stop`, or with `to_message` the end of the message that contains the byte before `stop`."""

    stop: int
    to_message: bool

    def fetch_size(self, offset: int, size: int) -> int:
        """The bytes to ask for at an offset. The end of a message is known only when the message is there."""
        return size if self.to_message else min(size, self.stop - offset)

    def is_before(self, offset: int) -> bool:
        """Whether no message of the range can end at the offset."""
        return not self.to_message and offset > self.stop

    def without_more(self, data: memoryview, offset: int, where: Where) -> memoryview:
        """The bytes at `offset` without those of messages after the end."""
        inside = data[: self.stop - offset]
        if not self.to_message:
            return inside
        last = whole_bytes(inside, base=offset, where=where)  # where the last message begins
        if last == self.stop - offset:
            return inside
        length = first_length(data[last:]) or len(data)
        return data[: last + max(length, _HEADER_BYTES)]


def fetch_firsts(
    connection: BrokerConnection07, fetches: Sequence[tuple[Partition07, int, int]]
) -> list[FetchAnswer07]:
    """The first bytes of many small ranges in one MULTIFETCH.

    `Partition07.read(first=...)` takes the answers, and raises the errors that they contain.

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
    # A full answer may leave out the oldest segments, and with them the earliest offset.
    if len(offsets) == MAX_SEGMENTS:
        raise TooLarge(f"the log has {MAX_SEGMENTS} segments or more")
    latest, earliest = offsets[0], offsets[-1]
    starts = tuple(sorted(set(offsets) - {latest, earliest}))
    return Bounds(earliest=earliest, latest=latest, segment_starts=starts)


def _has_content(answer: AnyAnswer | None) -> bool:
    """Whether an answer to a fetch has bytes or an error."""
    assert answer is None or isinstance(answer, FetchAnswer07)
    return answer is not None and bool(answer.error or len(answer.message_set))


def _not_empty(answer: AnyAnswer) -> None:
    """Refuse an empty answer, so that the request is sent again.

    The broker had these bytes when the slice was planned. A broker that has just started shows messages only after they
    are flushed, so a later attempt can succeed. Otherwise the log was truncated.
    """
    if not _has_content(answer):
        raise LogShort("the broker's log ends before the planned range does: it was truncated")
