"""OffsetForLeaderEpoch: where a leader's epoch ends, so a reader sees that a log was cut behind it (KIP-320)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


class LeaderEpochPartitionResponse(Struct):
    """The largest epoch not above the one asked for, and its end."""

    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = wire(since=1, default=-1, ignorable=True)  # KIP-279
    end_offset: Int64 = -1


class LeaderEpochTopicResponse(Struct):
    """One topic."""

    topic: String
    partitions: tuple[LeaderEpochPartitionResponse, ...]


class OffsetForLeaderEpochResponse(Struct):
    """The ends of epochs, by topic."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)
    topics: tuple[LeaderEpochTopicResponse, ...]


class LeaderEpochPartition(Struct):
    """The epoch whose end is asked for."""

    partition: Int32
    current_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)  # KIP-320: fences stale leaders
    leader_epoch: Int32


class LeaderEpochTopic(Struct):
    """One topic."""

    topic: String
    partitions: tuple[LeaderEpochPartition, ...]


class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse], key=23, versions=(0, 4), flexible_from=4):
    """Epochs to look up on the brokers that lead the partitions. Readers are replica -2 or, before v3, say nothing."""

    replica_id: Int32 = wire(since=3, default=-2, ignorable=True)
    topics: tuple[LeaderEpochTopic, ...]
