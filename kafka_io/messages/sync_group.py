"""SyncGroup: the leader of a group says who does what, and every member is told its part."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int32, String, WireBytes


@struct
class SyncGroupResponse:
    """What the member that asked is to do."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16
    protocol_type: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559
    assignment: WireBytes


@struct
class SyncGroupAssignment:
    """What one member is to do."""

    member_id: String
    assignment: WireBytes


@struct
class SyncGroupRequest(Request[SyncGroupResponse]):
    """A member of this generation; only the leader sends assignments."""

    API: ClassVar = Api(key=14, name="SyncGroup", versions=(0, 5), flexible_from=4, answer=SyncGroupResponse)

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-345: static members
    protocol_type: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559
    assignments: tuple[SyncGroupAssignment, ...]
