"""Reads planned ranges of partitions from 0.8 on.

Exactly the offsets `[start, stop)` are read. A fetch returns whole batches, so records before and after the range are
cut off. If the leader moves, the read follows it and continues at the offset that it had reached. If the leader names a
replica in the client's rack, the partition is read from there (KIP-392).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from struct import Struct
from typing import TypeVar
from uuid import UUID

from kafka_io.brokers.cluster_metadata import LEADER, ClusterMetadata, Leader, topic_id_text
from kafka_io.closing import Closing
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import (
    NOWHERE,
    BrokerError,
    Corrupt,
    KafkaIOError,
    LeaderChanged,
    LeaderMoved,
    LogShort,
    NetworkError,
    TooLarge,
    TopicReplaced,
    Where,
    WireError,
    error_context,
)
from kafka_io.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse
from kafka_io.model import Broker, TopicPartition
from kafka_io.reader.fetch_loop import FetchedChunk, Pending, read_pipelined
from kafka_io.reader.first_fetches import FirstAnswer, FirstFetches
from kafka_io.reader.modern_fetch import MAX_WAIT_MS, aborted_ranges, fetch_request, max_fetch_version
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.unreadable import (
    NO_ENTRY,
    FirstEntry,
    UnreadableRange,
    is_refusal,
    unreadable_range,
)
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits
from kafka_io.records.decoder import Decoder, decode
from kafka_io.records.gaps import ABORTED
from kafka_io.records.header_scan import HeaderScan, first_entry_bytes, scan_headers
from kafka_io.records.layout import (
    BATCH_BYTES,
    BATCH_LAST_DELTA_AT,
    BATCH_MAGIC,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
)
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.schema import COLUMNS

T = TypeVar("T")

_FIRST_ENTRY_BYTES = 64 * 1024
_INT64, _INT32 = Struct(">q"), Struct(">i")


class ModernPartition:
    """The partition of a planned range, on whichever broker leads it."""

    def __init__(self, metadata: ClusterMetadata, planned: PlannedRange, read_settings: ReadSettings) -> None:
        self._metadata = metadata
        self._planned = planned
        self._read_settings = read_settings
        self._topic, self._number = planned.topic, planned.offsets.partition.partition
        self._where = Where(topic=self._topic, partition=self._number).within(metadata.where)
        self._decoder = Decoder(COLUMNS, limits=read_settings.limits, where=self._where)
        # The number of records that were read, according to the headers of the answers: the least and the largest.
        self._min_records = self._max_records = 0

    def read(self, first_answer: FirstAnswer = lambda: None) -> Iterator[DecodedBatch]:
        """All records of the range as Arrow batches; the last batch's `next_offset` is the range's end.

        Args:
            first_answer: returns the answer to a fetch at the start of the range, if there is one; see FirstFetches.

        Raises:
            OffsetOutOfRange: the broker no longer holds the whole range.
            TopicReplaced: the topic was deleted and created again since the range was planned.
            Corrupt: the bytes are not valid records, or the decoder gave more or fewer rows than the headers count.
            TooLarge: a batch is above `max_fetch_bytes`, or decompresses to more than `max_decompressed_bytes`.
            LogShort: the log ends before the range does.
            LeaderChanged: the range has records of a later leader than the one of the plan.
            NetworkError: no leader could be reached, also after all retries.

        An error about records has the first offset that cannot be read; everything before it can.
        """
        offsets = self._planned.offsets
        rows = aborted = 0
        with error_context(self._where):
            batches = read_pipelined(
                offsets.start,
                offsets.stop,
                self._read_settings.sizes,
                fetch=self._fetch,
                send_ahead=self._send_ahead,
                first=self._if_usable(partial(self._first_chunk, first_answer)),
            )
            for decoded in chain(batches, self._decoder.flush()):
                rows += decoded.batch.num_rows
                aborted += decoded.gaps.get(ABORTED, 0)
                yield decoded
                del decoded  # the caller may have released the batch, and then the next one uses its memory
            # Gaps are counted by the same decoder as rows. A decoder that loses rows would call them gaps (fault P03).
            self._check_count(rows, aborted)

    def _check_count(self, rows: int, aborted: int) -> None:
        """Check that the headers of all answers count as many records as the decoder has given.

        The headers are counted without the decoder. Of its results, only the aborted offsets are subtracted.

        Raises:
            Corrupt: the numbers differ.
        """
        if not self._min_records - aborted <= rows <= self._max_records:
            raise Corrupt(
                f"{rows} records were decoded from {self._planned.offsets}, but the headers of its batches count "
                f"{self._max_records} records, of which transactions aborted {aborted}"
            )

    def unreadable(self, offset: int) -> UnreadableRange:
        """The unreadable part of the range that begins at `offset`; see `Reader.unreadable`."""
        self._metadata.prefer_replica(self._topic, self._number, LEADER)  # another replica's copy may be damaged
        with error_context(self._where):
            return unreadable_range(offset, self._planned.offsets.stop, self._first_entry)

    def _first_entry(self, offset: int) -> FirstEntry:
        """The first entry of the leader's answer to a fetch at `offset`, which is as large as the entry needs."""
        sizes = self._read_settings.sizes
        size, entry = min(_FIRST_ENTRY_BYTES, sizes.fetch_bytes), None
        while entry is None:
            answer = self._leader_records(offset, size)
            entry = _parsed_entry(answer, offset, self._read_settings.limits) if answer else NO_ENTRY
            if entry is None:
                try:
                    size = sizes.next_larger(size, first_entry_bytes(answer) or 0)
                except WireError:  # the entry is too large, or its length is wrong
                    entry = _claimed_entry(answer)
        return entry

    def _leader_records(self, offset: int, size: int) -> bytes:
        """The leader's records from `offset` on; none if it cannot give any, because its log is damaged there."""

        def attempt(leader: Leader) -> bytes:
            request, max_version = self._request(leader, offset, size), max_fetch_version([leader])
            try:
                answer = self._only_partition(leader.connection.request(request, max_version=max_version))
            except (WireError, BrokerError) as error:
                # The broker cannot read its own log here (fault B15), or its answer cannot be decoded. Any other error,
                # such as a lost connection, says nothing about the records.
                if not is_refusal(error):
                    raise
                return b""
            return bytes(answer.records or b"")

        with error_context(self._where.at_offset(offset)):
            return self._on_leader(attempt)

    def _on_leader(self, attempt: Callable[[Leader], T]) -> T:
        return self._metadata.on_leader(self._topic, self._number, attempt, epoch=self._planned.epoch)

    def _fetch(self, offset: int, size: int) -> FetchedChunk:
        """The answer of the partition's leader, which may be another broker at each attempt."""

        def attempt(leader: Leader) -> FetchedChunk:
            replica = self._metadata.preferred_replica(self._topic, self._number)
            try:
                request, connection = self._request(leader, offset, size), replica or leader.connection
                return self._fetched(connection.request(request, max_version=max_fetch_version([leader])), offset)
            except TooLarge as error:  # a broker returns the first batch also if it is larger than the request allows
                max_bytes = self._read_settings.sizes.max_fetch_bytes
                raise TooLarge(f"a batch is above max_fetch_bytes = {max_bytes}: {error.reason}", error.where) from None
            except KafkaIOError as error:
                if replica is None:
                    raise
                # A replica may lag behind the leader or have a truncated log, so its errors say nothing about the
                # partition. LogShort is retriable: the next attempt asks the leader.
                self._metadata.prefer_replica(self._topic, self._number, LEADER)
                raise LogShort(f"the replica in the client's rack cannot be read: {error.reason}") from error

        with error_context(self._where.at_offset(offset)):
            return self._on_leader(attempt)

    def _send_ahead(self, offset: int, size: int) -> Pending | None:
        try:
            connection, leader = self._metadata.read_from(self._topic, self._number, epoch=self._planned.epoch)
            request = connection.versioned(self._request(leader, offset, size), max_version=max_fetch_version([leader]))
            pending = connection.request_ahead(request)
        except (NetworkError, LeaderMoved):
            return None

        def answer() -> FetchedChunk | None:
            response = pending()
            return None if response is None else self._fetched(response, offset)

        return lambda: self._if_usable(answer)

    def _first_chunk(self, first_answer: FirstAnswer) -> FetchedChunk | None:
        start, answer = self._planned.offsets.start, first_answer()
        chunk = None if answer is None else self._chunk(answer, start)
        # An answer for many ranges may end inside the first batch of this one, which is then not too large for a fetch.
        return chunk if chunk is not None and chunk.next_offset > start else None

    def _if_usable(self, answer: Pending) -> FetchedChunk | None:
        """The answer to a fetch that was sent before it was needed; None if it has an error.

        `_fetch` then sends the request again, and raises the error if it occurs again.
        """
        try:
            return answer()
        except (BrokerError, LogShort, Corrupt, TooLarge):
            return None

    def _request(self, leader: Leader, offset: int, size: int) -> FetchRequest:
        self._check_incarnation(leader.topic_id)
        partition = TopicPartition(self._topic, self._number)
        return fetch_request(
            {partition: leader},
            {partition: (offset, size)},
            committed=self._read_settings.committed,
            max_wait_ms=MAX_WAIT_MS,
            # Without a rack the leader does not send the client to a replica again that has just failed.
            rack="" if self._metadata.leader_only(self._topic, self._number) else self._read_settings.rack,
        )

    def _check_incarnation(self, topic_id: UUID) -> None:
        # Below Fetch v13 a request has only the name of the topic, and brokers answer for whatever topic has it now. So
        # the id that the metadata show is compared before each request (faults B05, B06).
        current = topic_id_text(topic_id)
        if not self._planned.is_for(current):
            raise TopicReplaced(
                f"the range was planned for the topic with id {self._planned.incarnation}, but the topic's id is "
                f"{current} now: the topic was deleted and created again"
            )

    def _only_partition(self, answer: FetchResponse) -> FetchPartitionResponse:
        """The one partition that was requested.

        Raises:
            LogShort: the answer is empty because a quota is used up (KIP-219), or names a replica to read from; the
                request must be sent again.
            BrokerError: the broker refused.
        """
        ErrorCode.check(answer.error_code, NOWHERE, right="READ")
        for topic in answer.responses:
            for partition in topic.partitions:
                ErrorCode.check(partition.error_code, NOWHERE, right="READ")
                # Records that are there already are used, whichever replica the leader names for the next fetch.
                if partition.preferred_read_replica >= 0 and not partition.records:
                    self._metadata.prefer_replica(self._topic, self._number, partition.preferred_read_replica)
                    raise LogShort(f"the leader asks to read from broker {partition.preferred_read_replica}")
                return partition
        raise LogShort(f"the broker answered without records, and asks to wait {answer.throttle_time_ms} ms")

    def _fetched(self, answer: FetchResponse, offset: int) -> FetchedChunk:
        """The batches in an answer to a fetch at `offset`. Raises what `_only_partition` and `scan_headers` raise.

        The records existed when the range was planned. If the log seems to end before them, a leader that was just
        elected may not know them yet: LogShort is retriable.
        """
        return self._chunk(self._only_partition(answer), offset)

    def _chunk(self, partition: FetchPartitionResponse, offset: int) -> FetchedChunk:
        end = partition.high_watermark
        # A leader that was just elected may not know the end of its log yet (faults B13, G14).
        if end < offset:
            raise LogShort(f"the broker's log ends at {end}, before offset {offset}")
        if not partition.records:
            raise LogShort(f"the broker has no records from offset {offset} on; its log ends at {end}")
        data = partition.records
        # A broker looks up the high watermark before it reads the log. So an answer can have records after it that may
        # still be truncated. They are not used: the fetch is repeated, and records that stay are corrupt (fault R07).
        requested = RequestedOffsets(start=offset, stop=self._planned.offsets.stop, high_watermark=end)
        scan = scan_headers(data, requested)
        return FetchedChunk(
            next_offset=scan.next_offset,
            needed_bytes=first_entry_bytes(data) or 0,
            batches=self._decoded(scan, self._decoder.feed(data, requested, aborted=aborted_ranges(partition))),
        )

    def _check_epoch(self, epoch: int) -> None:
        """Check that no record was written under a later leader than the one of the plan.

        A clean election keeps all records that the plan has seen. So a later epoch in the range shows that records were
        lost since then, and a commit under the epoch of the plan would be wrong (fault A03).

        Raises:
            LeaderChanged: a record was.
        """
        # Servers that only speak the protocol of Kafka may store other epochs than they report.
        newest = min(epoch, self._metadata.epoch_of(self._topic, self._number))
        if -1 < self._planned.epoch < newest:
            raise LeaderChanged(
                f"the range was planned for the leader with epoch {self._planned.epoch}, but has records of the leader "
                f"with epoch {newest}"
            )

    def _decoded(self, scan: HeaderScan, batches: Iterator[DecodedBatch]) -> Iterator[DecodedBatch]:
        """The batches of an answer. Its records are counted only here, because not every answer is decoded."""
        self._check_epoch(scan.max_epoch)
        self._min_records += scan.min_records
        self._max_records += scan.max_records
        yield from batches


class ModernReader(Closing):
    """Reads from the leaders that `metadata` knows; it closes the connections of `metadata`."""

    def __init__(self, metadata: ClusterMetadata, read_settings: ReadSettings) -> None:
        self._metadata = metadata
        self._read_settings = read_settings

    def read(self, planned_ranges: Iterable[PlannedRange]) -> Iterator[Iterator[DecodedBatch]]:
        """The batches of each planned range, in order. One request fetches the beginnings of many ranges."""
        ranges = list(planned_ranges)
        first_fetches = FirstFetches(self._metadata, ranges, self._read_settings)
        for number, planned in enumerate(ranges):
            partition = ModernPartition(self._metadata, planned, self._read_settings)
            yield partition.read(partial(first_fetches.take, number))

    def unreadable(self, planned: PlannedRange, offset: int) -> UnreadableRange:
        """The unreadable part of the range that begins at `offset`."""
        return ModernPartition(self._metadata, planned, self._read_settings).unreadable(offset)

    def serving(self, planned: PlannedRange) -> Broker | None:
        """The broker that the range is read from; None before it is read."""
        return self._metadata.serving(planned.topic, planned.offsets.partition.partition)

    def pause(self) -> None:
        """Release memory before a time without reads; connections stay open."""
        self._metadata.pause()

    def resume(self) -> None:
        """Close what the broker has closed during a pause."""
        self._metadata.resume()

    def close(self) -> None:
        """Close all connections; safe to call again."""
        self._metadata.close()


def _parsed_entry(data: bytes, offset: int, limits: DecodeLimits) -> FirstEntry | None:
    """The first entry of an answer to a fetch at `offset`, from 0.8 on; None if the answer does not hold all of it."""
    length = first_entry_bytes(data)
    if length is None or length > len(data):
        return None
    entry = _claimed_entry(data)
    try:
        for _ in decode(entry.data, RequestedOffsets(start=offset), limits=limits):
            pass
    except WireError:
        return entry
    return replace(entry, readable=True)


def _claimed_entry(data: bytes) -> FirstEntry:
    """The first entry as its header describes it."""
    length = first_entry_bytes(data)
    entry = data[:length] if length is not None and length > 0 else data
    if len(entry) < BATCH_BYTES and (len(entry) <= MAGIC_AT or entry[MAGIC_AT] == BATCH_MAGIC):
        return FirstEntry(readable=False, data=entry)
    (base,) = _INT64.unpack_from(entry)
    if entry[MAGIC_AT] == BATCH_MAGIC:
        (delta,) = _INT32.unpack_from(entry, BATCH_LAST_DELTA_AT)
        return FirstEntry(readable=False, base=base, next_offset=base + delta + 1, data=entry)
    is_compressed = entry[MESSAGE_ATTRIBUTES_AT : MESSAGE_ATTRIBUTES_AT + 1] != b"\0"
    # A compressed message has the offset of the last message inside it.
    return FirstEntry(readable=False, base=-1 if is_compressed else base, next_offset=base + 1, data=entry)
