"""ListOffsets: asks leaders for the offset at a time, at the start of a log, or at its end.

The answer in v0 has several offsets for a partition, later versions have one.
"""

from kafka_io.messages.echoes import check_echo, partitions_in
from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import MIB, Request, wire
from kafka_io.wire.types import MANY_ITEMS, Int8, Int16, Int32, Int64

LATEST_TIME = -1
EARLIEST_TIME = -2
MAX_TIMESTAMP = -3  # from v7 on
MAX_SEGMENTS = MANY_ITEMS  # in v0: how many starts of segments to ask for, more than a log has
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class ListOffsetsPartitionResponse(PartitionRow):
    """The offset in one partition; `offset` is -1 if no record is as late as the requested time."""

    error_code: Int16
    old_style_offsets: tuple[Int64, ...] = wire(until=0, max_items=MANY_ITEMS, default=())
    timestamp: Int64 = wire(since=1, default=-1)  # KIP-79: the first record at or after a time
    offset: Int64 = wire(since=1, default=-1)  # KIP-79
    leader_epoch: Int32 = wire(since=4, default=-1)  # KIP-320


class ListOffsetsTopicResponse(TopicRows[ListOffsetsPartitionResponse]):
    """The partitions of one topic."""


class ListOffsetsResponse(ThrottledAnswer, since=2):
    """The offsets, by topic."""

    topics: tuple[ListOffsetsTopicResponse, ...] = wire(max_items=MANY_ITEMS)


class ListOffsetsPartition(PartitionRow):
    """The requested time, in milliseconds or as one of the constants above."""

    current_leader_epoch: Int32 = wire(since=4, default=-1, ignorable=True)  # KIP-320: fences stale leaders
    timestamp: Int64
    max_num_offsets: Int32 = wire(until=0, default=1)


class ListOffsetsTopic(TopicRows[ListOffsetsPartition]):
    """The partitions of one topic."""


class ListOffsetsRequest(
    Request[ListOffsetsResponse], key=2, versions=(0, 10), flexible_from=6, max_answer_bytes=32 * MIB
):
    """The partitions. The broker must be the leader of all of them."""

    replica_id: Int32 = -1
    isolation_level: Int8 = wire(since=2, default=READ_UNCOMMITTED)  # KIP-98: the last stable offset as the end
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Int32 = wire(since=10, default=0, ignorable=True)  # KIP-1075: for tiered storage

    def check_answer(self, answer: ListOffsetsResponse, _version: int, /) -> None:
        check_echo(partitions_in(self.topics), partitions_in(answer.topics))
