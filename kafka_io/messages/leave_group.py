"""LeaveGroup: members go, so the group need not wait for their time to run out. Many at once from v3 on (KIP-345)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int32, String


class LeftMember(Struct):
    """Whether one member was let go."""

    member_id: String
    group_instance_id: String | None = None
    error_code: Int16


class LeaveGroupResponse(Struct):
    """Whether they were let go."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16
    members: tuple[LeftMember, ...] = wire(since=3, default=())  # KIP-345: many at once


class LeavingMember(Struct):
    """One member, by its id or its static name."""

    member_id: String
    group_instance_id: String | None = None
    reason: String | None = wire(since=5, default=None, ignorable=True)  # KIP-800


class LeaveGroupRequest(Request[LeaveGroupResponse], key=13, versions=(0, 5), flexible_from=4):
    """Who leaves: `member_id` up to v2, `members` from v3 on."""

    group_id: String
    member_id: String = wire(until=2, default="")
    members: tuple[LeavingMember, ...] = wire(since=3, default=())  # KIP-345: many at once
