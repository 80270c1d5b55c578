"""A group: members agree on a generation, the leader assigns, and silent or late members are removed."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.join_group import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse
from kafka_io.testing.modern.groups.group import BrokerGroup, GroupState

SOON_S = 5.0


class Clock:
    """A monotonic clock that the test can move forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        """The time in seconds."""
        return time.monotonic() + self.ahead_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def group(clock: Clock) -> BrokerGroup:
    return BrokerGroup(max_members=3, now_s=clock)


@pytest.fixture
def start(group: BrokerGroup) -> Iterator[Callable[..., "Future[Any]"]]:
    """Runs a call that waits on a thread of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit
        group.close()  # ends the waiting calls, so that their threads end


def join(
    group: BrokerGroup, member_id: str = "", *, require_member_id: bool = False, **settings: Any
) -> JoinGroupResponse:
    defaults: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 20_000,
        "protocol_type": "consumer",
        "protocols": (JoinGroupProtocol(name="range", metadata=b"m"),),
    }
    request = JoinGroupRequest(group_id="readers", member_id=member_id, **{**defaults, **settings})
    return group.join(request, client_id="tests", client_host="here", require_member_id=require_member_id)


def assignment(group: BrokerGroup, member_id: str, generation: int, assignments: dict[str, bytes]) -> bytes:
    return bytes(group.sync(member_id, generation, assignments).assignment)


def code_of(action: Callable[[], object]) -> int:
    with pytest.raises(BrokerError) as caught:
        action()
    return caught.value.code


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


def pair(group: BrokerGroup, start: Callable[..., "Future[Any]"]) -> tuple[JoinGroupResponse, JoinGroupResponse]:
    """Two members of one generation with their assignments; the leader is the first."""
    alone = join(group)
    second = start(join, group)
    until(lambda: group.state is GroupState.PREPARING)
    leader, follower = join(group, alone.member_id), second.result(SOON_S)
    waiting = start(assignment, group, follower.member_id, follower.generation_id, {})
    work = {leader.member_id: b"left", follower.member_id: b"right"}
    assert assignment(group, leader.member_id, leader.generation_id, work) == b"left"
    assert waiting.result(SOON_S) == b"right"
    return leader, follower


def test_the_first_member_leads_a_generation_of_its_own(group: BrokerGroup) -> None:
    joined = join(group)
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
    assert [member.member_id for member in joined.members] == [joined.member_id]
    assert assignment(group, joined.member_id, 1, {joined.member_id: b"all"}) == b"all"
    assert group.state is GroupState.STABLE


def test_a_second_member_starts_a_new_generation_with_both(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    leader, follower = pair(group, start)
    assert leader.generation_id == follower.generation_id == 2
    assert leader.leader == follower.leader == leader.member_id
    assert {member.member_id for member in leader.members} == {leader.member_id, follower.member_id}
    assert follower.members == ()


def test_a_new_member_must_join_with_the_id_that_it_receives(group: BrokerGroup) -> None:
    # KIP-394
    with pytest.raises(BrokerError) as caught:
        join(group, require_member_id=True)
    assert caught.value.code == ErrorCode.MEMBER_ID_REQUIRED
    joined = join(group, caught.value.reason, require_member_id=True)
    assert joined.member_id == caught.value.reason


def test_members_learn_of_a_rebalance_from_their_heartbeats(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    leader, follower = pair(group, start)
    third = start(join, group)
    until(lambda: group.state is GroupState.PREPARING)
    assert code_of(lambda: group.heartbeat(leader.member_id, 2)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code_of(lambda: group.sync(leader.member_id, 2, {})) == ErrorCode.REBALANCE_IN_PROGRESS
    others = [start(join, group, outcome.member_id) for outcome in (leader, follower)]
    assert {outcome.result(SOON_S).generation_id for outcome in (third, *others)} == {3}
    assert code_of(lambda: group.heartbeat(leader.member_id, 2)) == ErrorCode.ILLEGAL_GENERATION


def test_a_member_that_does_not_rejoin_in_time_is_removed(
    group: BrokerGroup, clock: Clock, start: Callable[..., "Future[Any]"]
) -> None:
    leader, follower = pair(group, start)
    rejoined = start(join, group, leader.member_id)
    until(lambda: group.state is GroupState.PREPARING)
    clock.ahead_s += 9
    group_codes = [code_of(lambda: group.heartbeat(follower.member_id, 2))]
    clock.ahead_s += 9
    group_codes.append(code_of(lambda: group.heartbeat(follower.member_id, 2)))
    clock.ahead_s += 3  # the rebalance timeout has passed, but not the session timeout
    group_codes.append(code_of(lambda: group.heartbeat(follower.member_id, 2)))
    assert group_codes[:2] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    with group._changed:
        group._changed.notify_all()  # the waiting thread does not notice that the clock was moved
    assert rejoined.result(SOON_S).generation_id == 3
    assert code_of(lambda: group.heartbeat(follower.member_id, 3)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_without_heartbeats_is_removed_and_the_others_rebalance(
    group: BrokerGroup, clock: Clock, start: Callable[..., "Future[Any]"]
) -> None:
    leader, follower = pair(group, start)
    clock.ahead_s += 6
    group.heartbeat(leader.member_id, 2)
    clock.ahead_s += 6
    assert code_of(lambda: group.heartbeat(leader.member_id, 2)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code_of(lambda: group.heartbeat(follower.member_id, 2)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert join(group, leader.member_id).generation_id == 3


def test_a_member_that_waits_for_assignments_rejoins_when_the_leader_is_removed(
    group: BrokerGroup, clock: Clock, start: Callable[..., "Future[Any]"]
) -> None:
    alone = join(group)
    second = start(join, group)
    until(lambda: group.state is GroupState.PREPARING)
    join(group, alone.member_id)
    follower = second.result(SOON_S)
    waiting = start(assignment, group, follower.member_id, 2, {})
    until(lambda: group._members[follower.member_id].deadline_s > clock() + 100)
    clock.ahead_s += 11
    assert [member.member_id for member in group.members()] == [follower.member_id]
    assert code_of(lambda: waiting.result(SOON_S)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert join(group, follower.member_id).leader == follower.member_id


def test_a_member_that_leaves_is_removed_at_once(group: BrokerGroup, start: Callable[..., "Future[Any]"]) -> None:
    leader, follower = pair(group, start)
    group.leave(leader.member_id, None)
    joined = join(group, follower.member_id)
    assert (joined.generation_id, joined.leader) == (3, follower.member_id)
    group.leave(follower.member_id, None)
    assert (group.state, group.members()) == (GroupState.EMPTY, ())
    assert code_of(lambda: group.leave(follower.member_id, None)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_repeats_its_join_gets_the_same_answer(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    _, follower = pair(group, start)
    assert join(group, follower.member_id) == follower
    assert group.state is GroupState.STABLE


def test_a_member_that_joins_with_other_metadata_starts_a_new_generation(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    leader, follower = pair(group, start)
    changed = start(join, group, follower.member_id, protocols=(JoinGroupProtocol(name="range", metadata=b"n"),))
    until(lambda: group.state is GroupState.PREPARING)
    assert join(group, leader.member_id).generation_id == changed.result(SOON_S).generation_id == 3


def test_the_group_chooses_a_protocol_that_all_members_know(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    def protocols_named(*names: str) -> tuple[JoinGroupProtocol, ...]:
        return tuple(JoinGroupProtocol(name=name, metadata=b"") for name in names)

    first = join(group, protocols=protocols_named("sticky", "range"))
    second = start(join, group, protocols=protocols_named("range", "robin"))
    until(lambda: group.state is GroupState.PREPARING)
    assert join(group, first.member_id, protocols=protocols_named("sticky", "range")).protocol_name == "range"
    assert second.result(SOON_S).protocol_name == "range"
    for settings in ({"protocols": protocols_named("sticky")}, {"protocol_type": "connect"}, {"protocols": ()}):
        assert code_of(lambda settings=settings: join(group, **settings)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[misc]  # bound per turn


def test_a_static_member_that_joins_again_keeps_its_member_id(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    # KIP-345
    first = join(group, group_instance_id="a")
    assert join(group, group_instance_id="a").member_id == first.member_id
    assert code_of(lambda: join(group, "other", group_instance_id="a")) == ErrorCode.FENCED_INSTANCE_ID
    group.leave("", "a")
    assert group.members() == ()


def test_only_members_commit_offsets_unless_the_group_is_empty(group: BrokerGroup) -> None:
    group.check_commit("", -1)
    joined = join(group)
    assert code_of(lambda: group.check_commit("", -1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(lambda: group.check_commit(joined.member_id, 1)) == ErrorCode.REBALANCE_IN_PROGRESS
    group.sync(joined.member_id, 1, {})
    group.check_commit(joined.member_id, 1)
    assert code_of(lambda: group.check_commit(joined.member_id, 2)) == ErrorCode.ILLEGAL_GENERATION


def test_a_group_refuses_members_beyond_the_maximum(group: BrokerGroup, start: Callable[..., "Future[Any]"]) -> None:
    for number in range(3):
        start(join, group)
        until(lambda number=number: len(group._members) == number + 1)  # type: ignore[misc]  # bound per turn
    assert code_of(lambda: join(group)) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_reserved_member_ids_count_as_members_until_their_timeout(group: BrokerGroup, clock: Clock) -> None:
    for _ in range(3):
        assert code_of(lambda: join(group, require_member_id=True)) == ErrorCode.MEMBER_ID_REQUIRED
    assert code_of(lambda: join(group, require_member_id=True)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    clock.ahead_s += 11
    assert code_of(lambda: join(group, require_member_id=True)) == ErrorCode.MEMBER_ID_REQUIRED


def test_closing_a_group_ends_waiting_requests_with_an_error(
    group: BrokerGroup, start: Callable[..., "Future[Any]"]
) -> None:
    alone = join(group)
    waiting = start(join, group)
    until(lambda: group.state is GroupState.PREPARING)
    closing = threading.Thread(target=group.close)
    closing.start()
    closing.join()
    assert code_of(lambda: waiting.result(SOON_S)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(lambda: group.heartbeat(alone.member_id, 1)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
