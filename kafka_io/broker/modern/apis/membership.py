"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: a member's life. The first two wait for the other members."""

from collections.abc import Iterable

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.groups.group import Group
from kafka_io.broker.modern.groups.member import Joining
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import BrokerError
from kafka_io.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_io.messages.join_group import (
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)
from kafka_io.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMember, LeftMember
from kafka_io.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NAME_FIRST_SINCE = 4  # KIP-394
_NULL_PROTOCOL_SINCE = 7
_MANY_SINCE = 3


def join_group(request: JoinGroupRequest, node: Node, caller: Caller) -> JoinGroupResponse:
    """The generation that begins once all members are there; the leader is told who they are."""
    name_first = caller.version >= _NAME_FIRST_SINCE
    try:
        _check_timeout(request, node)
        joined = node.coordinator.find(request.group_id).join(_joining(request, caller), name_first=name_first)
    except BrokerError as error:
        member_id = error.reason if error.code == Code.MEMBER_ID_REQUIRED else request.member_id
        return JoinGroupResponse(
            error_code=error.code,
            protocol_name=None if caller.version >= _NULL_PROTOCOL_SINCE else "",
            leader="",
            member_id=member_id,
            members=(),
        )
    members = (
        JoinGroupMember(
            member_id=one.member_id, group_instance_id=one.instance_id, metadata=one.metadata(joined.protocol)
        )
        for one in joined.members
    )
    return JoinGroupResponse(
        error_code=Code.NONE,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        member_id=joined.member_id,
        members=tuple(members),
    )


def sync_group(request: SyncGroupRequest, node: Node, _caller: Caller) -> SyncGroupResponse:
    """What the member is to do."""
    assignments = {one.member_id: bytes(one.assignment) for one in request.assignments}
    try:
        group = _known(request.group_id, node)
        assignment = group.sync(request.member_id, request.generation_id, assignments)
    except BrokerError as error:
        return SyncGroupResponse(error_code=error.code, assignment=b"")
    return SyncGroupResponse(
        error_code=Code.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=assignment,
    )


def heartbeat(request: HeartbeatRequest, node: Node, _caller: Caller) -> HeartbeatResponse:
    """Whether the member still is one, and its generation the last."""
    try:
        _known(request.group_id, node).beat(request.member_id, request.generation_id)
    except BrokerError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse(error_code=Code.NONE)


def leave_group(request: LeaveGroupRequest, node: Node, caller: Caller) -> LeaveGroupResponse:
    """Whether each member was let go; before v3 there is one, and its code is that of the answer."""
    if caller.version >= _MANY_SINCE:
        left = tuple(_left(request.members, request.group_id, node))
        return LeaveGroupResponse(error_code=Code.NONE, members=left)
    [one] = _left((LeavingMember(member_id=request.member_id),), request.group_id, node)
    return LeaveGroupResponse(error_code=one.error_code)


def _left(members: Iterable[LeavingMember], group: str, node: Node) -> Iterable[LeftMember]:
    for one in members:
        code = int(Code.NONE)
        try:
            _known(group, node).leave(one.member_id, one.group_instance_id)
        except BrokerError as error:
            code = error.code
        yield LeftMember(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)


def _known(name: str, node: Node) -> Group:
    """Raises BrokerError (code 25): a group that nobody joined has no members."""
    group = node.coordinator.known(name)
    if group is None:
        raise BrokerError(f"nobody has joined the group {name!r}", code=Code.UNKNOWN_MEMBER_ID)
    return group


def _check_timeout(request: JoinGroupRequest, node: Node) -> None:
    if not 0 < request.session_timeout_ms <= node.config.max_session_timeout_ms:
        raise BrokerError(f"a session of {request.session_timeout_ms} ms", code=Code.INVALID_SESSION_TIMEOUT)


def _joining(request: JoinGroupRequest, caller: Caller) -> Joining:
    rebalance_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms > 0 else request.session_timeout_ms
    return Joining(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.host,
        session_timeout_s=request.session_timeout_ms / 1000,
        rebalance_timeout_s=rebalance_ms / 1000,
        protocol_type=request.protocol_type,
        # Copied: a view would keep the whole request.
        protocols=tuple(JoinGroupProtocol(name=one.name, metadata=bytes(one.metadata)) for one in request.protocols),
    )
