"""LeaveGroup: removes members from a group before their session times out.

From v3 on one request removes several members (KIP-345).
"""

from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, String


class LeftMember(Struct):
    """The error code if one member was not removed."""

    member_id: String
    group_instance_id: String | None = None
    error_code: Int16


class LeaveGroupResponse(ThrottledAnswer, since=1):
    """The error code if the request failed; from v3 on one result for each member."""

    error_code: Int16
    members: tuple[LeftMember, ...] = wire(since=3, default=())  # KIP-345: many at once


class LeavingMember(Struct):
    """A member that leaves, by its member id or its static id."""

    member_id: String
    group_instance_id: String | None = None
    reason: String | None = wire(since=5, default=None, ignorable=True)  # KIP-800


class LeaveGroupRequest(Request[LeaveGroupResponse], key=13, versions=(0, 5), flexible_from=4):
    """The members that leave: `member_id` up to v2, `members` from v3 on."""

    group_id: String
    member_id: String = wire(until=2, default="")
    members: tuple[LeavingMember, ...] = wire(since=3, default=())  # KIP-345: many at once
