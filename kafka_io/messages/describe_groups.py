"""DescribeGroups: asks a coordinator for the state and the members of its groups."""

from kafka_io.messages.echoes import check_complete_echo
from kafka_io.messages.metadata import NO_OPERATIONS
from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, String, WireBytes


class DescribedGroupMember(Struct):
    """A member: its own metadata, and its assignment from the leader of the group."""

    member_id: String
    group_instance_id: String | None = wire(since=4, default=None, ignorable=True)  # KIP-345: static members
    client_id: String
    client_host: String
    member_metadata: WireBytes
    member_assignment: WireBytes


class DescribedGroup(Struct):
    """The state and the members of one group."""

    error_code: Int16
    error_message: String | None = wire(since=6, default=None)  # KIP-1043
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: tuple[DescribedGroupMember, ...]
    authorized_operations: Int32 = wire(since=3, default=NO_OPERATIONS)  # KIP-430


class DescribeGroupsResponse(ThrottledAnswer, since=1):
    """One entry for each group of the request."""

    groups: tuple[DescribedGroup, ...]


class DescribeGroupsRequest(Request[DescribeGroupsResponse], key=15, versions=(0, 6), flexible_from=5):
    """The names of the groups."""

    groups: tuple[String, ...]
    include_authorized_operations: Bool = wire(since=3, default=False)  # KIP-430

    def check_answer(self, answer: DescribeGroupsResponse, _version: int, /) -> None:
        check_complete_echo(((group,) for group in self.groups), ((group.group_id,) for group in answer.groups))
