"""The offsets of groups that their coordinator stores, from 0.8.2 on.

Version 0 of both requests stores offsets in ZooKeeper and is never used here. The only other version of OffsetFetch
that 0.8.2 and 0.9 support is v1, which must name the partitions.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.consumer.membership import NOBODY, GroupMembership
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Corrupt, Unsupported, Where
from kafka_io.messages.offset_commit import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from kafka_io.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from kafka_io.model import BrokerPartition
from kafka_io.registry.offsets import CommittedOffsets

PartitionOffsets = Mapping[str, tuple[int, ...]]

_COORDINATED_SINCE = 1
_ALL_SINCE = 2
_STABLE_SINCE = 7  # KIP-447: the answer waits for offsets in open transactions
_GROUPS_SINCE = 8  # KIP-709
_NO_OFFSET = -1


class CoordinatorOffsets:
    """The offsets in the groups' coordinators; see GroupOffsets."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata
        self._coordinators: dict[str, CoordinatorConnection] = {}

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> CommittedOffsets:
        """See GroupOffsets. Brokers before 0.10 return only offsets of named topics.

        Raises:
            KafkaIOError: see GroupOffsets.
        """
        numbers = None if topics is None else {name: self._partitions(name) for name in sorted(set(topics))}
        offsets: CommittedOffsets = {name: {} for name in numbers or ()}
        if numbers is None or any(numbers.values()):
            offsets |= self._coordinator(group).on(lambda connection: _fetched(connection, group, numbers))
        return offsets

    def commit(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, member: GroupMembership = NOBODY
    ) -> None:
        """See GroupOffsets."""
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.id,
            group_instance_id=member.instance,
            topics=tuple(
                OffsetCommitTopic(name=topic, partitions=_commit_partitions(parts)) for topic, parts in offsets.items()
            ),
        )
        self._coordinator(group).on(lambda connection: _commit(connection, request))

    def _coordinator(self, group: str) -> CoordinatorConnection:
        return self._coordinators.setdefault(group, CoordinatorConnection(self._metadata, group))

    def _partitions(self, topic: str) -> tuple[int, ...]:
        self._metadata.forget(topic)
        listed = self._metadata.retry(lambda: self._metadata.topic(topic))
        return tuple(sorted(partition.partition_index for partition in listed.partitions)) if listed else ()


def _fetched(connection: ModernBrokerConnection, group: str, numbers: PartitionOffsets | None) -> CommittedOffsets:
    version = _coordinated(connection, connection.versions.pick(OffsetFetchRequest.API))
    if numbers is None and version < _ALL_SINCE:
        raise Unsupported("brokers before 0.10 return a group's offsets only for named topics: name the topics")
    answer: OffsetFetchResponse = connection.request(_fetch_request(group, numbers, version))
    fetched: Any = answer
    if version >= _GROUPS_SINCE:
        fetched = next((answered for answered in answer.groups if answered.group_id == group), None)
        if fetched is None:
            raise Corrupt("the answer lacks the requested group")
    ErrorCode.check(fetched.error_code, Where())
    return {
        topic.name: {_partition(partition): _offset(topic.name, partition) for partition in topic.partitions}
        for topic in fetched.topics
    }


def _fetch_request(group: str, numbers: PartitionOffsets | None, version: int) -> OffsetFetchRequest:
    stable = version >= _STABLE_SINCE
    if version < _GROUPS_SINCE:
        return OffsetFetchRequest(group_id=group, topics=_topics(numbers), require_stable=stable)
    requested = OffsetFetchGroup(group_id=group, topics=_topics(numbers))
    return OffsetFetchRequest(groups=(requested,), require_stable=stable)


def _topics(numbers: PartitionOffsets | None) -> tuple[OffsetFetchTopic, ...] | None:
    if numbers is None:
        return None
    return tuple(
        OffsetFetchTopic(name=name, partition_indexes=partitions) for name, partitions in numbers.items() if partitions
    )


def _partition(answer: Any) -> BrokerPartition:
    return BrokerPartition(None, answer.partition_index)


def _offset(topic: str, answer: Any) -> int | None:
    if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None  # so 0.8.2 answers when the group has no offset
    where = Where(topic=topic, partition=answer.partition_index)
    ErrorCode.check(answer.error_code, where)
    if answer.committed_offset < _NO_OFFSET:
        raise Corrupt(f"a committed offset of {answer.committed_offset}", where)
    return None if answer.committed_offset == _NO_OFFSET else int(answer.committed_offset)


def _commit_partitions(offsets: Mapping[BrokerPartition, int]) -> tuple[OffsetCommitPartition, ...]:
    return tuple(
        OffsetCommitPartition(partition_index=partition.partition, committed_offset=offset, committed_metadata="")
        for partition, offset in sorted(offsets.items())
    )


def _commit(connection: ModernBrokerConnection, request: OffsetCommitRequest) -> None:
    _coordinated(connection, connection.versions.pick(OffsetCommitRequest.API))
    answer = connection.request(request)
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
    for topic in request.topics:
        for partition in topic.partitions:
            where = Where(topic=topic.name, partition=partition.partition_index)
            if (topic.name, partition.partition_index) not in codes:
                raise Corrupt("the answer lacks a committed offset", where)
            ErrorCode.check(codes[topic.name, partition.partition_index], where)


def _coordinated(connection: ModernBrokerConnection, version: int) -> int:
    if version < _COORDINATED_SINCE:
        raise Unsupported(
            "brokers before 0.8.2 store no offsets: their groups keep them in ZooKeeper", connection.where
        )
    return version
