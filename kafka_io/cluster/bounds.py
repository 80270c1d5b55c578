"""The offsets that leaders have of partitions: a few ListOffsets requests for each leader, however many it leads."""

from collections.abc import Iterable, Mapping
from functools import partial

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders, for_each
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.segment_times import end_of_segment_after
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError, value_of
from kafka_io.messages.list_offsets import (
    EARLIEST_TIME,
    LATEST_TIME,
    MAX_SEGMENTS,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_io.messages.shared import rows_by_partition, topics_of
from kafka_io.model import MAX_OFFSET, Bounds, TopicPartition

_EXACT_TIMES_SINCE = 1  # v0 knows only when a segment was last written to
_ISOLATION_SINCE = 2
_NO_OFFSET = -1


def bounds_of(
    metadata: ClusterMetadata, partitions: Iterable[TopicPartition], *, committed: bool
) -> PartitionAnswers[Bounds]:
    """The earliest and latest offset of each partition, or the error of its leader.

    With `committed`, the latest is the last stable offset: no transaction before it is open.
    """
    return ask_leaders(metadata, partitions, partial(_ask_bounds, committed=committed))


def offsets_at(
    metadata: ClusterMetadata, partitions: Iterable[TopicPartition], timestamp_ms: int, *, committed: bool
) -> PartitionAnswers[int]:
    """The offset of each partition's first record that is not older than `timestamp_ms`; else the latest.

    Brokers before 0.10 answer with the start of a segment that was last written to before that time: older records may
    follow it, but no newer record comes before it. The result is never above the latest offset of `bounds_of`.
    """
    ask = partial(_ask_offsets_at, timestamp_ms=timestamp_ms, committed=committed)
    return ask_leaders(metadata, partitions, ask)


def _ask_offsets_at(
    connection: ModernBrokerConnection, leaders: PartitionLeaders, timestamp_ms: int, *, committed: bool
) -> PartitionAnswers[int]:
    # The latest is requested first, so that a record written between the two requests is above it.
    bounds = _ask_bounds(connection, leaders, committed=committed)
    # In a request, -1 and -2 mean the latest and the earliest; no record with a timestamp is older than 0.
    times = dict.fromkeys(leaders, max(timestamp_ms, 0))
    offsets = list_offsets(connection, leaders, times, committed=committed)
    exact = connection.versions.pick(ListOffsetsRequest.API) >= _EXACT_TIMES_SINCE

    def offset_at(partition: TopicPartition) -> int:
        limits, at_time = value_of(bounds[partition]), value_of(offsets[partition])
        if not at_time:  # all records are older, provided that times are exact
            return limits.latest if exact else limits.earliest
        return min(at_time[0], limits.latest)

    return for_each(leaders, offset_at)


def ends_at(
    metadata: ClusterMetadata, partitions: Iterable[TopicPartition], timestamp_ms: int, *, committed: bool
) -> PartitionAnswers[int]:
    """The offset before which each partition has all records that are older than `timestamp_ms`.

    Brokers from 0.10 on answer as for `offsets_at`. Earlier ones know only when a segment was last written to; for them
    it is the end of the first segment that was written to after that time.
    """

    def ask(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[int]:
        if connection.versions.pick(ListOffsetsRequest.API) >= _EXACT_TIMES_SINCE:
            return _ask_offsets_at(connection, leaders, timestamp_ms, committed=committed)
        older = list_offsets(connection, leaders, dict.fromkeys(leaders, max(timestamp_ms, 0)))
        segments = list_offsets(connection, leaders, dict.fromkeys(leaders, LATEST_TIME), MAX_SEGMENTS)

        def end(partition: TopicPartition) -> int:
            return end_of_segment_after(value_of(older[partition]), sorted(_listed(segments[partition])))

        return for_each(leaders, end)

    return ask_leaders(metadata, partitions, ask)


def _listed(answer: tuple[int, ...] | KafkaIOError) -> tuple[int, ...]:
    """The answer to a request for an end of the log: that end, and for all segments their starts, descending."""
    offsets = value_of(answer)
    if not offsets:
        raise Corrupt("the broker answered without an offset for an end of the log")
    return offsets


def list_offsets(
    connection: ModernBrokerConnection,
    leaders: PartitionLeaders,
    times: Mapping[TopicPartition, int],
    max_offsets: int = 1,
    *,
    committed: bool = False,
) -> PartitionAnswers[tuple[int, ...]]:
    """A leader's offsets for a time of each of its partitions, or the error of the partition.

    From v1 on this is one offset, or none if all records are older. In v0 it is up to `max_offsets` starts of segments,
    descending. With `committed`, the latest is the last stable offset if the version knows it.
    """
    rows = {
        partition: ListOffsetsPartition(
            partition_index=partition.partition,
            current_leader_epoch=leaders[partition].epoch,
            timestamp=time_ms,
            max_num_offsets=max_offsets,
        )
        for partition, time_ms in times.items()
    }
    knows_isolation = connection.versions.pick(ListOffsetsRequest.API) >= _ISOLATION_SINCE
    isolation = READ_COMMITTED if committed and knows_isolation else READ_UNCOMMITTED
    request = ListOffsetsRequest(isolation_level=isolation, topics=topics_of(ListOffsetsTopic, rows))
    answers = rows_by_partition(connection.request(request).topics)
    return for_each(times, lambda partition: _offsets(answers.get(partition)))


def _offsets(answer: ListOffsetsPartitionResponse | None) -> tuple[int, ...]:
    if answer is None:
        raise Corrupt("the answer lacks one of the requested partitions")
    ErrorCode.check(answer.error_code, NOWHERE, right="DESCRIBE")
    offsets = answer.old_style_offsets or (() if answer.offset == _NO_OFFSET else (answer.offset,))
    if not all(0 <= offset <= MAX_OFFSET for offset in offsets):
        raise Corrupt(f"the broker answered with offsets that are not valid: {offsets[:5]}")
    return offsets


def _ask_bounds(
    connection: ModernBrokerConnection, leaders: PartitionLeaders, *, committed: bool
) -> PartitionAnswers[Bounds]:
    """Request the earliest first: retention may raise it meanwhile, but the latest never falls below it.

    The high watermark is requested last, because the last stable offset never rises above it.
    """
    ask = partial(list_offsets, connection, leaders)
    earliest = ask(dict.fromkeys(leaders, EARLIEST_TIME), committed=committed)
    latest = high_watermark = ask(dict.fromkeys(leaders, LATEST_TIME), committed=committed)
    if committed and connection.versions.pick(ListOffsetsRequest.API) >= _ISOLATION_SINCE:
        high_watermark = ask(dict.fromkeys(leaders, LATEST_TIME), committed=False)

    def bounds(partition: TopicPartition) -> Bounds:
        start, end, log_end = (_listed(answers[partition])[0] for answers in (earliest, latest, high_watermark))
        return Bounds(earliest=start, latest=end, epoch=leaders[partition].epoch, held_back=max(0, log_end - end))

    return for_each(leaders, bounds)
