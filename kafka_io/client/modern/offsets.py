"""Offsets of groups, as their coordinator keeps them: from 0.8.2 on.

v0 of both requests goes to ZooKeeper and is never used. Brokers of 0.8.2 and 0.9 have only v1 of OffsetFetch in common,
which must name partitions.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kafka_io.client.membership import NOBODY, Membership
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.coordinating import Coordinating
from kafka_io.client.modern.link import ModernLink
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import Corrupt, Unsupported, Where
from kafka_io.messages.offset_commit import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from kafka_io.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from kafka_io.model import BrokerPartition
from kafka_io.registry.offsets import Committed

Numbers = Mapping[str, tuple[int, ...]]
T = TypeVar("T")

_COORDINATED_SINCE = 1
_ALL_SINCE = 2
_STABLE_SINCE = 7  # KIP-447: what a transaction is about to change is waited for
_GROUPS_SINCE = 8  # KIP-709
_NO_OFFSET = -1
_UNKNOWN_TOPIC = 3


class CoordinatorOffsets:
    """See GroupOffsets."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._coordinators: dict[str, Coordinating] = {}

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> Committed:
        """See GroupOffsets. Brokers before 0.10 tell only of topics that are named.

        Raises:
            KafkaIOError: see GroupOffsets.
        """
        numbers = None if topics is None else {name: self._partitions(name) for name in sorted(set(topics))}
        found: Committed = {name: {} for name in numbers or ()}
        if numbers is None or any(numbers.values()):
            found |= self._of(group).on(lambda link: _fetched(link, group, numbers))
        return found

    def commit(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, member: Membership = NOBODY
    ) -> None:
        """See GroupOffsets."""
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.id,
            group_instance_id=member.instance,
            topics=tuple(OffsetCommitTopic(name=topic, partitions=_asked(parts)) for topic, parts in offsets.items()),
        )
        self._of(group).on(lambda link: _commit(link, request))

    def _of(self, group: str) -> Coordinating:
        return self._coordinators.setdefault(group, Coordinating(self._brokers, group))

    def _partitions(self, topic: str) -> tuple[int, ...]:
        self._brokers.forget(topic)
        found = self._brokers.patiently(lambda: self._brokers.topic(topic))
        return tuple(sorted(one.partition_index for one in found.partitions)) if found else ()


def _fetched(link: ModernLink, group: str, numbers: Numbers | None) -> Committed:
    version = _coordinated(link, link.versions.pick(OffsetFetchRequest.API))
    if numbers is None and version < _ALL_SINCE:
        raise Unsupported("brokers before 0.10 tell a group's offsets only of topics that are named")
    answer: OffsetFetchResponse = link.request(_question(group, numbers, version))
    told: Any = answer
    if version >= _GROUPS_SINCE:
        told = next((one for one in answer.groups if one.group_id == group), None)
        if told is None:
            raise Corrupt("an answer without the group that was asked for")
    check(told.error_code, Where(), MODERN)
    return {each.name: {_id(one): _offset(each.name, one) for one in each.partitions} for each in told.topics}


def _question(group: str, numbers: Numbers | None, version: int) -> OffsetFetchRequest:
    stable = version >= _STABLE_SINCE
    if version < _GROUPS_SINCE:
        return OffsetFetchRequest(group_id=group, topics=_named(OffsetFetchTopic, numbers), require_stable=stable)
    asked = OffsetFetchGroup(group_id=group, topics=_named(OffsetFetchGroupTopic, numbers))
    return OffsetFetchRequest(groups=(asked,), require_stable=stable)


def _named(kind: Callable[..., T], numbers: Numbers | None) -> tuple[T, ...] | None:
    if numbers is None:
        return None
    return tuple(kind(name=name, partition_indexes=asked) for name, asked in numbers.items() if asked)


def _id(one: Any) -> BrokerPartition:
    return BrokerPartition(None, one.partition_index)


def _offset(topic: str, one: Any) -> int | None:
    if one.error_code == _UNKNOWN_TOPIC:
        return None  # 0.8.2 has nothing of it
    place = Where(topic=topic, partition=one.partition_index)
    check(one.error_code, place, MODERN)
    if one.committed_offset < _NO_OFFSET:
        raise Corrupt(f"a committed offset of {one.committed_offset}", place)
    return None if one.committed_offset == _NO_OFFSET else int(one.committed_offset)


def _asked(parts: Mapping[BrokerPartition, int]) -> tuple[OffsetCommitPartition, ...]:
    return tuple(
        OffsetCommitPartition(partition_index=id_.partition, committed_offset=offset, committed_metadata="")
        for id_, offset in sorted(parts.items())
    )


def _commit(link: ModernLink, request: OffsetCommitRequest) -> None:
    _coordinated(link, link.versions.pick(OffsetCommitRequest.API))
    answer = link.request(request)
    codes = {(each.name, one.partition_index): one.error_code for each in answer.topics for one in each.partitions}
    for topic in request.topics:
        for one in topic.partitions:
            place = Where(topic=topic.name, partition=one.partition_index)
            if (topic.name, one.partition_index) not in codes:
                raise Corrupt("an answer without one of the offsets that were to be kept", place)
            check(codes[topic.name, one.partition_index], place, MODERN)


def _coordinated(link: ModernLink, version: int) -> int:
    if version < _COORDINATED_SINCE:
        raise Unsupported("brokers before 0.8.2 keep no offsets: their groups do so in ZooKeeper", link.where)
    return version
