"""One consumer group: its members agree on a generation, and its leader assigns the partitions (KIP-62, KIP-394).

See [kafka-0.8: Groups].

    empty -> preparing -> completing -> stable
               ^---- a member joins, leaves, or changes ----'

In the state `preparing` the group waits until all its members have sent JoinGroup, or until the rebalance timeout
removes the missing ones. In the state `completing` it waits for the assignments of the leader.

One lock covers the whole group, and waiting requests wait on its condition. The group has no thread and no timer: each
call first removes members whose session has expired, and a waiting request wakes up when the next deadline is reached.
"""

import math
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.join_group import JoinGroupMember, JoinGroupRequest, JoinGroupResponse
from kafka_io.messages.sync_group import SyncGroupResponse

_MIN_WAIT_S = 0.001


class GroupState(StrEnum):
    """The states of a group, with their names in the protocol."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True)
class BrokerGroupMember:
    """A member of a group: its last JoinGroup request, which has the member id, and its state.

    While `is_waiting`, that request waits for the next generation. `joined` is the answer to it.
    """

    request: JoinGroupRequest
    client_id: str
    client_host: str
    deadline_s: float = 0.0
    is_waiting: bool = False
    joined: JoinGroupResponse | None = None
    assignment: bytes = b""

    @property
    def member_id(self) -> str:
        """The id that the broker gave the member."""
        return self.request.member_id

    @property
    def protocols(self) -> dict[str, bytes]:
        """The strategies to assign partitions that the member knows, each with its metadata for the leader."""
        return {protocol.name: bytes(protocol.metadata) for protocol in self.request.protocols}


class BrokerGroup:
    """The members of one group.

    Args:
        max_members: the maximum number of members.
        now_s: a clock that never goes back, in seconds.
    """

    def __init__(self, *, max_members: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._changed = threading.Condition()
        self._max_members = max_members
        self._now_s = now_s
        self._members: dict[str, BrokerGroupMember] = {}
        self._reserved_ids: dict[str, float] = {}  # ids that clients must join with, each with its deadline (KIP-394)
        self._generation = 0
        self._leader = ""
        self._rebalance_deadline_s = 0.0
        self._closed = False
        self.state = GroupState.EMPTY
        self.protocol_type = ""
        self.protocol = ""

    def join(
        self, request: JoinGroupRequest, *, client_id: str, client_host: str, require_member_id: bool
    ) -> JoinGroupResponse:
        """Join the next generation. Returns when it has begun.

        Args:
            request: what the member sends; its member id is empty at the first time.
            client_id: the name that the client gives itself.
            client_host: the address of the client.
            require_member_id: a new member receives an id, and must join again with it (KIP-394).

        Raises:
            BrokerError: the error has the code of the answer. With MEMBER_ID_REQUIRED (79) the reason is the id.
        """
        with self._changed:
            self._expire()
            member = self._admit(request, client_id, client_host, require_member_id=require_member_id)
            if member.joined is not None and not member.is_waiting:
                return member.joined
            self._complete_if_due()
            # The group has no timer. So each waiting request wakes up at the next deadline, and does what is due then.
            while member.is_waiting and not self._closed:
                self._changed.wait(self._seconds_to_rebalance_deadline())
                self._expire()
                self._complete_if_due()
            if self._closed:
                raise _closed()
            # The lock was free during the wait. The member may have left, or a client with the same static name may
            # have replaced it; then the answer is not for this request.
            if member.joined is None or self._members.get(member.member_id) is not member:
                raise _not_a_member(member.member_id)
            return member.joined

    def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes]) -> SyncGroupResponse:
        """The assignment of the member. Returns when the leader has sent all `assignments`.

        Raises:
            BrokerError: the id is not a member (25), the generation is not the present one (22), or a new generation is
                about to begin (27).
        """
        with self._changed:
            self._expire()
            member = self._current(member_id, generation)
            if self.state is GroupState.PREPARING:
                raise _rebalancing()
            if self.state is GroupState.COMPLETING and member_id == self._leader:
                for assigned_id, assigned_member in self._members.items():
                    assigned_member.assignment = assignments.get(assigned_id, b"")
                self.state = GroupState.STABLE
                self._changed.notify_all()
            self._await_assignments(member, generation)
            if self._closed:
                raise _closed()
            # The lock was free during the wait, so the generation may have ended, or the leader may be gone.
            if self.state is not GroupState.STABLE or self._generation != generation:
                raise _rebalancing()
            return SyncGroupResponse(
                error_code=ErrorCode.NONE,
                protocol_type=self.protocol_type,
                protocol_name=self.protocol,
                assignment=member.assignment,
            )

    def heartbeat(self, member_id: str, generation: int) -> None:
        """Keep the session of the member alive. Same errors as `sync`."""
        with self._changed:
            self._expire()
            self._renew_session(self._current(member_id, generation))
            if self.state is GroupState.PREPARING:
                raise _rebalancing()

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """Remove a member, which is given by its id or its static name.

        Raises:
            BrokerError: the group has no such member (code 25).
        """
        with self._changed:
            self._expire()
            member_id = member_id or self._id_of_static_member(instance_id)
            if member_id in self._reserved_ids:
                del self._reserved_ids[member_id]
            elif member_id in self._members:
                self._remove(member_id)
            else:
                raise _not_a_member(member_id)

    def check_commit(self, member_id: str, generation: int) -> None:
        """Check that a client may commit offsets. Without a generation it may if the group has no members.

        Raises:
            BrokerError: as for `sync`.
        """
        with self._changed:
            self._expire()
            if generation < 0 and not self._members:
                return
            self._renew_session(self._current(member_id, generation))
            if self.state is GroupState.COMPLETING:
                raise _rebalancing()

    def members(self) -> tuple[BrokerGroupMember, ...]:
        """The present members."""
        with self._changed:
            self._expire()
            return tuple(self._members.values())

    def close(self) -> None:
        """End all waits, present and future ones."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _admit(
        self, request: JoinGroupRequest, client_id: str, client_host: str, *, require_member_id: bool
    ) -> BrokerGroupMember:
        """The member that sends `request`. If its request changes the group, it waits for a new generation.

        A member that repeats its request gets the answer that it may have missed, without a rebalance. The leader of a
        stable group is the exception: it joins again to start a rebalance, for example after new partitions appeared.
        """
        self._check_protocols(request)
        member_id = self._find_id(request)
        if member_id is None:
            request = self._with_new_id(request, client_id, require_member_id=require_member_id)
            member = self._members[request.member_id] = BrokerGroupMember(request, client_id, client_host)
            changes_group = True
        else:
            member = self._members[member_id]
            starts_rebalance = self.state is GroupState.STABLE and member_id == self._leader
            has_new_protocols = member.request.protocols != request.protocols
            changes_group = self.state is GroupState.PREPARING or has_new_protocols or starts_rebalance
            member.request = replace(request, member_id=member_id)
            member.client_id, member.client_host = client_id, client_host
        self._renew_session(member)
        if changes_group:
            member.is_waiting, member.joined = True, None
            self._start_rebalance()
        return member

    def _find_id(self, request: JoinGroupRequest) -> str | None:
        """The id of the present member that sends `request`; None for a new member."""
        static_id = self._id_of_static_member(request.group_instance_id)
        if static_id:
            if request.member_id and request.member_id != static_id:
                raise BrokerError("another member has this static name", code=ErrorCode.FENCED_INSTANCE_ID)
            return static_id
        if request.member_id in self._members:
            return request.member_id
        if request.member_id and request.member_id not in self._reserved_ids:
            raise _not_a_member(request.member_id)
        return None

    def _with_new_id(self, request: JoinGroupRequest, client_id: str, *, require_member_id: bool) -> JoinGroupRequest:
        """The request of a new member with its id: the one that was reserved for it, or a fresh one."""
        if len(self._members) + len(self._reserved_ids.keys() - {request.member_id}) >= self._max_members:
            reason = f"the group has the maximum of {self._max_members} members"
            raise BrokerError(reason, code=ErrorCode.GROUP_MAX_SIZE_REACHED)
        member_id = request.member_id or f"{client_id}-{uuid.uuid4()}"
        if require_member_id and not request.member_id and request.group_instance_id is None:
            self._reserved_ids[member_id] = self._now_s() + request.session_timeout_ms / 1000
            raise BrokerError(member_id, code=ErrorCode.MEMBER_ID_REQUIRED)
        self._reserved_ids.pop(member_id, None)
        return replace(request, member_id=member_id)

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        """Check that all members have a protocol in common with `request`.

        Raises:
            BrokerError: they have none (code 23).
        """
        others = [member for member in self._members.values() if member.member_id != request.member_id]
        types = {request.protocol_type, *(member.request.protocol_type for member in others)}
        has_common_protocol = any(_all_support(others, protocol.name) for protocol in request.protocols)
        if len(types) > 1 or "" in types or not has_common_protocol:
            reason = "the member has no protocol in common with the group"
            raise BrokerError(reason, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _await_assignments(self, member: BrokerGroupMember, generation: int) -> None:
        """Wait until the leader has sent the assignments, the rebalance timeout has passed, or the generation ends."""
        deadline_s = self._now_s() + member.request.rebalance_timeout_ms / 1000
        while self.state is GroupState.COMPLETING and self._generation == generation and not self._closed:
            left_s = deadline_s - self._now_s()
            if left_s <= 0:
                break
            # A member that waits here sends no heartbeats, but its open request shows that it is alive.
            member.deadline_s = math.inf
            self._changed.wait(min(left_s, self._seconds_to_session_end()))
            self._expire()
        self._renew_session(member)

    def _start_rebalance(self) -> None:
        """Prepare a new generation. The slowest member decides how long the group waits for the others."""
        if self.state is not GroupState.PREPARING:
            slowest_ms = max(member.request.rebalance_timeout_ms for member in self._members.values())
            self._rebalance_deadline_s = self._now_s() + slowest_ms / 1000
            self.state = GroupState.PREPARING
        self._changed.notify_all()

    def _complete_if_due(self) -> None:
        """Begin the generation when all members wait for it. After the deadline, remove the members that do not."""
        if self.state is not GroupState.PREPARING:
            return
        late_ids = [member_id for member_id, member in self._members.items() if not member.is_waiting]
        if late_ids and self._now_s() < self._rebalance_deadline_s:
            return
        for member_id in late_ids:
            del self._members[member_id]
        self._generation += 1
        self._changed.notify_all()
        if self._members:
            self._begin_generation()
        else:
            self._become_empty()

    def _begin_generation(self) -> None:
        """Choose the leader and the protocol, and answer the members, which all wait in JoinGroup."""
        self.state = GroupState.COMPLETING
        if self._leader not in self._members:
            self._leader = next(iter(self._members))
        members = tuple(self._members.values())
        leader = self._members[self._leader].request
        self.protocol_type = leader.protocol_type
        self.protocol = next(protocol.name for protocol in leader.protocols if _all_support(members, protocol.name))
        rows = tuple(
            JoinGroupMember(
                member_id=member.member_id,
                group_instance_id=member.request.group_instance_id,
                metadata=member.protocols[self.protocol],
            )
            for member in members
        )
        for member in members:
            self._renew_session(member)
            member.is_waiting, member.assignment = False, b""
            member.joined = JoinGroupResponse(
                error_code=ErrorCode.NONE,
                generation_id=self._generation,
                protocol_type=self.protocol_type,
                protocol_name=self.protocol,
                leader=self._leader,
                member_id=member.member_id,
                members=rows if member.member_id == self._leader else (),
            )

    def _become_empty(self) -> None:
        self.state, self._leader, self.protocol = GroupState.EMPTY, "", ""

    def _current(self, member_id: str, generation: int) -> BrokerGroupMember:
        """The member of this id and generation."""
        if self._closed:
            raise _closed()
        member = self._members.get(member_id)
        if member is None:
            raise _not_a_member(member_id)
        if generation != self._generation:
            reason = f"the request is for generation {generation}, the group is in generation {self._generation}"
            raise BrokerError(reason, code=ErrorCode.ILLEGAL_GENERATION)
        return member

    def _id_of_static_member(self, instance_id: str | None) -> str:
        """The id of the member with this static name (KIP-345); empty if there is none."""
        names = {member.request.group_instance_id: member.member_id for member in self._members.values()}
        return names.get(instance_id, "") if instance_id is not None else ""

    def _renew_session(self, member: BrokerGroupMember) -> None:
        member.deadline_s = self._now_s() + member.request.session_timeout_ms / 1000

    def _expire(self) -> None:
        """Remove the members whose session has expired. A member that waits in JoinGroup is alive."""
        now_s = self._now_s()
        self._reserved_ids = {
            member_id: deadline_s for member_id, deadline_s in self._reserved_ids.items() if deadline_s >= now_s
        }
        expired_ids = [
            member_id
            for member_id, member in self._members.items()
            if not member.is_waiting and member.deadline_s < now_s
        ]
        for member_id in expired_ids:
            self._remove(member_id)

    def _remove(self, member_id: str) -> None:
        member = self._members.pop(member_id)
        member.is_waiting = False
        if self._members:
            self._start_rebalance()
        else:
            self._generation += 1
            self._become_empty()
            self._changed.notify_all()
        self._complete_if_due()

    def _seconds_to_rebalance_deadline(self) -> float:
        """The time until a generation may begin without another request: the deadline, or the end of a session."""
        return min(max(_MIN_WAIT_S, self._rebalance_deadline_s - self._now_s()), self._seconds_to_session_end())

    def _seconds_to_session_end(self) -> float:
        """The time until the next session expires."""
        deadlines_s = (member.deadline_s for member in self._members.values() if not member.is_waiting)
        return max(_MIN_WAIT_S, min(deadlines_s, default=math.inf) - self._now_s())


def _all_support(members: Iterable[BrokerGroupMember], protocol: str) -> bool:
    return all(protocol in member.protocols for member in members)


def _not_a_member(member_id: str) -> BrokerError:
    return BrokerError(f"the group has no member {member_id!r}", code=ErrorCode.UNKNOWN_MEMBER_ID)


def _rebalancing() -> BrokerError:
    return BrokerError("a new generation is about to begin", code=ErrorCode.REBALANCE_IN_PROGRESS)


def _closed() -> BrokerError:
    return BrokerError("the broker stops", code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
