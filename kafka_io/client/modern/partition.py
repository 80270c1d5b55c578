"""Bounded reads of one partition from 0.8 on.

A slice `[start, stop)` is read to its end and never past it: record offsets are cut anywhere, though a fetch returns
whole batches. The next fetch is sent as soon as the headers of the last answer are known, so the broker works while its
records are decoded. A leader that moves is followed, and the read goes on at the offset it had reached. A replica near
by is read from where the leader names one (KIP-392).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafka_io.client.link import Ahead
from kafka_io.client.modern.aborted import aborted_ranges
from kafka_io.client.modern.brokers import LEADER, Brokers, Leader, topic_id_text
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.reading import Reading, Span
from kafka_io.compression import Bytes
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import (
    BrokerError,
    Corrupt,
    KafkaIOError,
    LeaderMoved,
    LogShort,
    NetworkError,
    TooLarge,
    TopicReplaced,
    Where,
    placing,
)
from kafka_io.messages.fetch import (
    BY_ID_SINCE,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka_io.messages.list_offsets import READ_COMMITTED, READ_UNCOMMITTED
from kafka_io.records.columns import Decoded
from kafka_io.records.entries import Asked
from kafka_io.records.extent import extent_of, first_entry_bytes
from kafka_io.records.logs import Decoder
from kafka_io.records.schema import COLUMNS
from kafka_io.records.transactions import AbortedRange
from kafka_io.wire.types import NULL_UUID

_TOPIC_ID_LETTERS = 22
_MAX_WAIT_MS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """The entries of one answer, and the offset behind those that are whole."""

    data: Bytes
    asked: Asked
    after: int
    aborted: tuple[AbortedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernPartition:
    """The partition of `span`, on whichever of `brokers` leads it."""

    brokers: Brokers
    span: Span
    reading: Reading

    @property
    def where(self) -> Where:
        """The partition's place, for errors."""
        return Where(topic=self.span.topic, partition=self.span.id.partition).within(self.brokers.where)

    def read(self, columns: Sequence[str] = COLUMNS) -> Iterator[Decoded]:
        """Everything in the span as Arrow batches of `columns`; the last one's `next_offset` is its end.

        Raises:
            OffsetOutOfRange: the broker no longer holds it all.
            TopicReplaced: the topic was deleted and made anew since the span was planned.
            Corrupt: bytes that are no records.
            TooLarge: a batch above `max_fetch_bytes`, or one that decompresses past `max_decompressed_bytes`.
            LogShort: the log ends before the span does.
            NetworkError: no leader could be reached, also after all retries.
        """
        with placing(self.where):
            yield from self._read(columns)

    def _read(self, columns: Sequence[str]) -> Iterator[Decoded]:
        at, stop, size = self.span.start, self.span.stop, self.reading.sizes.fetch_bytes
        decoder = Decoder(columns, limits=self.reading.limits, where=self.where)
        ahead: Ahead[FetchResponse] | None = None
        while at < stop:
            piece = self._usable(ahead, at) or self._ask(at, size)
            if piece.after == at:
                size = self._larger_size(piece.data, size, self.where.at(at))
                ahead = None
                continue
            ahead = self._ask_ahead(piece.after, size) if piece.after < stop else None
            yield from decoder.feed(piece.data, piece.asked, aborted=piece.aborted)
            at = piece.after
        yield from decoder.flush()

    def _ask(self, at: int, size: int) -> _Piece:
        """The answer of the partition's leader, of whom there may be another at each attempt."""

        def attempt(leader: Leader) -> _Piece:
            near = self.brokers.nearest(self.span.topic, self.span.id.partition)
            try:
                return self._piece(self._send(near or leader.link, leader, at, size), at)
            except KafkaIOError as error:
                if near is None:
                    raise
                self._read_near(LEADER)
                raise LogShort(f"the replica near by does not help: {error.reason}") from error

        with placing(self.where.at(at)):
            return self.brokers.on_leader(self.span.topic, self.span.id.partition, attempt)

    def _ask_ahead(self, at: int, size: int) -> Ahead[FetchResponse] | None:
        """What fails here is asked again, patiently, when its turn comes."""
        try:
            leader = self.brokers.leader(self.span.topic, self.span.id.partition)
            link = self.brokers.nearest(self.span.topic, self.span.id.partition) or leader.link
            return link.request_ahead(self._request(leader, at, size), most=self._most(leader))
        except (NetworkError, LeaderMoved):
            return None

    def _usable(self, ahead: Ahead[FetchResponse] | None, at: int) -> _Piece | None:
        """The answer to a request sent ahead, if it is one to go on with; else the question is asked once more."""
        answer = ahead.answer() if ahead else None
        if answer is None:
            return None
        try:
            return self._piece(answer, at)
        except (BrokerError, LogShort, Corrupt):
            return None

    def _request(self, leader: Leader, at: int, size: int) -> FetchRequest:
        self._check_life(leader.topic_id)
        fetch = FetchPartition(
            partition=self.span.id.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=at,
            partition_max_bytes=size,
        )
        topic = FetchTopic(topic=self.span.topic, topic_id=leader.topic_id, partitions=(fetch,))
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            max_bytes=size,
            isolation_level=READ_COMMITTED if self.reading.committed else READ_UNCOMMITTED,
            topics=(topic,),
            rack_id="" if self.brokers.leader_only(self.span.topic, self.span.id.partition) else self.reading.rack,
        )

    def _send(self, link: ModernLink, leader: Leader, at: int, size: int) -> FetchResponse:
        return link.request(self._request(leader, at, size), most=self._most(leader))

    def _read_near(self, node: int) -> None:
        self.brokers.read_near(self.span.topic, self.span.id.partition, node)

    @staticmethod
    def _most(leader: Leader) -> int | None:
        """From v13 on a topic is named by its id alone; a cluster may speak that and have none yet."""
        return BY_ID_SINCE - 1 if leader.topic_id == NULL_UUID else None

    def _check_life(self, topic_id: UUID) -> None:
        planned, found = self.span.incarnation, topic_id_text(topic_id)
        if len(planned) == _TOPIC_ID_LETTERS and found is not None and found != planned:
            raise TopicReplaced(f"the topic with id {planned} was planned, the brokers have one with id {found}")

    def _part(self, answer: FetchResponse) -> FetchPartitionResponse:
        """The one partition that was asked for.

        Raises:
            LogShort: there is none, as when a quota is used up (KIP-219), or another is to be asked: ask again.
            BrokerError: the broker refused.
        """
        check(answer.error_code, Where(), MODERN)
        for topic in answer.responses:
            for one in topic.partitions:
                if one.partition_index != self.span.id.partition:
                    raise Corrupt(f"an answer for partition {one.partition_index}")
                check(one.error_code, Where(), MODERN)
                if one.preferred_read_replica >= 0 and not one.records:
                    self._read_near(one.preferred_read_replica)
                    raise LogShort(f"the leader would have us read from broker {one.preferred_read_replica}")
                return one
        raise LogShort(f"the broker answered without records, and asks to wait {answer.throttle_time_ms} ms")

    def _piece(self, answer: FetchResponse, at: int) -> _Piece:
        """What of the span is in an answer to a fetch at `at`. Same errors as `_part`, and those of `extent_of`.

        Records were there when the span was planned; a leader that was just elected may not know them yet.
        """
        found = self._part(answer)
        if found.high_watermark < at:
            raise LogShort(f"the broker's log ends at {found.high_watermark}, before offset {at}")
        if not found.records:
            raise LogShort(f"the broker has no records from offset {at} on; its log ends at {found.high_watermark}")
        asked = Asked(at=at, stop=self.span.stop, end=found.high_watermark)
        after = extent_of(found.records, asked).next_offset
        return _Piece(data=found.records, asked=asked, after=after, aborted=aborted_ranges(found))

    def _larger_size(self, data: Bytes, size: int, place: Where) -> int:
        """The size to ask for next when `data` holds not one whole entry."""
        needed = first_entry_bytes(data) or len(data) + 1
        most = self.reading.sizes.max_fetch_bytes
        if needed > most:
            raise TooLarge(f"a batch of {needed} bytes is above max_fetch_bytes = {most}", place)
        if size >= most or len(data) >= needed:
            raise Corrupt(f"{len(data)} bytes that hold no whole batch", place)
        return min(most, max(needed, 2 * size))
