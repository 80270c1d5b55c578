"""ListOffsets: the offset at a time, at the log's start or at its end. v0 answers with many, the rest with one."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int8, Int16, Int32, Int64, String

LATEST_TIME = -1
EARLIEST_TIME = -2
MAX_TIMESTAMP = -3  # v7 on
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class ListOffsetsPartitionResponse(Struct):
    """One partition; `offset` is -1 when no record is as late as the time that was asked for."""

    partition_index: Int32
    error_code: Int16
    old_style_offsets: tuple[Int64, ...] = wire(until=0, default=())
    timestamp: Int64 = wire(since=1, default=-1)  # KIP-79: the first record at a time
    offset: Int64 = wire(since=1, default=-1)  # KIP-79
    leader_epoch: Int32 = wire(since=4, default=-1)  # KIP-320


class ListOffsetsTopicResponse(Struct):
    """One topic."""

    name: String
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Struct):
    """Offsets by topic."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)  # KIP-124: request quotas
    topics: tuple[ListOffsetsTopicResponse, ...]


class ListOffsetsPartition(Struct):
    """The time asked for, in milliseconds or one of the names above."""

    partition_index: Int32
    current_leader_epoch: Int32 = wire(since=4, default=-1, ignorable=True)  # KIP-320: fences stale leaders
    timestamp: Int64
    max_num_offsets: Int32 = wire(until=0, default=1)


class ListOffsetsTopic(Struct):
    """One topic."""

    name: String
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Request[ListOffsetsResponse], key=2, versions=(0, 10), flexible_from=6):
    """Offsets to look up on the leader of each partition."""

    replica_id: Int32 = -1
    isolation_level: Int8 = wire(since=2, default=READ_UNCOMMITTED)  # KIP-98: the last stable offset as the end
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Int32 = wire(since=10, default=0, ignorable=True)  # KIP-1075: for tiered storage
