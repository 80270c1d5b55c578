"""A cluster of real brokers in a real ZooKeeper, also while some of its brokers are down."""

import time
from dataclasses import replace

import pytest

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.retention import Retention
from kafka_io.cluster.v07_cluster import Cluster07
from kafka_io.errors import ConnectFailed, ConnectionLost, NodeMalformed, RegistryError, Where
from kafka_io.model import Bounds, Broker, BrokerPartition, OffsetRange
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.v07.partition import Partition07
from kafka_io.records.last_message import LastMessage
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.kafka_io.conftest import StartBroker
from tests.kafka_io.reader.v07.test_partition import rows
from tests.publishing import publish

pytestmark = pytest.mark.zookeeper

HASTY = RetryPolicy(timeout_s=10.0, backoff=Backoff(attempts=1))
READ_SETTINGS = ReadSettings(retry_policy=HASTY)
PARTITIONS = (BrokerPartition(0, 0), BrokerPartition(0, 1), BrokerPartition(1, 0), BrokerPartition(1, 1))
MESSAGES = [b"message %d" % number for number in range(100)]


@pytest.fixture
def brokers(chroot: str, start_broker: StartBroker) -> list[BrokerServer07]:
    """Two brokers that hold the topic `clicks`, two partitions each."""
    started = [start_broker(broker_id=number, zookeeper=chroot) for number in (0, 1)]
    publish("clicks", MESSAGES, zookeeper=chroot, batch_size=5)
    return started


def test_topics_and_brokers_are_those_of_zookeeper(chroot: str, brokers: list[BrokerServer07]) -> None:
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        (topic,) = cluster.topics().entries
        assert (topic.name, topic.partitions) == ("clicks", PARTITIONS)
        assert cluster.topic("clicks") == topic
        assert cluster.topic("nothing") is None
        assert cluster.brokers_by_id() == {
            number: Broker(number, "127.0.0.1", broker.port) for number, broker in enumerate(brokers)
        }


def test_all_that_was_published_is_read_once(chroot: str, brokers: list[BrokerServer07]) -> None:
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        answers = cluster.bounds("clicks", PARTITIONS)
        values = [
            value
            for partition, bounds in answers.items()
            if isinstance(bounds, Bounds)
            for _, value in rows(cluster.partition("clicks", partition).read(bounds.earliest, bounds.latest))
        ]
        assert len(answers) == len(PARTITIONS)
        assert sorted(values) == sorted(MESSAGES)


def test_a_broker_that_is_down_hides_only_its_partitions_and_is_tried_once(  # fault B12
    chroot: str, brokers: list[BrokerServer07], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[BrokerPartition] = []
    ask = Partition07.bounds

    def noted(partition: Partition07) -> Bounds:
        tried.append(partition.id)
        return ask(partition)

    monkeypatch.setattr(Partition07, "bounds", noted)
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        dead = cluster.brokers_by_id()[0]
        brokers[0].stop()
        answers = cluster.bounds("clicks", PARTITIONS)
    assert [type(answers[partition]) for partition in PARTITIONS] == [ConnectFailed, ConnectFailed, Bounds, Bounds]
    assert tried == [PARTITIONS[0], *PARTITIONS[2:]]
    for partition in PARTITIONS[:2]:
        error = answers[partition]
        assert isinstance(error, ConnectFailed)
        assert error.where == Where(
            cluster="main", broker=f"0@{dead.address}", topic="clicks", partition=str(partition)
        )


def test_a_partition_that_its_broker_refuses_does_not_hide_the_others(  # fault B11
    chroot: str, brokers: list[BrokerServer07]
) -> None:
    refused = BrokerPartition(0, 7)
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        answers = cluster.bounds("clicks", [refused, *PARTITIONS])
    assert isinstance(answers.pop(refused), ConnectionLost)
    assert [type(bounds) for bounds in answers.values()] == [Bounds] * len(PARTITIONS)


def test_a_broker_that_is_not_registered_is_an_error(chroot: str, brokers: list[BrokerServer07]) -> None:
    stranger = BrokerPartition(9, 0)
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        with pytest.raises(RegistryError, match="not registered") as caught:
            cluster.partition("clicks", stranger)
        answers = cluster.bounds("clicks", [stranger, PARTITIONS[0]])
    assert caught.value.where == Where(cluster="main", broker="9", topic="clicks")
    assert [type(bounds) for bounds in answers.values()] == [RegistryError, Bounds]


def test_connections_are_shared_and_closed_with_the_cluster(chroot: str, brokers: list[BrokerServer07]) -> None:
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        first, other = (cluster.partition("clicks", partition) for partition in PARTITIONS[:2])
        assert first.connection is other.connection
        assert isinstance(first.bounds(), Bounds)
    cluster.close()
    with pytest.raises(RegistryError, match="closed"):
        cluster.topics()


def test_errors_of_zookeeper_name_the_cluster(chroot: str) -> None:
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        with pytest.raises(RegistryError) as caught:  # fault Z06: an empty chroot is no Kafka's
            cluster.bounds("clicks", PARTITIONS)
        assert caught.value.where.cluster == "main"
        with pytest.raises(NodeMalformed) as caught_too:
            cluster.topic("a/b")
        assert caught_too.value.where == Where(cluster="main", topic="a/b")


def test_bounds_of_many_topics_try_a_broker_that_is_down_once(  # fault B12
    chroot: str, brokers: list[BrokerServer07], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("views", MESSAGES, zookeeper=chroot, batch_size=5)
    tried: list[BrokerPartition] = []
    ask = Partition07.bounds

    def noted(partition: Partition07) -> Bounds:
        tried.append(partition.id)
        return ask(partition)

    monkeypatch.setattr(Partition07, "bounds", noted)
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        cluster.brokers_by_id()
        brokers[0].stop()
        bounds_by_topic = cluster.bounds_of({"clicks": PARTITIONS, "views": PARTITIONS})
    kinds = {topic: [type(answer) for answer in answers.values()] for topic, answers in bounds_by_topic.items()}
    assert kinds == {topic: [ConnectFailed, ConnectFailed, Bounds, Bounds] for topic in ("clicks", "views")}
    assert tried == [PARTITIONS[0], *PARTITIONS[2:], *PARTITIONS[2:]]
    hidden = bounds_by_topic["views"][PARTITIONS[1]]
    assert isinstance(hidden, ConnectFailed)
    assert (hidden.where.topic, hidden.where.partition) == ("views", "0-1")


def test_times_are_those_of_segments_and_the_retention_is_unknown(chroot: str, brokers: list[BrokerServer07]) -> None:
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        ends = cluster.bounds("clicks", PARTITIONS)
        offsets = {part: bounds.latest for part, bounds in ends.items() if isinstance(bounds, Bounds)}
        assert cluster.times_at({"clicks": offsets}) == {"clicks": dict.fromkeys(PARTITIONS)}
        now_ms = time.time_ns() // 1_000_000
        [time_ms] = cluster.times_at({"clicks": {PARTITIONS[0]: 0}})["clicks"].values()
        assert isinstance(time_ms, int)
        assert now_ms - 120_000 < time_ms <= now_ms
        assert cluster.retention(["clicks", "views"]) == {"clicks": Retention(), "views": Retention()}


def test_the_last_message_is_read_again_and_where_none_begins_its_digest_is_empty(
    chroot: str, brokers: list[BrokerServer07]
) -> None:  # faults P11, N11
    del brokers
    with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
        expected, ranges = {}, {}
        for id_ in PARTITIONS:
            bounds = cluster.partition("clicks", id_).bounds()
            *_, batch = cluster.partition("clicks", id_).read(bounds.earliest, bounds.latest)
            expected[id_] = LastMessage.of(batch.batch)
            ranges[id_] = OffsetRange(id_, expected[id_].offset, bounds.latest)
        assert cluster.last_messages("clicks", ranges) == expected
        inside = {id_: replace(range_, start=range_.start + 3) for id_, range_ in ranges.items()}
        assert {
            answer.digest
            for answer in cluster.last_messages("clicks", inside).values()
            if isinstance(answer, LastMessage)
        } == {""}
