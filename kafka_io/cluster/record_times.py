"""When the records at given offsets were written: by small fetches from 0.10 on, by segments before.

Brokers from 0.10 on keep a time in each record. No broker tells it by itself, so the batch that holds the record is
fetched and decoded; many partitions share a request, and those whose batch did not fit are asked again for more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders, by_topic
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.batched import batched
from kafka_io.cluster.modern_segments import segment_times
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, KafkaIOError, PastEnd
from kafka_io.messages.fetch import (
    BY_ID_SINCE,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
)
from kafka_io.messages.list_offsets import READ_COMMITTED, READ_UNCOMMITTED
from kafka_io.model import TopicPartition
from kafka_io.reader.modern_partition import aborted_ranges
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.wire.types import NULL_UUID

_TIMES_SINCE = 2  # of Fetch: message format 1
_FIRST_BYTES, _GROWTH, _ROUNDS = 16 * 1024, 4, 6  # 16 KiB, then up to 16 MiB


def record_times(
    brokers: ClusterMetadata, at: Mapping[TopicPartition, int], read_settings: ReadSettings, *, now_ms: int
) -> PartitionAnswers[int | None]:
    """The time (ms) of the first record at or after each offset, as `Cluster.times_at` promises."""

    def ask(link: ModernBrokerConnection, led: PartitionLeaders) -> PartitionAnswers[int | None]:
        wanted = {place: at[place] for place in led}
        if link.versions.pick(FetchRequest.API) < _TIMES_SINCE:
            return segment_times(link, led, wanted, now_ms=now_ms)
        return _RecordTimes(link=link, led=led, read_settings=read_settings, pending=wanted).found()

    return ask_leaders(brokers, at, ask)


@dataclass(slots=True, kw_only=True)
class _RecordTimes:
    """The search of one leader's partitions: `pending` are those without an answer, and the offset each has reached.

    A place that six fetches of growing size do not settle is left unknown: it has a batch above 16 MiB, or no record
    but aborted ones and markers in that much of its log.
    """

    link: ModernBrokerConnection
    led: PartitionLeaders
    read_settings: ReadSettings
    pending: dict[TopicPartition, int]
    answers: PartitionAnswers[int | None] = field(default_factory=dict)

    def found(self) -> PartitionAnswers[int | None]:
        """The time of each, None where there is no record or it has no time."""
        size = _FIRST_BYTES
        for _ in range(_ROUNDS):
            for places in batched(tuple(self.pending), max(1, self.read_settings.sizes.fetch_bytes // size)):
                for place, part in self._fetched(places, size).items():
                    self._note(place, part)
            size = min(_GROWTH * size, self.read_settings.sizes.max_fetch_bytes)
        return {**dict.fromkeys(self.pending), **self.answers}

    def _note(self, place: TopicPartition, part: FetchPartitionResponse) -> None:
        try:
            told = self._first_time(part, self.pending[place])
        except PastEnd as error:
            self.answers[place] = error  # until another answer tells more
            return
        except KafkaIOError as error:
            self.answers[place] = error
        else:
            if isinstance(told, _Further):
                self.pending[place] = told.offset
                self.answers.pop(place, None)
                return
            self.answers[place] = told
        del self.pending[place]

    def _first_time(self, part: FetchPartitionResponse, at: int) -> "int | _Further | None":
        ErrorCode.check(part.error_code, NOWHERE)
        end, stable = part.high_watermark, part.last_stable_offset
        if self.read_settings.committed and stable >= 0:  # it is told from v4 on
            end = min(end, stable)
        if at >= end:
            return None
        aborted = aborted_ranges(part)
        asked = RequestedOffsets(start=at, high_watermark=part.high_watermark)
        limits = self.read_settings.limits
        for decoded in decode(part.records or b"", asked, columns=("timestamp",), aborted=aborted, limits=limits):
            if decoded.batch.num_rows:
                time_ms = decoded.batch.column("timestamp").cast(pa.int64())[0].as_py()
                return time_ms if time_ms >= 0 else None
            at = decoded.next_offset
        return _Further(at) if at < end else None

    def _fetched(self, places: list[TopicPartition], size: int) -> dict[TopicPartition, FetchPartitionResponse]:
        ids = {self.led[place].topic_id: place.topic for place in places}
        topics = tuple(
            FetchTopic(
                topic=topic,
                topic_id=self.led[TopicPartition(topic, numbers[0])].topic_id,
                partitions=tuple(self._asked(TopicPartition(topic, number), size) for number in numbers),
            )
            for topic, numbers in by_topic(places).items()
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=size * len(places),
            isolation_level=READ_COMMITTED if self.read_settings.committed else READ_UNCOMMITTED,
            topics=topics,
        )
        answer = self.link.request(request, max_version=BY_ID_SINCE - 1 if NULL_UUID in ids else None)
        ErrorCode.check(answer.error_code, NOWHERE)
        told = {
            TopicPartition(each.topic or ids.get(each.topic_id, ""), one.partition_index): one
            for each in answer.responses
            for one in each.partitions
        }
        return {place: told[place] for place in places if place in told}

    def _asked(self, place: TopicPartition, size: int) -> FetchPartition:
        return FetchPartition(
            partition=place.partition,
            current_leader_epoch=self.led[place].epoch,
            fetch_offset=self.pending[place],
            partition_max_bytes=size,
        )


@dataclass(frozen=True, slots=True)
class _Further:
    """No record with a time up to here; ask again from this offset."""

    offset: int
