"""OffsetCommit: the offsets of a group, from its members or, while it has none, from anybody."""

import logging

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.groups.offsets import Committed, Place
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import BrokerError
from kafka_io.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)

logger = logging.getLogger(__name__)


def offset_commit(request: OffsetCommitRequest, node: Node, _caller: Caller) -> OffsetCommitResponse:
    """Whether each offset was kept; those that can be are."""
    refused = _refusal(request, node)
    codes: dict[Place, int] = {}
    fit: dict[Place, Committed] = {}
    for topic in request.topics:
        for one in topic.partitions:
            place = topic.name, one.partition_index
            codes[place] = refused or _code(topic.name, one, node)
            if not codes[place]:
                fit[place] = Committed(one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "")
    if fit:
        try:
            node.coordinator.offsets.commit(request.group_id, fit)
        except OSError:
            logger.exception("offsets of group %r could not be written", request.group_id)
            codes.update(dict.fromkeys(fit, Code.COORDINATOR_NOT_AVAILABLE))
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitTopicResponse(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitPartitionResponse(
                        partition_index=one.partition_index, error_code=codes[topic.name, one.partition_index]
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _refusal(request: OffsetCommitRequest, node: Node) -> int:
    """Why the group as a whole may not commit; 0 if it may."""
    try:
        group = node.coordinator.find(request.group_id)
        group.check_commit(request.member_id, request.generation_id_or_member_epoch)
    except BrokerError as error:
        return error.code
    return Code.NONE


def _code(topic: str, one: OffsetCommitPartition, node: Node) -> int:
    try:
        node.topics.find(topic).log(one.partition_index)
    except BrokerError as error:
        return error.code
    too_long = len((one.committed_metadata or "").encode()) > node.config.max_metadata_bytes
    return Code.OFFSET_METADATA_TOO_LARGE if too_long else Code.NONE
