"""FindCoordinator, ListGroups and DescribeGroups: requests about groups that need no membership."""

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_io.messages.find_coordinator import (
    GROUP,
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from kafka_io.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka_io.model import Broker
from kafka_io.testing.modern.groups.group import BrokerGroupMember
from kafka_io.testing.modern.node import BrokerNode, Caller

_DEAD = "Dead"  # the state of a group that does not exist
_CLASSIC = "classic"  # the other type is that of KIP-848, which this broker does not have
_BATCH_SINCE = 4  # the version of FindCoordinator with several keys (KIP-699)
_NO_BROKER = Broker(-1, "", -1)


def find_coordinator(request: FindCoordinatorRequest, node: BrokerNode, caller: Caller) -> FindCoordinatorResponse:
    """This broker, which coordinates all groups and transactions."""
    is_known_type = request.key_type in {GROUP, TRANSACTION}
    broker, code = (node.broker, ErrorCode.NONE) if is_known_type else (_NO_BROKER, ErrorCode.INVALID_REQUEST)
    if caller.version < _BATCH_SINCE:
        return FindCoordinatorResponse(error_code=code, node_id=broker.id, host=broker.host, port=broker.port)
    return FindCoordinatorResponse(
        coordinators=tuple(
            FoundCoordinator(key=key, node_id=broker.id, host=broker.host, port=broker.port, error_code=code)
            for key in request.coordinator_keys
        )
    )


def list_groups(request: ListGroupsRequest, node: BrokerNode, _caller: Caller) -> ListGroupsResponse:
    """The groups with one of the requested states and types; an empty filter lists all."""
    states = {state.lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    groups = ((name, node.coordinator.find(name)) for name in node.coordinator.names())
    return ListGroupsResponse(
        error_code=ErrorCode.NONE,
        groups=tuple(
            ListedGroup(group_id=name, protocol_type=group.protocol_type, group_state=group.state, group_type=_CLASSIC)
            for name, group in groups
            if (not states or group.state.lower() in states) and (not types or _CLASSIC in types)
        ),
    )


def describe_groups(request: DescribeGroupsRequest, node: BrokerNode, _caller: Caller) -> DescribeGroupsResponse:
    """The state and the members of each group. A group that does not exist is dead."""
    return DescribeGroupsResponse(groups=tuple(_describe_group(name, node) for name in request.groups))


def _describe_group(name: str, node: BrokerNode) -> DescribedGroup:
    group = node.coordinator.find(name)
    protocol = group.protocol
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=name,
        group_state=group.state if name in node.coordinator.names() else _DEAD,
        protocol_type=group.protocol_type,
        protocol_data=protocol,
        members=tuple(_describe_member(member, protocol) for member in group.members()),
    )


def _describe_member(member: BrokerGroupMember, protocol: str) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.request.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.protocols.get(protocol, b""),
        member_assignment=member.assignment,
    )
