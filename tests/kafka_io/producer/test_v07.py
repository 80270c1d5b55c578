"""Producing to 0.7: the brokers, the partitions and the requests of a message, and its confirmation."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_io.brokers.bootstrap import parse_broker_list
from kafka_io.errors import NetworkError, RegistryError, TooLarge, Unsupported
from kafka_io.model import Broker, BrokerPartition, Generation
from kafka_io.net.security import Security, Tls
from kafka_io.producer.message import Message, Undelivered
from kafka_io.producer.opening import open_producer
from kafka_io.producer.v07.brokers import RegisteredBrokers
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.v07.messages import AnyRequest, MultiProduceRequest07, OffsetsRequest07, ProduceRequest07, decode_request
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.fakes.hostile import HostileServer, hear, send, stall
from tests.kafka_io.producer.conftest import SETTINGS, TOPIC, OpenWorld, World

UNCONFIRMED = replace(SETTINGS, acks=0)
NO_OFFSETS = bytes.fromhex("00000006 0000 00000000")


def heard(server: HostileServer) -> list[AnyRequest]:
    """The requests that the server received over all connections."""
    return [decode_request(memoryview(frame)) for frame in server.requests]


def fixed(*servers: HostileServer) -> dict[str, object]:
    return {
        "bootstrap": ",".join(f"127.0.0.1:{server.port}" for server in servers),
        "generation": Generation.V07,
    }


def test_with_a_fixed_list_the_broker_chooses_the_partition_and_an_offset_request_confirms_it() -> None:
    with HostileServer([hear, hear, send(NO_OFFSETS), stall]) as server:
        with open_producer(**fixed(server), settings=SETTINGS) as producer:  # type: ignore[call-overload]  # an address
            assert producer.send(TOPIC, b"one").partition == BrokerPartition(None, -1)
        produce, offsets = heard(server)
    assert isinstance(produce, ProduceRequest07)
    assert (produce.topic, produce.partition) == (TOPIC, -1)
    assert offsets == OffsetsRequest07(TOPIC, 0, -1, 1)


def test_a_result_names_the_id_of_the_broker_and_not_its_place_in_the_list() -> None:  # fault U18
    with HostileServer([hear, hear, send(NO_OFFSETS), stall]) as server:
        bootstrap = f"7:127.0.0.1:{server.port}"
        with open_producer(bootstrap=bootstrap, generation=Generation.V07, settings=SETTINGS) as producer:
            assert producer.send(TOPIC, b"one").partition == BrokerPartition(7, -1)


def test_a_list_of_brokers_can_have_ids_as_broker_list_of_0_7() -> None:  # fault U18
    assert parse_broker_list("2:a:1, 0:[::1]:2") == (Broker(2, "a", 1), Broker(0, "::1", 2))
    assert parse_broker_list("a:1,b:2") == (Broker(-1, "a", 1), Broker(-1, "b", 2))
    for wrong in ("2:a:1,b:2", "2:a:1,2:b:2", "x:a:1", "02:a:1"):
        with pytest.raises(ValueError, match=r"is not host:port|an id of its own"):
            parse_broker_list(wrong)


def test_several_topics_of_one_broker_are_sent_in_one_request() -> None:
    with HostileServer([hear, hear, send(NO_OFFSETS), stall]) as server:
        with open_producer(**fixed(server), settings=SETTINGS) as producer:  # type: ignore[call-overload]  # an address
            producer.send_many([Message(topic=topic, value=b"x") for topic in ("one", "two", "one")])
        multi, _ = heard(server)
    assert isinstance(multi, MultiProduceRequest07)
    assert [(produce.topic, len(produce.message_set)) for produce in multi.produces] == [("one", 22), ("two", 11)]


def test_with_acks_0_no_offset_is_requested() -> None:
    with HostileServer([hear, hear, stall]) as server:
        with open_producer(**fixed(server), settings=UNCONFIRMED) as producer:  # type: ignore[call-overload]  # an address
            producer.send(TOPIC, b"one")
            producer.send(TOPIC, b"two")
        requests = heard(server)
    assert all(isinstance(request, ProduceRequest07) for request in requests)


def test_a_refused_request_is_an_error_and_is_not_sent_again() -> None:
    with HostileServer([hear], [hear, hear, send(NO_OFFSETS), stall]) as server:
        with open_producer(**fixed(server), settings=SETTINGS) as producer:  # type: ignore[call-overload]  # an address
            with pytest.raises(NetworkError):
                producer.send(TOPIC, b"refused")
            producer.send(TOPIC, b"taken")
        sets = [bytes(request.message_set) for request in heard(server) if isinstance(request, ProduceRequest07)]
    assert [message_set[-5:] for message_set in sets] == [b"fused", b"taken"]


def test_a_message_that_a_broker_would_drop_is_refused() -> None:
    settings = replace(SETTINGS, batch_bytes=50, max_message_bytes=50)
    with (
        HostileServer([hear, hear, send(NO_OFFSETS), stall]) as server,
        open_producer(**fixed(server), settings=settings) as producer,  # type: ignore[call-overload]  # an address
    ):
        with pytest.raises(Undelivered) as raised:
            producer.send_many([Message(topic=TOPIC, value=b"x" * size) for size in (50, 51)])
        [failure] = raised.value.failures
        assert (len(failure.message.value), type(failure.error)) == (51, TooLarge)


@pytest.mark.parametrize(
    ("message", "match"),
    [
        (Message(topic=TOPIC, value=b"x", partition=3), "name it with a BrokerPartition"),
        (Message(topic=TOPIC, value=None), "must have a value"),
        (Message(topic=TOPIC, value=b"x", headers=(("a", b"1"),)), "cannot have headers"),
    ],
)
def test_a_message_that_0_7_cannot_store_is_refused(message: Message, match: str) -> None:
    with (
        HostileServer([stall]) as server,
        open_producer(**fixed(server), settings=SETTINGS) as producer,  # type: ignore[call-overload]  # an address
        pytest.raises(Undelivered, match=match),
    ):
        producer.send_many([message])


@pytest.mark.parametrize(
    "options", [{"security": Security(tls=Tls())}, {"settings": replace(SETTINGS, transactional_id="t")}]
)
def test_tls_and_transactions_are_refused_for_0_7(options: dict[str, object]) -> None:
    with HostileServer([stall]) as server, pytest.raises(Unsupported, match="neither TLS"):
        open_producer(**fixed(server), **options)  # type: ignore[call-overload]  # an address


@pytest.fixture
def three_brokers(chroot: str, tmp_path: Path) -> Iterator[list[BrokerServer07]]:
    """Brokers 0 to 2 with two partitions each; the last one is not started."""
    servers = [
        BrokerServer07(
            BrokerConfig07(broker_id=number, data_dir=tmp_path / f"{number}", partitions=2),
            zookeeper=chroot,
        )
        for number in range(3)
    ]
    for server in servers[:2]:
        server.start()
    yield servers
    for server in servers:
        server.stop()


@pytest.mark.zookeeper
@pytest.mark.usefixtures("three_brokers")
def test_a_new_topic_goes_to_partition_0_of_each_broker_and_then_to_all(chroot: str) -> None:
    with open_producer(zookeeper=chroot, settings=SETTINGS) as producer:
        first = {
            delivered.partition
            for delivered in producer.send_many([Message(topic=TOPIC, value=b"x") for _ in range(100)])
        }
        assert first == {BrokerPartition(0, 0), BrokerPartition(1, 0)}
        all_partitions = {BrokerPartition(broker, number) for broker in (0, 1) for number in (0, 1)}
        used: set[BrokerPartition] = set()
        while used != all_partitions:
            used |= {delivered.partition for delivered in producer.send_many([Message(topic=TOPIC, value=b"x")] * 20)}


@pytest.mark.zookeeper
def test_the_list_follows_brokers_that_start_and_stop(chroot: str, three_brokers: list[BrokerServer07]) -> None:
    with ZooKeeper.open(chroot) as zookeeper:
        brokers = RegisteredBrokers(zookeeper, max_age_s=3600)
        with open_producer(zookeeper=chroot, settings=SETTINGS) as producer:
            producer.send_many([Message(topic=TOPIC, value=b"x") for _ in range(50)])
        while len(brokers.partitions_for(TOPIC)) < 4:
            pass
        three_brokers[2].start()
        while BrokerPartition(2, 0) not in brokers.partitions_for(TOPIC):
            pass
        three_brokers[0].stop()
        while any(partition.broker == 0 for partition in brokers.partitions_for(TOPIC)):
            pass
        assert brokers.broker(0) is None
        assert isinstance(brokers.broker(1), Broker)


@pytest.mark.zookeeper
def test_without_a_broker_every_message_fails(open_world: OpenWorld) -> None:
    world: World = open_world(Generation.V07)
    with open_producer(**world.address, generation=Generation.V07, settings=SETTINGS) as producer:
        world.stop()
        with pytest.raises(RegistryError, match="no broker is registered"):
            producer.send(TOPIC, b"one")
