"""The state of one group member, without sockets and clocks: it makes requests, takes answers, and emits events.

    ready -> join -> sync -> PartitionsAssigned -> heartbeats -> RebalanceStarted -> consumer revokes -> ready ...
              ^ once more, with the assigned member id (KIP-394)  `-> PartitionsLost -> ready, owning nothing

The consumer takes and revokes partitions only in its own thread, during `poll`. So a member that must join again keeps
sending heartbeats until the consumer is ready. The group waits for it, up to `max_poll_s`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kafka_io.consumer.group.assignors import Assignor, AssignorMember, PartitionAssignments
from kafka_io.consumer.group.protocol import (
    NO_GENERATION,
    NOTHING,
    TYPE,
    OwnedPartitions,
    SubscriptionMessage,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    grouped,
)
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.consumer.membership import GroupMembership
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, BrokerError, Corrupt, KafkaIOError
from kafka_io.messages.heartbeat import HeartbeatRequest
from kafka_io.messages.join_group import (
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)
from kafka_io.messages.leave_group import LeaveGroupRequest, LeavingMember
from kafka_io.messages.sync_group import SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse
from kafka_io.model import TopicPartition

_SEVERAL_LEAVE_SINCE = 3


@dataclass(frozen=True, slots=True)
class RebalanceStarted:
    """The group rebalances, and waits for this member to join again."""


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """The complete set of partitions that the member reads from now on."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """The group continued without this member: others may already read its partitions."""

    reason: str


RebalanceEvent = RebalanceStarted | PartitionsAssigned | PartitionsLost


class GroupMemberState:
    """The state of one member. Its caller provides the lock."""

    def __init__(self, settings: GroupSettings) -> None:
        self.member = GroupMembership(instance=settings.instance_id)  # replaced as a whole: read it without the lock
        self.assignor = settings.assignors[0]  # from `joined` on the one that the group has agreed on
        self.is_joining = False
        self.event: RebalanceEvent | None = RebalanceStarted()  # the consumer prepares for its first join
        self.failure: Exception | None = None
        self._settings = settings
        self._owned = NOTHING
        self._last_assigned = NOTHING

    @property
    def is_alive(self) -> bool:
        """Whether the coordinator expects heartbeats."""
        return self.member.generation != NO_GENERATION and not self.is_joining

    def ready(self, owned: Iterable[TopicPartition]) -> None:
        """The consumer is ready to join the group: it has revoked all partitions except `owned`."""
        self.event = None
        self._owned = OwnedPartitions(partitions=frozenset(owned), generation=self._last_assigned.generation)
        self.is_joining = True

    def take(self) -> RebalanceEvent | None:
        """The event to handle. PartitionsAssigned is returned once, the other events until the consumer is ready."""
        event = self.event
        if isinstance(event, PartitionsAssigned):
            self.event = None
        return event

    def require_rejoin(self) -> None:
        """Have the consumer prepare to join again, unless it is joining or has lost its partitions."""
        if not self.is_joining and not isinstance(self.event, PartitionsLost):
            self.event = RebalanceStarted()

    def join_request(self, topics: frozenset[str]) -> JoinGroupRequest:
        """The request to join the next generation, and read `topics`."""
        settings = self._settings
        return JoinGroupRequest(
            group_id=settings.group,
            session_timeout_ms=round(settings.session_timeout_s * 1000),
            rebalance_timeout_ms=round(settings.max_poll_s * 1000),
            member_id=self.member.id,
            group_instance_id=settings.instance_id,
            protocol_type=TYPE,
            protocols=tuple(
                JoinGroupProtocol(name=assignor.name, metadata=self._subscription(assignor, topics))
                for assignor in settings.assignors
            ),
        )

    def _subscription(self, assignor: Assignor, topics: frozenset[str]) -> bytes:
        # Before it joins, an eager member revokes all partitions. It reports the last assignment all the same, so that
        # the sticky assignor can return them to it.
        user_data = assignor.user_data(self._owned if assignor.cooperative else self._last_assigned)
        subscription = SubscriptionMessage(
            topics=tuple(sorted(topics)),
            user_data=user_data,
            owned=grouped(self._owned.partitions),
            generation=self._owned.generation,
        )
        return encode_subscription(subscription)

    def joined(self, answer: JoinGroupResponse) -> tuple[AssignorMember, ...] | None:
        """Handle the answer to a join.

        Returns all members if this member is the leader, an empty tuple if not, and None if it must join again with the
        id that it was just assigned.

        Raises:
            BrokerError: the coordinator refused; pass the error to `refused`.
            WireError: a member's subscription cannot be read.
        """
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member = replace(self.member, id=answer.member_id)
            return None
        ErrorCode.check(answer.error_code, NOWHERE, right="READ")
        self.member = replace(self.member, id=answer.member_id, generation=answer.generation_id)
        offered = {assignor.name: assignor for assignor in self._settings.assignors}
        if answer.protocol_name not in offered:
            raise Corrupt(f"the group chose the assignor {answer.protocol_name!r}, which this member did not offer")
        self.assignor = offered[answer.protocol_name]
        return tuple(_assignor_member(member, self.assignor) for member in answer.members)

    def sync_request(self, assignments: PartitionAssignments) -> SyncGroupRequest:
        """The request for the assignment; the leader sends everyone's assignments with it."""
        return SyncGroupRequest(
            **self._identity(),
            protocol_type=TYPE,
            protocol_name=self.assignor.name,
            assignments=tuple(
                SyncGroupAssignment(member_id=member, assignment=encode_assignment(partitions))
                for member, partitions in assignments.items()
            ),
        )

    def synced(self, answer: SyncGroupResponse) -> None:
        """Handle the assignment. Raises what `joined` does."""
        ErrorCode.check(answer.error_code, NOWHERE, right="READ")
        partitions = decode_assignment(answer.assignment)
        self._last_assigned = OwnedPartitions(partitions=partitions, generation=self.member.generation)
        self.is_joining = False
        self.event = PartitionsAssigned(partitions)

    def heartbeat_request(self) -> HeartbeatRequest:
        """The request that shows the coordinator that this member is alive."""
        return HeartbeatRequest(**self._identity())

    def _identity(self) -> dict[str, Any]:
        """The fields by which the coordinator knows a member."""
        member = self.member
        return {
            "group_id": self._settings.group,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
        }

    def leave_request(self, version: int) -> LeaveGroupRequest:
        """The request to leave the group, in this version of the API."""
        if version < _SEVERAL_LEAVE_SINCE:
            return LeaveGroupRequest(group_id=self._settings.group, member_id=self.member.id)
        return LeaveGroupRequest(group_id=self._settings.group, members=(LeavingMember(member_id=self.member.id),))

    def refused(self, error: KafkaIOError) -> None:
        """Handle an error to one of the requests.

        The member lost its generation, or must join again, or cannot be a member at all. Retriable errors change
        nothing: the request is sent again.
        """
        code = error.code if isinstance(error, BrokerError) else None
        if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member = replace(self.member, id="")
            self.lose(str(error))
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.require_rejoin()
        elif not error.retriable:
            self.fail(error)

    def commit_refused(self, error: KafkaIOError) -> None:
        """Handle the error of a commit; most of them concern only the offsets, not the membership."""
        if isinstance(error, BrokerError) and error.code in (
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        ):
            self.refused(error)

    def lose(self, reason: str) -> None:
        """The generation continued without this member. A joining member that owns nothing has nothing to lose."""
        self.member = replace(self.member, generation=NO_GENERATION)
        if not self.is_joining or self._owned.partitions:
            self.is_joining = False
            self.event = PartitionsLost(reason)
        # The sticky assignor prefers the claim of the latest generation. The member still reports its last partitions,
        # but without a generation, so that it cannot take them back from a new owner.
        self._last_assigned = OwnedPartitions(partitions=self._last_assigned.partitions)

    def left(self, reason: str) -> None:
        """The member left by itself. The coordinator remembers the id of a static member until its session ends."""
        if self._settings.instance_id is None:
            self.member = replace(self.member, id="")
        self.lose(reason)

    def fail(self, error: Exception) -> None:
        """End the membership for good; `poll` raises the error."""
        self.member = replace(self.member, generation=NO_GENERATION)
        self.is_joining = False
        self.failure = error


def _assignor_member(member: JoinGroupMember, assignor: Assignor) -> AssignorMember:
    subscription = decode_subscription(member.metadata)
    return AssignorMember(
        id=member.member_id,
        instance_id=member.group_instance_id,
        topics=frozenset(subscription.topics),
        owned=assignor.owned(subscription),
    )
