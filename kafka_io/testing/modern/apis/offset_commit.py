"""OffsetCommit: the offsets of a group. Its members commit them; any client may if the group has no members."""

import logging

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka_io.model import TopicPartition
from kafka_io.testing.modern.groups.offsets import CommittedOffset
from kafka_io.testing.modern.node import BrokerNode, Caller

logger = logging.getLogger(__name__)


def offset_commit(request: OffsetCommitRequest, node: BrokerNode, _caller: Caller) -> OffsetCommitResponse:
    """An error code for each offset. The valid offsets are stored even if others are refused."""
    group_code = _check_group(request, node)
    codes: dict[TopicPartition, int] = {}
    valid: dict[TopicPartition, CommittedOffset] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            codes[topic_partition] = group_code or _check_offset(topic.name, partition, node)
            if not codes[topic_partition]:
                valid[topic_partition] = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata or ""
                )
    if valid:
        try:
            node.coordinator.offsets.commit(request.group_id, valid)
        except OSError:
            logger.exception("the offsets of group %r cannot be written", request.group_id)
            codes.update(dict.fromkeys(valid, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitTopicResponse(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitPartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=codes[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _check_group(request: OffsetCommitRequest, node: BrokerNode) -> int:
    """The error code if the client may not commit offsets of the group, else 0."""
    try:
        group = node.coordinator.find_or_create(request.group_id)
        group.check_commit(request.member_id, request.generation_id_or_member_epoch)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def _check_offset(topic: str, partition: OffsetCommitPartition, node: BrokerNode) -> int:
    """The error code if the offset of this partition may not be committed, else 0."""
    try:
        node.topics.find(topic).log(partition.partition_index)
    except BrokerError as error:
        return error.code
    too_long = len((partition.committed_metadata or "").encode()) > node.config.max_metadata_bytes
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_long else ErrorCode.NONE
