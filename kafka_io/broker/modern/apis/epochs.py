"""Leader epochs (KIP-320). This broker has led its partitions from the start, in the first epoch of all."""

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.log.header import LEADER_EPOCH
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import BrokerError
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartition,
    LeaderEpochPartitionResponse,
    LeaderEpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

_NONE = -1


def check_epoch(epoch: int) -> None:
    """The epoch a client knows of is the partition's.

    Raises:
        BrokerError: it is from another life of the partition (code 75).
    """
    if epoch > LEADER_EPOCH:
        raise BrokerError(f"leader epoch {epoch}, it is {LEADER_EPOCH}", code=Code.UNKNOWN_LEADER_EPOCH)


def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, node: Node, _caller: Caller
) -> OffsetForLeaderEpochResponse:
    """Where the only epoch ends: at the end of the log."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            LeaderEpochTopicResponse(
                topic=topic.topic, partitions=tuple(_end(topic.topic, one, node) for one in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _end(topic: str, asked: LeaderEpochPartition, node: Node) -> LeaderEpochPartitionResponse:
    try:
        log = node.topics.find(topic).log(asked.partition)
        check_epoch(asked.current_leader_epoch)
    except BrokerError as error:
        return LeaderEpochPartitionResponse(error_code=error.code, partition=asked.partition)
    if asked.leader_epoch != LEADER_EPOCH:
        return LeaderEpochPartitionResponse(error_code=Code.NONE, partition=asked.partition, leader_epoch=_NONE)
    return LeaderEpochPartitionResponse(
        error_code=Code.NONE, partition=asked.partition, leader_epoch=LEADER_EPOCH, end_offset=log.end
    )
