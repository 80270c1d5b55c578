"""OffsetForLeaderEpoch: where a leader's epoch ends, so a reader sees that a log was cut behind it (KIP-320)."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


@struct
class LeaderEpochPartitionResponse:
    """The largest epoch not above the one asked for, and its end."""

    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = wire(since=1, default=-1, ignorable=True)  # KIP-279
    end_offset: Int64 = -1


@struct
class LeaderEpochTopicResponse:
    """One topic."""

    topic: String
    partitions: tuple[LeaderEpochPartitionResponse, ...]


@struct
class OffsetForLeaderEpochResponse:
    """The ends of epochs, by topic."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)
    topics: tuple[LeaderEpochTopicResponse, ...]


@struct
class LeaderEpochPartition:
    """The epoch whose end is asked for."""

    partition: Int32
    current_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)  # KIP-320: fences stale leaders
    leader_epoch: Int32


@struct
class LeaderEpochTopic:
    """One topic."""

    topic: String
    partitions: tuple[LeaderEpochPartition, ...]


@struct
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    """Epochs to look up on the brokers that lead the partitions. Readers are replica -2 or, before v3, say nothing."""

    API: ClassVar = Api(
        key=23, name="OffsetForLeaderEpoch", versions=(0, 4), flexible_from=4, answer=OffsetForLeaderEpochResponse
    )

    replica_id: Int32 = wire(since=3, default=-2, ignorable=True)
    topics: tuple[LeaderEpochTopic, ...]
