"""OffsetFetch: the offsets a group has committed. From v8 on it asks for many groups at once (KIP-709)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String


class OffsetFetchPartitionResponse(Struct):
    """One partition, up to v7; the offset is -1 when none was committed."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=5, default=-1, ignorable=True)  # KIP-320: detects truncation
    metadata: String | None
    error_code: Int16


class OffsetFetchTopicResponse(Struct):
    """One topic, up to v7."""

    name: String
    partitions: tuple[OffsetFetchPartitionResponse, ...]


class OffsetFetchGroupResponse(Struct):
    """One group, from v8 on."""

    group_id: String
    topics: tuple[OffsetFetchTopicResponse, ...]
    error_code: Int16 = 0


class OffsetFetchResponse(Struct):
    """Committed offsets: `topics` up to v7, `groups` from v8 on."""

    throttle_time_ms: Int32 = wire(since=3, default=0, ignorable=True)  # KIP-124: request quotas
    topics: tuple[OffsetFetchTopicResponse, ...] = wire(until=7, default=())
    error_code: Int16 = wire(since=2, until=7, default=0, ignorable=True)  # KIP-88
    groups: tuple[OffsetFetchGroupResponse, ...] = wire(since=8, default=())  # KIP-709: many groups at once


class OffsetFetchTopic(Struct):
    """One topic, up to v7."""

    name: String
    partition_indexes: tuple[Int32, ...]


class OffsetFetchGroup(Struct):
    """One group, from v8 on; None are all topics with an offset. The member is one of the new protocol (KIP-848)."""

    group_id: String
    member_id: String | None = wire(since=9, default=None, ignorable=True)  # KIP-848
    member_epoch: Int32 = wire(since=9, default=-1, ignorable=True)  # KIP-848
    topics: tuple[OffsetFetchTopic, ...] | None


class OffsetFetchRequest(Request[OffsetFetchResponse], key=9, versions=(0, 9), flexible_from=6):
    """Whose offsets to look up: `group_id` and `topics` up to v7, where from v2 on None is all; `groups` from v8 on."""

    group_id: String = wire(until=7, default="")
    topics: tuple[OffsetFetchTopic, ...] | None = wire(until=7, null_since=2, default=())  # KIP-88: null for all topics
    groups: tuple[OffsetFetchGroup, ...] = wire(since=8, default=())  # KIP-709: many groups at once
    require_stable: Bool = wire(since=7, default=False)  # KIP-447: waits for pending transactions
