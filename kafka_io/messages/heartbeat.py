"""Heartbeat: a member of a group is alive; the answer says whether the group is being rebalanced."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int32, String


@struct
class HeartbeatResponse:
    """Whether the member still is one."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16


@struct
class HeartbeatRequest(Request[HeartbeatResponse]):
    """The member, and the generation it believes in."""

    API: ClassVar = Api(key=12, name="Heartbeat", versions=(0, 4), flexible_from=4, answer=HeartbeatResponse)

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-345: static members
