"""Reads a range of one partition from 0.8 on.

Exactly the offsets `[start, stop)` are read. A fetch returns whole batches, so records before and after the range are
cut off. If the leader moves, the read follows it and continues at the offset that it had reached. If the leader names a
replica in the client's rack, the partition is read from there (KIP-392).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from kafka_io.brokers.cluster_metadata import LEADER, ClusterMetadata, Leader, topic_id_text
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.compression import BytesLike
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import (
    NOWHERE,
    BrokerError,
    Corrupt,
    KafkaIOError,
    LeaderMoved,
    LogShort,
    NetworkError,
    TopicReplaced,
    Where,
    error_context,
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
from kafka_io.reader.fetch_loop import Pending, read_pipelined
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.decoder import Decoder
from kafka_io.records.header_scan import first_entry_bytes, scan_headers
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.schema import COLUMNS
from kafka_io.records.transactions import AbortedRange
from kafka_io.wire.types import NULL_UUID

_TOPIC_ID_LETTERS = 22
_MAX_WAIT_MS = 500


def aborted_ranges(answer: FetchPartitionResponse) -> tuple[AbortedRange, ...]:
    """The transactions that a read-committed fetch leaves out (KIP-98); none before v4 of Fetch."""
    return tuple(
        (transaction.producer_id, transaction.first_offset) for transaction in answer.aborted_transactions or ()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FetchedBatches:
    """The bytes of one answer; `next_offset` is the one after its last whole batch."""

    data: BytesLike
    requested: RequestedOffsets
    next_offset: int
    aborted: tuple[AbortedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernPartition:
    """The partition of a planned range, on whichever broker leads it."""

    metadata: ClusterMetadata
    planned: PlannedRange
    read_settings: ReadSettings

    @property
    def number(self) -> int:
        """The partition's number."""
        return self.planned.offsets.partition.partition

    @property
    def where(self) -> Where:
        """The partition as the context of errors."""
        return Where(topic=self.planned.topic, partition=self.number).within(self.metadata.where)

    def read(self, columns: Sequence[str] = COLUMNS) -> Iterator[DecodedBatch]:
        """All records of the range as Arrow batches of `columns`; the last batch's `next_offset` is the range's end.

        Raises:
            OffsetOutOfRange: the broker no longer holds the whole range.
            TopicReplaced: the topic was deleted and created again since the range was planned.
            Corrupt: the bytes are not valid records.
            TooLarge: a batch is above `max_fetch_bytes`, or decompresses to more than `max_decompressed_bytes`.
            LogShort: the log ends before the range does.
            NetworkError: no leader could be reached, also after all retries.
        """
        offsets = self.planned.offsets
        decoder = Decoder(columns, limits=self.read_settings.limits, where=self.where)
        with error_context(self.where):
            yield from read_pipelined(
                offsets.start,
                offsets.stop,
                self.read_settings.sizes.fetch_bytes,
                fetch=self._fetch,
                send_ahead=self._send_ahead,
                decode=lambda fetched: decoder.feed(fetched.data, fetched.requested, aborted=fetched.aborted),
                larger_size=self._larger_size,
            )
            yield from decoder.flush()

    def _fetch(self, offset: int, size: int) -> _FetchedBatches:
        """The answer of the partition's leader, which may be another broker at each attempt."""

        def attempt(leader: Leader) -> _FetchedBatches:
            replica = self.metadata.nearest(self.planned.topic, self.number)
            try:
                request = self._request(leader, offset, size)
                connection = replica or leader.connection
                return self._fetched(connection.request(request, max_version=_max_version(leader)), offset)
            except KafkaIOError as error:
                if replica is None:
                    raise
                self._read_from(LEADER)
                raise LogShort(f"the replica in the client's rack cannot be read: {error.reason}") from error

        with error_context(self.where.at_offset(offset)):
            return self.metadata.on_leader(self.planned.topic, self.number, attempt)

    def _send_ahead(self, offset: int, size: int) -> Pending[_FetchedBatches] | None:
        try:
            leader = self.metadata.leader(self.planned.topic, self.number)
            connection = self._connection(leader)
            request = connection.versioned(self._request(leader, offset, size), max_version=_max_version(leader))
            pending = connection.request_ahead(request)
        except (NetworkError, LeaderMoved):
            return None

        def answer() -> _FetchedBatches | None:
            response = pending.answer()
            try:
                return None if response is None else self._fetched(response, offset)
            except (BrokerError, LogShort, Corrupt):
                return None  # `_fetch` sends the request again, and raises what is still wrong then

        return answer

    def _connection(self, leader: Leader) -> ModernBrokerConnection:
        return self.metadata.nearest(self.planned.topic, self.number) or leader.connection

    def _request(self, leader: Leader, offset: int, size: int) -> FetchRequest:
        self._check_incarnation(leader.topic_id)
        partition = FetchPartition(
            partition=self.number,
            current_leader_epoch=leader.epoch,
            fetch_offset=offset,
            partition_max_bytes=size,
        )
        topic = FetchTopic(topic=self.planned.topic, topic_id=leader.topic_id, partitions=(partition,))
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            max_bytes=size,
            isolation_level=READ_COMMITTED if self.read_settings.committed else READ_UNCOMMITTED,
            topics=(topic,),
            # Without a rack the leader does not send the client to a replica again that has just failed.
            rack_id="" if self.metadata.leader_only(self.planned.topic, self.number) else self.read_settings.rack,
        )

    def _read_from(self, broker_id: int) -> None:
        self.metadata.read_near(self.planned.topic, self.number, broker_id)

    def _check_incarnation(self, topic_id: UUID) -> None:
        planned, current = self.planned.incarnation, topic_id_text(topic_id)
        if len(planned) == _TOPIC_ID_LETTERS and current is not None and current != planned:
            raise TopicReplaced(
                f"the range was planned for the topic with id {planned}, but the topic's id is {current} now: "
                "the topic was deleted and created again"
            )

    def _only_partition(self, answer: FetchResponse) -> FetchPartitionResponse:
        """The one partition that was requested.

        Raises:
            LogShort: the answer is empty because a quota is used up (KIP-219), or names a replica to read from; the
                request must be sent again.
            BrokerError: the broker refused.
        """
        ErrorCode.check(answer.error_code, NOWHERE)
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.partition_index != self.number:
                    raise Corrupt(f"the broker answered for partition {partition.partition_index}, which is another")
                ErrorCode.check(partition.error_code, NOWHERE)
                if partition.preferred_read_replica >= 0 and not partition.records:
                    self._read_from(partition.preferred_read_replica)
                    raise LogShort(f"the leader asks to read from broker {partition.preferred_read_replica}")
                return partition
        raise LogShort(f"the broker answered without records, and asks to wait {answer.throttle_time_ms} ms")

    def _fetched(self, answer: FetchResponse, offset: int) -> _FetchedBatches:
        """The batches in an answer to a fetch at `offset`. Raises what `_only_partition` and `scan_headers` raise.

        The records existed when the range was planned. If the log seems to end before them, a leader that was just
        elected may not know them yet: LogShort is retriable.
        """
        partition = self._only_partition(answer)
        end = partition.high_watermark
        if end < offset:
            raise LogShort(f"the broker's log ends at {end}, before offset {offset}")
        if not partition.records:
            raise LogShort(f"the broker has no records from offset {offset} on; its log ends at {end}")
        requested = RequestedOffsets(start=offset, stop=self.planned.offsets.stop, high_watermark=end)
        return _FetchedBatches(
            data=partition.records,
            requested=requested,
            next_offset=scan_headers(partition.records, requested).next_offset,
            aborted=aborted_ranges(partition),
        )

    def _larger_size(self, fetched: _FetchedBatches, size: int) -> int:
        where = self.where.at_offset(fetched.requested.start)
        needed = first_entry_bytes(fetched.data) or len(fetched.data) + 1
        if len(fetched.data) >= needed:
            raise Corrupt(f"{len(fetched.data)} bytes contain no whole batch", where)
        return self.read_settings.sizes.next_larger(size, needed, where)


def _max_version(leader: Leader) -> int | None:
    """The newest usable version: from v13 on Fetch names a topic by id alone, and the topic may have no id yet."""
    return BY_ID_SINCE - 1 if leader.topic_id == NULL_UUID else None
