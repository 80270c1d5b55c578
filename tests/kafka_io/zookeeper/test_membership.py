"""The nodes of a member in a real ZooKeeper are changed only in the session that owns them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.zookeeper.listing import NodeVanished
from kafka_io.zookeeper.members import StaticSubscription, whitelist
from kafka_io.zookeeper.membership import ConsumerRegistration

pytestmark = pytest.mark.zookeeper

Open = Callable[[str], ConsumerRegistration]
FIRST, SECOND = BrokerPartition(0, 0), BrokerPartition(0, 1)
CLICKS = TopicPartition.of("clicks", FIRST)
VIEWS = TopicPartition.of("views", SECOND)


@pytest.fixture
def open_member(chroot: str) -> Iterator[Open]:
    """Opens members of the group `readers`."""
    with ExitStack() as opened:

        def open_(member: str) -> ConsumerRegistration:
            registration = ConsumerRegistration.open(chroot, "readers", member, timeout_s=60, session_timeout_s=6)
            return opened.enter_context(registration)

        yield open_


def end_session(member: ConsumerRegistration) -> int | None:
    """End the member's session as a long pause would. Returns its id."""
    client = member._session._client
    number = member.session_id
    twin = KazooClient(hosts=",".join(f"{host}:{port}" for host, port in client.hosts), client_id=client.client_id)
    twin.start()
    twin.stop()
    twin.close()
    return number


def no_skip(path: str, error: RegistryError) -> None:
    """Only nodes that do not exist may be skipped."""
    assert isinstance(error, NodeVanished), path


def test_the_nodes_of_a_member_are_ephemeral_and_those_above_have_no_value(kafka: Any, open_member: Open) -> None:
    member = open_member("readers_a")
    assert member.join(b'{ "clicks": 1 }')
    assert member.take({CLICKS: "readers_a-0"}, member.session_id) == {CLICKS}
    assert kafka.get("/consumers/readers/ids/readers_a")[0] == b'{ "clicks": 1 }'
    value, stat = kafka.get("/consumers/readers/owners/clicks/0-0")
    assert (value, stat.ephemeralOwner) == (b"readers_a-0", member.session_id)
    member.close()
    assert kafka.get_children("/consumers/readers/ids") == []
    assert kafka.get_children("/consumers/readers/owners/clicks") == []


def test_a_partition_of_another_owner_is_neither_taken_nor_released(kafka: Any, open_member: Open) -> None:
    first, second = open_member("readers_a"), open_member("readers_b")
    assert first.join(b"{}")
    assert first.join(b"{}")
    assert not open_member("readers_a").join(b"{}")
    assert first.take({CLICKS: "readers_a-0"}, first.session_id) == {CLICKS}
    assert second.take({CLICKS: "readers_b-0", VIEWS: "readers_b-0"}, second.session_id) == {VIEWS}
    second.release([CLICKS, VIEWS], second.session_id)
    assert kafka.get("/consumers/readers/owners/clicks/0-0")[0] == b"readers_a-0"
    assert kafka.get_children("/consumers/readers/owners/views") == []


def test_a_partition_that_is_owned_already_can_move_to_another_stream(kafka: Any, open_member: Open) -> None:
    member = open_member("readers_a")
    for thread in ("readers_a-0", "readers_a-1"):
        assert member.take({CLICKS: thread}, member.session_id) == {CLICKS}
        assert kafka.get("/consumers/readers/owners/clicks/0-0")[0] == thread.encode()


# fault Z01
def test_nothing_is_changed_for_a_session_that_has_ended(kafka: Any, open_member: Open) -> None:
    member = open_member("readers_a")
    assert member.commit({CLICKS: 5}, member.session_id)
    old = end_session(member)
    assert member.join(b"{}")  # in the session that follows
    assert member.session_id != old
    assert not member.commit({CLICKS: 6}, old)
    assert member.take({CLICKS: "readers_a-0"}, old) == set()
    assert member.take({CLICKS: "readers_a-0"}, member.session_id) == {CLICKS}
    member.release([CLICKS], old)
    assert kafka.exists("/consumers/readers/owners/clicks/0-0")
    assert member.offsets(["clicks", "views"]) == {CLICKS: 5}


def test_the_group_view_has_the_topics_of_the_member_and_all_their_threads(kafka: Any, open_member: Open) -> None:
    kafka.create("/brokers/topics/clicks/0", b"2", makepath=True)
    kafka.create("/brokers/topics/views/0", b"1", makepath=True)
    first, second = open_member("readers_a"), open_member("readers_b")
    assert first.join(b'{ "clicks": 2 }')
    assert second.join(b"*1*.*")
    view = first.group_view(StaticSubscription({"clicks": 2, "absent": 1}), no_skip)
    assert view.partitions == {"clicks": (FIRST, SECOND)}
    assert sorted(view.threads["clicks"]) == ["readers_a-0", "readers_a-1", "readers_b-0"]
    assert second.group_view(whitelist(".*", 1), no_skip).threads["views"] == ["readers_b-0"]


# fault Z04
def test_an_invalid_member_makes_the_group_view_an_error(kafka: Any, open_member: Open) -> None:
    kafka.create("/brokers/topics/clicks/0", b"2", makepath=True)
    kafka.create("/consumers/readers/ids/readers_x", b"no such thing", makepath=True)
    with pytest.raises(NodeMalformed, match="readers_x"):
        open_member("readers_a").group_view(StaticSubscription({"clicks": 1}), no_skip)


def test_internal_topics_match_no_filter(nodes: Any, open_member: Open) -> None:
    broker = b'{"version":1,"host":"a","port":9092}'
    nodes.create("/brokers/ids/1", broker, makepath=True)
    for topic in ("__consumer_offsets", "clicks"):
        nodes.create(f"/brokers/topics/{topic}", b'{"version":1,"partitions":{"0":[1]}}', makepath=True)
        nodes.create(f"/brokers/topics/{topic}/partitions")
    member = open_member("readers_a")
    assert member.group_view(whitelist(".*", 1), no_skip).partitions == {"clicks": (BrokerPartition(None, 0),)}


# fault Z02
def test_a_watch_is_called_for_members_topics_and_partitions(kafka: Any, open_member: Open) -> None:
    member = open_member("readers_a")
    assert member.join(b"{}")
    kafka.create("/brokers/topics/clicks")
    called = threading.Event()
    assert member.watch(["clicks"], called.set)
    assert not member.watch(["clicks"], called.set)
    for path in ("/brokers/topics/clicks/0", "/brokers/topics/views", "/consumers/readers/ids/readers_b"):
        member.node_format()  # the watches are set: ZooKeeper answers in order
        called.clear()
        kafka.create(path, b"1")
        assert called.wait(60), path


@pytest.mark.parametrize(("group", "member"), [("", "a"), ("a/b", "a"), ("a", ".."), ("a", "a/b")])
def test_a_name_that_no_node_can_have_is_refused(kafka: Any, chroot: str, group: str, member: str) -> None:
    with pytest.raises(NodeMalformed):
        ConsumerRegistration.open(chroot, group, member, timeout_s=60, session_timeout_s=6)
