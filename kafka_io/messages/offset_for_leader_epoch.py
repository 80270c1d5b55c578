"""OffsetForLeaderEpoch: asks where an epoch ends, so that a reader detects a truncated log (KIP-320)."""

from kafka_io.messages.echoes import check_echo, partitions_in
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


class LeaderEpochPartitionResponse(Struct):
    """The largest epoch that is not above the requested one, and its end."""

    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = wire(since=1, default=-1, ignorable=True)  # KIP-279
    end_offset: Int64 = -1


class LeaderEpochTopicResponse(Struct):
    """The partitions of one topic."""

    topic: String
    partitions: tuple[LeaderEpochPartitionResponse, ...]


class OffsetForLeaderEpochResponse(Struct):
    """The ends of the epochs, by topic."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)  # KIP-320: clients send this request too
    topics: tuple[LeaderEpochTopicResponse, ...]


class LeaderEpochPartition(Struct):
    """The epoch whose end is requested."""

    partition: Int32
    current_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)  # KIP-320: fences stale leaders
    leader_epoch: Int32


class LeaderEpochTopic(Struct):
    """The partitions of one topic."""

    topic: String
    partitions: tuple[LeaderEpochPartition, ...]


class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse], key=23, versions=(0, 4), flexible_from=4):
    """The partitions. The broker must be the leader of all of them. A client sends replica id -2."""

    replica_id: Int32 = wire(since=3, default=-2, ignorable=True)  # KIP-392: clients see ends up to the high watermark
    topics: tuple[LeaderEpochTopic, ...]

    def check_answer(self, answer: OffsetForLeaderEpochResponse, _version: int, /) -> None:
        names = {"topic": "topic", "partition": "partition"}
        check_echo(partitions_in(self.topics, **names), partitions_in(answer.topics, **names))
