"""ListGroups and DescribeGroups: for whoever looks at groups from outside."""

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.groups.group import State
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_io.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_DEAD = "Dead"  # of a group that does not exist
_TYPE = "classic"  # KIP-848 has another


def list_groups(request: ListGroupsRequest, node: Node, _caller: Caller) -> ListGroupsResponse:
    """The groups in the states and of the types asked for."""
    states = {one.lower() for one in request.states_filter}
    types = {one.lower() for one in request.types_filter}
    listed = (_listed(name, node) for name in node.coordinator.names())
    return ListGroupsResponse(
        error_code=Code.NONE,
        groups=tuple(
            one
            for one in listed
            if (not states or one.group_state.lower() in states) and (not types or one.group_type in types)
        ),
    )


def describe_groups(request: DescribeGroupsRequest, node: Node, _caller: Caller) -> DescribeGroupsResponse:
    """State and members of each group; one that is not known is dead."""
    return DescribeGroupsResponse(groups=tuple(_described(name, node) for name in request.groups))


def _listed(name: str, node: Node) -> ListedGroup:
    group = node.coordinator.known(name)
    return ListedGroup(
        group_id=name,
        protocol_type=group.protocol_type if group else "",
        group_state=group.state if group else State.EMPTY,
        group_type=_TYPE,
    )


def _described(name: str, node: Node) -> DescribedGroup:
    group = node.coordinator.known(name)
    if group is None:
        state = State.EMPTY if node.coordinator.offsets.of(name) else _DEAD
        return DescribedGroup(
            error_code=Code.NONE, group_id=name, group_state=state, protocol_type="", protocol_data="", members=()
        )
    members = (
        DescribedGroupMember(
            member_id=one.about.member_id,
            group_instance_id=one.about.instance_id,
            client_id=one.about.client_id,
            client_host=one.about.client_host,
            member_metadata=one.about.metadata(group.protocol),
            member_assignment=one.assignment,
        )
        for one in group.members()
    )
    return DescribedGroup(
        error_code=Code.NONE,
        group_id=name,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=tuple(members),
    )
