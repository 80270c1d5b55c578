"""OffsetCommit: the offsets of a group. Its members commit them; any client may if the group has no members."""

from dataclasses import replace

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka_io.messages.shared import answered
from kafka_io.messages.txn_offset_commit import TxnOffsetCommitPartition
from kafka_io.testing.modern.apis.results import error_code
from kafka_io.testing.modern.groups.offsets import CommittedOffset
from kafka_io.testing.modern.node import BrokerNode, Caller


def committed_offset(topic: str, request: OffsetCommitPartition | TxnOffsetCommitPartition) -> CommittedOffset:
    """The offset that a request commits for one partition, as it is stored."""
    metadata = request.committed_metadata or ""
    return CommittedOffset(
        topic, request.partition_index, request.committed_offset, request.committed_leader_epoch, metadata
    )


def offset_commit(request: OffsetCommitRequest, node: BrokerNode, _caller: Caller) -> OffsetCommitResponse:
    """An error code for each offset. The valid offsets are stored even if others are refused."""
    group_code = error_code(lambda: _check_group(request, node))
    valid: list[CommittedOffset] = []

    def check(topic: str, partition: OffsetCommitPartition) -> OffsetCommitPartitionResponse:
        committed = committed_offset(topic, partition)
        code = group_code or error_code(lambda: _check_offset(committed, node))
        if not code:
            valid.append(committed)
        return OffsetCommitPartitionResponse(partition_index=partition.partition_index, error_code=code)

    checked = answered(OffsetCommitTopicResponse, request.topics, check)
    stored_code = error_code(
        lambda: node.coordinator.offsets.commit(request.group_id, valid) if valid else None,
        disk_error=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    )

    def stored(_topic: str, row: OffsetCommitPartitionResponse) -> OffsetCommitPartitionResponse:
        return replace(row, error_code=row.error_code or stored_code)

    return OffsetCommitResponse(topics=answered(OffsetCommitTopicResponse, checked, stored))


def _check_group(request: OffsetCommitRequest, node: BrokerNode) -> None:
    """Check that the client may commit offsets of the group."""
    group = node.coordinator.find_or_create(request.group_id)
    group.check_commit(request.member_id, request.generation_id_or_member_epoch)


def _check_offset(committed: CommittedOffset, node: BrokerNode) -> None:
    """Check that the partition exists, and that the text is short enough."""
    node.topics.find(committed.topic).log(committed.partition)
    size, max_bytes = len(committed.metadata.encode()), node.config.max_metadata_bytes
    if size > max_bytes:
        reason = f"{size} bytes of metadata, max_metadata_bytes is {max_bytes}"
        raise BrokerError(reason, code=ErrorCode.OFFSET_METADATA_TOO_LARGE)
