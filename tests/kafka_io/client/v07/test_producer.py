"""Publishing to real brokers in a real ZooKeeper, and to one that takes nothing."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from kafka_io.client.link import Patience
from kafka_io.client.reading import Reading
from kafka_io.client.retry import Backoff
from kafka_io.client.v07.cluster import Cluster07
from kafka_io.client.v07.producer import Publisher, publish
from kafka_io.client.v07.sets import MAX_MESSAGE_BYTES
from kafka_io.errors import ConnectionLost, NetworkError, NodeMalformed, RegistryError, TooLarge, Unsupported, Where
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.registry.zookeeper import Registry
from tests.fakes.hostile import HostileServer, hear, stall
from tests.kafka_io.client.v07.conftest import StartBroker

pytestmark = pytest.mark.zookeeper

HASTY = Patience(timeout_s=10.0, backoff=Backoff(attempts=1))
READING = Reading(patience=HASTY)
FIRST, SECOND = BrokerPartition(0, 0), BrokerPartition(1, 0)
ALL = [FIRST, BrokerPartition(0, 1), SECOND, BrokerPartition(1, 1)]

Row = tuple[BrokerPartition, int, int, bytes]
"""Partition, offset, index in a compressed message, payload."""


@pytest.fixture
def registry(chroot: str) -> Iterator[Registry]:
    """The registry in the test's chroot."""
    with Registry.open(chroot) as opened:
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
        with Cluster07.open("main", zookeeper=chroot, reading=READING) as cluster:
            entry = cluster.topic(topic)
            assert entry is not None
            bounds = cluster.bounds(topic, entry.partitions)
            return [
                (partition, *row)
                for partition, held in bounds.items()
                if isinstance(held, Bounds)
                for decoded in cluster.partition(topic, partition).read(held.earliest, held.latest)
                for row in zip(*(decoded.batch[name].to_pylist() for name in ("offset", "inner", "value")), strict=True)
            ]

    return read


def numbered(count: int) -> list[bytes]:
    """Payloads that tell which they are."""
    return [b"message %d" % number for number in range(count)]


@pytest.mark.usefixtures("two_brokers")
def test_a_new_topic_is_spread_over_all_partitions_once_it_is_registered(
    registry: Registry, stored: Callable[[str], list[Row]]
) -> None:
    sent: list[int] = []
    assert publish(registry, "clicks", numbered(103), batch=5, on_sent=sent.append) == 103
    found = stored("clicks")
    assert sorted(row[-1] for row in found) == sorted(numbered(103))
    assert sent == [*[5] * 20, 3]
    # One batch each to the partitions 0, which make the brokers register the topic; then 19 by turns over all four.
    assert Counter(row[0] for row in found) == {ALL[0]: 30, ALL[1]: 25, ALL[2]: 28, ALL[3]: 20}


@pytest.mark.usefixtures("two_brokers")
def test_a_registered_topic_is_spread_from_the_first_batch_on(
    registry: Registry, stored: Callable[[str], list[Row]]
) -> None:
    publish(registry, "clicks", numbered(3), batch=1)
    with Publisher(registry, "clicks", patience=HASTY) as producer:
        assert producer.targets == ALL
        assert [producer.send([b"by turns"]) for _ in range(5)] == [*ALL, ALL[0]]
        producer.confirm()
    assert Counter(row[0] for row in stored("clicks") if row[-1] == b"by turns") == {
        ALL[0]: 2,
        **dict.fromkeys(ALL[1:], 1),
    }


@pytest.mark.usefixtures("two_brokers")
def test_codecs_take_turns_and_rows_inside_one_message_are_told_apart(
    registry: Registry, stored: Callable[[str], list[Row]]
) -> None:
    assert publish(registry, "clicks", numbered(60), codecs=("gzip", "none", "snappy"), batch=4) == 60
    found = stored("clicks")
    assert sorted(row[-1] for row in found) == sorted(numbered(60))
    assert len({row[:3] for row in found}) == 60
    # 5 batches each of gzip and snappy, whose messages number 0 to 3; the 20 plain ones are all number 0.
    assert Counter(row[2] for row in found) == {0: 30, 1: 10, 2: 10, 3: 10}


@pytest.mark.usefixtures("two_brokers")
def test_what_was_published_can_be_found_at_once(registry: Registry, stored: Callable[[str], list[Row]]) -> None:
    """Brokers register a topic some time after its first message (facts, 6)."""
    for number in range(10):
        topic = f"topic-{number}"
        assert publish(registry, topic, [b"one", b"two"], batch=1) == 2
        assert stored(topic) == [(FIRST, 0, 0, b"one"), (SECOND, 0, 0, b"two")]


@pytest.mark.usefixtures("two_brokers")
def test_a_broker_that_was_sent_nothing_is_not_waited_for(registry: Registry) -> None:
    with Publisher(registry, "clicks", patience=HASTY) as producer:
        assert producer.send([b"one"]) == FIRST
        producer.confirm()
        producer.spread()
        assert producer.targets == ALL[:3]  # broker 1 still has partition 0 alone


@pytest.mark.usefixtures("two_brokers")
def test_publishing_nothing_makes_no_topic(registry: Registry) -> None:
    assert publish(registry, "clicks", []) == 0
    assert registry.topic("clicks") is None


@pytest.mark.usefixtures("two_brokers")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_message_the_broker_would_drop_in_silence_is_refused_before_it_is_sent(
    registry: Registry, stored: Callable[[str], list[Row]], codec: str
) -> None:
    with Publisher(registry, "clicks", patience=HASTY, max_message_bytes=100) as producer:
        producer.send([b"x" * 100])
        with pytest.raises(TooLarge, match="above max_message_bytes = 100") as caught:
            producer.send([bytes(range(200)), b"small"], codec=codec)
        producer.send([b"x" * 100] * 50, codec="gzip")  # what counts is what they compress to
        producer.confirm()
        producer.spread()
    assert caught.value.where.topic == "clicks"
    assert [row[-1] for row in stored("clicks")] == [b"x" * 100] * 51


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_codec_that_came_after_0_7_is_refused(registry: Registry, two_brokers: None, codec: str) -> None:
    with pytest.raises(Unsupported, match=f"0.7 does not know {codec}"):
        publish(registry, "clicks", [b"x"], codecs=(codec,))
    assert registry.topic("clicks") is None


def test_the_largest_message_a_genuine_broker_takes_is_stored(
    chroot: str, registry: Registry, start_broker: StartBroker, stored: Callable[[str], list[Row]]
) -> None:
    start_broker(zookeeper=chroot)
    largest = b"x" * MAX_MESSAGE_BYTES
    assert publish(registry, "clicks", [largest]) == 1
    assert [row[-1] for row in stored("clicks")] == [largest]
    with pytest.raises(TooLarge):
        publish(registry, "clicks", [largest + b"x"])


def test_a_set_the_broker_refuses_is_noticed_when_it_is_confirmed(registry: Registry) -> None:
    """The broker closes the connection, which is all it ever says (facts, 3)."""
    with HostileServer([hear]) as server:
        register(registry, server)
        with Publisher(registry, "clicks", patience=HASTY) as producer:
            assert producer.send([b"refused"]) == BrokerPartition(7, 0)
            for _ in range(2):  # and it stays unconfirmed, however often that is asked
                with pytest.raises(ConnectionLost) as caught:
                    producer.confirm()
        place = Where(broker=f"7@127.0.0.1:{server.port}", topic="clicks", partition="7-0")
        assert caught.value.where == place
        with pytest.raises(ConnectionLost):
            publish(registry, "clicks", [b"refused"], patience=HASTY)


def test_a_real_broker_that_refuses_a_set_is_noticed(
    chroot: str, registry: Registry, start_broker: StartBroker
) -> None:
    broker = start_broker(zookeeper=chroot, partitions=1, max_request_bytes=100)
    with Publisher(registry, "clicks", patience=HASTY) as producer:
        producer.send([b"x" * 200])
        with pytest.raises(NetworkError) as caught:
            producer.confirm()
    assert caught.value.where == Where(broker=f"0@127.0.0.1:{broker.port}", topic="clicks", partition="0-0")


def test_a_broker_that_never_registers_the_topic_is_an_error_after_a_bounded_wait(registry: Registry) -> None:
    pauses: list[float] = []
    with HostileServer([stall]) as server:
        register(registry, server)
        producer = Publisher(registry, "clicks", patience=HASTY)
        producer.send([b"taken and forgotten"])
        with producer, pytest.raises(RegistryError, match="not every broker registered the topic within 2"):
            producer.spread(within_s=2, sleep=pauses.append)
    assert 2 <= sum(pauses) <= 3
    assert min(pauses) >= 0.1


@pytest.mark.usefixtures("two_brokers")
def test_a_broker_that_came_later_is_left_to_the_next_producer(
    chroot: str, registry: Registry, start_broker: StartBroker
) -> None:
    with Publisher(registry, "clicks", patience=HASTY) as producer:
        producer.send([b"one"])
        producer.send([b"two"])
        producer.confirm()
        start_broker(broker_id=2, zookeeper=chroot)
        registry.register_topic("clicks", 2, 2)
        producer.spread()
        assert producer.targets == ALL
        assert {producer.send([b"more"]) for _ in range(8)} == set(ALL)
        producer.confirm()


def test_without_brokers_nothing_can_be_published(chroot: str, registry: Registry, start_broker: StartBroker) -> None:
    start_broker(zookeeper=chroot).stop()
    with pytest.raises(RegistryError, match="no broker is registered") as caught:
        publish(registry, "clicks", [b"lost"])
    assert caught.value.where.topic == "clicks"


@pytest.mark.parametrize("topic", ["", "..", "a/b", "x" * 256])
def test_a_topic_that_no_broker_takes_is_refused(registry: Registry, topic: str) -> None:  # Z11
    with pytest.raises(NodeMalformed):
        Publisher(registry, topic)


def register(registry: Registry, server: HostileServer) -> None:
    """Make the server known as broker 7, without the topic."""
    registry.register_broker(server.broker, "127.0.0.1-1")
    registry.register_topic("another", 7, 1)
