"""How each answer of a coordinator changes the state of a member; no coordinator runs here."""

import pytest

from kafka_io.consumer.group.assignors import COOPERATIVE_STICKY, RANGE, STICKY, Assignor
from kafka_io.consumer.group.member import GroupMemberState, PartitionsAssigned, PartitionsLost, RebalanceStarted
from kafka_io.consumer.group.protocol import (
    SubscriptionMessage,
    decode_owned,
    decode_sticky,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.errors import BrokerBusy, BrokerError, ConnectionLost, CoordinatorMoved, Corrupt
from kafka_io.messages.join_group import JoinGroupMember, JoinGroupResponse
from kafka_io.messages.sync_group import SyncGroupResponse
from kafka_io.model import TopicPartition

CLICKS = frozenset(["clicks"])
PARTITIONS: frozenset[TopicPartition] = frozenset([TopicPartition("clicks", 0), TopicPartition("clicks", 1)])
FENCED, TOO_MANY, INCONSISTENT = 82, 81, 23


def joining(*assignors: Assignor, instance_id: str | None = None) -> GroupMemberState:
    settings = GroupSettings(group="g", instance_id=instance_id, assignors=assignors or (RANGE,))
    state = GroupMemberState(settings)
    state.ready(())
    state.join_request(CLICKS)
    return state


def joined(
    state: GroupMemberState, *, generation: int = 1, leader: str = "m", protocol: str = "range"
) -> tuple[str, ...] | None:
    metadata = encode_subscription(SubscriptionMessage(topics=("clicks",)))
    answer = JoinGroupResponse(
        error_code=0,
        generation_id=generation,
        protocol_name=protocol,
        leader=leader,
        member_id="m",
        members=(JoinGroupMember(member_id="m", metadata=metadata),) if leader == "m" else (),
    )
    members = state.joined(answer)
    return None if members is None else tuple(member.id for member in members)


def stable(*assignors: Assignor, instance_id: str | None = None) -> GroupMemberState:
    """A member with two partitions, which its consumer reads."""
    state = joining(*assignors, instance_id=instance_id)
    joined(state, protocol=(assignors or (RANGE,))[0].name)
    state.synced(SyncGroupResponse(error_code=0, assignment=encode_assignment(PARTITIONS)))
    assert state.take() == PartitionsAssigned(PARTITIONS)
    return state


def refused(code: int) -> BrokerError:
    return BrokerError("refused", code=code)


def test_a_new_member_joins_again_with_its_assigned_id() -> None:
    state = joining()
    answer = JoinGroupResponse(error_code=79, protocol_name=None, leader="", member_id="m-1", members=())
    assert state.joined(answer) is None
    assert state.is_joining
    assert state.join_request(CLICKS).member_id == "m-1"


def test_only_the_leader_receives_the_members_and_sends_assignments() -> None:
    leader, follower = joining(), joining()
    assert joined(leader) == ("m",)
    assert joined(follower, leader="another") == ()
    [sent] = leader.sync_request({"m": PARTITIONS}).assignments
    assert sent.assignment == encode_assignment(PARTITIONS)
    assert follower.sync_request({}).assignments == ()


def test_a_member_sends_heartbeats_from_its_assignment_until_it_joins_again() -> None:
    state = joining()
    assert not state.is_alive
    state = stable()
    assert state.is_alive
    assert (state.heartbeat_request().member_id, state.heartbeat_request().generation_id) == ("m", 1)
    state.require_rejoin()
    assert state.is_alive
    state.ready(())
    assert not state.is_alive


def test_a_rebalance_event_stays_until_the_consumer_is_ready() -> None:
    state = stable()
    state.refused(refused(27))
    assert state.take() == state.take() == RebalanceStarted()
    state.ready(())
    assert state.take() is None
    assert state.is_joining


@pytest.mark.parametrize(("code", "member_id"), [(25, ""), (22, "m")])
def test_partitions_are_lost_if_the_group_continued_without_the_member(code: int, member_id: str) -> None:
    state = stable()
    state.refused(refused(code))
    assert isinstance(state.take(), PartitionsLost)
    assert (state.member.generation, state.member.id, state.is_alive) == (-1, member_id, False)


@pytest.mark.parametrize(
    "error", [ConnectionLost("gone"), CoordinatorMoved("moved", code=16), BrokerBusy("b", code=14)]
)
def test_a_retriable_error_changes_nothing(error: ConnectionLost | CoordinatorMoved | BrokerBusy) -> None:
    state = stable()
    state.refused(error)
    assert (state.take(), state.failure, state.is_alive) == (None, None, True)


@pytest.mark.parametrize("code", [FENCED, TOO_MANY, INCONSISTENT])
def test_a_permanent_error_ends_the_membership(code: int) -> None:
    state = joining()
    state.refused(refused(code))
    assert isinstance(state.failure, BrokerError)
    assert (state.failure.code, state.is_joining, state.is_alive) == (code, False, False)


def test_an_unknown_member_that_owns_nothing_joins_with_a_new_id() -> None:
    state = joining()
    state.refused(refused(25))
    assert (state.take(), state.is_joining, state.join_request(CLICKS).member_id) == (None, True, "")


def test_an_unknown_member_that_joins_with_partitions_loses_them() -> None:
    state = stable(COOPERATIVE_STICKY)
    state.require_rejoin()
    state.ready(PARTITIONS)
    state.refused(refused(25))
    assert isinstance(state.take(), PartitionsLost)
    assert not state.is_joining


def test_a_new_rebalance_does_not_hide_lost_partitions() -> None:
    state = stable()
    state.lose("late")
    state.require_rejoin()
    assert isinstance(state.take(), PartitionsLost)


def test_a_cooperative_member_sends_its_partitions_and_their_generation() -> None:
    state = stable(COOPERATIVE_STICKY)
    state.require_rejoin()
    state.ready(PARTITIONS)
    [protocol] = state.join_request(CLICKS).protocols
    owned = decode_owned(decode_subscription(protocol.metadata))
    assert (owned.partitions, owned.generation) == (PARTITIONS, 1)


def test_an_eager_sticky_member_sends_its_last_assignment() -> None:
    state = stable(STICKY)
    state.require_rejoin()
    state.ready(())
    [protocol] = state.join_request(CLICKS).protocols
    subscription = decode_subscription(protocol.metadata)
    assert decode_sticky(subscription.user_data).partitions == PARTITIONS
    assert decode_owned(subscription).partitions == frozenset()


@pytest.mark.parametrize(("instance_id", "member_id"), [(None, ""), ("static", "m")])
def test_a_member_that_left_joins_with_a_new_id_unless_it_is_static(instance_id: str | None, member_id: str) -> None:
    state = stable(instance_id=instance_id)
    state.left("late")
    state.ready(())
    request = state.join_request(CLICKS)
    assert (request.member_id, request.group_instance_id) == (member_id, instance_id)


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_a_leave_request_is_valid_in_every_version(version: int) -> None:
    request = stable().leave_request(version)
    leaving = [member.member_id for member in request.members]
    assert (request.member_id, leaving) == (("m", []) if version < 3 else ("", ["m"]))


def test_an_assignor_that_was_not_offered_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="did not offer"):
        joined(joining(), protocol="by chance")


@pytest.mark.parametrize(
    ("code", "is_alive"), [(22, False), (25, False), (82, False), (27, True), (29, True), (12, True)]
)
def test_a_refused_commit_ends_the_membership_only_for_membership_errors(code: int, is_alive: bool) -> None:
    state = stable()
    state.commit_refused(refused(code))
    assert state.is_alive is is_alive
    assert (state.failure is not None) is (code == FENCED)
