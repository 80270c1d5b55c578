"""When the records at given offsets were written: the timestamps of records from 0.10 on, those of segments before.

No broker can be asked for the timestamp of a record, so the batch that contains the record is fetched and decoded. Many
partitions share a request. If the batch of a partition does not fit into the answer, it is fetched again with more
room.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.bounds import list_offsets
from kafka_io.cluster.segment_times import segment_times
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, KafkaIOError, PastEnd
from kafka_io.messages.fetch import FetchPartitionResponse, FetchRequest
from kafka_io.model import TopicPartition
from kafka_io.reader.modern_fetch import aborted_ranges, fetch, fetch_request
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets

_TIMESTAMPS_SINCE = 2  # version of Fetch that returns message format 1
_FIRST_BYTES, _GROWTH, _ROUNDS = 16 * 1024, 4, 6  # 16 KiB, then up to 16 MiB


def record_times(
    metadata: ClusterMetadata, offsets: Mapping[TopicPartition, int], read_settings: ReadSettings, *, now_ms: int
) -> PartitionAnswers[int | None]:
    """The time (ms) of the first record at or after each offset; see `Cluster.times_at`."""

    def ask(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[int | None]:
        pending = {partition: offsets[partition] for partition in leaders}
        if connection.versions.pick(FetchRequest.API) < _TIMESTAMPS_SINCE:
            return segment_times(pending, partial(list_offsets, connection, leaders), now_ms=now_ms)
        return _TimestampSearch(connection, leaders, read_settings, pending).run()

    return ask_leaders(metadata, offsets, ask)


@dataclass(slots=True)
class _TimestampSearch:
    """The search in the partitions of one leader. `pending` are those without an answer, with the offset reached.

    A partition that six fetches of growing size do not settle is left unknown: it has a batch above 16 MiB, or that
    much of its log contains only aborted records and markers.
    """

    connection: ModernBrokerConnection
    leaders: PartitionLeaders
    read_settings: ReadSettings
    pending: dict[TopicPartition, int]
    answers: PartitionAnswers[int | None] = field(default_factory=dict)

    def run(self) -> PartitionAnswers[int | None]:
        """The time of each record; None if there is no record, or it has no timestamp."""
        sizes = self.read_settings.sizes
        size = _FIRST_BYTES
        for _ in range(_ROUNDS):
            partitions = tuple(self.pending)
            count = max(1, sizes.fetch_bytes // size)  # so many fit into one request
            for first in range(0, len(partitions), count):
                self._fetch(partitions[first : first + count], size)
            size = min(_GROWTH * size, sizes.max_fetch_bytes)
        return {**dict.fromkeys(self.pending), **self.answers}

    def _fetch(self, partitions: tuple[TopicPartition, ...], size: int) -> None:
        leaders = {partition: self.leaders[partition] for partition in partitions}
        positions = {partition: (self.pending[partition], size) for partition in partitions}
        request = fetch_request(leaders, positions, committed=self.read_settings.committed, max_wait_ms=0)
        answers = fetch(self.connection, leaders, replace(request, min_bytes=0))
        for partition in leaders.keys() & answers.keys():
            try:
                self._search(partition, answers[partition])
            except PastEnd as error:
                self.answers[partition] = error  # the next answer shows whether an offset is wrong
            except KafkaIOError as error:
                self._settle(partition, error)

    def _search(self, partition: TopicPartition, answer: FetchPartitionResponse) -> None:
        """Settle the partition if the answer contains the record, or the log ends before it."""
        ErrorCode.check(answer.error_code, NOWHERE)
        end = answer.high_watermark
        if self.read_settings.committed and answer.last_stable_offset >= 0:  # brokers send it from v4 on
            end = min(end, answer.last_stable_offset)
        if self.pending[partition] < end:
            requested = RequestedOffsets(start=self.pending[partition], high_watermark=answer.high_watermark)
            aborted, limits = aborted_ranges(answer), self.read_settings.limits
            data = answer.records or b""
            for decoded in decode(data, requested, columns=("timestamp",), aborted=aborted, limits=limits):
                if decoded.batch.num_rows:
                    time_ms = decoded.batch.column("timestamp").cast(pa.int64())[0].as_py()
                    self._settle(partition, time_ms if time_ms >= 0 else None)
                    return
                self.pending[partition] = decoded.next_offset
        if self.pending[partition] >= end:
            self._settle(partition, None)
        else:
            self.answers.pop(partition, None)  # this answer was valid, so an earlier PastEnd is outdated

    def _settle(self, partition: TopicPartition, answer: int | KafkaIOError | None) -> None:
        self.answers[partition] = answer
        del self.pending[partition]
