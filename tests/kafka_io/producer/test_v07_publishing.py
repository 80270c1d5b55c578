"""Publishing to the embedded brokers of 0.7 with a real ZooKeeper, and to a server that refuses everything."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.v07_cluster import Cluster07
from kafka_io.errors import ConnectionLost, NetworkError, NodeMalformed, RegistryError, TooLarge, Unsupported, Where
from kafka_io.model import Bounds, BrokerPartition, Generation
from kafka_io.producer.message import Delivered
from kafka_io.producer.opening import open_producer
from kafka_io.producer.producer import Producer
from kafka_io.producer.publishing import publish_values
from kafka_io.producer.settings import ProducerSettings
from kafka_io.reader.reader import ReadSettings
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.fakes.hostile import HostileServer, hear, stall
from tests.kafka_io.conftest import StartBroker

pytestmark = pytest.mark.zookeeper

ONE_ATTEMPT = RetryPolicy(timeout_s=10.0, backoff=Backoff(attempts=1))
READ_SETTINGS = ReadSettings(retry_policy=ONE_ATTEMPT)
FIRST, SECOND = BrokerPartition(0, 0), BrokerPartition(1, 0)
ALL = [FIRST, BrokerPartition(0, 1), SECOND, BrokerPartition(1, 1)]

Row = tuple[BrokerPartition, int, int, bytes]
"""Partition, offset, index in a compressed message, payload."""


@pytest.fixture
def zookeeper(chroot: str) -> Iterator[ZooKeeper]:
    """ZooKeeper in the test's chroot."""
    with ZooKeeper.open(chroot) as opened:
        yield opened


@pytest.fixture
def two_brokers(chroot: str, start_broker: StartBroker) -> None:
    """Brokers 0 and 1, two partitions each."""
    for number in (0, 1):
        start_broker(broker_id=number, zookeeper=chroot)


@pytest.fixture
def stored(chroot: str) -> Callable[[str], list[Row]]:
    """All rows of a topic, in the order of partitions and offsets."""

    def read(topic: str) -> list[Row]:
        with Cluster07("main", ZooKeeper.open(chroot), read_settings=READ_SETTINGS) as cluster:
            entry = cluster.topic(topic)
            assert entry is not None
            bounds = cluster.bounds(topic, entry.partitions)
            return [
                (partition, *row)
                for partition, bounds_of_partition in bounds.items()
                if isinstance(bounds_of_partition, Bounds)
                for decoded in cluster.partition(topic, partition).read(
                    bounds_of_partition.earliest, bounds_of_partition.latest
                )
                for row in zip(*(decoded.batch[name].to_pylist() for name in ("offset", "inner", "value")), strict=True)
            ]

    return read


def numbered(count: int) -> list[bytes]:
    """Payloads that contain their number."""
    return [b"message %d" % number for number in range(count)]


OpenProducer = Callable[..., Producer[Delivered]]


@pytest.fixture
def opened(chroot: str) -> Iterator[OpenProducer]:
    """Opens producers that find their brokers in the test's chroot; they are closed after the test."""
    with ExitStack() as closing:

        def open_(**settings: Any) -> Producer[Delivered]:
            producer_settings = ProducerSettings(retry_policy=ONE_ATTEMPT, **settings)
            return closing.enter_context(
                open_producer(zookeeper=chroot, generation=Generation.V07, settings=producer_settings)
            )

        yield open_


@pytest.mark.usefixtures("two_brokers")
def test_a_new_topic_is_spread_over_all_partitions_once_it_is_registered(
    opened: OpenProducer, stored: Callable[[str], list[Row]]
) -> None:
    sent: list[int] = []
    assert publish_values((opened(),), "clicks", numbered(103), batch_size=5, on_sent=sent.append) == 103
    rows = stored("clicks")
    assert sorted(row[-1] for row in rows) == sorted(numbered(103))
    assert sent == [*[5] * 20, 3]
    # First one batch to partition 0 of each broker, so that the brokers register the topic; then 19 batches to all four
    # partitions in turn.
    assert Counter(row[0] for row in rows) == {ALL[0]: 30, ALL[1]: 25, ALL[2]: 28, ALL[3]: 20}


@pytest.mark.usefixtures("two_brokers")
def test_a_registered_topic_is_spread_from_the_first_batch_on(
    opened: OpenProducer, stored: Callable[[str], list[Row]]
) -> None:
    publish_values((opened(),), "clicks", numbered(3), batch_size=1)
    producer = opened()
    assert producer.partitions_for("clicks") == tuple(ALL)
    publish_values((producer,), "clicks", [b"in turn"] * 5, batch_size=1)
    assert Counter(row[0] for row in stored("clicks") if row[-1] == b"in turn") == {
        ALL[0]: 2,
        **dict.fromkeys(ALL[1:], 1),
    }


@pytest.mark.usefixtures("two_brokers")
def test_codecs_alternate_and_records_inside_one_message_have_different_indexes(
    opened: OpenProducer, stored: Callable[[str], list[Row]]
) -> None:
    producers = [opened(compression=codec) for codec in ("gzip", "none", "snappy")]
    assert publish_values(producers, "clicks", numbered(60), batch_size=4) == 60
    rows = stored("clicks")
    assert sorted(row[-1] for row in rows) == sorted(numbered(60))
    assert len({row[:3] for row in rows}) == 60
    # Of gzip and snappy 5 batches each, whose records have the indexes 0 to 3; the 20 plain messages have index 0.
    assert Counter(row[2] for row in rows) == {0: 30, 1: 10, 2: 10, 3: 10}


@pytest.mark.usefixtures("two_brokers")
def test_a_published_message_can_be_read_at_once(opened: OpenProducer, stored: Callable[[str], list[Row]]) -> None:
    """Brokers register a topic some time after its first message [kafka-0.7: Broker registry]."""
    for number in range(10):
        topic = f"topic-{number}"
        assert publish_values((opened(),), topic, [b"one", b"two"], batch_size=1) == 2
        assert stored(topic) == [(FIRST, 0, 0, b"one"), (SECOND, 0, 0, b"two")]


@pytest.mark.usefixtures("two_brokers")
def test_publishing_does_not_wait_for_a_broker_without_a_message(opened: OpenProducer) -> None:
    producer = opened()
    assert publish_values((producer,), "clicks", [b"one"]) == 1
    assert producer.partitions_for("clicks") == tuple(ALL[:3])  # broker 1 still has partition 0 alone


@pytest.mark.usefixtures("two_brokers")
def test_publishing_nothing_creates_no_topic(opened: OpenProducer, zookeeper: ZooKeeper) -> None:
    assert publish_values((opened(),), "clicks", []) == 0
    assert zookeeper.topic("clicks") is None


@pytest.mark.usefixtures("two_brokers")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_message_that_the_broker_would_drop_is_refused_before_it_is_sent(
    opened: OpenProducer, stored: Callable[[str], list[Row]], codec: str
) -> None:
    producer = opened(compression=codec, max_message_bytes=100, batch_bytes=100)
    publish_values((producer,), "clicks", [b"x" * 100])
    with pytest.raises(TooLarge, match="above max_message_bytes = 100") as caught:
        publish_values((producer,), "clicks", [bytes(range(200))])
    compressed = opened(compression="gzip", max_message_bytes=100, batch_bytes=100)
    publish_values((compressed,), "clicks", [b"x" * 1000] * 50)  # the limit is on the compressed size
    assert caught.value.where.topic == "clicks"
    assert Counter(row[-1] for row in stored("clicks")) == {b"x" * 100: 1, b"x" * 1000: 50}


@pytest.mark.usefixtures("two_brokers")
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_codec_that_came_after_0_7_is_refused(opened: OpenProducer, zookeeper: ZooKeeper, codec: str) -> None:
    with pytest.raises(Unsupported, match=f"0.7 does not know {codec}"):
        publish_values((opened(compression=codec),), "clicks", [b"x"])
    assert zookeeper.topic("clicks") is None


def test_the_largest_message_of_a_genuine_broker_is_stored(
    chroot: str, opened: OpenProducer, start_broker: StartBroker, stored: Callable[[str], list[Row]]
) -> None:
    start_broker(zookeeper=chroot)
    largest = b"x" * ProducerSettings().max_message_bytes
    assert publish_values((opened(),), "clicks", [largest]) == 1
    assert [row[-1] for row in stored("clicks")] == [largest]
    with pytest.raises(TooLarge):
        publish_values((opened(),), "clicks", [largest + b"x"])


def test_a_message_set_that_the_broker_refuses_is_an_error(opened: OpenProducer, zookeeper: ZooKeeper) -> None:
    """The broker only closes the connection [kafka-0.7: Errors]."""
    with HostileServer([hear]) as server:
        register(zookeeper, server)
        with pytest.raises(ConnectionLost) as caught:
            publish_values((opened(),), "clicks", [b"refused"])
        assert caught.value.where == Where(broker=f"7@127.0.0.1:{server.port}", topic="clicks", partition="7-0")


def test_a_message_set_that_a_real_broker_refuses_is_an_error(
    chroot: str, opened: OpenProducer, start_broker: StartBroker
) -> None:
    broker = start_broker(zookeeper=chroot, partitions=1, max_request_bytes=100)
    with pytest.raises(NetworkError) as caught:
        publish_values((opened(),), "clicks", [b"x" * 200])
    assert caught.value.where == Where(broker=f"0@127.0.0.1:{broker.port}", topic="clicks", partition="0-0")


def test_a_broker_that_never_registers_the_topic_is_an_error_after_a_bounded_wait(
    opened: OpenProducer, zookeeper: ZooKeeper
) -> None:
    with HostileServer([stall]) as server:
        register(zookeeper, server)
        producer = opened(acks=0)
        producer.send("clicks", b"taken and forgotten")
        began_s = time.monotonic()
        with pytest.raises(RegistryError, match=r"not every broker registered the topic within 0\.5"):
            producer.wait_until_registered("clicks", producer.partitions_for("clicks"), timeout_s=0.5)
    assert 0.5 <= time.monotonic() - began_s < 30


def test_without_brokers_nothing_can_be_published(chroot: str, opened: OpenProducer, start_broker: StartBroker) -> None:
    start_broker(zookeeper=chroot).stop()
    with pytest.raises(RegistryError, match="no broker is registered") as caught:
        publish_values((opened(),), "clicks", [b"lost"])
    assert caught.value.where.topic == "clicks"


@pytest.mark.parametrize("topic", ["", "..", "a/b", "x" * 256])
def test_an_invalid_topic_name_is_refused(opened: OpenProducer, topic: str) -> None:  # fault Z11
    with pytest.raises(NodeMalformed):
        publish_values((opened(),), topic, [b"x"])


def register(zookeeper: ZooKeeper, server: HostileServer) -> None:
    """Make the server known as broker 7, without the topic."""
    zookeeper.register_broker(server.broker, "127.0.0.1-1")
    zookeeper.register_topic("another", 7, 1)
