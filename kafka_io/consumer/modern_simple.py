"""Fetches of many partitions from 0.8 on: each leader gets one request for all partitions that it leads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.closing import Closing
from kafka_io.cluster.bounds import list_offsets
from kafka_io.consumer.fetched import FetchPosition, FetchResult, split_into_requests
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, BrokerBusy, KafkaIOError, LogShort, NetworkError, error_context, value_of
from kafka_io.messages.fetch import FetchPartitionResponse
from kafka_io.messages.list_offsets import LATEST_TIME, ListOffsetsRequest
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.reader.modern_fetch import aborted_ranges, fetch, fetch_request
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.decoder import decode
from kafka_io.records.header_scan import first_entry_bytes, scan_headers
from kafka_io.records.record_set import RequestedOffsets


@dataclass(eq=False)
class ModernPartitionFetcher(Closing):
    """Fetches from the partitions' leaders. One thread uses it.

    `connect` opens the cluster metadata. It is called again after no broker could be reached, because the brokers may
    have other addresses by then.
    """

    connect: Callable[[], ClusterMetadata]
    read_settings: ReadSettings
    _: KW_ONLY
    max_wait_ms: int
    connected: ClusterMetadata | None = None

    @property
    def _metadata(self) -> ClusterMetadata:
        if self.connected is None:
            self.connected = self.connect()
        return self.connected

    def multifetch(self, positions: Sequence[FetchPosition]) -> list[FetchResult | KafkaIOError]:
        """A result or an error for each position, in order."""
        results: list[FetchResult | KafkaIOError] = []
        for request in split_into_requests(positions, max_bytes=self.read_settings.sizes.max_fetch_bytes):
            by_partition = {position.topic_partition: position for position in request}
            try:
                answers = ask_leaders(self._metadata, by_partition, partial(self._fetch, by_partition))
            except KafkaIOError as error:
                answers = dict.fromkeys(by_partition, error)
            results.extend(self._result(position, answers[key]) for key, position in by_partition.items())
            if all(isinstance(answer, NetworkError) for answer in answers.values()):
                self.close()  # the next request connects again
        return results

    def _fetch(
        self,
        positions: Mapping[TopicPartition, FetchPosition],
        connection: ModernBrokerConnection,
        leaders: PartitionLeaders,
    ) -> PartitionAnswers[FetchPartitionResponse]:
        requested = {partition: (positions[partition].offset, positions[partition].max_bytes) for partition in leaders}
        committed = self.read_settings.committed
        request = fetch_request(leaders, requested, committed=committed, max_wait_ms=self.max_wait_ms)
        answers = fetch(connection, leaders, request)
        # A broker leaves partitions out when the client's quota is used up (KIP-219).
        left_out = BrokerBusy("the broker answered without this partition")
        checked = {
            key: ErrorCode.error_of(answer.error_code, NOWHERE, right="READ") or answer
            for key, answer in answers.items()
        }
        return {**dict.fromkeys(leaders, left_out), **checked}

    def _result(
        self, position: FetchPosition, answer: FetchPartitionResponse | KafkaIOError
    ) -> FetchResult | KafkaIOError:
        where = position.where
        if isinstance(answer, KafkaIOError):
            return answer.with_context(where)
        if answer.high_watermark < position.offset:  # a newly elected leader may not know the high watermark yet
            return LogShort(f"the broker's log ends at {answer.high_watermark}", where)
        data = memoryview(answer.records or b"")
        requested = RequestedOffsets(start=position.offset, high_watermark=answer.high_watermark)
        try:
            next_offset = scan_headers(data, requested, where=where).next_offset
        except KafkaIOError as error:
            return error
        has_no_whole_batch = next_offset == position.offset and len(data)
        return FetchResult(
            position=position,
            next_offset=next_offset,
            needed_bytes=max(first_entry_bytes(data) or 0, len(data) + 1) if has_no_whole_batch else 0,
            batches=partial(
                decode, data, requested, aborted=aborted_ranges(answer), limits=self.read_settings.limits, where=where
            ),
        )

    def offsets_before(self, topic: str, partition: BrokerPartition, time_ms: int, max_offsets: int) -> tuple[int, ...]:
        """Offsets from which to read what was written before a time; the newest first."""
        key = TopicPartition.of(topic, partition)

        def list_before(
            connection: ModernBrokerConnection, leaders: PartitionLeaders
        ) -> PartitionAnswers[tuple[int, ...]]:
            ask = partial(list_offsets, connection, leaders, committed=self.read_settings.committed)
            answers = ask({key: time_ms}, max_offsets)
            if not answers[key] and connection.versions.pick(ListOffsetsRequest.API):
                # From v1 on no offset means that all records are older than the time: the answer is the end.
                answers = ask({key: LATEST_TIME}, max_offsets)
            return answers

        with error_context(self._metadata.where):
            return value_of(ask_leaders(self._metadata, [key], list_before)[key])[:max_offsets]

    def close(self) -> None:
        """End all connections; safe to call again."""
        if self.connected is not None:
            self.connected.close()
            self.connected = None
