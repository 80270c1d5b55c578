"""Leaders come from the first broker that answers, and are requested again when they have moved."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers import retry
from kafka_io.brokers.cluster_metadata import Leader, topic_id_text
from kafka_io.errors import (
    BrokerBusy,
    BrokerError,
    ConnectFailed,
    ConnectionLost,
    Corrupt,
    DeadlineExceeded,
    LeaderMoved,
    NetworkError,
)
from kafka_io.messages.metadata import MetadataBroker, MetadataRequest, MetadataResponse, MetadataTopic
from kafka_io.model import Broker, Generation
from kafka_io.wire.conversation import ReceivedRequest
from kafka_io.wire.framing import framed
from kafka_io.wire.primitives import int32
from tests.fakes.cluster import CLOSE, EVERYTHING, FakeCluster, Log
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

METADATA = MetadataRequest.API.key
EMPTY = Log(entries=[], end=0)


def led_by(leader: Leader) -> int:
    return leader.connection.broker.id


def test_a_topic_is_requested_once_and_again_after_forget(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY, 1: Log(entries=[], end=0, leader=1, epoch=9)}) as cluster:
        metadata = open_brokers(cluster)
        assert [led_by(metadata.leader("clicks", number)) for number in (0, 1)] == [0, 1]
        assert metadata.leader("clicks", 1).epoch == 9
        assert len(cluster.heard(METADATA)) == 1
        metadata.forget("clicks")
        assert led_by(metadata.leader("clicks", 0)) == 0
        assert len(cluster.heard(METADATA)) == 2


def test_another_broker_answers_when_one_is_down(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: Log(entries=[], end=0, leader=1)}) as cluster:
        cluster.brokers[0].close()
        assert led_by(open_brokers(cluster).leader("clicks", 0)) == 1


def test_the_last_error_is_raised_when_all_brokers_are_down(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        metadata = open_brokers(cluster)
        for broker in cluster.brokers:
            broker.close()
        with pytest.raises(ConnectFailed) as raised:
            metadata.all_topics()
        assert raised.value.where.cluster == "main"


def test_the_time_of_a_first_contact_ends_when_a_broker_answers(
    open_brokers: OpenBrokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # fault F02
    monkeypatch.setattr(retry, "FIRST_CONTACT_S", 0.0)
    with FakeCluster(logs={0: EMPTY}) as cluster:
        metadata = open_brokers(cluster)
        handlers = cluster.brokers[0].handlers
        answer, handlers[METADATA] = handlers[METADATA], lambda _: CLOSE
        cluster.brokers[1].close()
        with pytest.raises(ConnectionLost):
            metadata.all_topics()
        assert len(cluster.heard(METADATA)) == 1  # neither another attempt nor the other broker
        handlers[METADATA] = answer
        metadata.all_topics()
        handlers[METADATA] = lambda _: CLOSE
        with pytest.raises(NetworkError):
            metadata.all_topics()
        assert len(cluster.heard(METADATA)) == 2 + 2 * ATTEMPTS  # of the broker with its id, and without it
    assert not caplog.records


# Before v4 a broker may create the topic it is asked about.
@pytest.mark.parametrize("version", range(14))
def test_a_metadata_request_never_creates_a_topic(version: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}, offered={**EVERYTHING, METADATA: (version, version)}) as cluster:
        metadata = open_brokers(cluster)
        assert metadata.topic("nothing") is None
        assert metadata.topic("clicks") is not None
        for received in cluster.heard(METADATA):
            request: Any = received.request
            assert not request.topics if version < 4 else not request.allow_auto_topic_creation


def test_an_unknown_topic_or_partition_has_no_leader(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        metadata = open_brokers(cluster)
        with pytest.raises(LeaderMoved, match="nothing"):
            metadata.leader("nothing", 0)
        with pytest.raises(LeaderMoved, match="does not know this partition"):
            metadata.leader("clicks", 1)


def test_a_topic_that_the_client_may_not_describe_is_an_error(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        cluster.brokers[0].handlers[METADATA] = lambda _: MetadataResponse(
            brokers=(), topics=(MetadataTopic(error_code=29, name="clicks", partitions=()),)
        )
        with pytest.raises(BrokerError, match="29"):
            open_brokers(cluster).topic("clicks")


# fault B03
def test_a_request_is_repeated_at_the_next_leader_after_leader_moved(open_brokers: OpenBrokers) -> None:
    log = Log(entries=[], end=0)
    with FakeCluster(logs={0: log}) as cluster:
        asked_brokers: list[int] = []

        def act(leader: Leader) -> str:
            asked_brokers.append(led_by(leader))
            if len(asked_brokers) < ATTEMPTS:
                log.leader = 1
                raise LeaderMoved("moved")
            return "done"

        assert open_brokers(cluster).on_leader("clicks", 0, act) == "done"
        assert asked_brokers == [0, 1, 1]


def test_the_generation_is_known_after_the_first_connection(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        metadata = open_brokers(cluster)
        before = metadata.generation
        metadata.all_topics()
        assert (before, metadata.generation) == (None, Generation.MODERN)
        assert [broker.port for broker in metadata.known_brokers[:2]] == [broker.port for broker in cluster.brokers]


def test_a_topic_id_has_the_text_that_kafka_prints() -> None:
    assert topic_id_text(UUID(bytes=bytes(range(16)))) == "AAECAwQFBgcICQoLDA0ODw"
    assert topic_id_text(UUID(int=0)) is None


# fault W17: brokers often advertise names that only their own network knows
def test_the_error_names_an_advertised_address_that_cannot_be_reached(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        nowhere = MetadataBroker(node_id=0, host="127.0.0.1", port=1)
        for broker in cluster.brokers:
            broker.handlers[METADATA] = lambda received: replace(cluster.metadata(received), brokers=(nowhere,))
        with pytest.raises(ConnectFailed) as raised:
            open_brokers(cluster).on_leader("clicks", 0, lambda leader: leader.connection.versions)
        assert raised.value.where.as_dict() == {"cluster": "main", "broker": "0@127.0.0.1:1"}


@pytest.mark.parametrize("host", ["[127.0.0.1]", "127.0.0.1"])
def test_brackets_around_an_advertised_address_are_not_a_part_of_it(  # fault F13
    host: str, open_brokers: OpenBrokers
) -> None:
    """Kafka advertises an IPv6 address without brackets, and proxies with them."""
    with FakeCluster(logs={0: EMPTY}) as cluster:
        brokers = [
            MetadataBroker(node_id=number, host=host, port=broker.port) for number, broker in enumerate(cluster.brokers)
        ]
        for broker in cluster.brokers:
            broker.handlers[METADATA] = lambda received: replace(cluster.metadata(received), brokers=tuple(brokers))
        address = open_brokers(cluster).on_leader("clicks", 0, lambda leader: leader.connection.broker.address)
        assert address == f"127.0.0.1:{cluster.brokers[0].port}"


@pytest.mark.parametrize(
    ("host", "address"),
    [("::1", "[::1]:9"), ("[::1]", "[::1]:9"), ("[fe80::1%eth0]", "[fe80::1%eth0]:9"), ("a", "a:9"), ("[", "[:9")],
)
def test_an_advertised_address_is_printed_as_settings_have_it(host: str, address: str) -> None:  # fault F13
    assert Broker.advertised(1, host, 9).address == address


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 70_000), ("x" * 30_000, 1), ("", 0)])
def test_an_address_that_cannot_exist_is_an_error_of_one_short_line(  # faults H03, H04
    host: str, port: int, open_brokers: OpenBrokers
) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        advertised = MetadataBroker(node_id=0, host=host, port=port)
        for broker in cluster.brokers:
            broker.handlers[METADATA] = lambda received: replace(cluster.metadata(received), brokers=(advertised,))
        with pytest.raises(ConnectFailed) as raised:
            open_brokers(cluster).on_leader("clicks", 0, lambda leader: leader.connection.versions)
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 700


def test_an_answer_full_of_small_arrays_ends_with_the_deadline(open_brokers: OpenBrokers) -> None:  # fault H02
    row = bytes.fromhex("0000 00000000 00000000 00000000 00000000")  # a partition without replicas, in v0
    topic = bytes.fromhex("0000 0001 78") + int32(90_000) + 90_000 * row

    def flood(received: ReceivedRequest) -> bytes:
        return framed(int32(received.correlation), int32(0), int32(1), topic)

    with FakeCluster(logs={0: EMPTY}, offered={**EVERYTHING, METADATA: (0, 0)}) as cluster:
        for broker in cluster.brokers:
            broker.handlers[METADATA] = flood
        with pytest.raises(DeadlineExceeded):
            open_brokers(cluster, timeout_s=0.1, attempts=1).all_topics()


@pytest.mark.parametrize("count", [100_001, 2**31 - 1])
def test_an_array_above_the_limit_of_its_field_is_refused_before_it_is_read(  # faults H02, X12
    count: int, open_brokers: OpenBrokers
) -> None:
    topic = bytes.fromhex("0000 0001 78") + int32(count) + 20 * 100_001 * b"\0"

    def flood(received: ReceivedRequest) -> bytes:
        return framed(int32(received.correlation), int32(0), int32(1), topic)

    with FakeCluster(logs={0: EMPTY}, offered={**EVERYTHING, METADATA: (0, 0)}) as cluster:
        cluster.brokers[0].handlers[METADATA] = flood
        with pytest.raises(Corrupt, match=f"count of {count}"):
            open_brokers(cluster, attempts=1).all_topics()


def test_many_topics_are_described_with_one_request_and_as_they_are_now(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        metadata = open_brokers(cluster)
        assert led_by(metadata.leader("clicks", 0)) == 0
        cluster.logs = {0: Log(entries=[], end=0, leader=1), 1: EMPTY}
        described = metadata.described(["clicks", "nothing", "clicks-2"])
        assert {name: len(topic.partitions) for name, topic in described.items()} == {"clicks": 2}
        assert [led_by(metadata.leader("clicks", number)) for number in (0, 1)] == [1, 0]
        assert len(cluster.heard(METADATA)) == 2


@pytest.mark.parametrize("code", [129, 41, -1])
@pytest.mark.parametrize("ask", ["all_topics", "topic", "described"])
def test_a_broker_that_cannot_describe_its_cluster_says_nothing_about_topics(
    ask: str, code: int, open_brokers: OpenBrokers
) -> None:  # fault A13
    def refusing(received: ReceivedRequest) -> MetadataResponse:
        return replace(cluster.metadata(received), topics=(), error_code=code)

    with FakeCluster(logs={0: EMPTY}) as cluster:
        metadata = open_brokers(cluster)
        questions: dict[str, Callable[[], list[str | None]]] = {
            "all_topics": lambda: [topic.name for topic in metadata.all_topics().topics],
            "topic": lambda: [topic.name for topic in [metadata.topic("clicks")] if topic],
            "described": lambda: [*metadata.described(["clicks"])],
        }
        question = questions[ask]
        cluster.brokers[0].handlers[METADATA] = refusing
        assert question() == ["clicks"]  # another address answers
        metadata.forget("clicks")
        cluster.brokers[1].handlers[METADATA] = refusing
        with pytest.raises(BrokerBusy, match="cannot describe the cluster now"):
            question()
        assert len(cluster.heard(METADATA)) >= 3


@pytest.mark.parametrize("lists_topic", [False, True])
def test_a_broker_that_lists_no_brokers_does_not_know_its_cluster_yet(
    open_brokers: OpenBrokers, *, lists_topic: bool
) -> None:  # fault A13
    unknown = (MetadataTopic(error_code=3, name="clicks", partitions=()),) if lists_topic else ()
    with FakeCluster(logs={0: EMPTY}) as cluster:
        for broker in cluster.brokers:
            broker.handlers[METADATA] = lambda _: MetadataResponse(brokers=(), topics=unknown)
        with pytest.raises(BrokerBusy, match="does not know the cluster yet"):
            open_brokers(cluster, attempts=1).topic("clicks")


def test_a_leader_that_cannot_describe_its_cluster_does_not_say_that_the_topic_is_gone(
    open_brokers: OpenBrokers,
) -> None:  # faults A13, B17
    topic_id = UUID(int=7)
    with FakeCluster(logs={0: EMPTY, 1: Log(entries=[], end=0, leader=1)}, topic_id=topic_id) as cluster:
        metadata = open_brokers(cluster)
        cluster.brokers[1].handlers[METADATA] = lambda _: MetadataResponse(brokers=(), topics=(), error_code=129)
        with pytest.raises(BrokerBusy):
            metadata.topic_at_leaders("clicks", [0, 1])
