"""What the leaders hold of a topic's partitions: a few ListOffsets for each leader, however many it leads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kafka_io.client.modern.brokers import Brokers, leaders_of
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

T = TypeVar("T")

_EXACT_TIMES_SINCE = 1  # v0 knows when a segment was last written to, no more
_ISOLATION_SINCE = 2
_NO_OFFSET = -1
Led = Sequence[tuple[int, int]]
Answers = dict[int, T | KafkaIOError]
Told = Mapping[int, ListOffsetsPartitionResponse]


def bounds_of(brokers: Brokers, topic: str, partitions: Iterable[int], *, committed: bool) -> Answers[Bounds]:
    """Earliest and latest of each partition, or why its leader could not say; an error hides only what it concerns.

    With `committed` the latest is the stable offset: before it no transaction is open.
    """
    return _of_leaders(
        brokers,
        topic,
        partitions,
        lambda link, led: _ask_bounds(link, topic, led, _isolation(link, committed=committed)),
    )


def offsets_at(
    brokers: Brokers, topic: str, partitions: Iterable[int], timestamp_ms: int, *, committed: bool
) -> Answers[int]:
    """The first offset of each partition whose record is not older than `timestamp_ms`, and the latest if none is.

    Brokers before 0.10 tell the start of a segment that was last written to before that time: older records may
    follow, but none is skipped. It is never above what `bounds_of` gives as the latest.
    """

    def ask(link: ModernLink, led: Led) -> Answers[int]:
        isolation = _isolation(link, committed=committed)
        # The latest is asked for first: a record that comes between the two questions lies behind it.
        bounds = _ask_bounds(link, topic, led, isolation)
        # Below 0 the wire has names, not times; no record that has a time is older than 0.
        told = _ask(link, topic, led, max(timestamp_ms, 0), isolation)
        return {partition: _at(told.get(partition), bounds[partition], exact=_is_exact(link)) for partition, _ in led}

    return _of_leaders(brokers, topic, partitions, ask)


def _of_leaders(
    brokers: Brokers, topic: str, partitions: Iterable[int], ask: Callable[[ModernLink, Led], Answers[T]]
) -> Answers[T]:
    """What `ask` tells of each partition, by a question to each leader; asked again where that may help."""
    found: Answers[T] = {}
    pending = sorted(set(partitions))

    def attempt() -> None:
        nonlocal pending
        failed: dict[int, KafkaIOError] = {}
        for link, led in leaders_of(brokers, topic, pending, failed):
            for partition, answer in _asked(ask, link, led).items():
                if isinstance(answer, KafkaIOError):
                    failed[partition] = answer.placed(Where(topic=topic, partition=partition).within(link.where))
                else:
                    found[partition] = answer
        found.update(failed)
        pending = sorted(partition for partition, error in failed.items() if error.retriable)
        if pending:
            brokers.forget(topic)
            raise failed[pending[0]]

    try:
        brokers.patiently(attempt)
    except KafkaIOError as error:
        for partition in pending:
            found.setdefault(partition, error)
    return found


def _asked(ask: Callable[[ModernLink, Led], Answers[T]], link: ModernLink, led: Led) -> Answers[T]:
    try:
        return ask(link, led)
    except KafkaIOError as error:
        return {partition: error for partition, _ in led}


def _ask_bounds(link: ModernLink, topic: str, led: Led, isolation: int) -> Answers[Bounds]:
    """Earliest first: retention may raise it before the latest is told, never the other way round."""
    earliest = _ask(link, topic, led, EARLIEST_TIME, isolation)
    latest = _ask(link, topic, led, LATEST_TIME, isolation)
    return {partition: _bounds(earliest.get(partition), latest.get(partition), epoch) for partition, epoch in led}


def _isolation(link: ModernLink, *, committed: bool) -> int:
    return READ_COMMITTED if committed and _version(link) >= _ISOLATION_SINCE else READ_UNCOMMITTED


def _is_exact(link: ModernLink) -> bool:
    return _version(link) >= _EXACT_TIMES_SINCE


def _version(link: ModernLink) -> int:
    return link.versions.pick(ListOffsetsRequest.API)


def _ask(link: ModernLink, topic: str, led: Led, time: int, isolation: int) -> Told:
    asked = tuple(
        ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=time)
        for partition, epoch in led
    )
    request = ListOffsetsRequest(isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=asked),))
    answer = link.request(request)
    return {one.partition_index: one for each in answer.topics if each.name == topic for one in each.partitions}


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
