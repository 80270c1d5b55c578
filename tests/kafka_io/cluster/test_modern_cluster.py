"""A cluster without ZooKeeper: its topics, their incarnations, and a source that reads them."""

from contextlib import closing
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
import pytest

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.opening import open_cluster
from kafka_io.errors import ConnectFailed, Corrupt, LogShort, TopicReplaced
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.records.build import Record, record_batch
from kafka_io.wire.conversation import ReceivedRequest
from kafka_io.wire.types import NULL_UUID
from tests.fakes.cluster import CLOSE, EVERYTHING, UNKNOWN_TOPIC, FakeCluster, Log

METADATA = MetadataRequest.API.key
READ_SETTINGS = ReadSettings(retry_policy=RetryPolicy(timeout_s=5.0, backoff=Backoff(attempts=1)))
P0 = BrokerPartition(None, 0)
LOG = Log(entries=[(1, record_batch([Record(offset=0, value=b"a"), Record(offset=1, value=b"b")]))], end=2)


def address(cluster: FakeCluster) -> str:
    return ",".join(broker.address for broker in cluster.bootstrap)


def test_the_incarnation_of_a_topic_is_its_id() -> None:
    with (
        FakeCluster(logs={0: LOG}, topic_id=UUID(int=7)) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        entry = TopicEntry(name="clicks", incarnation="AAAAAAAAAAAAAAAAAAAABw", partitions=(P0,))
        assert cluster.topics().entries == (entry,)
        assert cluster.topic("clicks") == entry
        assert cluster.topic("nothing") is None
        assert cluster.bounds("clicks", [P0]) == {P0: Bounds(earliest=0, latest=2, epoch=5)}


def test_without_ids_the_incarnation_is_unknown() -> None:
    with (
        FakeCluster(logs={0: LOG}, offered={**EVERYTHING, METADATA: (0, 9)}) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        assert [topic.incarnation for topic in cluster.topics().entries] == ["unknown"]


def test_internal_and_unauthorized_topics_are_not_listed() -> None:
    with FakeCluster(logs={0: LOG}) as fake:
        answer = fake.metadata

        def more(received: ReceivedRequest) -> object:
            response = answer(received)
            [topic] = response.topics
            internal = replace(topic, name="__consumer_offsets", is_internal=True)
            hidden = replace(topic, name="secret", error_code=29)
            return replace(response, topics=(internal, hidden, topic))

        fake.brokers[0].handlers[METADATA] = more
        with open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster:
            listing = cluster.topics()
            assert [topic.name for topic in listing.entries] == ["clicks"]
            assert [(skipped.path, "29" in skipped.reason) for skipped in listing.skipped] == [("secret", True)]
            assert [*listing.refused] == ["secret"]  # fault A13


# A name becomes a folder of the lake, a partition a key of the table.
@pytest.mark.parametrize("name", [None, "", ".", "..", "a/b", "a b", "x" * 256, "caf\u00e9", "\x1b[31m"])  # fault H04
def test_a_topic_with_a_name_that_kafka_does_not_accept_is_not_listed(name: str | None) -> None:
    with FakeCluster(logs={0: LOG}) as fake:
        answer = fake.metadata

        def more(received: ReceivedRequest) -> object:
            response = answer(received)
            [topic] = response.topics
            return replace(response, topics=(replace(topic, name=name), topic))

        fake.brokers[0].handlers[METADATA] = more
        with open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster:
            listing = cluster.topics()
            assert [topic.name for topic in listing.entries] == ["clicks"]
            [skipped] = listing.skipped
            assert "which Kafka does not accept" in skipped.reason
            assert (skipped.path + skipped.reason).isprintable()
            assert len(skipped.reason) < 300


@pytest.mark.parametrize("number", [-1, -(2**31), 100_000])  # fault N08
def test_a_topic_with_a_partition_that_no_topic_can_have_is_not_loaded(number: int) -> None:
    with (
        FakeCluster(logs={0: LOG, number: LOG}) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        [skipped] = cluster.topics().skipped
        assert f"a partition {number}, which no topic can have" in skipped.reason
        for ask in (cluster.topic, lambda name: cluster.metadata().topic(name)):
            with pytest.raises(Corrupt, match=f"partition {number}, which no topic can have"):
                ask("clicks")
        cluster.metadata().learn(["clicks", "views"])
        with pytest.raises(Corrupt, match=f"partition {number}"):
            cluster.metadata().leader("clicks", 0)


def test_a_source_that_was_sent_as_json_reads_the_records() -> None:
    with (
        FakeCluster(logs={0: LOG}) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        cluster.topics()
        source = msgspec.json.decode(msgspec.json.encode(cluster.source(P0)), type=Source)
        assert source.generation is Generation.MODERN
        assert {broker.id for broker in source.brokers} == {0, 1, -1}
        spans = [
            PlannedRange(topic="clicks", offsets=OffsetRange(P0, 0, stop), incarnation="unknown") for stop in (2, 3, 1)
        ]
        reader = source.open()
        first, second, third = reader.read(spans)
        assert [row["value"] for decoded in first for row in decoded.batch.to_pylist()] == [b"a", b"b"]
        with pytest.raises(LogShort):
            list(second)
        assert sum(decoded.batch.num_rows for decoded in third) == 1
        reader.close()


def test_brokers_that_cannot_be_reached_are_an_error_at_the_first_request() -> None:
    with (
        open_cluster("main", bootstrap="127.0.0.1:1", read_settings=READ_SETTINGS) as cluster,
        pytest.raises(ConnectFailed),
    ):
        cluster.topics()


def test_addresses_are_hosts_and_ports() -> None:
    assert parse_bootstrap("a:1, [::1]:65535") == (Broker(-1, "a", 1), Broker(-1, "::1", 65535))
    zone = Broker(-1, "fe80::1%eth0.100", 9092)  # fault F13
    assert parse_bootstrap("[fe80::1%eth0.100]:9092") == (zone,) == parse_bootstrap(zone.address)


@pytest.mark.parametrize(
    "text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:1,", "::1:9092", "a b:1", "[x]:1", "[::1%]:1", "[::1% x]:1"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not host:port"):
        parse_bootstrap(text)


def test_a_cluster_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="give the address of ZooKeeper"):
        open_cluster("main")


def test_another_cluster_behind_the_same_address_is_not_read() -> None:  # fault P09
    with FakeCluster(logs={0: LOG}) as fake:
        shown = ["one"]
        for broker in fake.brokers:
            broker.handlers[METADATA] = lambda received: replace(fake.metadata(received), cluster_id=shown[0])
        with open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster:
            assert cluster.cluster_id() == "one"
            topic = cluster.topic("clicks")
            assert topic is not None
            source = cluster.source(P0)
            shown[0] = "two"
            with pytest.raises(TopicReplaced, match=r"the cluster two now, but .* for the cluster one"):
                cluster.topic("clicks")
            planned = PlannedRange(topic="clicks", offsets=OffsetRange(P0, 0, 1), incarnation=topic.incarnation)
            with closing(source.open()) as reader:
                [batches] = reader.read([planned])
                with pytest.raises(TopicReplaced):
                    next(batches)


# fault B17
@pytest.mark.parametrize(
    ("of_leader", "incarnation"),
    [
        ({"topic_id": UUID(int=7)}, "AAAAAAAAAAAAAAAAAAAABw"),
        ({"topic_id": UUID(int=8)}, "AAAAAAAAAAAAAAAAAAAACA"),
        ({"topic_id": NULL_UUID}, "AAAAAAAAAAAAAAAAAAAABw"),
        ({"error_code": UNKNOWN_TOPIC}, None),
    ],
    ids=["the same topic", "another topic", "a broker before 2.8", "no topic"],
)
def test_a_leader_knows_the_present_topic(of_leader: dict[str, Any], incarnation: str | None) -> None:
    """Broker 0 describes the topic, broker 1 leads partition 1."""
    with FakeCluster(logs={0: LOG, 1: replace(LOG, leader=1)}, topic_id=UUID(int=7)) as fake:

        def answer(received: ReceivedRequest) -> object:
            response = fake.metadata(received)
            return replace(response, topics=tuple(replace(topic, **of_leader) for topic in response.topics))

        fake.brokers[1].handlers[METADATA] = answer
        with open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster:
            entry = cluster.topic_at_leaders("clicks", [BrokerPartition(None, 1)])
            assert (entry and entry.incarnation) == incarnation
            unasked = cluster.topic_at_leaders("clicks", [P0])
            assert unasked is not None
            assert unasked.incarnation == "AAAAAAAAAAAAAAAAAAAABw"
        assert len([received for received in fake.brokers[1].heard if received.api.key == METADATA]) == 1


# fault B17
def test_the_successor_of_a_leader_that_is_down_is_asked_for_the_topic() -> None:
    with FakeCluster(logs={0: replace(LOG, leader=1)}, topic_id=UUID(int=7)) as fake:

        def elect(_: ReceivedRequest) -> object:
            fake.logs[0].leader = 0
            return CLOSE

        fake.brokers[1].handlers[METADATA] = elect
        twice = replace(READ_SETTINGS, retry_policy=RetryPolicy(timeout_s=5.0, backoff=Backoff(attempts=2)))
        with open_cluster("main", bootstrap=address(fake), read_settings=twice) as cluster:
            entry = cluster.topic_at_leaders("clicks", [P0])
        assert entry is not None
        assert entry.incarnation == "AAAAAAAAAAAAAAAAAAAABw"


def test_a_known_leader_is_asked_for_the_topic_once_and_no_other_broker() -> None:
    with (
        FakeCluster(logs={0: replace(LOG, leader=1)}, topic_id=UUID(int=7)) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        topic, asked = cluster.topic("clicks"), len(fake.heard(METADATA))
        assert cluster.topic_at_leaders("clicks", [P0]) == topic
        assert [received.api.key for received in fake.brokers[1].heard].count(METADATA) == 1
        assert len(fake.heard(METADATA)) == asked + 1


@pytest.mark.parametrize("is_down", [True, False])
def test_a_former_leader_leads_to_its_successor(is_down: bool) -> None:
    """The successor knows that the topic was created again. The former leader still describes the one of before."""
    with (
        FakeCluster(logs={0: replace(LOG, leader=1)}, topic_id=UUID(int=7)) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        cluster.topic("clicks")

        def of_successor(received: ReceivedRequest) -> object:
            response = fake.metadata(received)
            return replace(response, topics=tuple(replace(topic, topic_id=UUID(int=8)) for topic in response.topics))

        fake.logs[0].leader = 0
        fake.brokers[0].handlers[METADATA] = of_successor
        if is_down:
            fake.brokers[1].close()
        entry = cluster.topic_at_leaders("clicks", [P0])
        assert entry is not None
        assert entry.incarnation == "AAAAAAAAAAAAAAAAAAAACA"


def test_without_topic_ids_no_leader_is_asked_for_the_topic() -> None:
    with (
        FakeCluster(logs={0: replace(LOG, leader=1)}, offered={**EVERYTHING, METADATA: (0, 9)}) as fake,
        open_cluster("main", bootstrap=address(fake), read_settings=READ_SETTINGS) as cluster,
    ):
        assert cluster.topic_at_leaders("clicks", [P0]) == cluster.topic("clicks")
        assert fake.brokers[1].heard == []
