"""A member's life, without a socket and without a clock: requests out, answers in, notices to the consumer.

    consumer: ready ---> join ---> sync ---> Assigned ---> beats ---> Yield ---> consumer gives up, ready ...
                          ^ again, with the id it was given (KIP-394)    `-> Lost ---> the same, holding nothing

The consumer gives partitions up and takes them only in its own thread, when it polls. So a member that is told to join
again goes on beating until the consumer is ready; the group waits for it, up to `max_poll_s`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_io.client.group.assignors import Assignor, Member, Shares
from kafka_io.client.group.protocol import (
    NO_GENERATION,
    NOTHING,
    TYPE,
    Held,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    grouped,
)
from kafka_io.client.group.settings import GroupSettings
from kafka_io.client.membership import Membership
from kafka_io.client.modern.leading import Place
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import NOWHERE, BrokerError, Corrupt, KafkaIOError
from kafka_io.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_io.messages.join_group import (
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)
from kafka_io.messages.leave_group import LeaveGroupRequest, LeavingMember
from kafka_io.messages.sync_group import SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse

ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING, MEMBER_ID_REQUIRED, FENCED = 22, 25, 27, 79, 82
_MANY_LEAVE_SINCE = 3


@dataclass(frozen=True, slots=True)
class Yield:
    """The group shares out its partitions anew; it waits for this member."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What the member is to read from now on."""

    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Lost:
    """The group went on without this member: others may read what it had."""

    reason: str


Notice = Yield | Assigned | Lost


class Participation:
    """One member of the group that `settings` name."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._member_id = ""
        self._generation = NO_GENERATION
        self._protocol = ""
        self._topics: frozenset[str] = frozenset()
        self._held = NOTHING
        self._last = NOTHING
        self.is_joining = False
        self.notice: Notice | None = None
        self.failure: Exception | None = None

    @property
    def member(self) -> Membership:
        """Who it is now, for commits. Without a generation it is none."""
        return Membership(id=self._member_id, instance=self._settings.instance_id, generation=self._generation)

    @property
    def is_alive(self) -> bool:
        """Whether the coordinator is to be told now and then that the member is alive."""
        return self._generation != NO_GENERATION and not self.is_joining

    @property
    def assignor(self) -> Assignor:
        """The one that the group has agreed on.

        Raises:
            Corrupt: it is none of those that were offered.
        """
        for one in self._settings.assignors:
            if one.name == self._protocol:
                return one
        raise Corrupt(f"the group shares out by {self._protocol!r}, which nobody offered")

    def ready(self, held: Iterable[Place]) -> None:
        """The consumer has given up what it must, and has `held`: the group may be joined."""
        self.notice = None
        self._held = Held(places=frozenset(held), generation=self._last.generation)
        self.is_joining = True

    def take(self) -> Notice | None:
        """What the consumer has to do. That it is assigned partitions, it is told once; the rest until it is ready."""
        notice = self.notice
        if isinstance(notice, Assigned):
            self.notice = None
        return notice

    def must_yield(self) -> None:
        """The group is to share out anew."""
        if not self.is_joining and not isinstance(self.notice, Lost):
            self.notice = Yield()

    def join_request(self, topics: frozenset[str]) -> JoinGroupRequest:
        """To be a member of the next generation, and read `topics`."""
        self._topics = topics
        settings = self._settings
        return JoinGroupRequest(
            group_id=settings.group,
            session_timeout_ms=round(settings.session_timeout_s * 1000),
            rebalance_timeout_ms=round(settings.max_poll_s * 1000),
            member_id=self._member_id,
            group_instance_id=settings.instance_id,
            protocol_type=TYPE,
            protocols=tuple(
                JoinGroupProtocol(name=one.name, metadata=self._metadata(one)) for one in settings.assignors
            ),
        )

    def _metadata(self, assignor: Assignor) -> bytes:
        # What it had last is what an eager assignor leaves with it, though it was given up.
        said = assignor.user_data(self._held if assignor.cooperative else self._last)
        subscription = Subscription(
            topics=tuple(sorted(self._topics)),
            user_data=said,
            owned=grouped(self._held.places),
            generation=self._held.generation,
        )
        return encode_subscription(subscription)

    def joined(self, answer: JoinGroupResponse) -> tuple[Member, ...] | None:
        """The members to share out to, for the leader, and none for others; None if the group must be joined again.

        Raises:
            BrokerError: the coordinator refuses; `refused` tells what comes of it.
            WireError: a member's subscription cannot be read.
        """
        if answer.error_code == MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return None
        check(answer.error_code, NOWHERE, MODERN)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        self._protocol = answer.protocol_name or ""
        assignor = self.assignor
        return tuple(_member(one, assignor) for one in answer.members)

    def sync_request(self, shares: Shares) -> SyncGroupRequest:
        """To be told what to read; `shares` are the leader's."""
        return SyncGroupRequest(
            group_id=self._settings.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=TYPE,
            protocol_name=self._protocol,
            assignments=tuple(
                SyncGroupAssignment(member_id=member, assignment=encode_assignment(places))
                for member, places in shares.items()
            ),
        )

    def synced(self, answer: SyncGroupResponse) -> None:
        """Take note of what it is to read. Same errors as `joined`."""
        check(answer.error_code, NOWHERE, MODERN)
        places = decode_assignment(answer.assignment)
        self._last = Held(places=places, generation=self._generation)
        self.is_joining = False
        self.notice = Assigned(places)

    def beat(self) -> HeartbeatRequest:
        """To say that it is alive."""
        return HeartbeatRequest(
            group_id=self._settings.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.instance_id,
        )

    def beaten(self, answer: HeartbeatResponse) -> None:
        """Same errors as `joined`."""
        check(answer.error_code, NOWHERE, MODERN)

    def leave_request(self, version: int) -> LeaveGroupRequest:
        """To be a member no longer, in this version of the API."""
        if version < _MANY_LEAVE_SINCE:
            return LeaveGroupRequest(group_id=self._settings.group, member_id=self._member_id)
        return LeaveGroupRequest(group_id=self._settings.group, members=(LeavingMember(member_id=self._member_id),))

    def refused(self, error: KafkaIOError) -> None:
        """What an error to any of the requests makes of the member.

        What may pass is to be tried again; what cannot is the end, and the consumer is told.
        """
        code = error.code if isinstance(error, BrokerError) else None
        if code in (ILLEGAL_GENERATION, UNKNOWN_MEMBER):
            if code == UNKNOWN_MEMBER:
                self._member_id = ""
            self.lose(str(error))
        elif code == REBALANCING:
            self.must_yield()
        elif not error.retriable:
            self.fail(error)

    def commit_refused(self, error: KafkaIOError) -> None:
        """The same for a commit, of which most errors concern only what was committed."""
        if isinstance(error, BrokerError) and error.code in (ILLEGAL_GENERATION, UNKNOWN_MEMBER, FENCED):
            self.refused(error)

    def lose(self, reason: str) -> None:
        """It is no member of the generation any longer. A joining member that holds nothing has nothing to lose."""
        self._generation = NO_GENERATION
        if not self.is_joining or self._held.places:
            self.is_joining = False
            self.notice = Lost(reason)
        self._last = Held(places=self._last.places)

    def left(self, reason: str) -> None:
        """It has gone by itself; a static member is known by its id until its session ends."""
        if self._settings.instance_id is None:
            self._member_id = ""
        self.lose(reason)

    def fail(self, error: Exception) -> None:
        """It cannot be a member."""
        self._generation = NO_GENERATION
        self.is_joining = False
        self.failure = error


def _member(one: JoinGroupMember, assignor: Assignor) -> Member:
    said = decode_subscription(one.metadata)
    return Member(
        id=one.member_id,
        instance_id=one.group_instance_id,
        topics=frozenset(said.topics),
        held=assignor.held(said),
    )
