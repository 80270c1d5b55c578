"""Members that are killed, late or static, and coordinators that restart: every record is still read."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast

import pytest

from kafka_io.cluster.v07_cluster import Cluster07
from kafka_io.consumer.group.admin import DEAD, Lag, describe_group, list_groups
from kafka_io.consumer.group.assignors import COOPERATIVE_STICKY, RANGE, STICKY, Assignor
from kafka_io.consumer.group.consumer import GroupConsumer, RebalanceListener
from kafka_io.errors import BrokerError, Unsupported
from kafka_io.messages.handshake import ApiVersionsRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.model import Generation, TopicPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.testing.modern import server
from kafka_io.testing.modern.handlers import HANDLERS, VERSIONS_BY_GENERATION
from tests.kafka_io.consumer.group.conftest import (
    PARTITIONS,
    SOON_S,
    GroupBroker,
    all_values,
    poll_until,
    shares_are,
)

pytestmark = pytest.mark.slow  # members wait for each other

Assignments = list[frozenset[TopicPartition]]


class CallbackLog:
    """The partitions of each callback, in order."""

    def __init__(self) -> None:
        self.assigned: Assignments = []
        self.revoked: Assignments = []
        self.lost: Assignments = []

    @property
    def listener(self) -> RebalanceListener:
        """Writes into this log."""
        return RebalanceListener(
            on_assigned=self.assigned.append, on_revoked=self.revoked.append, on_lost=self.lost.append
        )


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def other_process(running: ExitStack, group_broker: GroupBroker, *, session_s: float = 1.0) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-m", "tests.kafka_io.consumer.group.member_program"]
    arguments = [group_broker.address, "readers", "clicks", "range", str(session_s)]
    process = subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE)
    running.enter_context(process)
    running.callback(process.kill)
    return process


def test_the_partitions_of_a_killed_member_are_read_by_another(group_broker: GroupBroker, running: ExitStack) -> None:
    sent = group_broker.publish(40)
    process = other_process(running, group_broker)
    ours = group_broker.member(session_timeout_s=1.0)
    read = poll_until([ours], owns_half(ours))
    process.kill()
    read_before = set(process.communicate(timeout=SOON_S)[0].splitlines())
    sent += group_broker.publish(40)
    seen = {*all_values(read), *read_before}
    read = poll_until([ours], lambda read: set(sent) <= {*seen, *all_values(read)})
    assert {*seen, *all_values(read)} == set(sent)
    assert len(ours.assignment) == PARTITIONS


def owns_half(member: GroupConsumer) -> Callable[[Any], bool]:
    return lambda _: len(member.assignment) == PARTITIONS // 2


@pytest.mark.parametrize("assignor", [RANGE, STICKY], ids=lambda assignor: assignor.name)
def test_a_static_member_that_returns_causes_no_rebalance(group_broker: GroupBroker, assignor: Assignor) -> None:
    """A static member keeps its assignment until its session times out (KIP-345)."""
    log = CallbackLog()
    other = group_broker.member(assignors=(assignor,), listener=log.listener, instance_id="other")
    poll_until([other], shares_are(4))
    static = group_broker.member(assignors=(assignor,), instance_id="static")
    poll_until([other, static], shares_are(2, 2))
    before, assigned, revoked = static.assignment, list(log.assigned), list(log.revoked)
    static.close()
    returned = group_broker.member(assignors=(assignor,), instance_id="static")
    poll_until([returned], lambda _: bool(returned.assignment))
    assert returned.assignment == before
    poll_until([other, returned], shares_are(2, 2))
    assert (log.assigned, log.revoked, log.lost) == (assigned, revoked, [])


@pytest.mark.parametrize("assignor", [RANGE, COOPERATIVE_STICKY], ids=lambda assignor: assignor.name)
def test_members_join_again_after_a_coordinator_restarts(group_broker: GroupBroker, assignor: Assignor) -> None:
    log = CallbackLog()
    sent = group_broker.publish(20)
    members = [group_broker.member(assignors=(assignor,), listener=log.listener, auto_commit_s=0.1) for _ in range(2)]
    got = all_values(poll_until(members, lambda read: shares_are(2, 2)(read) and len(all_values(read)) >= 20))
    group_broker.stop()
    group_broker.start()
    sent += group_broker.publish(20)
    got += all_values(poll_until(members, lambda _: len(log.lost) == len(members)))
    read = poll_until(members, lambda read: shares_are(2, 2)(read) and set(sent) <= {*got, *all_values(read)})
    assert {*got, *all_values(read)} == set(sent)


def test_a_consumer_that_does_not_poll_leaves_and_joins_again_with_its_next_poll(group_broker: GroupBroker) -> None:
    log = CallbackLog()
    late = group_broker.member(max_poll_s=1.0, listener=log.listener)
    poll_until([late], shares_are(4))
    other = group_broker.member()
    poll_until([other], shares_are(4))
    assert log.lost == []  # the callback runs when it polls
    poll_until([late, other], shares_are(2, 2))
    assert log.lost == [frozenset(TopicPartition("clicks", number) for number in range(PARTITIONS))]


def test_the_commit_of_a_removed_member_is_refused(group_broker: GroupBroker) -> None:
    late = group_broker.member(max_poll_s=0.5, auto_commit_s=None)
    poll_until([late], shares_are(4))
    other = group_broker.member()
    poll_until([other], shares_are(4))
    with pytest.raises(BrokerError) as raised:
        late.commit({TopicPartition("clicks", 0): 1})
    assert raised.value.code in (22, 25)


def test_offsets_of_revoked_partitions_can_be_committed_before_they_move(group_broker: GroupBroker) -> None:
    group_broker.publish(20)
    first: GroupConsumer
    revoked: Assignments = []

    def commit(partitions: frozenset[TopicPartition]) -> None:
        revoked.append(partitions)
        first.commit()

    first = group_broker.member(auto_commit_s=None, listener=RebalanceListener(on_revoked=commit))
    poll_until([first], lambda read: len(all_values(read)) == 20)
    second = group_broker.member()
    read = poll_until([first, second], shares_are(2, 2))
    assert all_values(read) == []
    assert len(revoked) == 1


def test_members_of_a_cooperative_group_keep_their_partitions_in_a_rebalance(group_broker: GroupBroker) -> None:
    log = CallbackLog()
    first = group_broker.member(assignors=(COOPERATIVE_STICKY,), listener=log.listener)
    poll_until([first], shares_are(4))
    second = group_broker.member(assignors=(COOPERATIVE_STICKY,))
    poll_until([first, second], shares_are(2, 2))
    assert sum(map(len, log.revoked)) == 2
    assert [len(partitions) for partitions in log.assigned if partitions] == [4]


@pytest.mark.parametrize("assignor", [RANGE, COOPERATIVE_STICKY], ids=lambda assignor: assignor.name)
@pytest.mark.parametrize("callback", ["on_assigned", "on_revoked"])
def test_the_error_of_a_callback_is_raised_and_the_group_rebalances(
    group_broker: GroupBroker, assignor: Assignor, callback: str
) -> None:
    errors = [ZeroDivisionError()]

    def fail(_partitions: frozenset[TopicPartition]) -> None:
        if errors:
            raise errors.pop()

    first = group_broker.member(assignors=(assignor,), listener=RebalanceListener(**{callback: fail}))
    second = group_broker.member(assignors=(assignor,))
    with pytest.raises(ZeroDivisionError):
        poll_until([first, second], lambda _: False)
    poll_until([first, second], shares_are(2, 2))
    sent = group_broker.publish(8)
    assert all_values(poll_until([first, second], lambda read: len(all_values(read)) == 8)) == sorted(sent)


def test_the_late_error_of_a_commit_does_not_end_a_later_generation(group_broker: GroupBroker) -> None:
    member = group_broker.member(auto_commit_s=None)
    poll_until([member], shares_are(4))
    before = member._heartbeater.member
    group_broker.member(group="readers").poll(0.0)  # it joins
    poll_until([member], lambda _: member._heartbeater.member != before)
    member._heartbeater.refused(BrokerError("late", code=22), before)
    assert member._heartbeater.member.generation > before.generation


def test_the_error_of_a_group_that_cannot_be_joined_is_raised(group_broker: GroupBroker) -> None:
    member = group_broker.member(group="")
    with pytest.raises(BrokerError) as raised:
        poll_until([member], lambda _: False)
    assert raised.value.code == 24


def test_a_member_without_a_common_assignor_is_refused(group_broker: GroupBroker) -> None:
    first = group_broker.member(assignors=(RANGE,))
    poll_until([first], shares_are(4))
    second = group_broker.member(assignors=(STICKY,))
    with pytest.raises(BrokerError) as raised:
        poll_until([second], lambda _: False)
    assert raised.value.code == 23


def test_the_error_of_an_assignor_is_raised_by_poll(group_broker: GroupBroker) -> None:
    def share(*_: object) -> Any:
        raise ZeroDivisionError

    member = group_broker.member(assignors=(Assignor(name="broken", share=share),))
    with pytest.raises(ZeroDivisionError):
        poll_until([member], lambda _: False)


def test_a_pattern_includes_topics_that_are_created_later(group_broker: GroupBroker) -> None:
    member = group_broker.member(pattern="click.*", refresh_s=0.2)
    poll_until([member], shares_are(4))
    group_broker.create("clicks-2", 1)
    group_broker.create("others", 1)
    poll_until([member], shares_are(5))
    assert {partition.topic for partition in member.assignment} == {"clicks", "clicks-2"}


def test_a_subscribed_topic_is_read_after_it_is_created(group_broker: GroupBroker) -> None:
    member = group_broker.member(topics=["clicks", "later"], refresh_s=0.2)
    poll_until([member], shares_are(4))
    group_broker.create("later", 2)
    poll_until([member], shares_are(6))
    member.subscribe(["later"])
    poll_until([member], shares_are(2))


def test_a_subscription_that_changes_during_a_join_is_followed(group_broker: GroupBroker) -> None:
    group_broker.create("later", 2)
    member = group_broker.member(topics=["clicks"])
    member.poll(0.0)  # the join begins
    member.subscribe(["later"])
    poll_until([member], shares_are(2))


def test_groups_are_listed_and_described_with_their_lag(group_broker: GroupBroker) -> None:
    sent = group_broker.publish(8)
    member = group_broker.member(instance_id="static", auto_commit_s=None)
    poll_until([member], lambda read: all_values(read) == sorted(sent))
    member.commit({TopicPartition("clicks", 0): 1, TopicPartition("clicks", 1): 2})
    cluster = group_broker.cluster()
    [listed] = list_groups(cluster)
    assert (listed.name, listed.protocol_type, listed.state) == ("readers", "consumer", "Stable")
    group = describe_group(cluster, "readers")
    assert (group.state, group.assignor, group.coordinator.port) == ("Stable", "range", group_broker.port)
    [described] = group.members
    assert (described.instance_id, described.client_id, described.assignment) == (
        "static",
        "penstock",
        member.assignment,
    )
    assert group.lags == {
        TopicPartition("clicks", 0): Lag(committed=1, end=2),
        TopicPartition("clicks", 1): Lag(committed=2, end=2),
        TopicPartition("clicks", 2): Lag(committed=None, end=2),
        TopicPartition("clicks", 3): Lag(committed=None, end=2),
    }
    assert [group.lags[TopicPartition("clicks", number)].records for number in range(4)] == [1, 0, None, None]
    assert describe_group(cluster, "nobody").state == DEAD


def test_groups_of_0_7_clusters_are_unsupported() -> None:
    old = Cluster07("old", cast("Any", None), read_settings=ReadSettings())
    for act in (
        lambda: GroupConsumer(old, "g", topics=["t"]),
        lambda: list_groups(old),
        lambda: describe_group(old, "g"),
    ):
        with pytest.raises(Unsupported):
            act()


@pytest.fixture
def old_ground(empty_broker: GroupBroker, monkeypatch: pytest.MonkeyPatch) -> GroupBroker:
    """A broker like a 0.9 broker: the embedded broker of 0.8 with the first versions of the group APIs."""
    empty_broker.stop()
    empty_broker.generation = Generation.V08
    groups = {kind: (0, 0) for kind in HANDLERS if 11 <= kind.API.key <= 16}
    versions = {**VERSIONS_BY_GENERATION[Generation.V08], **groups}
    monkeypatch.setattr(server, "VERSIONS_BY_GENERATION", {Generation.V08: versions})
    empty_broker.start()
    return empty_broker


def test_a_group_of_0_9_is_joined_with_the_first_versions_of_each_api(old_ground: GroupBroker) -> None:
    sent = old_ground.publish(20)
    first = old_ground.member(auto_commit_s=0.1)
    got = all_values(poll_until([first], lambda read: len(all_values(read)) == 20))
    second = old_ground.member()
    got += all_values(poll_until([first, second], shares_are(2, 2)))
    group = describe_group(old_ground.cluster(), "readers")
    assert (group.state, len(group.members)) == ("Stable", 2)
    assert {lag.records for lag in group.lags.values()} == {0}
    first.close()
    sent += old_ground.publish(20)
    got += all_values(poll_until([second], lambda read: len(all_values(read)) == 20))
    assert sorted(got) == sorted(sent)


def test_brokers_of_0_8_coordinate_no_groups(empty_broker: GroupBroker) -> None:
    empty_broker.stop()
    empty_broker.generation = Generation.V08
    empty_broker.start()
    member = empty_broker.member()
    with pytest.raises(Unsupported, match=r"0\.8"):
        poll_until([member], lambda _: False)
    assert ApiVersionsRequest not in VERSIONS_BY_GENERATION[Generation.V08]
    assert ListGroupsRequest not in VERSIONS_BY_GENERATION[Generation.V08]
