"""What the leaders hold of partitions: a few ListOffsets for each leader, however many it leads."""

from collections.abc import Iterable, Mapping

from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Answers, Led, Place, by_topic, of_leaders
from kafka_io.client.modern.link import ModernLink
from kafka_io.error_codes import MODERN, check
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
from kafka_io.model import Bounds

_EXACT_TIMES_SINCE = 1  # v0 knows when a segment was last written to, no more
_ISOLATION_SINCE = 2
_NO_OFFSET = -1
Told = Mapping[Place, ListOffsetsPartitionResponse]


def bounds_of(brokers: Brokers, places: Iterable[Place], *, committed: bool) -> Answers[Bounds]:
    """Earliest and latest of each partition, or why its leader could not say; an error hides only what it concerns.

    With `committed` the latest is the stable offset: before it no transaction is open.
    """
    return of_leaders(brokers, places, lambda link, led: _ask_bounds(link, led, _isolation(link, committed=committed)))


def offsets_at(brokers: Brokers, places: Iterable[Place], timestamp_ms: int, *, committed: bool) -> Answers[int]:
    """The first offset of each partition whose record is not older than `timestamp_ms`, and the latest if none is.

    Brokers before 0.10 tell the start of a segment that was last written to before that time: older records may
    follow, but none is skipped. It is never above what `bounds_of` gives as the latest.
    """

    def ask(link: ModernLink, led: Led) -> Answers[int]:
        isolation = _isolation(link, committed=committed)
        # The latest is asked for first: a record that comes between the two questions lies behind it.
        bounds = _ask_bounds(link, led, isolation)
        # Below 0 the wire has names, not times; no record that has a time is older than 0.
        told = list_offsets(link, led, dict.fromkeys(led, max(timestamp_ms, 0)), isolation=isolation)
        return {place: _at(told.get(place), bounds[place], exact=_is_exact(link)) for place in led}

    return of_leaders(brokers, places, ask)


def list_offsets(
    link: ModernLink, led: Led, times: Mapping[Place, int], *, isolation: int = READ_UNCOMMITTED, most: int = 1
) -> Told:
    """What a leader answers about a time of each of these partitions; in v0 up to `most` offsets."""
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=number,
                    current_leader_epoch=led[topic, number].epoch,
                    timestamp=times[topic, number],
                    max_num_offsets=most,
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(times).items()
    )
    answer = link.request(ListOffsetsRequest(isolation_level=isolation, topics=topics))
    return {(each.name, one.partition_index): one for each in answer.topics for one in each.partitions}


def _ask_bounds(link: ModernLink, led: Led, isolation: int) -> Answers[Bounds]:
    """Earliest first: retention may raise it before the latest is told, never the other way round."""
    earliest = list_offsets(link, led, dict.fromkeys(led, EARLIEST_TIME), isolation=isolation)
    latest = list_offsets(link, led, dict.fromkeys(led, LATEST_TIME), isolation=isolation)
    return {place: _bounds(earliest.get(place), latest.get(place), leader.epoch) for place, leader in led.items()}


def _isolation(link: ModernLink, *, committed: bool) -> int:
    return READ_COMMITTED if committed and _version(link) >= _ISOLATION_SINCE else READ_UNCOMMITTED


def _is_exact(link: ModernLink) -> bool:
    return _version(link) >= _EXACT_TIMES_SINCE


def _version(link: ModernLink) -> int:
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
        raise Corrupt("an end of the log without an offset")
    return offset


def _at(
    answer: ListOffsetsPartitionResponse | None, bounds: Bounds | KafkaIOError, *, exact: bool
) -> int | KafkaIOError:
    """Where to read from a time on; without an offset for it, all records are older if times are exact."""
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
    """The offset in an answer; None where it says that there is none."""
    if answer is None:
        raise Corrupt("an answer without one of the partitions that were asked for")
    check(answer.error_code, Where(), MODERN)
    offset = answer.old_style_offsets[0] if answer.old_style_offsets else answer.offset
    if offset < _NO_OFFSET:
        raise Corrupt(f"an offset of {offset}")
    return None if offset == _NO_OFFSET else offset
