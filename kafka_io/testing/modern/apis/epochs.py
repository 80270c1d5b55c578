"""OffsetForLeaderEpoch, and the check of leader epochs (KIP-320).

This broker is the leader of its partitions from their creation on, so each partition has one epoch only.
"""

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartition,
    LeaderEpochPartitionResponse,
    LeaderEpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka_io.testing.modern.log.header import LEADER_EPOCH
from kafka_io.testing.modern.node import BrokerNode, Caller

_UNDEFINED_EPOCH = -1


def check_epoch(epoch: int) -> None:
    """Check the leader epoch that a client knows.

    Raises:
        BrokerError: it is newer than that of the partition, for example after the topic was created again (code 75).
    """
    if epoch > LEADER_EPOCH:
        reason = f"the client knows leader epoch {epoch}, the partition is in epoch {LEADER_EPOCH}"
        raise BrokerError(reason, code=ErrorCode.UNKNOWN_LEADER_EPOCH)


def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, node: BrokerNode, _caller: Caller
) -> OffsetForLeaderEpochResponse:
    """The end of the requested epoch of each partition, which is the end of the log."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            LeaderEpochTopicResponse(
                topic=topic.topic,
                partitions=tuple(_end_of_epoch(topic.topic, partition, node) for partition in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _end_of_epoch(topic: str, request: LeaderEpochPartition, node: BrokerNode) -> LeaderEpochPartitionResponse:
    number = request.partition
    try:
        log = node.topics.find(topic).log(number)
        check_epoch(request.current_leader_epoch)
    except BrokerError as error:
        return LeaderEpochPartitionResponse(error_code=error.code, partition=number)
    if request.leader_epoch != LEADER_EPOCH:
        return LeaderEpochPartitionResponse(error_code=ErrorCode.NONE, partition=number, leader_epoch=_UNDEFINED_EPOCH)
    return LeaderEpochPartitionResponse(
        error_code=ErrorCode.NONE, partition=number, leader_epoch=LEADER_EPOCH, end_offset=log.end
    )
