"""JoinGroup: joins the next generation of a group. The answer waits until all members have joined."""

from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, String, WireBytes


class JoinGroupMember(Struct):
    """A member and its metadata; only the leader of the group receives the members."""

    member_id: String
    group_instance_id: String | None = wire(since=5, default=None, ignorable=True)  # KIP-345: static members
    metadata: WireBytes


class JoinGroupResponse(ThrottledAnswer, since=2):
    """The generation, and the leader of the group."""

    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: String | None = wire(since=7, default=None, ignorable=True)  # KIP-559: for proxies
    protocol_name: String | None = wire(null_since=7)  # KIP-559
    leader: String
    skip_assignment: Bool = wire(since=9, default=False)  # KIP-814: a static leader keeps the assignment
    member_id: String
    members: tuple[JoinGroupMember, ...]


class JoinGroupProtocol(Struct):
    """An assignor that the member supports, and the member's metadata for it."""

    name: String
    metadata: WireBytes


class JoinGroupRequest(Request[JoinGroupResponse], key=11, versions=(0, 9), flexible_from=6):
    """The member that joins.

    A new member has an empty id. From v4 on the broker then answers with an id, and the member joins again with it.
    """

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = wire(since=1, default=-1, ignorable=True)  # KIP-62: separate from the session timeout
    member_id: String
    group_instance_id: String | None = wire(since=5, default=None)  # KIP-345: static members
    protocol_type: String
    protocols: tuple[JoinGroupProtocol, ...]
    reason: String | None = wire(since=8, default=None, ignorable=True)  # KIP-800
