"""The simple consumer of each generation, on embedded brokers."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.consumer.fetched import ConsumedMessage, FetchPosition, FetchResult, split_into_requests
from kafka_io.consumer.simple import SimpleConsumer
from kafka_io.errors import BrokerError, KafkaIOError, LeaderMoved, NetworkError, OffsetOutOfRange, Unsupported
from kafka_io.model import BrokerPartition, Generation
from kafka_io.net.security import Security, Tls
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.build import Record, message_set, record_batch
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from tests.fakes.cluster import FakeCluster, Log
from tests.kafka_io.testing.v07 import talk as old
from tests.publishing import publish

PARTITION_0 = BrokerPartition(None, 0)
VALUES = [b"one", b"two", b"three"]
READ_SETTINGS = ReadSettings(
    retry_policy=RetryPolicy(timeout_s=30.0, backoff=Backoff(attempts=3, first_s=0.1, max_s=0.1))
)
POSITIONS = st.lists(
    st.builds(
        lambda number, size: FetchPosition(
            topic="clicks", partition=BrokerPartition(None, number), offset=0, max_bytes=size
        ),
        st.integers(0, 3),
        st.integers(1, 50),
    ),
    max_size=20,
)


@pytest.fixture
def v07(tmp_path: Path) -> Iterator[tuple[SimpleConsumer, old.Client]]:
    """A consumer of a broker of 0.7, and a client that produces."""
    config = BrokerConfig07(broker_id=0, data_dir=tmp_path / "old", partitions=2)
    with ExitStack() as running:
        broker = running.enter_context(BrokerServer07(config))
        client = running.enter_context(old.Client(broker.port))
        address = f"127.0.0.1:{broker.port}"
        yield (
            running.enter_context(SimpleConsumer.open(address, generation=Generation.V07, read_settings=READ_SETTINGS)),
            client,
        )


@pytest.fixture(params=[Generation.V08, Generation.MODERN])
def modern(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SimpleConsumer]:
    """A consumer of a broker that has VALUES in partition 0 of `clicks`."""
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "later", generation=request.param, partitions=2)
    with ExitStack() as running:
        broker = running.enter_context(ModernBrokerServer(config))
        address = f"127.0.0.1:{broker.port}"
        pinned = request.param if request.param is Generation.V08 else None
        publish("clicks", VALUES, bootstrap=address, generation=pinned, batch_size=len(VALUES))
        yield running.enter_context(SimpleConsumer.open(address, generation=pinned, read_settings=READ_SETTINGS))


def values(fetched: FetchResult | KafkaIOError) -> list[bytes | None]:
    """The values of the fetched messages."""
    assert isinstance(fetched, FetchResult)
    return [message.value for message in fetched]


def test_messages_of_07_have_the_offset_to_continue_at(v07: tuple[SimpleConsumer, old.Client]) -> None:
    consumer, client = v07
    client.produce("clicks", message_set(VALUES))
    fetched = consumer.fetch("clicks", 0, 0)
    assert [(message.offset, message.next_offset, message.value) for message in fetched] == [
        (0, 13, b"one"),
        (13, 26, b"two"),
        (26, 41, b"three"),
    ]
    assert fetched.next_offset == 41
    assert next(iter(fetched)) == ConsumedMessage(
        topic="clicks", partition=PARTITION_0, offset=0, next_offset=13, value=b"one", key=None, timestamp_ms=None
    )
    assert list(consumer.fetch("clicks", 0, 41)) == []


def test_messages_compressed_together_in_07_share_their_offsets(v07: tuple[SimpleConsumer, old.Client]) -> None:
    consumer, client = v07
    client.produce("clicks", message_set(VALUES, codec=1), message_set(VALUES))
    messages = list(consumer.fetch("clicks", 0, 0))
    after_wrapper = messages[2].next_offset
    assert [message.offset for message in messages[:4]] == [0, 0, 0, after_wrapper]
    assert [message.next_offset for message in messages[:4]] == [0, 0, after_wrapper, after_wrapper + 13]


def test_a_fetch_of_07_that_is_too_small_returns_the_needed_bytes(v07: tuple[SimpleConsumer, old.Client]) -> None:
    consumer, client = v07
    client.produce("clicks", message_set([b"x" * 100]))
    small = consumer.fetch("clicks", 0, 0, max_bytes=20)
    assert (list(small), small.next_offset, small.needed_bytes) == ([], 0, 110)
    assert values(consumer.fetch("clicks", 0, 0, max_bytes=small.needed_bytes)) == [b"x" * 100]
    tiny = consumer.fetch("clicks", 0, 0, max_bytes=3)
    assert tiny.needed_bytes == 4


def test_the_ends_and_segments_of_a_log_of_07(tmp_path: Path) -> None:
    config = BrokerConfig07(broker_id=0, data_dir=tmp_path, partitions=1, segment_bytes=50)
    with BrokerServer07(config) as broker, old.Client(broker.port) as client:
        for _ in range(6):
            client.produce("clicks", *old.numbered(2))
        with SimpleConsumer.open(f"127.0.0.1:{broker.port}", generation=Generation.V07) as consumer:
            assert consumer.get_offsets_before("clicks", 0, SimpleConsumer.EARLIEST_TIME, max_offsets=5) == [0]
            assert consumer.get_offsets_before("clicks", 0, SimpleConsumer.LATEST_TIME) == [240]
            assert consumer.get_offsets_before("clicks", 0, SimpleConsumer.LATEST_TIME, max_offsets=9) == [
                240,
                160,
                80,
                0,
            ]
            assert consumer.get_offsets_before("clicks", 0, 1000, max_offsets=9) == []


def test_an_error_replaces_only_its_own_result(v07: tuple[SimpleConsumer, old.Client]) -> None:
    consumer, client = v07
    client.produce("clicks", message_set(VALUES))
    client.produce("clicks", message_set([b"four"]), partition=1)
    requested = [(1, 0), (0, 999), (0, 13), (7, 0), (0, 5), (1, 0)]
    results = consumer.multifetch(
        FetchPosition(topic="clicks", partition=BrokerPartition(None, number), offset=offset)
        for number, offset in requested
    )
    assert values(results[0]) == values(results[5]) == [b"four"]
    assert values(results[2]) == [b"two", b"three"]
    assert [type(results[index]) for index in (1, 3, 4)] == [OffsetOutOfRange, BrokerError, Unsupported]
    assert isinstance(results[1], KafkaIOError)
    assert (results[1].where.partition, results[1].where.offset) == ("0", 999)
    with pytest.raises(OffsetOutOfRange):
        consumer.fetch("clicks", 0, 999)


def test_an_unreachable_broker_of_07_is_an_error_of_its_partitions() -> None:
    read_settings = ReadSettings(retry_policy=RetryPolicy(timeout_s=5, backoff=Backoff(attempts=1)))
    with SimpleConsumer.open("127.0.0.1:1", generation=Generation.V07, read_settings=read_settings) as consumer:
        [result] = consumer.multifetch([FetchPosition(topic="clicks", partition=PARTITION_0, offset=0)])
        assert isinstance(result, NetworkError)
        with pytest.raises(NetworkError):
            consumer.get_offsets_before("clicks", 0, SimpleConsumer.LATEST_TIME)


def test_later_brokers_are_read_by_partition_number(modern: SimpleConsumer) -> None:
    positions = [FetchPosition(topic="clicks", partition=BrokerPartition(None, number), offset=0) for number in (0, 1)]
    results = [list(result) for result in modern.multifetch(positions) if isinstance(result, FetchResult)]
    [messages] = [result for result in results if result]
    assert [(message.offset, message.next_offset, message.value) for message in messages] == [
        (0, 1, b"one"),
        (1, 2, b"two"),
        (2, 3, b"three"),
    ]
    partition = messages[0].partition
    assert values(modern.fetch("clicks", partition, 1)) == [b"two", b"three"]
    assert modern.get_offsets_before("clicks", partition, SimpleConsumer.EARLIEST_TIME) == [0]
    assert modern.get_offsets_before("clicks", partition, SimpleConsumer.LATEST_TIME) == [3]
    with pytest.raises(OffsetOutOfRange):
        modern.fetch("clicks", partition, 99)
    with pytest.raises(LeaderMoved):
        modern.get_offsets_before("absent", 0, SimpleConsumer.LATEST_TIME)


def test_keys_times_and_headers_are_read() -> None:
    record = Record(offset=4, timestamp=2**60, key=b"k", value=None, headers=((b"h", b"1"), (b"h", None)))
    bare = Record(offset=5, value=b"v")
    log = Log(entries=[(4, record_batch([record])), (5, record_batch([bare]))], end=6, start=4)
    with FakeCluster(logs={0: log}) as cluster:
        [broker, *_] = cluster.bootstrap
        with SimpleConsumer.open(broker.address, read_settings=READ_SETTINGS) as consumer:
            [first, second] = consumer.fetch("clicks", 0, 4)
    assert (first.key, first.value, first.timestamp_ms) == (b"k", None, 2**60)
    assert first.headers == (("h", b"1"), ("h", None))
    assert (second.key, second.value, second.headers) == (None, b"v", ())


def test_a_leader_that_moves_is_followed() -> None:
    log = Log(entries=[(0, record_batch([Record(value=b"v")]))], end=1)
    with FakeCluster(logs={0: log}) as cluster:
        [broker, *_] = cluster.bootstrap
        with SimpleConsumer.open(broker.address, read_settings=READ_SETTINGS) as consumer:
            assert values(consumer.fetch("clicks", 0, 0)) == [b"v"]
            log.leader = 1
            assert values(consumer.fetch("clicks", 0, 0)) == [b"v"]


@given(positions=POSITIONS, max_bytes=st.integers(1, 100))
def test_a_request_names_each_partition_once_and_respects_max_bytes(
    positions: list[FetchPosition], max_bytes: int
) -> None:
    requests = list(split_into_requests(positions, max_bytes=max_bytes))
    assert [position for request in requests for position in request] == positions
    for request in requests:
        assert len({position.partition for position in request}) == len(request)
        assert len(request) == 1 or sum(position.max_bytes for position in request) <= max_bytes


def test_invalid_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="reads from one broker"):
        SimpleConsumer.open("a:1,b:1", generation=Generation.V07)
    with pytest.raises(Unsupported, match="neither TLS nor SASL"):
        SimpleConsumer.open("a:1", generation=Generation.V07, security=Security(tls=Tls()))
    with SimpleConsumer.open("127.0.0.1:1") as consumer:
        with pytest.raises(ValueError, match="offset of at least 0"):
            consumer.fetch("clicks", 0, -1)
        with pytest.raises(ValueError, match="max_bytes of at least 1"):
            consumer.fetch("clicks", 0, 0, max_bytes=0)
        with pytest.raises(ValueError, match="max_offsets"):
            consumer.get_offsets_before("clicks", 0, SimpleConsumer.LATEST_TIME, max_offsets=0)
