"""The first record at or after given offsets of many partitions, from 0.8 on.

No broker can be asked for a single record, so the batch that contains it is fetched and decoded. Many partitions share
a request. If the batch of a partition does not fit into the answer, it is fetched again with more room. The last
message before a position is read in the same way, to see whether the log is still the one that was read before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, KafkaIOError, PastEnd
from kafka_io.messages.fetch import FetchPartitionResponse
from kafka_io.model import TopicPartition
from kafka_io.reader.modern_fetch import aborted_ranges, fetch, fetch_request
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.last_message import LastMessage

T = TypeVar("T")

_MESSAGE_COLUMNS = ("offset", "timestamp", "key", "value")
_FIRST_BYTES, _GROWTH, _ROUNDS = 16 * 1024, 4, 6  # 16 KiB, then up to 16 MiB


@dataclass(slots=True)
class FirstRecordSearch(Generic[T]):
    """The search in the partitions of one leader. `pending` are those without an answer, with the offset reached.

    `to_answer` turns the rows that begin with the record into the answer. Each partition gets up to six fetches of
    growing size. If they do not reach a record, the answer is unknown: the partition has a batch above 16 MiB, or so
    much of its log contains only aborted records and markers.
    """

    connection: ModernBrokerConnection
    leaders: PartitionLeaders
    read_settings: ReadSettings
    pending: dict[TopicPartition, int]
    columns: Sequence[str]
    to_answer: Callable[[pa.RecordBatch], T]
    answers: PartitionAnswers[T | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A batch of rows ends after the first entry with rows, so what is behind the record is not decoded.
        limits = replace(self.read_settings.limits, batch_bytes=1)
        self.read_settings = replace(self.read_settings, limits=limits)

    def run(self) -> PartitionAnswers[T | None]:
        """The answer for each record; None if there is no record, or it is left unknown."""
        sizes = self.read_settings.sizes
        size = _FIRST_BYTES
        for _ in range(_ROUNDS):
            partitions = tuple(self.pending)
            count = max(1, sizes.fetch_bytes // size)  # so many fit into one request
            largest = [self._fetch(partitions[at : at + count], size) for at in range(0, len(partitions), count)]
            # The first batch of an answer is whole, also if it has more bytes. Then the others likely have as many.
            likely = 1 << max(largest, default=0).bit_length()
            size = min(max(_GROWTH * size, likely), sizes.max_fetch_bytes)
        return {**dict.fromkeys(self.pending), **self.answers}

    def _fetch(self, partitions: tuple[TopicPartition, ...], size: int) -> int:
        """Fetch from these partitions, and settle those whose record is there; returns the size of the most records."""
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
        return max((len(answer.records or b"") for answer in answers.values()), default=0)

    def _search(self, partition: TopicPartition, answer: FetchPartitionResponse) -> None:
        """Settle the partition if the answer contains the record, or the log ends before it."""
        ErrorCode.check(answer.error_code, NOWHERE, right="READ")
        end = answer.high_watermark
        if self.read_settings.committed and answer.last_stable_offset >= 0:  # brokers send it from v4 on
            end = min(end, answer.last_stable_offset)
        if answer.records and self.pending[partition] < end:
            # numba is slow to import, and a load with nothing new decodes nothing.
            from kafka_io.records.decoder import decode  # noqa: PLC0415
            from kafka_io.records.record_set import RequestedOffsets  # noqa: PLC0415

            requested = RequestedOffsets(start=self.pending[partition], high_watermark=answer.high_watermark)
            aborted, limits = aborted_ranges(answer), self.read_settings.limits
            for decoded in decode(answer.records, requested, columns=self.columns, aborted=aborted, limits=limits):
                if decoded.batch.num_rows:
                    self._settle(partition, self.to_answer(decoded.batch))
                    return
                self.pending[partition] = decoded.next_offset
        if self.pending[partition] >= end:
            self._settle(partition, None)
        else:
            self.answers.pop(partition, None)  # this answer was valid, so an earlier PastEnd is outdated

    def _settle(self, partition: TopicPartition, answer: T | KafkaIOError | None) -> None:
        self.answers[partition] = answer
        del self.pending[partition]


def last_messages(
    metadata: ClusterMetadata, offsets: Mapping[TopicPartition, int], read_settings: ReadSettings
) -> PartitionAnswers[LastMessage | None]:
    """The first message at or after each offset. It is None if the log has no such message."""

    def ask(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[LastMessage | None]:
        pending = {partition: offsets[partition] for partition in leaders}
        first_message = partial(LastMessage.of, index=0)
        return FirstRecordSearch(connection, leaders, read_settings, pending, _MESSAGE_COLUMNS, first_message).run()

    return ask_leaders(metadata, offsets, ask)
