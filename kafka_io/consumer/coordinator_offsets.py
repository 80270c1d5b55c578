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
from kafka_io.errors import NOWHERE, Corrupt, Unsupported, Where
from kafka_io.messages.listed_topics import check_listed_topic
from kafka_io.messages.offset_commit import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from kafka_io.messages.offset_fetch import GROUPS_SINCE, OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic
from kafka_io.messages.shared import rows_by_partition, topics_of
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.wire.schema import Api
from kafka_io.zookeeper.offsets import CommittedOffsets

_COORDINATED_SINCE = 1
_ALL_SINCE = 2
_STABLE_SINCE = 7  # KIP-447: the answer waits for offsets in open transactions
_NO_OFFSET = -1


class CoordinatorOffsets:
    """The offsets in the groups' coordinators; see GroupOffsets."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata
        self._coordinators: dict[str, CoordinatorConnection] = {}

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> CommittedOffsets:
        """The committed offsets. Brokers before 0.10 return only offsets of named topics.

        Raises:
            KafkaIOError: see GroupOffsets.
        """
        if topics is None:
            return self._fetch(group, None)
        numbers = {name: self._partitions(name) for name in sorted(set(topics))}
        requested = tuple(
            OffsetFetchTopic(name=name, partition_indexes=indexes) for name, indexes in numbers.items() if indexes
        )
        return {name: {} for name in numbers} | (self._fetch(group, requested) if requested else {})

    def _fetch(self, group: str, topics: tuple[OffsetFetchTopic, ...] | None) -> CommittedOffsets:
        return self._coordinator(group).on(lambda connection: _fetched(connection, group, topics))

    def commit(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, member: GroupMembership = NOBODY
    ) -> None:
        """Commit the offsets of a group at its coordinator."""
        rows = {
            TopicPartition.of(topic, partition): OffsetCommitPartition(
                partition_index=partition.partition, committed_offset=offset, committed_metadata=""
            )
            for topic, topic_offsets in offsets.items()
            for partition, offset in sorted(topic_offsets.items())
        }
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.id,
            group_instance_id=member.instance,
            topics=topics_of(OffsetCommitTopic, rows),
        )
        self._coordinator(group).on(lambda connection: _commit(connection, request))

    def _coordinator(self, group: str) -> CoordinatorConnection:
        return self._coordinators.setdefault(group, CoordinatorConnection(self._metadata, group))

    def _partitions(self, topic: str) -> tuple[int, ...]:
        self._metadata.forget(topic)
        listed = self._metadata.retry(lambda: self._metadata.topic(topic))
        return tuple(sorted(partition.partition_index for partition in listed.partitions)) if listed else ()


def _fetched(
    connection: ModernBrokerConnection, group: str, topics: tuple[OffsetFetchTopic, ...] | None
) -> CommittedOffsets:
    version = _coordinated(connection, OffsetFetchRequest.API)
    if topics is None and version < _ALL_SINCE:
        raise Unsupported("brokers before 0.10 return a group's offsets only for named topics: name the topics")
    stable = version >= _STABLE_SINCE
    if version < GROUPS_SINCE:
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
    else:
        request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group, topics=topics),), require_stable=stable)
    answer: Any = connection.request(request)
    if version >= GROUPS_SINCE:
        [answer] = answer.groups
    ErrorCode.check(answer.error_code, NOWHERE, right="DESCRIBE")
    for topic in answer.topics:
        check_listed_topic(topic.name, (partition.partition_index for partition in topic.partitions))
    return {
        topic.name: {
            BrokerPartition(None, partition.partition_index): _offset(topic.name, partition)
            for partition in topic.partitions
        }
        for topic in answer.topics
    }


def _offset(topic: str, answer: Any) -> int | None:
    if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None  # so 0.8.2 answers when the group has no offset
    where = Where(topic=topic, partition=answer.partition_index)
    ErrorCode.check(answer.error_code, where, right="DESCRIBE")
    if answer.committed_offset < _NO_OFFSET:
        raise Corrupt(f"the committed offset is {answer.committed_offset}, which is not valid", where)
    return None if answer.committed_offset == _NO_OFFSET else int(answer.committed_offset)


def _commit(connection: ModernBrokerConnection, request: OffsetCommitRequest) -> None:
    _coordinated(connection, OffsetCommitRequest.API)
    answer = connection.request(request)
    for partition, row in rows_by_partition(answer.topics).items():
        where = Where(topic=partition.topic, partition=partition.partition)
        ErrorCode.check(row.error_code, where, right="READ")


def _coordinated(connection: ModernBrokerConnection, api: Api[Any]) -> int:
    """The version of the API in which the coordinator stores the offsets."""
    version = connection.versions.pick(api)
    if version < _COORDINATED_SINCE:
        raise Unsupported(
            "brokers before 0.8.2 store no offsets: their groups keep them in ZooKeeper", connection.where
        )
    return version
