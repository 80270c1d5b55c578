"""What the leaders hold of a topic's partitions: two ListOffsets for each leader, however many partitions it leads."""

from collections.abc import Iterable, Sequence

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

_ISOLATION_SINCE = 2
Led = Sequence[tuple[int, int]]
Answers = dict[int, Bounds | KafkaIOError]


def bounds_of(brokers: Brokers, topic: str, partitions: Iterable[int], *, committed: bool) -> Answers:
    """Earliest and latest of each partition, or why its leader could not say; an error hides only what it concerns.

    With `committed` the latest is the stable offset: before it no transaction is open.
    """
    found: Answers = {}
    pending = sorted(set(partitions))

    def attempt() -> None:
        nonlocal pending
        failed: dict[int, KafkaIOError] = {}
        for link, led in leaders_of(brokers, topic, pending, failed):
            for partition, answer in _ask(link, topic, led, committed=committed).items():
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


def _ask(link: ModernLink, topic: str, led: Led, *, committed: bool) -> Answers:
    """Earliest first: retention may raise it before the latest is told, never the other way round."""
    try:
        isolation = READ_COMMITTED if committed and _has_isolation(link) else READ_UNCOMMITTED
        earliest = _offsets(link, topic, led, EARLIEST_TIME, isolation)
        latest = _offsets(link, topic, led, LATEST_TIME, isolation)
    except KafkaIOError as error:
        return {partition: error for partition, _ in led}
    return {partition: _bounds(earliest.get(partition), latest.get(partition), epoch) for partition, epoch in led}


def _has_isolation(link: ModernLink) -> bool:
    return link.versions.pick(ListOffsetsRequest.API) >= _ISOLATION_SINCE


def _offsets(
    link: ModernLink, topic: str, led: Led, time: int, isolation: int
) -> dict[int, ListOffsetsPartitionResponse]:
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
        return Bounds(earliest=_offset(earliest), latest=_offset(latest), epoch=epoch)
    except KafkaIOError as error:
        return error


def _offset(answer: ListOffsetsPartitionResponse | None) -> int:
    if answer is None:
        raise Corrupt("an answer without one of the partitions that were asked for")
    check(answer.error_code, Where(), MODERN)
    offset = answer.old_style_offsets[0] if answer.old_style_offsets else answer.offset
    if offset < 0:
        raise Corrupt(f"an end of the log at offset {offset}")
    return offset
