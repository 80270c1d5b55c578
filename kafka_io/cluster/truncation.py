"""Detects that a log was truncated below what was read of it (KIP-320).

After an unclean leader election a log may have been truncated and written again, even to a greater length than before.
Then the leader epoch of the last record that was read ends before that record. Brokers from 2.1 on know the end of each
epoch.
"""

from collections.abc import Mapping
from functools import partial

from kafka_io.brokers.cluster_metadata import ClusterMetadata, Leader
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, AuthorizationFailed, Corrupt
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartition,
    LeaderEpochTopic,
    OffsetForLeaderEpochRequest,
)
from kafka_io.model import BrokerPartition

_UNKNOWN = -1


def find_truncations(
    metadata: ClusterMetadata, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]
) -> dict[BrokerPartition, int]:
    """The partitions whose logs were truncated below what was read, each with the first offset that differs.

    `read` has the next offset to read and the leader epoch of the last record for each partition. A partition counts as
    unchanged if its leader does not know the epoch, or if the client is not authorized to ask.

    Raises:
        NetworkError: a leader cannot be reached.
        LeaderMoved: a partition has no leader.
    """
    truncations = {}
    for partition, (offset, epoch) in sorted(read.items()):
        ask = partial(_end_of_epoch, topic, partition.partition, epoch)
        try:
            end = metadata.on_leader(topic, partition.partition, ask)
        except AuthorizationFailed:
            continue
        if _UNKNOWN < end < offset:
            truncations[partition] = end
    return truncations


def _end_of_epoch(topic: str, partition: int, epoch: int, leader: Leader) -> int:
    """The offset at which the epoch ends according to the leader."""
    epoch_request = LeaderEpochPartition(partition=partition, current_leader_epoch=leader.epoch, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(LeaderEpochTopic(topic=topic, partitions=(epoch_request,)),))
    answers = [answer for topic_ in leader.connection.request(request).topics for answer in topic_.partitions]
    if not answers:
        raise Corrupt("the answer lacks the requested partition")
    ErrorCode.check(answers[0].error_code, NOWHERE, right="DESCRIBE")
    return answers[0].end_offset
