"""A listing of the nodes of 0.7: its content, skipped nodes, and errors that must not look like an empty cluster."""

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.security import make_acl

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.model import Broker, BrokerPartition
from kafka_io.zookeeper.session import ZooKeeperQueries
from kafka_io.zookeeper.zookeeper import ZooKeeper

pytestmark = pytest.mark.zookeeper


def both(broker: int) -> tuple[BrokerPartition, ...]:
    return BrokerPartition(broker, 0), BrokerPartition(broker, 1)


def test_brokers_that_a_genuine_0_7_registered_are_listed(
    load_dump: Callable[[str], None], zookeeper: ZooKeeper
) -> None:
    load_dump("00-brokers-and-topics.json")
    assert zookeeper.brokers().entries == (Broker(0, "127.0.0.1", 19072),)
    topics = zookeeper.topics()
    assert len(topics.entries) == 29
    assert topics.skipped == ()
    assert [topic.name for topic in topics.entries] == sorted(topic.name for topic in topics.entries)
    by_name = {topic.name: topic.partitions for topic in topics.entries}
    assert by_name["caf\xe9"] == by_name["a b:c"] == both(0)
    assert len(by_name["three"]) == 3


def test_topics_remain_when_their_brokers_stop(load_dump: Callable[[str], None], zookeeper: ZooKeeper) -> None:
    load_dump("40-broker-stopped.json")
    assert zookeeper.brokers().entries == ()
    topics = zookeeper.topics()
    assert len(topics.entries) == 29
    assert {topic.partitions for topic in topics.entries} == {()}
    assert topics.skipped == ()


def test_a_cluster_without_topics_has_an_empty_listing(kafka: Any, zookeeper: ZooKeeper) -> None:
    assert zookeeper.topics().entries == ()
    assert zookeeper.brokers().entries == ()
    assert zookeeper.topic("clicks") is None


def test_a_cluster_that_never_had_a_topic_is_empty(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.delete("/brokers/topics")
    assert zookeeper.topics().entries == ()
    assert zookeeper.topic("clicks") is None


# fault Z06
def test_a_missing_chroot_is_an_error_and_stays_missing(zookeeper_server: str) -> None:
    for ask in (ZooKeeper.topics, ZooKeeper.brokers, lambda zookeeper: ZooKeeper.topic(zookeeper, "clicks")):
        with (
            ZooKeeper.open(f"{zookeeper_server}/no-such-chroot") as zookeeper,
            pytest.raises(RegistryError, match=r"chroot .* does not exist"),
        ):
            ask(zookeeper)
    with ZooKeeper.open(zookeeper_server) as root:
        assert not root._session.in_one_session(lambda queries: queries.exists("/no-such-chroot"))


# fault Z06
def test_a_chroot_without_kafka_is_an_error(zookeeper: ZooKeeper) -> None:
    with pytest.raises(RegistryError, match=r"not a Kafka registry.*'/brokers/topics'"):
        zookeeper.topics()
    with pytest.raises(RegistryError, match=r"not a Kafka registry.*'/brokers/ids'"):
        zookeeper.brokers()
    with pytest.raises(RegistryError, match="not a Kafka registry"):
        zookeeper.topic("clicks")


# fault Z06
@pytest.mark.parametrize("denied", ["/brokers/topics", "/brokers/topics/clicks", "/brokers/topics/clicks/0"])
def test_a_node_without_read_access_is_an_error(denied: str, kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/topics/clicks/0", b"1", makepath=True)
    kafka.set_acls(denied, [make_acl("digest", "nobody:x", all=True)])
    with pytest.raises(RegistryError, match=f"denies access to '{denied}'"):
        zookeeper.topics()


def test_partitions_are_in_numeric_order(kafka: Any, zookeeper: ZooKeeper) -> None:
    for broker, count in (("10", b"1"), ("2", b"12")):
        kafka.create(f"/brokers/topics/clicks/{broker}", count, makepath=True)
    (topic,) = zookeeper.topics().entries
    assert topic.partitions == (*(BrokerPartition(2, partition) for partition in range(12)), BrokerPartition(10, 0))
    assert zookeeper.topic("clicks") == topic


def test_a_recreated_topic_has_another_incarnation(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/topics/clicks")
    (before,) = zookeeper.topics().entries
    kafka.create("/brokers/topics/clicks/0", b"1")
    kafka.set("/brokers/topics/clicks", b"touched")
    assert zookeeper.topics().entries[0].incarnation == before.incarnation
    assert before.incarnation == str(kafka.exists("/brokers/topics/clicks").czxid)
    kafka.delete("/brokers/topics/clicks", recursive=True)
    kafka.create("/brokers/topics/clicks")
    assert zookeeper.topics().entries[0].incarnation != before.incarnation


# fault Z04
def test_a_malformed_broker_is_skipped_with_its_reason(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/ids/1", b"a-1:a:9092")
    kafka.create("/brokers/ids/2", b"\xff\xfe")
    kafka.create("/brokers/ids/3", b"x" * 1_000_000)
    kafka.create("/brokers/ids/4", None)
    kafka.create("/brokers/ids/five", b"a-1:a:9092")
    listing = zookeeper.brokers()
    assert listing.entries == (Broker(1, "a", 9092),)
    reasons = {node.path: node.reason for node in listing.skipped}
    assert sorted(reasons) == ["/brokers/ids/2", "/brokers/ids/3", "/brokers/ids/4", "/brokers/ids/five"]
    assert "1000000 bytes" in reasons["/brokers/ids/3"]


# fault Z04
def test_a_malformed_share_hides_only_itself(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/topics/clicks/0", b"many", makepath=True)
    kafka.create("/brokers/topics/clicks/1", b"2")
    kafka.create("/brokers/topics/views/0", b"2", makepath=True)
    listing = zookeeper.topics()
    assert [(topic.name, topic.partitions) for topic in listing.entries] == [("clicks", both(1)), ("views", both(0))]
    assert [node.path for node in listing.skipped] == ["/brokers/topics/clicks/0"]
    with pytest.raises(NodeMalformed, match="/brokers/topics/clicks/0"):
        zookeeper.topic("clicks")


# fault Z11
def test_a_topic_name_that_no_broker_accepts_is_skipped(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create(f"/brokers/topics/{'t' * 10_000}")
    kafka.create("/brokers/topics/clicks")
    listing = zookeeper.topics()
    assert [topic.name for topic in listing.entries] == ["clicks"]
    assert [len(node.path) for node in listing.skipped] == [10_000 + len("/brokers/topics/")]
    with pytest.raises(NodeMalformed):
        zookeeper.topic("../ids")


# fault Z03
def test_a_topic_that_is_deleted_during_the_listing_is_skipped(
    kafka: Any, zookeeper: ZooKeeper, vanishing: Callable[[str, str], None]
) -> None:
    kafka.create("/brokers/topics/clicks")
    kafka.create("/brokers/topics/views/0", b"2", makepath=True)
    vanishing("nodes", "/brokers/topics/clicks")
    listing = zookeeper.topics()
    assert [topic.name for topic in listing.entries] == ["views"]
    assert [(node.path, "was deleted" in node.reason) for node in listing.skipped] == [("/brokers/topics/clicks", True)]


# fault Z03
def test_a_broker_that_is_deleted_during_the_listing_hides_only_its_partitions(
    kafka: Any, zookeeper: ZooKeeper, vanishing: Callable[[str, str], None]
) -> None:
    kafka.create("/brokers/topics/clicks/0", b"2", makepath=True)
    kafka.create("/brokers/topics/clicks/1", b"2")
    vanishing("contents", "/brokers/topics/clicks/0")
    listing = zookeeper.topics()
    assert [topic.partitions for topic in listing.entries] == [both(1)]
    assert [node.path for node in listing.skipped] == ["/brokers/topics/clicks/0"]
    topic = zookeeper.topic("clicks")
    assert topic is not None
    assert topic.partitions == both(1)


# fault Z03
def test_a_broker_that_is_deleted_during_the_listing_is_skipped(
    kafka: Any, zookeeper: ZooKeeper, vanishing: Callable[[str, str], None]
) -> None:
    kafka.create("/brokers/ids/0", b"a-1:a:9092")
    vanishing("contents", "/brokers/ids/0")
    listing = zookeeper.brokers()
    assert listing.entries == ()
    assert [node.path for node in listing.skipped] == ["/brokers/ids/0"]


# fault Z08
def test_the_server_catches_up_before_each_listing(
    kafka: Any, zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = []
    for question in ("sync", "node", "nodes", "contents"):
        original = getattr(ZooKeeperQueries, question)

        def noted(self: ZooKeeperQueries, *args: Any, question: str = question, original: Any = original) -> Any:
            queries.append(question)
            return original(self, *args)

        monkeypatch.setattr(ZooKeeperQueries, question, noted)
    for listing in (zookeeper.topics, zookeeper.brokers, lambda: zookeeper.topic("clicks")):
        queries.clear()
        listing()
        assert queries[0] == "sync"
        assert len(queries) > 1


# fault Z05
def test_a_list_of_more_than_a_megabyte_is_read_whole(kafka: Any, zookeeper: ZooKeeper) -> None:
    names = [f"{number:05d}{'x' * 245}" for number in range(4_400)]
    for start in range(0, len(names), 400):
        requests = [kafka.create_async(f"/brokers/topics/{name}") for name in names[start : start + 400]]
        for request in requests:
            request.get(timeout=30)
    assert [topic.name for topic in zookeeper.topics().entries] == names
