"""Fetches use each other's connections only where a new connection would give the same records."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers.cluster_metadata import topic_id_text
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.negotiation import VersionedConnection
from kafka_io.brokers.retry import Backoff
from kafka_io.errors import TopicReplaced
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import Broker, BrokerPartition, Generation, OffsetRange
from kafka_io.net.security import Security, Tls
from kafka_io.reader.kept_readers import LENT_FOR_S, KeptReaders
from kafka_io.reader.reader import FetchSizes, PlannedRange, Reader, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.records.build import Record, record_batch
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.v07.messages import FetchAnswer07
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.hostile import HostileServer, hear, send, stall
from tests.kafka_io.testing.v07.talk import numbered

FETCH, METADATA = FetchRequest.API.key, MetadataRequest.API.key
COUNT = 20
BATCH = [record_batch([Record(offset=offset, value=b"%d" % offset)]) for offset in range(COUNT)]
ONCE = RetryPolicy(timeout_s=5.0, backoff=Backoff(attempts=1))
SETTINGS = ReadSettings(retry_policy=ONCE)
LIFE, OTHER_LIFE = UUID(int=7), UUID(int=8)


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """Broker 0 leads the one partition, whose records are in batches of one."""
    with FakeCluster(logs={0: Log(entries=list(enumerate(BATCH)), end=COUNT)}) as cluster:
        yield cluster


@pytest.fixture
def readers() -> Iterator[KeptReaders]:
    with KeptReaders() as kept:
        yield kept


def source(fake: FakeCluster, settings: ReadSettings = SETTINGS) -> Source:
    """Requests to it are sent once, so an error of a connection is an error of the read."""
    return Source(cluster="main", generation=Generation.MODERN, brokers=fake.bootstrap[:1], read_settings=settings)


def planned(incarnation: str = "unknown") -> PlannedRange:
    return PlannedRange("clicks", OffsetRange(BrokerPartition(None, 0), 0, COUNT), incarnation=incarnation)


def read(reader: Reader, range_: PlannedRange | None = None) -> int:
    """The number of rows in a range."""
    return sum(decoded.batch.num_rows for batches in reader.read([range_ or planned()]) for decoded in batches)


def read_once(readers: KeptReaders, of: Source, range_: PlannedRange | None = None) -> int:
    with readers.lent(of) as reader:
        return read(reader, range_)


def test_fetches_use_the_connections_of_earlier_ones(fake: FakeCluster, readers: KeptReaders) -> None:
    assert [read_once(readers, source(fake)) for _ in range(3)] == [COUNT] * 3
    assert fake.brokers[0].connections == 2  # to the bootstrap address, and to the leader, which has another id


def test_the_order_of_brokers_makes_no_difference(fake: FakeCluster, readers: KeptReaders) -> None:
    both = replace(source(fake), brokers=fake.bootstrap)
    for brokers in (both.brokers, both.brokers[::-1]):
        read_once(readers, replace(both, brokers=brokers))
    assert sum(broker.connections for broker in fake.brokers) == 2


def test_fetches_from_a_broker_of_0_7_use_one_connection(readers: KeptReaders) -> None:
    data = b"".join(numbered(2))
    offsets = OffsetRange(BrokerPartition(7, 0), 0, len(data))
    answer = send(FetchAnswer07(0, data).encode())
    with HostileServer([hear, answer, hear, answer, stall]) as server:
        of = Source(cluster="old", generation=Generation.V07, brokers=(server.broker,), read_settings=SETTINGS)
        for _ in range(2):
            assert read_once(readers, of, PlannedRange("clicks", offsets, incarnation="")) == 2
        readers.close()
        assert len(server.peers) == 1


def test_a_connection_that_the_broker_closed_meanwhile_is_replaced_at_once(
    fake: FakeCluster, readers: KeptReaders
) -> None:
    read_once(readers, source(fake))
    fake.brokers[0].drop_connections()
    assert read_once(readers, source(fake)) == COUNT
    assert fake.brokers[0].connections == 3  # the bootstrap address is not needed any more


def test_bytes_that_nobody_asked_for_are_no_answer_to_the_next_fetch(fake: FakeCluster, readers: KeptReaders) -> None:
    def with_more(received: ReceivedRequest) -> bytes:
        return received.answered(fake.fetch(0, received)) + b"more"

    fake.brokers[0].handlers[FETCH] = with_more
    for _ in range(2):
        assert read_once(readers, source(fake)) == COUNT


def test_a_connection_with_an_unanswered_fetch_is_not_used_again(fake: FakeCluster, readers: KeptReaders) -> None:
    small = replace(SETTINGS, sizes=FetchSizes(fetch_bytes=len(BATCH[0]) + 1), limits=DecodeLimits(batch_bytes=1))
    with readers.lent(source(fake, small)) as reader:
        for batches in reader.read([planned()]):
            next(batches)  # the next fetch is sent already
    assert len(fake.heard(FETCH)) < COUNT
    assert read_once(readers, source(fake, small)) == COUNT
    assert fake.brokers[0].connections == 3


def test_after_an_error_the_reader_is_closed(fake: FakeCluster, readers: KeptReaders) -> None:
    def fail() -> None:
        with readers.lent(source(fake)) as reader:
            read(reader)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no message
        fail()
    read_once(readers, source(fake))
    assert fake.brokers[0].connections == 4


def test_a_reader_belongs_to_one_fetch_at_a_time(fake: FakeCluster, readers: KeptReaders) -> None:
    for _ in range(2):
        with readers.lent(source(fake)) as first, readers.lent(source(fake)) as second:
            assert first is not second
            assert read(first) == read(second) == COUNT
    assert fake.brokers[0].connections == 4


def test_many_threads_open_as_many_readers_as_they_use_at_the_same_time(
    fake: FakeCluster, readers: KeptReaders
) -> None:
    rows: list[int] = []

    def work() -> None:
        rows.extend(read_once(readers, source(fake)) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows == [COUNT] * 40
    assert fake.brokers[0].connections <= 8


def test_a_reader_is_used_for_a_short_time_only(fake: FakeCluster) -> None:
    """Changed certificates and secrets are read again then."""
    now = 0.0
    with KeptReaders(lambda: now) as readers:
        with readers.lent(source(fake)) as first:
            read(first)
        now = LENT_FOR_S - 1
        with readers.lent(source(fake)) as second:
            assert second is first
        now = LENT_FOR_S
        with readers.lent(source(fake, ReadSettings())):  # any fetch closes what is too old
            assert all(connection.closed for connection in connections(first))
        with readers.lent(source(fake)) as third:
            assert third is not first


def connections(reader: Reader) -> list[VersionedConnection]:
    """The open connections of a reader of 0.8 or later."""
    kept = reader._metadata._connections.values()  # type: ignore[attr-defined]
    return [connection._connection for connection in kept if connection._connection]


@pytest.mark.parametrize(
    "changes",
    [
        {"security": Security(tls=Tls())},
        {"read_settings": replace(SETTINGS, committed=False)},
        {"cluster_id": "another"},
        {"brokers": (Broker(1, "127.0.0.1", 1),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_other_settings_have_other_readers(changes: dict[str, Any], fake: FakeCluster, readers: KeptReaders) -> None:
    with readers.lent(source(fake)) as first:
        pass
    with readers.lent(replace(source(fake), **changes)) as second:
        assert second is not first


def test_a_reader_that_comes_back_late_is_closed(fake: FakeCluster, readers: KeptReaders) -> None:
    with readers.lent(source(fake)) as reader:
        read(reader)
        open_connections = connections(reader)
        readers.close()
        assert not any(connection.closed for connection in open_connections)
    assert len(open_connections) == 2
    assert all(connection.closed for connection in open_connections)


def test_a_topic_is_asked_for_again_before_each_fetch(fake: FakeCluster, readers: KeptReaders) -> None:
    """A new reader, too, knows nothing of the topic of before."""
    for life in (LIFE, OTHER_LIFE):
        fake.topic_id = life
        assert read_once(readers, source(fake), planned(topic_id_text(life) or "")) == COUNT
    assert len(fake.heard(METADATA)) == 2
    with pytest.raises(TopicReplaced):
        read_once(readers, source(fake), planned(topic_id_text(LIFE) or ""))


def test_between_fetches_no_memory_is_kept(fake: FakeCluster, readers: KeptReaders) -> None:
    large = record_batch([Record(offset=0, value=b"x" * 1_000_000)])
    fake.logs[0] = Log(entries=[(0, large)], end=1)
    short = PlannedRange("clicks", OffsetRange(BrokerPartition(None, 0), 0, 1), incarnation="unknown")

    def kept(reader: Reader) -> list[int]:
        return [len(connection._conversation._frames._kept) for connection in connections(reader)]

    with readers.lent(source(fake)) as reader:
        assert read(reader, short) == 1
        assert sum(kept(reader)) == 1
    assert kept(reader) == [0, 0]
