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
from kafka_io.testing.modern.apis.results import attempt
from kafka_io.testing.modern.log.header import LEADER_EPOCH
from kafka_io.testing.modern.node import BrokerNode, Caller

_UNDEFINED = (-1, -1)  # the epoch and its end


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

    def end_of_epoch(topic: str, partition: LeaderEpochPartition) -> LeaderEpochPartitionResponse:
        end = attempt(lambda: _end_of_epoch(topic, partition, node), _UNDEFINED)
        epoch, end_offset = end.value
        return LeaderEpochPartitionResponse(
            error_code=end.code, partition=partition.partition, leader_epoch=epoch, end_offset=end_offset
        )

    return OffsetForLeaderEpochResponse(
        topics=tuple(
            LeaderEpochTopicResponse(
                topic=topic.topic, partitions=tuple(end_of_epoch(topic.topic, row) for row in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _end_of_epoch(topic: str, request: LeaderEpochPartition, node: BrokerNode) -> tuple[int, int]:
    log = node.topics.find(topic).log(request.partition)
    check_epoch(request.current_leader_epoch)
    return (LEADER_EPOCH, log.end) if request.leader_epoch == LEADER_EPOCH else _UNDEFINED
