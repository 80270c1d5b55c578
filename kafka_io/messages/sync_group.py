"""SyncGroup: the leader of a group sends the assignments, and every member receives its own."""

from kafka_io.messages.shared import MemberOfGeneration, ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, String, WireBytes


class SyncGroupResponse(ThrottledAnswer, since=1):
    """The assignment of the member."""

    error_code: Int16
    protocol_type: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559
    assignment: WireBytes


class SyncGroupAssignment(Struct):
    """The assignment of one member."""

    member_id: String
    assignment: WireBytes


class SyncGroupRequest(Request[SyncGroupResponse], MemberOfGeneration, key=14, versions=(0, 5), flexible_from=4):
    """A member of this generation. Only the leader sends assignments."""

    protocol_type: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(since=5, default=None, ignorable=True)  # KIP-559
    assignments: tuple[SyncGroupAssignment, ...]
