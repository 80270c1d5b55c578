"""LeaveGroup: members go, so the group need not wait for their time to run out. Many at once from v3 on (KIP-345)."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int32, String


@struct
class LeftMember:
    """Whether one member was let go."""

    member_id: String
    group_instance_id: String | None = None
    error_code: Int16


@struct
class LeaveGroupResponse:
    """Whether they were let go."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16
    members: tuple[LeftMember, ...] = wire(since=3, default=())  # KIP-345: many at once


@struct
class LeavingMember:
    """One member, by its id or its static name."""

    member_id: String
    group_instance_id: String | None = None
    reason: String | None = wire(since=5, default=None, ignorable=True)  # KIP-800


@struct
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    """Who leaves: `member_id` up to v2, `members` from v3 on."""

    API: ClassVar = Api(key=13, name="LeaveGroup", versions=(0, 5), flexible_from=4, answer=LeaveGroupResponse)

    group_id: String
    member_id: String = wire(until=2, default="")
    members: tuple[LeavingMember, ...] = wire(since=3, default=())  # KIP-345: many at once
