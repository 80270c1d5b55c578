"""Detects that a log was truncated below what was read of it (KIP-320).

After an unclean leader election a log may have been truncated and written again, even to a greater length than before.
Then the leader epoch of the last record that was read ends before that record. Brokers from 2.1 on know the end of each
epoch.
"""

from collections.abc import Mapping
from functools import partial

from kafka_io.brokers.cluster_metadata import ClusterMetadata, Leader
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartition,
    LeaderEpochPartitionResponse,
    LeaderEpochTopic,
    OffsetForLeaderEpochRequest,
)
from kafka_io.model import BrokerPartition, EpochEnd

_UNKNOWN = -1


def find_truncations(
    metadata: ClusterMetadata, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]
) -> dict[BrokerPartition, EpochEnd]:
    """The partitions whose logs were truncated below what was read, each with the first offset that differs.

    `read` has the next offset to read and the leader epoch of the last record for each partition. If the leader does
    not know the epoch or has no such API, or if the client is not authorized to ask, only records can show where the
    log is the one that was read (faults A01, F09).

    Raises:
        NetworkError: a leader cannot be reached.
        LeaderMoved: a partition has no leader.
    """
    truncations: dict[BrokerPartition, EpochEnd] = {}
    for partition, (offset, epoch) in sorted(read.items()):
        ask = partial(_end_of_epoch, topic, partition.partition, epoch)
        answer = metadata.on_leader(topic, partition.partition, ask)
        if answer.end_offset < offset:
            # The answer can be about an older epoch, the largest one that the leader knows. Its end is where the logs
            # diverge only if the leader has led or followed all that was read.
            end = answer.end_offset if answer.end_offset > _UNKNOWN else None
            truncations[partition] = EpochEnd(end, is_exact=end is not None and answer.leader_epoch == epoch)
    return truncations


def _end_of_epoch(topic: str, partition: int, epoch: int, leader: Leader) -> LeaderEpochPartitionResponse:
    """The answer of the leader about the end of the epoch; without an end, if the client cannot or may not ask."""
    if OffsetForLeaderEpochRequest.API.key not in leader.connection.versions.offered:
        return LeaderEpochPartitionResponse(error_code=ErrorCode.NONE, partition=partition)
    epoch_request = LeaderEpochPartition(partition=partition, current_leader_epoch=leader.epoch, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(LeaderEpochTopic(topic=topic, partitions=(epoch_request,)),))
    answers = [answer for topic_ in leader.connection.request(request).topics for answer in topic_.partitions]
    if not answers:
        raise Corrupt("the answer lacks the requested partition")
    if answers[0].error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        ErrorCode.check(answers[0].error_code, NOWHERE, right="DESCRIBE")
    return answers[0]
