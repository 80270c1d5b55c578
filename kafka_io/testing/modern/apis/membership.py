"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup. The first two wait for the other members of the group."""

from kafka_io.error_codes import ErrorCode
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
from kafka_io.testing.modern.groups.group import BrokerGroup
from kafka_io.testing.modern.groups.member import JoinAttempt
from kafka_io.testing.modern.node import BrokerNode, Caller

_REQUIRED_ID_SINCE = 4  # JoinGroup, KIP-394
_NULL_PROTOCOL_SINCE = 7  # JoinGroup
_BATCH_SINCE = 3  # LeaveGroup, KIP-345


def join_group(request: JoinGroupRequest, node: BrokerNode, caller: Caller) -> JoinGroupResponse:
    """The generation that begins when all members have outcome. The leader also receives the list of members."""
    try:
        _check_timeout(request, node)
        group = node.coordinator.find_or_create(request.group_id)
        require_member_id = caller.version >= _REQUIRED_ID_SINCE
        outcome = group.join(_join_attempt(request, caller), require_member_id=require_member_id)
    except BrokerError as error:
        member_id = error.reason if error.code == ErrorCode.MEMBER_ID_REQUIRED else request.member_id
        return JoinGroupResponse(
            error_code=error.code,
            protocol_name=None if caller.version >= _NULL_PROTOCOL_SINCE else "",
            leader="",
            member_id=member_id,
            members=(),
        )
    members = (
        JoinGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(outcome.protocol),
        )
        for member in outcome.members
    )
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=outcome.generation,
        protocol_type=outcome.protocol_type,
        protocol_name=outcome.protocol,
        leader=outcome.leader,
        member_id=outcome.member_id,
        members=tuple(members),
    )


def sync_group(request: SyncGroupRequest, node: BrokerNode, _caller: Caller) -> SyncGroupResponse:
    """The assignment of the member."""
    assignments = {assigned.member_id: bytes(assigned.assignment) for assigned in request.assignments}
    try:
        group = _joined_group(request.group_id, node)
        assignment = group.sync(request.member_id, request.generation_id, assignments)
    except BrokerError as error:
        return SyncGroupResponse(error_code=error.code, assignment=b"")
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=assignment,
    )


def heartbeat(request: HeartbeatRequest, node: BrokerNode, _caller: Caller) -> HeartbeatResponse:
    """An error code if the client is no longer a member, or its generation is no longer the present one."""
    try:
        _joined_group(request.group_id, node).heartbeat(request.member_id, request.generation_id)
    except BrokerError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse(error_code=ErrorCode.NONE)


def leave_group(request: LeaveGroupRequest, node: BrokerNode, caller: Caller) -> LeaveGroupResponse:
    """An error code for each member; before v3 there is one member, and its code is that of the answer."""
    if caller.version >= _BATCH_SINCE:
        members = tuple(_leave(member, request.group_id, node) for member in request.members)
        return LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)
    member = _leave(LeavingMember(member_id=request.member_id), request.group_id, node)
    return LeaveGroupResponse(error_code=member.error_code)


def _leave(member: LeavingMember, group: str, node: BrokerNode) -> LeftMember:
    code = int(ErrorCode.NONE)
    try:
        _joined_group(group, node).leave(member.member_id, member.group_instance_id)
    except BrokerError as error:
        code = error.code
    return LeftMember(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code)


def _joined_group(name: str, node: BrokerNode) -> BrokerGroup:
    """A group that members have joined.

    Raises:
        BrokerError: no client has ever joined it, so the sender is not a member (code 25).
    """
    group = node.coordinator.find(name)
    if group is None:
        raise BrokerError(f"no member has joined the group {name!r}", code=ErrorCode.UNKNOWN_MEMBER_ID)
    return group


def _check_timeout(request: JoinGroupRequest, node: BrokerNode) -> None:
    max_timeout_ms = node.config.max_session_timeout_ms
    if not 0 < request.session_timeout_ms <= max_timeout_ms:
        reason = f"a session timeout of {request.session_timeout_ms} ms is not between 1 and {max_timeout_ms}"
        raise BrokerError(reason, code=ErrorCode.INVALID_SESSION_TIMEOUT)


def _join_attempt(request: JoinGroupRequest, caller: Caller) -> JoinAttempt:
    # v0 has no rebalance timeout; the session timeout is used for both.
    rebalance_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms > 0 else request.session_timeout_ms
    return JoinAttempt(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.host,
        session_timeout_s=request.session_timeout_ms / 1000,
        rebalance_timeout_s=rebalance_ms / 1000,
        protocol_type=request.protocol_type,
        # The metadata is copied, because a view would keep the whole request in memory.
        protocols=tuple(
            JoinGroupProtocol(name=protocol.name, metadata=bytes(protocol.metadata)) for protocol in request.protocols
        ),
    )
