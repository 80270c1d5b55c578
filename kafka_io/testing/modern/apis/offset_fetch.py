"""OffsetFetch: the committed offsets of groups; -1 for a partition without one."""

from collections import defaultdict
from collections.abc import Iterable

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResponse,
)
from kafka_io.model import TopicPartition
from kafka_io.testing.modern.groups.offsets import CommittedOffset
from kafka_io.testing.modern.node import BrokerNode, Caller

_BATCH_SINCE = 8  # the version with several groups (KIP-709)
_NO_OFFSET = CommittedOffset(-1)
_Rows = list[tuple[int, CommittedOffset, ErrorCode]]  # partition, offset, error code
_Topics = Iterable[OffsetFetchTopic] | None


def offset_fetch(request: OffsetFetchRequest, node: BrokerNode, caller: Caller) -> OffsetFetchResponse:
    """The requested offsets, or all offsets: of one group up to v7, of several groups from v8 on."""
    stable = request.require_stable
    if caller.version >= _BATCH_SINCE:
        return OffsetFetchResponse(
            groups=tuple(_group_response(group, node, stable=stable) for group in request.groups)
        )
    return OffsetFetchResponse(topics=_topic_responses(request.group_id, request.topics, node, stable=stable))


def _group_response(group: OffsetFetchGroup, node: BrokerNode, *, stable: bool) -> OffsetFetchGroupResponse:
    topics = _topic_responses(group.group_id, group.topics, node, stable=stable)
    return OffsetFetchGroupResponse(group_id=group.group_id, topics=topics)


def _topic_responses(
    group: str, topics: _Topics, node: BrokerNode, *, stable: bool
) -> tuple[OffsetFetchTopicResponse, ...]:
    rows_by_topic = _rows_by_topic(group, topics, node, stable=stable)
    return tuple(
        OffsetFetchTopicResponse(name=name, partitions=tuple(_partition_response(*row) for row in rows))
        for name, rows in rows_by_topic
    )


def _partition_response(number: int, committed: CommittedOffset, code: ErrorCode) -> OffsetFetchPartitionResponse:
    return OffsetFetchPartitionResponse(
        partition_index=number,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )


def _rows_by_topic(group: str, topics: _Topics, node: BrokerNode, *, stable: bool) -> Iterable[tuple[str, _Rows]]:
    """The committed offsets of the requested partitions, by topic. Without `topics` all partitions are requested.

    With `stable`, an error code replaces each offset that an open transaction will change when it commits (KIP-447).
    """
    offsets = node.coordinator.offsets.of(group)
    pending = node.transactions.pending(group) if stable else frozenset[TopicPartition]()
    if topics is None:
        requested = sorted(offsets)
    else:
        requested = [TopicPartition(topic.name, number) for topic in topics for number in topic.partition_indexes]
    rows: defaultdict[str, _Rows] = defaultdict(list)
    for partition in requested:
        is_pending = partition in pending
        committed = _NO_OFFSET if is_pending else offsets.get(partition, _NO_OFFSET)
        code = ErrorCode.UNSTABLE_OFFSET_COMMIT if is_pending else ErrorCode.NONE
        rows[partition.topic].append((partition.partition, committed, code))
    return rows.items()
