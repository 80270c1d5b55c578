"""DescribeGroups: state and members of groups, asked from their coordinator."""

from typing import ClassVar

from kafka_io.messages.operations import NO_OPERATIONS
from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, String, WireBytes


@struct
class DescribedGroupMember:
    """A member, with what it said of itself and what it is to do."""

    member_id: String
    group_instance_id: String | None = wire(since=4, default=None, ignorable=True)  # KIP-345: static members
    client_id: String
    client_host: String
    member_metadata: WireBytes
    member_assignment: WireBytes


@struct
class DescribedGroup:
    """One group."""

    error_code: Int16
    error_message: String | None = wire(since=6, default=None)  # KIP-1043
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: tuple[DescribedGroupMember, ...]
    authorized_operations: Int32 = wire(since=3, default=NO_OPERATIONS)  # KIP-430


@struct
class DescribeGroupsResponse:
    """The groups that were asked for."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    groups: tuple[DescribedGroup, ...]


@struct
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    """Names of groups."""

    API: ClassVar = Api(key=15, name="DescribeGroups", versions=(0, 6), flexible_from=5, answer=DescribeGroupsResponse)

    groups: tuple[String, ...]
    include_authorized_operations: Bool = wire(since=3, default=False)  # KIP-430
