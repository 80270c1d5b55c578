"""Whether a log still is the one that was read: where the epoch ends in which its reader last knew it (KIP-320).

After an unclean election a log may have been cut and written anew, up to where it was or beyond. The end of an old
epoch then lies before what was read of it. Brokers from 2.1 on tell their leaders' epochs.
"""

from collections.abc import Mapping

from kafka_io.client.modern.brokers import Brokers, Leader
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import NOWHERE, AuthorizationFailed, Corrupt
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartition,
    LeaderEpochPartitionResponse,
    LeaderEpochTopic,
    OffsetForLeaderEpochRequest,
)

_UNKNOWN = -1


def partings(brokers: Brokers, topic: str, read: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Of partitions read up to (offset, in epoch): the offset from which on the log is another, where it is.

    A partition whose leader knows nothing of the epoch is taken for unchanged, and so is all if we may not ask.

    Raises:
        NetworkError: a leader cannot be reached.
        LeaderMoved: a partition has none.
    """
    found = {}
    for partition, (offset, epoch) in sorted(read.items()):
        end = _end_of(brokers, topic, partition, epoch)
        if end is not None and end < offset:
            found[partition] = end
    return found


def _end_of(brokers: Brokers, topic: str, partition: int, epoch: int) -> int | None:
    def ask(leader: Leader) -> LeaderEpochPartitionResponse:
        asked = LeaderEpochPartition(partition=partition, current_leader_epoch=leader.epoch, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=(LeaderEpochTopic(topic=topic, partitions=(asked,)),))
        answers = [one for each in leader.link.request(request).topics for one in each.partitions]
        if [one.partition for one in answers] != [partition]:
            raise Corrupt("an answer without the partition that was asked for, or with others")
        check(answers[0].error_code, NOWHERE, MODERN)
        return answers[0]

    try:
        answer = brokers.on_leader(topic, partition, ask)
    except AuthorizationFailed:
        return None
    return None if answer.end_offset == _UNKNOWN else answer.end_offset
