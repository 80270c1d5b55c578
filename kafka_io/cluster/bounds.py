"""The offsets that leaders have of partitions: a few ListOffsets requests for each leader, however many it leads."""

from collections.abc import Iterable, Mapping
from functools import partial

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders, by_topic
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.segment_times import end_of_segment_after
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError
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
    return {partition: _offset_at(offsets[partition], bounds[partition], exact=exact) for partition in leaders}


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
        return {partition: _segment_end(older[partition], segments[partition]) for partition in leaders}

    return ask_leaders(metadata, partitions, ask)


def _segment_end(older: tuple[int, ...] | KafkaIOError, segments: tuple[int, ...] | KafkaIOError) -> int | KafkaIOError:
    """The end for a time. `segments` are the end of the log and the starts of its segments, descending."""
    if isinstance(older, KafkaIOError):
        return older
    if isinstance(segments, KafkaIOError):
        return segments
    if not segments:
        return Corrupt("the broker answered without an offset for an end of the log")
    return end_of_segment_after(older, sorted(segments))


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
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=number,
                    current_leader_epoch=leaders[TopicPartition(topic, number)].epoch,
                    timestamp=times[TopicPartition(topic, number)],
                    max_num_offsets=max_offsets,
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(times).items()
    )
    knows_isolation = connection.versions.pick(ListOffsetsRequest.API) >= _ISOLATION_SINCE
    isolation = READ_COMMITTED if committed and knows_isolation else READ_UNCOMMITTED
    response = connection.request(ListOffsetsRequest(isolation_level=isolation, topics=topics))
    answers = {
        TopicPartition(topic.name, answer.partition_index): answer
        for topic in response.topics
        for answer in topic.partitions
    }
    return {partition: _offsets(answers.get(partition)) for partition in times}


def _offsets(answer: ListOffsetsPartitionResponse | None) -> tuple[int, ...] | KafkaIOError:
    if answer is None:
        return Corrupt("the answer lacks one of the requested partitions")
    if error := ErrorCode.error_of(answer.error_code, NOWHERE, right="DESCRIBE"):
        return error
    offsets = answer.old_style_offsets or (() if answer.offset == _NO_OFFSET else (answer.offset,))
    if not all(0 <= offset <= MAX_OFFSET for offset in offsets):
        return Corrupt(f"the broker answered with offsets that are not valid: {offsets[:5]}")
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
    return {
        partition: _bounds(earliest[partition], latest[partition], high_watermark[partition], leader.epoch)
        for partition, leader in leaders.items()
    }


def _bounds(
    earliest: tuple[int, ...] | KafkaIOError,
    latest: tuple[int, ...] | KafkaIOError,
    high_watermark: tuple[int, ...] | KafkaIOError,
    epoch: int,
) -> Bounds | KafkaIOError:
    ends = []
    for offsets in (earliest, latest, high_watermark):
        if isinstance(offsets, KafkaIOError):
            return offsets
        if not offsets:
            return Corrupt("the broker answered without an offset for an end of the log")
        ends.append(offsets[0])
    return Bounds(earliest=ends[0], latest=ends[1], epoch=epoch, held_back=max(0, ends[2] - ends[1]))


def _offset_at(
    offsets: tuple[int, ...] | KafkaIOError, bounds: Bounds | KafkaIOError, *, exact: bool
) -> int | KafkaIOError:
    """The offset for a time. If the answer has none, all records are older, provided that times are exact."""
    if isinstance(bounds, KafkaIOError):
        return bounds
    if isinstance(offsets, KafkaIOError):
        return offsets
    if not offsets:
        return bounds.latest if exact else bounds.earliest
    return min(offsets[0], bounds.latest)
