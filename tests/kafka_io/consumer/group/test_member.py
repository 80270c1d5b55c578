"""What each answer of a coordinator makes of a member, without one."""

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
PLACES: frozenset[TopicPartition] = frozenset([TopicPartition("clicks", 0), TopicPartition("clicks", 1)])
FENCED, TOO_MANY, INCONSISTENT = 82, 81, 23


def participation(*assignors: Assignor, instance_id: str | None = None) -> GroupMemberState:
    settings = GroupSettings(group="g", instance_id=instance_id, assignors=assignors or (RANGE,))
    found = GroupMemberState(settings)
    found.ready(())
    found.join_request(CLICKS)
    return found


def joined(
    one: GroupMemberState, *, generation: int = 1, leader: str = "m", protocol: str = "range"
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
    members = one.joined(answer)
    return None if members is None else tuple(member.id for member in members)


def stable(*assignors: Assignor, instance_id: str | None = None) -> GroupMemberState:
    """A member with two partitions, which its consumer has taken."""
    one = participation(*assignors, instance_id=instance_id)
    joined(one, protocol=(assignors or (RANGE,))[0].name)
    one.synced(SyncGroupResponse(error_code=0, assignment=encode_assignment(PLACES)))
    assert one.take() == PartitionsAssigned(PLACES)
    return one


def refused(code: int) -> BrokerError:
    return BrokerError("as a test has it", code=code)


def test_a_new_member_joins_again_with_the_id_it_is_given() -> None:
    one = participation()
    answer = JoinGroupResponse(error_code=79, protocol_name=None, leader="", member_id="m-1", members=())
    assert one.joined(answer) is None
    assert one.is_joining
    assert one.join_request(CLICKS).member_id == "m-1"


def test_only_the_leader_is_told_of_members_and_says_who_reads_what() -> None:
    leader, follower = participation(), participation()
    assert joined(leader) == ("m",)
    assert joined(follower, leader="another") == ()
    [one] = leader.sync_request({"m": PLACES}).assignments
    assert one.assignment == encode_assignment(PLACES)
    assert follower.sync_request({}).assignments == ()


def test_it_beats_from_its_assignment_until_it_joins_again() -> None:
    one = participation()
    assert not one.is_alive
    one = stable()
    assert one.is_alive
    assert (one.heartbeat_request().member_id, one.heartbeat_request().generation_id) == ("m", 1)
    one.require_rejoin()
    assert one.is_alive
    one.ready(())
    assert not one.is_alive


def test_it_is_told_to_yield_until_it_is_ready() -> None:
    one = stable()
    one.refused(refused(27))
    assert one.take() == one.take() == RebalanceStarted()
    one.ready(())
    assert one.take() is None
    assert one.is_joining


@pytest.mark.parametrize(("code", "member_id"), [(25, ""), (22, "m")])
def test_it_is_lost_when_the_group_has_gone_on_without_it(code: int, member_id: str) -> None:
    one = stable()
    one.refused(refused(code))
    assert isinstance(one.take(), PartitionsLost)
    assert (one.member.generation, one.member.id, one.is_alive) == (-1, member_id, False)


@pytest.mark.parametrize(
    "error", [ConnectionLost("gone"), CoordinatorMoved("moved", code=16), BrokerBusy("b", code=14)]
)
def test_what_passes_changes_nothing(error: ConnectionLost | CoordinatorMoved | BrokerBusy) -> None:
    one = stable()
    one.refused(error)
    assert (one.take(), one.failure, one.is_alive) == (None, None, True)


@pytest.mark.parametrize("code", [FENCED, TOO_MANY, INCONSISTENT])
def test_what_cannot_be_helped_is_the_end(code: int) -> None:
    one = participation()
    one.refused(refused(code))
    assert isinstance(one.failure, BrokerError)
    assert (one.failure.code, one.is_joining, one.is_alive) == (code, False, False)


def test_one_that_is_unknown_while_it_joins_with_nothing_joins_anew() -> None:
    one = participation()
    one.refused(refused(25))
    assert (one.take(), one.is_joining, one.join_request(CLICKS).member_id) == (None, True, "")


def test_one_that_is_unknown_while_it_joins_with_partitions_has_lost_them() -> None:
    one = stable(COOPERATIVE_STICKY)
    one.require_rejoin()
    one.ready(PLACES)
    one.refused(refused(25))
    assert isinstance(one.take(), PartitionsLost)
    assert not one.is_joining


def test_a_new_rebalance_does_not_hide_that_it_is_lost() -> None:
    one = stable()
    one.lose("late")
    one.require_rejoin()
    assert isinstance(one.take(), PartitionsLost)


def test_a_cooperative_member_says_what_it_has_and_since_when() -> None:
    one = stable(COOPERATIVE_STICKY)
    one.require_rejoin()
    one.ready(PLACES)
    [protocol] = one.join_request(CLICKS).protocols
    held = decode_owned(decode_subscription(protocol.metadata))
    assert (held.partitions, held.generation) == (PLACES, 1)


def test_an_eager_sticky_member_says_what_it_had() -> None:
    one = stable(STICKY)
    one.require_rejoin()
    one.ready(())
    [protocol] = one.join_request(CLICKS).protocols
    subscription = decode_subscription(protocol.metadata)
    assert decode_sticky(subscription.user_data).partitions == PLACES
    assert decode_owned(subscription).partitions == frozenset()


@pytest.mark.parametrize(("instance_id", "member_id"), [(None, ""), ("static", "m")])
def test_one_that_left_is_another_next_time_unless_it_is_static(instance_id: str | None, member_id: str) -> None:
    one = stable(instance_id=instance_id)
    one.left("late")
    one.ready(())
    request = one.join_request(CLICKS)
    assert (request.member_id, request.group_instance_id) == (member_id, instance_id)


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_it_leaves_in_every_version(version: int) -> None:
    request = stable().leave_request(version)
    many = [one.member_id for one in request.members]
    assert (request.member_id, many) == (("m", []) if version < 3 else ("", ["m"]))


def test_a_protocol_that_nobody_offered_is_no_answer() -> None:
    with pytest.raises(Corrupt, match="did not offer"):
        joined(participation(), protocol="by chance")


@pytest.mark.parametrize(
    ("code", "is_alive"), [(22, False), (25, False), (82, False), (27, True), (29, True), (12, True)]
)
def test_a_refused_commit_concerns_the_member_only_if_it_says_so(code: int, is_alive: bool) -> None:
    one = stable()
    one.commit_refused(refused(code))
    assert one.is_alive is is_alive
    assert (one.failure is not None) is (code == FENCED)
