"""The offsets that leaders hold of partitions: a few ListOffsets requests for each leader, however many it leads."""

from collections.abc import Iterable, Mapping

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders, by_topic
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Corrupt, KafkaIOError, Where
from kafka_io.messages.list_offsets import (
    EARLIEST_TIME,
    LATEST_TIME,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_io.model import Bounds, TopicPartition

_EXACT_TIMES_SINCE = 1  # v0 knows only when a segment was last written to
_ISOLATION_SINCE = 2
_NO_OFFSET = -1
ListedOffsets = Mapping[TopicPartition, ListOffsetsPartitionResponse]


def bounds_of(
    brokers: ClusterMetadata, places: Iterable[TopicPartition], *, committed: bool
) -> PartitionAnswers[Bounds]:
    """The earliest and latest offset of each partition, or the error of its leader.

    With `committed`, the latest is the last stable offset: no transaction before it is open.
    """
    return ask_leaders(brokers, places, lambda link, led: _ask_bounds(link, led, _isolation(link, committed=committed)))


def offsets_at(
    brokers: ClusterMetadata, places: Iterable[TopicPartition], timestamp_ms: int, *, committed: bool
) -> PartitionAnswers[int]:
    """The offset of each partition's first record that is not older than `timestamp_ms`; the latest if none is.

    Brokers before 0.10 answer with the start of a segment that was last written to before that time: older records may
    follow it, but no newer record comes before it. The result is never above the latest offset of `bounds_of`.
    """

    def ask(link: ModernBrokerConnection, led: PartitionLeaders) -> PartitionAnswers[int]:
        isolation = _isolation(link, committed=committed)
        # The latest is requested first, so that a record written between the two requests is above it.
        bounds = _ask_bounds(link, led, isolation)
        # In a request, -1 and -2 mean the latest and the earliest; no record with a timestamp is older than 0.
        told = list_offsets(link, led, dict.fromkeys(led, max(timestamp_ms, 0)), isolation=isolation)
        return {place: _at(told.get(place), bounds[place], exact=_is_exact(link)) for place in led}

    return ask_leaders(brokers, places, ask)


def list_offsets(
    link: ModernBrokerConnection,
    led: PartitionLeaders,
    times: Mapping[TopicPartition, int],
    *,
    isolation: int = READ_UNCOMMITTED,
    max_offsets: int = 1,
) -> ListedOffsets:
    """A leader's answers for a time of each of its partitions; in v0 up to `max_offsets` of them."""
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=number,
                    current_leader_epoch=led[TopicPartition(topic, number)].epoch,
                    timestamp=times[TopicPartition(topic, number)],
                    max_num_offsets=max_offsets,
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(times).items()
    )
    answer = link.request(ListOffsetsRequest(isolation_level=isolation, topics=topics))
    return {TopicPartition(each.name, one.partition_index): one for each in answer.topics for one in each.partitions}


def _ask_bounds(link: ModernBrokerConnection, led: PartitionLeaders, isolation: int) -> PartitionAnswers[Bounds]:
    """Request the earliest first: retention may raise it meanwhile, but the latest never falls below it."""
    earliest = list_offsets(link, led, dict.fromkeys(led, EARLIEST_TIME), isolation=isolation)
    latest = list_offsets(link, led, dict.fromkeys(led, LATEST_TIME), isolation=isolation)
    return {place: _bounds(earliest.get(place), latest.get(place), leader.epoch) for place, leader in led.items()}


def _isolation(link: ModernBrokerConnection, *, committed: bool) -> int:
    return READ_COMMITTED if committed and _version(link) >= _ISOLATION_SINCE else READ_UNCOMMITTED


def _is_exact(link: ModernBrokerConnection) -> bool:
    return _version(link) >= _EXACT_TIMES_SINCE


def _version(link: ModernBrokerConnection) -> int:
    return link.versions.pick(ListOffsetsRequest.API)


def _bounds(
    earliest: ListOffsetsPartitionResponse | None, latest: ListOffsetsPartitionResponse | None, epoch: int
) -> Bounds | KafkaIOError:
    try:
        return Bounds(earliest=_end(earliest), latest=_end(latest), epoch=epoch)
    except KafkaIOError as error:
        return error


def _end(answer: ListOffsetsPartitionResponse | None) -> int:
    offset = _offset(answer)
    if offset is None:
        raise Corrupt("the broker answered without an offset for an end of the log")
    return offset


def _at(
    answer: ListOffsetsPartitionResponse | None, bounds: Bounds | KafkaIOError, *, exact: bool
) -> int | KafkaIOError:
    """The offset for a time. If the answer has none, all records are older, provided that times are exact."""
    if isinstance(bounds, KafkaIOError):
        return bounds
    try:
        offset = _offset(answer)
    except KafkaIOError as error:
        return error
    if offset is None:
        return bounds.latest if exact else bounds.earliest
    return min(offset, bounds.latest)


def _offset(answer: ListOffsetsPartitionResponse | None) -> int | None:
    """The offset in an answer; None if it says that there is none."""
    if answer is None:
        raise Corrupt("the answer lacks one of the requested partitions")
    ErrorCode.check(answer.error_code, Where())
    offset = answer.old_style_offsets[0] if answer.old_style_offsets else answer.offset
    if offset < _NO_OFFSET:
        raise Corrupt(f"the broker answered with offset {offset}, which is not valid")
    return None if offset == _NO_OFFSET else offset
