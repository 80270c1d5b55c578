"""Heartbeat: shows that a member of a group is alive. The answer says whether the group rebalances."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int32, String


class HeartbeatResponse(Struct):
    """The error code if the group rebalances, or no longer has the member."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16


class HeartbeatRequest(Request[HeartbeatResponse], key=12, versions=(0, 4), flexible_from=4):
    """The member, and the generation of the group that it knows."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-345: static members
