"""SyncGroup: the leader of a group sends the assignments, and every member receives its own."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int32, String, WireBytes


class SyncGroupResponse(Struct):
    """The assignment of the member."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16
    protocol_type: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559
    assignment: WireBytes


class SyncGroupAssignment(Struct):
    """The assignment of one member."""

    member_id: String
    assignment: WireBytes


class SyncGroupRequest(Request[SyncGroupResponse], key=14, versions=(0, 5), flexible_from=4):
    """A member of this generation. Only the leader sends assignments."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-345: static members
    protocol_type: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559
    assignments: tuple[SyncGroupAssignment, ...]
