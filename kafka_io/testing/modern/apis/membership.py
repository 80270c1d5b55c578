"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup. The first two wait for the other members of the group."""

from dataclasses import replace

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_io.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_io.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMember, LeftMember
from kafka_io.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafka_io.testing.modern.apis.results import error_code
from kafka_io.testing.modern.node import BrokerNode, Caller

_REQUIRED_ID_SINCE = 4  # JoinGroup, KIP-394
_NULL_PROTOCOL_SINCE = 7  # JoinGroup
_BATCH_SINCE = 3  # LeaveGroup, KIP-345


def join_group(request: JoinGroupRequest, node: BrokerNode, caller: Caller) -> JoinGroupResponse:
    """The generation that begins when all members have joined. The leader also receives the list of members."""
    try:
        _check_timeout(request, node)
        return node.coordinator.find_or_create(request.group_id).join(
            _complete(request),
            client_id=caller.client_id,
            client_host=caller.host,
            require_member_id=caller.version >= _REQUIRED_ID_SINCE,
        )
    except BrokerError as error:
        return JoinGroupResponse(
            error_code=error.code,
            protocol_name=None if caller.version >= _NULL_PROTOCOL_SINCE else "",
            leader="",
            member_id=error.reason if error.code == ErrorCode.MEMBER_ID_REQUIRED else request.member_id,
            members=(),
        )


def sync_group(request: SyncGroupRequest, node: BrokerNode, _caller: Caller) -> SyncGroupResponse:
    """The assignment of the member."""
    assignments = {assigned.member_id: bytes(assigned.assignment) for assigned in request.assignments}
    try:
        group = node.coordinator.find(request.group_id)
        return group.sync(request.member_id, request.generation_id, assignments)
    except BrokerError as error:
        return SyncGroupResponse(error_code=error.code, assignment=b"")


def heartbeat(request: HeartbeatRequest, node: BrokerNode, _caller: Caller) -> HeartbeatResponse:
    """An error code if the client is no longer a member, or its generation is no longer the present one."""
    group = node.coordinator.find(request.group_id)
    return HeartbeatResponse(error_code=error_code(lambda: group.heartbeat(request.member_id, request.generation_id)))


def leave_group(request: LeaveGroupRequest, node: BrokerNode, caller: Caller) -> LeaveGroupResponse:
    """An error code for each member; before v3 there is one member, and its code is that of the answer."""
    if caller.version >= _BATCH_SINCE:
        members = tuple(_leave(member, request.group_id, node) for member in request.members)
        return LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)
    member = _leave(LeavingMember(member_id=request.member_id), request.group_id, node)
    return LeaveGroupResponse(error_code=member.error_code)


def _leave(member: LeavingMember, group: str, node: BrokerNode) -> LeftMember:
    static_name = member.group_instance_id
    code = error_code(lambda: node.coordinator.find(group).leave(member.member_id, static_name))
    return LeftMember(member_id=member.member_id, group_instance_id=static_name, error_code=code)


def _check_timeout(request: JoinGroupRequest, node: BrokerNode) -> None:
    max_timeout_ms = node.config.max_session_timeout_ms
    if not 0 < request.session_timeout_ms <= max_timeout_ms:
        reason = f"a session timeout of {request.session_timeout_ms} ms is not between 1 and {max_timeout_ms}"
        raise BrokerError(reason, code=ErrorCode.INVALID_SESSION_TIMEOUT)


def _complete(request: JoinGroupRequest) -> JoinGroupRequest:
    """The request as the group keeps it. v0 has no rebalance timeout; the session timeout is used for both."""
    rebalance_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms > 0 else request.session_timeout_ms
    # The metadata is copied, because a view would keep the memory of the whole frame.
    protocols = tuple(replace(protocol, metadata=bytes(protocol.metadata)) for protocol in request.protocols)
    return replace(request, rebalance_timeout_ms=rebalance_ms, protocols=protocols)
