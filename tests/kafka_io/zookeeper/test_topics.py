"""Topics of 0.8 and later, as ZooKeeper lists them; test_listing has the topics of 0.7."""

from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.model import BrokerPartition
from kafka_io.zookeeper.session import ZooKeeperQueries
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.zookeeper_nodes import PartitionState, partition_states

pytestmark = pytest.mark.zookeeper

CLICKS = "/brokers/topics/clicks"
ONE = b'{"version":1,"partitions":{"0":[1]}}'
STATE = b'{"controller_epoch":1,"leader":%d,"version":1,"leader_epoch":3,"isr":[2,1]}'
ID = "hRsWhYTPQxqk3jZLyIqM9g"
WITH_ID = b'{"version":3,"partitions":{"0":[1]},"topic_id":"%s"}' % ID.encode()
V07_BROKER = b"a-1:a:9092"
V08_BROKER = b'{"version":1,"host":"b","port":9092}'


def numbered(count: int) -> tuple[BrokerPartition, ...]:
    return tuple(BrokerPartition(None, partition) for partition in range(count))


def make(kafka: Any, name: str, value: bytes = ONE) -> None:
    """Create the nodes of a topic as its controller does."""
    kafka.create(f"/brokers/topics/{name}", value)
    kafka.create(f"/brokers/topics/{name}/partitions/0/state", STATE % 1, makepath=True)


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1", "0.10.2.2"])
def test_before_2_8_the_incarnation_is_the_creation_of_the_topic(
    release: str, load_release: Callable[[str], object], nodes: Any, zookeeper: ZooKeeper
) -> None:
    load_release(release)
    (topic,) = zookeeper.topics().entries
    assert (topic.name, topic.partitions) == ("clicks", numbered(3))
    assert (topic.incarnation, topic.also) == (str(nodes.exists(CLICKS).czxid), ())
    assert zookeeper.topic("clicks") == topic


@pytest.mark.parametrize(("release", "topic_id"), [("2.8.2", ID), ("3.9.1", "wM5oU1nWQpigkUCKGSvgbw")])
def test_from_2_8_on_the_incarnation_is_the_topic_id(
    release: str, topic_id: str, load_release: Callable[[str], object], nodes: Any, zookeeper: ZooKeeper
) -> None:
    load_release(release)
    (topic,) = zookeeper.topics().entries
    assert (topic.name, topic.partitions) == ("clicks", numbered(3))
    assert (topic.incarnation, topic.also) == (topic_id, (str(nodes.exists(CLICKS).czxid),))


# fault B06
def test_a_topic_that_gets_an_id_keeps_its_creation_as_another_identity(kafka: Any, zookeeper: ZooKeeper) -> None:
    make(kafka, "clicks")
    (before,) = zookeeper.topics().entries
    kafka.set(CLICKS, WITH_ID)
    (upgraded,) = zookeeper.topics().entries
    assert upgraded.incarnation == ID
    assert before.incarnation in upgraded.also
    kafka.delete(CLICKS, recursive=True)
    make(kafka, "clicks")
    (recreated,) = zookeeper.topics().entries
    assert recreated.incarnation not in (before.incarnation, ID)


# fault Z07
def test_a_topic_has_no_partitions_before_the_first_has_a_state(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create(CLICKS, ONE)
    (pending,) = zookeeper.topics().entries
    assert pending.partitions == ()
    assert partition_states(zookeeper, "clicks") == {}
    kafka.create(f"{CLICKS}/partitions/0/state", STATE % 1, makepath=True)
    (topic,) = zookeeper.topics().entries
    assert topic.partitions == numbered(1)
    assert topic.incarnation == pending.incarnation


def test_a_topic_that_is_marked_for_deletion_is_skipped_but_can_be_read(kafka: Any, zookeeper: ZooKeeper) -> None:
    make(kafka, "clicks")
    make(kafka, "views")
    kafka.create("/admin/delete_topics/clicks", makepath=True)
    listing = zookeeper.topics()
    assert [topic.name for topic in listing.entries] == ["views"]
    assert [(node.path, "marked for deletion" in node.reason) for node in listing.skipped] == [(CLICKS, True)]
    topic = zookeeper.topic("clicks")
    assert topic is not None
    assert topic.partitions == numbered(1)


def test_internal_topics_are_not_listed_but_can_be_read(kafka: Any, zookeeper: ZooKeeper) -> None:
    for name in ("__consumer_offsets", "__transaction_state", "__mine"):
        make(kafka, name)
    listing = zookeeper.topics()
    assert [topic.name for topic in listing.entries] == ["__mine"]
    assert listing.skipped == ()
    topic = zookeeper.topic("__consumer_offsets")
    assert topic is not None
    assert topic.partitions == numbered(1)


def test_0_7_has_no_internal_topics(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/topics/__consumer_offsets/3", b"1", makepath=True)
    assert [topic.partitions for topic in zookeeper.topics().entries] == [(BrokerPartition(3, 0),)]


# faults Z04, Z11
def test_a_malformed_topic_hides_only_itself(kafka: Any, zookeeper: ZooKeeper) -> None:
    make(kafka, "clicks")
    make(kafka, "views", b'{"version":1,"partitions":{"x":[1]}}')
    make(kafka, "a b", ONE)
    make(kafka, "cut", ONE[:-1])
    make(kafka, "plain", b"text")
    kafka.create("/brokers/topics/empty", None)  # as 0.7 leaves them behind
    listing = zookeeper.topics()
    assert [topic.name for topic in listing.entries] == ["clicks"]
    assert sorted(node.path.rpartition("/")[2] for node in listing.skipped) == ["a b", "cut", "empty", "plain", "views"]
    assert {"cut", "plain", "views"} <= listing.refused.keys()  # fault A13
    assert "clicks" not in listing.refused
    for name in ("views", "a b", "cut", "plain"):
        with pytest.raises(NodeMalformed, match=f"/brokers/topics/{name}"):
            zookeeper.topic(name)
    assert zookeeper.topic("none") is None


# fault Z03
def test_a_topic_that_is_deleted_during_the_listing_is_skipped(
    kafka: Any, zookeeper: ZooKeeper, vanishing: Callable[[str, str], None]
) -> None:
    make(kafka, "views")
    kafka.create(CLICKS, ONE)
    vanishing("contents", CLICKS)
    listing = zookeeper.topics()
    assert [topic.name for topic in listing.entries] == ["views"]
    assert [(node.path, "was deleted" in node.reason) for node in listing.skipped] == [(CLICKS, True)]


@pytest.mark.parametrize("broker", [V07_BROKER, V08_BROKER, None])
def test_topics_of_two_generations_are_an_error_that_names_them(
    broker: bytes | None, kafka: Any, zookeeper: ZooKeeper
) -> None:
    if broker:
        kafka.create("/brokers/ids/0", broker)
    make(kafka, "clicks")
    kafka.create("/brokers/topics/views/3", b"2", makepath=True)
    with pytest.raises(RegistryError, match=r"two generations of Kafka share this part of ZooKeeper"):
        zookeeper.topics()


@pytest.mark.parametrize(("broker", "topic"), [(V07_BROKER, "clicks"), (V08_BROKER, "views")])
def test_topics_of_another_generation_than_the_brokers_are_an_error(
    broker: bytes, topic: str, kafka: Any, zookeeper: ZooKeeper
) -> None:
    kafka.create("/brokers/ids/0", broker)
    make(kafka, "clicks")
    kafka.create("/brokers/topics/views/3", b"2", makepath=True)
    with pytest.raises(RegistryError, match=rf"/brokers/ids/0.*/brokers/topics/{topic}"):
        zookeeper.topic(topic)


def test_a_topic_of_both_generations_is_an_error(kafka: Any, zookeeper: ZooKeeper) -> None:
    make(kafka, "clicks", b"")
    kafka.create(f"{CLICKS}/3", b"2")
    with pytest.raises(RegistryError, match=r"two generations of Kafka share this part of ZooKeeper"):
        zookeeper.topics()


def test_a_listing_reads_each_topic_once(kafka: Any, zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        make(kafka, f"clicks-{number:02}")
    requested = []
    original = ZooKeeperQueries._each

    def counted(self: ZooKeeperQueries, ask: Callable[[str], Any], paths: Any) -> Any:
        listed = list(paths)
        requested.extend(listed)
        return original(self, ask, listed)

    monkeypatch.setattr(ZooKeeperQueries, "_each", counted)
    assert [len(topic.partitions) for topic in zookeeper.topics().entries] == [1] * 20
    assert [path for path in requested if "clicks" in path] == [f"{CLICKS}-{number:02}" for number in range(20)]


def test_states_are_listed_by_partition_and_can_be_missing(kafka: Any, zookeeper: ZooKeeper) -> None:
    for partition, leader in ((0, 2), (10, -1)):
        kafka.create(f"{CLICKS}/partitions/{partition}/state", STATE % leader, makepath=True)
    kafka.create(f"{CLICKS}/partitions/2")
    assert partition_states(zookeeper, "clicks") == {
        0: PartitionState(leader=2, leader_epoch=3, isr=(2, 1), controller_epoch=1),
        10: PartitionState(leader=-1, leader_epoch=3, isr=(2, 1), controller_epoch=1),
    }


# faults Z04, Z06
def test_an_invalid_state_is_an_error(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create(f"{CLICKS}/partitions/0/state", b"{", makepath=True)
    with pytest.raises(NodeMalformed, match=f"{CLICKS}/partitions/0/state"):
        partition_states(zookeeper, "clicks")
    kafka.create("/brokers/topics/views/partitions/zero/state", STATE % 1, makepath=True)
    with pytest.raises(NodeMalformed, match="/brokers/topics/views/partitions/zero/state"):
        partition_states(zookeeper, "views")
    with pytest.raises(NodeMalformed):
        partition_states(zookeeper, "../ids")


# fault Z06
def test_a_chroot_without_kafka_has_no_states(zookeeper: ZooKeeper) -> None:
    with pytest.raises(RegistryError, match="not a Kafka registry"):
        partition_states(zookeeper, "clicks")


def test_topic_settings_are_those_that_override_the_brokers(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/config/topics/clicks", b'{"version":1,"config":{"retention.ms":"7"}}', makepath=True)
    kafka.create("/config/topics/broken", b"?")
    settings = zookeeper.topic_settings(["views", "clicks", "broken"])
    assert (settings["clicks"], settings["views"]) == ({"retention.ms": "7"}, {})
    assert isinstance(settings["broken"], NodeMalformed)
