"""OffsetFetch: the committed offsets of groups; -1 for a partition without one."""

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka_io.messages.shared import topics_of
from kafka_io.model import TopicPartition
from kafka_io.testing.modern.groups.offsets import CommittedOffset
from kafka_io.testing.modern.node import BrokerNode, Caller

_BATCH_SINCE = 8  # the version with several groups (KIP-709)
_NO_OFFSET = -1


def offset_fetch(request: OffsetFetchRequest, node: BrokerNode, caller: Caller) -> OffsetFetchResponse:
    """The requested offsets, or all offsets: of one group up to v7, of several groups from v8 on."""
    stable = request.require_stable
    if caller.version < _BATCH_SINCE:
        return OffsetFetchResponse(topics=_fetch_topics(request, node, stable=stable))
    return OffsetFetchResponse(
        groups=tuple(
            OffsetFetchGroupResponse(group_id=group.group_id, topics=_fetch_topics(group, node, stable=stable))
            for group in request.groups
        )
    )


def _fetch_topics(
    request: OffsetFetchRequest | OffsetFetchGroup, node: BrokerNode, *, stable: bool
) -> tuple[OffsetFetchTopicResponse, ...]:
    """The committed offsets of the requested partitions, by topic. Without `topics` all partitions are requested.

    With `stable`, an error code replaces each offset that an open transaction will change when it commits (KIP-447).
    """
    offsets = node.coordinator.offsets.of(request.group_id)
    pending = node.transactions.pending(request.group_id) if stable else frozenset()
    if request.topics is None:
        requested = sorted(offsets)
    else:
        requested = [TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    rows = {}
    for partition in requested:
        is_pending = partition in pending
        no_offset = CommittedOffset(partition.topic, partition.partition, _NO_OFFSET)
        committed = no_offset if is_pending else offsets.get(partition, no_offset)
        rows[partition] = OffsetFetchPartitionResponse(
            partition_index=committed.partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT if is_pending else ErrorCode.NONE,
        )
    return topics_of(OffsetFetchTopicResponse, rows)
