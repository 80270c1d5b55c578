"""One consumer group: its members agree on a generation, its leader shares out the work (seed 004; KIP-62, KIP-394).

    empty -> preparing -> completing -> stable
               ^---- a member comes, goes, or changes ----'

`preparing` waits until all known members have asked to join, or the slowest is given up; `completing` waits for what
the leader assigns. One lock per group: who waits, waits on its condition, and nobody needs a thread of the group's own:
each call first lets go of members whose time has run out.
"""

import math
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.groups.member import Joined, Joining, Member
from kafka_io.errors import BrokerError

_LEAST_WAIT_S = 0.001


class State(StrEnum):
    """Where a group is between two generations, in the wire's words."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Group:
    """The members of one group.

    Args:
        most_members: one more is refused.
        now_s: a clock that never goes back.
    """

    def __init__(self, *, most_members: int, now_s: Callable[[], float]) -> None:
        self._changed = threading.Condition()
        self._most_members = most_members
        self._now_s = now_s
        self._members: dict[str, Member] = {}
        self._expected: dict[str, float] = {}  # ids given out and not joined with yet, each with its deadline
        self._generation = 0
        self._leader = ""
        self._protocol_deadline_s = 0.0
        self._closed = False
        self.state = State.EMPTY
        self.protocol_type = ""
        self.protocol = ""

    def join(self, joining: Joining, *, name_first: bool) -> Joined:
        """Become a member of the next generation; returns when that has begun.

        Args:
            joining: with an empty member id the first time.
            name_first: a new member is told its id, and must come again with it (KIP-394).

        Raises:
            BrokerError: with the code to answer. With MEMBER_ID_REQUIRED (79) the reason is the id.
        """
        with self._changed:
            self._expire()
            member = self._admit(joining, name_first=name_first)
            if member.joined is not None and not member.is_waiting:
                return member.joined
            self._complete_if_due()
            while member.is_waiting and not self._closed:
                self._changed.wait(self._until_due())
                self._expire()
                self._complete_if_due()
            if self._closed:
                raise _closed()
            if member.joined is None or self._members.get(member.about.member_id) is not member:
                raise _not_a_member(member.about.member_id)
            return member.joined

    def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes]) -> bytes:
        """What the member is to do; returns when the leader has said so. `assignments` are the leader's own.

        Raises:
            BrokerError: no member (25), of another generation (22), or a new one is about to begin (27).
        """
        with self._changed:
            self._expire()
            member = self._current(member_id, generation)
            if self.state is State.COMPLETING and member_id == self._leader:
                for each, other in self._members.items():
                    other.assignment = assignments.get(each, b"")
                self.state = State.STABLE
                self._changed.notify_all()
            self._await_work(member, generation)
            if self._closed:
                raise _closed()
            if self.state is not State.STABLE or self._generation != generation:
                raise _rebalancing()
            return member.assignment

    def beat(self, member_id: str, generation: int) -> None:
        """The member is alive. Same errors as `sync`."""
        with self._changed:
            self._expire()
            self._touch(self._current(member_id, generation, in_rebalance=True))
            if self.state is State.PREPARING:
                raise _rebalancing()

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """Let a member go, by its id or its static name.

        Raises:
            BrokerError: there is no such (code 25).
        """
        with self._changed:
            self._expire()
            if instance_id is not None and not member_id:
                member_id = self._id_of(instance_id) or ""
            if member_id in self._expected:
                del self._expected[member_id]
            elif member_id in self._members:
                self._remove(member_id)
            else:
                raise _not_a_member(member_id)

    def check_commit(self, member_id: str, generation: int) -> None:
        """Whether offsets may be committed. Without a generation they may while the group has no members.

        Raises:
            BrokerError: as for `sync`.
        """
        with self._changed:
            self._expire()
            if generation < 0 and not self._members:
                return
            self._touch(self._current(member_id, generation, in_rebalance=True))
            if self.state is State.COMPLETING:
                raise _rebalancing()

    def members(self) -> tuple[Member, ...]:
        """Those there are now."""
        with self._changed:
            self._expire()
            return tuple(self._members.values())

    def close(self) -> None:
        """End all waits, also those to come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _admit(self, joining: Joining, *, name_first: bool) -> Member:
        """The member that asks; if its coming changes anything, it waits for a new generation."""
        self._check_protocols(joining)
        known = self._known(joining)
        if known is None:
            return self._add(joining, name_first=name_first)
        member = self._members[known]
        changed = member.about.protocols != joining.protocols
        member.about = _named(joining, known)
        self._touch(member)
        is_first_to_ask_again = self.state is State.STABLE and known == self._leader
        if self.state is not State.PREPARING and not changed and not is_first_to_ask_again:
            return member
        self._await_generation(member)
        return member

    def _known(self, joining: Joining) -> str | None:
        """The id of the member that `joining` is; None for a new one."""
        if joining.instance_id is not None and (known := self._id_of(joining.instance_id)):
            if joining.member_id and joining.member_id != known:
                raise BrokerError("another member has this static name", code=Code.FENCED_INSTANCE_ID)
            return known
        if joining.member_id in self._members:
            return joining.member_id
        if joining.member_id and joining.member_id not in self._expected:
            raise _not_a_member(joining.member_id)
        return None

    def _add(self, joining: Joining, *, name_first: bool) -> Member:
        if len(self._members) + len(self._expected.keys() - {joining.member_id}) >= self._most_members:
            raise BrokerError(f"the group has {self._most_members} members", code=Code.GROUP_MAX_SIZE_REACHED)
        member_id = joining.member_id or f"{joining.client_id}-{uuid.uuid4()}"
        if name_first and not joining.member_id and joining.instance_id is None:
            self._expected[member_id] = self._now_s() + joining.session_timeout_s
            raise BrokerError(member_id, code=Code.MEMBER_ID_REQUIRED)
        self._expected.pop(member_id, None)
        member = self._members[member_id] = Member(_named(joining, member_id), deadline_s=0.0)
        self._touch(member)
        self._await_generation(member)
        return member

    def _check_protocols(self, joining: Joining) -> None:
        """Members must have a way to share out work in common."""
        others = [one.about for one in self._members.values() if one.about.member_id != joining.member_id]
        common = [
            one.name
            for one in joining.protocols
            if all(other.speaks(one.name) and other.protocol_type == joining.protocol_type for other in others)
        ]
        if not common or not joining.protocol_type:
            raise BrokerError("no protocol in common with the group", code=Code.INCONSISTENT_GROUP_PROTOCOL)

    def _await_generation(self, member: Member) -> None:
        member.is_waiting, member.joined = True, None
        self._prepare()

    def _await_work(self, member: Member, generation: int) -> None:
        """Wait until the leader has shared out the work, or something else has happened to the generation."""
        patience_s = self._now_s() + member.about.rebalance_timeout_s
        while self.state is State.COMPLETING and self._generation == generation and not self._closed:
            left_s = patience_s - self._now_s()
            if left_s <= 0:
                break
            member.deadline_s = math.inf  # who waits here is alive
            self._changed.wait(min(left_s, self._until_expiry()))
            self._expire()
        self._touch(member)

    def _prepare(self) -> None:
        """A new generation is to begin."""
        if self.state is not State.PREPARING:
            slowest_s = max(one.about.rebalance_timeout_s for one in self._members.values())
            self._protocol_deadline_s = self._now_s() + slowest_s
            self.state = State.PREPARING
        self._changed.notify_all()

    def _complete_if_due(self) -> None:
        """Begin the generation once everybody asks for it, or the rest has had its time."""
        if self.state is not State.PREPARING:
            return
        late = [each for each, member in self._members.items() if not member.is_waiting]
        if late and self._now_s() < self._protocol_deadline_s:
            return
        for each in late:
            del self._members[each]
        self._generation += 1
        self._changed.notify_all()
        if not self._members:
            self._become_empty()
            return
        self._begin()

    def _begin(self) -> None:
        self.state = State.COMPLETING
        if self._leader not in self._members:
            self._leader = next(iter(self._members))
        leader = self._members[self._leader].about
        abouts = tuple(one.about for one in self._members.values())
        self.protocol_type = leader.protocol_type
        self.protocol = next(one.name for one in leader.protocols if all(each.speaks(one.name) for each in abouts))
        for member_id, member in self._members.items():
            self._touch(member)
            member.is_waiting, member.assignment = False, b""
            member.joined = Joined(
                generation=self._generation,
                protocol_type=self.protocol_type,
                protocol=self.protocol,
                leader=self._leader,
                member_id=member_id,
                members=abouts if member_id == self._leader else (),
            )

    def _become_empty(self) -> None:
        self.state, self._leader, self.protocol = State.EMPTY, "", ""

    def _current(self, member_id: str, generation: int, *, in_rebalance: bool = False) -> Member:
        if self._closed:
            raise _closed()
        member = self._members.get(member_id)
        if member is None:
            raise _not_a_member(member_id)
        if generation != self._generation:
            raise BrokerError(f"generation {generation}, it is {self._generation} now", code=Code.ILLEGAL_GENERATION)
        if self.state is State.PREPARING and not in_rebalance:
            raise _rebalancing()
        return member

    def _id_of(self, instance_id: str) -> str | None:
        return next((each for each, one in self._members.items() if one.about.instance_id == instance_id), None)

    def _touch(self, member: Member) -> None:
        member.deadline_s = self._now_s() + member.about.session_timeout_s

    def _expire(self) -> None:
        """Let go of members that were not heard of in their time; who waits to join is here."""
        now_s = self._now_s()
        self._expected = {each: deadline_s for each, deadline_s in self._expected.items() if deadline_s >= now_s}
        for member_id in [each for each, one in self._members.items() if not one.is_waiting and one.deadline_s < now_s]:
            self._remove(member_id)

    def _remove(self, member_id: str) -> None:
        member = self._members.pop(member_id)
        member.is_waiting = False
        if self._members:
            self._prepare()
        else:
            self._generation += 1
            self._become_empty()
            self._changed.notify_all()
        self._complete_if_due()

    def _until_due(self) -> float:
        """Seconds until waiting members may be owed a generation without anybody's doing."""
        return min(max(_LEAST_WAIT_S, self._protocol_deadline_s - self._now_s()), self._until_expiry())

    def _until_expiry(self) -> float:
        """Seconds until a member that is silent may have to be let go."""
        soonest = min((one.deadline_s for one in self._members.values() if not one.is_waiting), default=math.inf)
        return max(_LEAST_WAIT_S, soonest - self._now_s())


def _named(joining: Joining, member_id: str) -> Joining:
    return replace(joining, member_id=member_id)


def _not_a_member(member_id: str) -> BrokerError:
    return BrokerError(f"the group has no member {member_id!r}", code=Code.UNKNOWN_MEMBER_ID)


def _rebalancing() -> BrokerError:
    return BrokerError("a new generation is about to begin", code=Code.REBALANCE_IN_PROGRESS)


def _closed() -> BrokerError:
    return BrokerError("the broker is being stopped", code=Code.COORDINATOR_NOT_AVAILABLE)
