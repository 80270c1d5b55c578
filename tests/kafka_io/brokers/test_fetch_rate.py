"""A process fetches records at most at its rate: in all, and from each broker."""

from pathlib import Path

import pytest

from kafka_io.brokers import fetch_rate
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.fetch_rate import FetchPace, FetchRate, RateBucket
from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.model import Broker, BrokerPartition, Generation, OffsetRange
from kafka_io.reader.modern_partition import ModernReader
from kafka_io.reader.reader import FetchSizes, PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.records.build import message_set
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.v07.messages import FetchRequest07, OffsetsRequest07
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding


class Clock:
    """A clock that waits advance."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.waits.append(seconds)
        self.now_s += seconds


def test_bytes_take_their_time_and_idle_time_is_not_saved() -> None:
    clock = Clock()
    bucket = RateBucket(100, clock)
    assert bucket.wait_s() == 0
    bucket.add(50)
    bucket.add(150)
    assert bucket.wait_s() == 2
    clock.now_s += 60
    assert bucket.wait_s() == 0
    bucket.add(100)
    assert bucket.wait_s() == 1


def test_a_pace_keeps_both_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections of one process share the limit of all brokers, and the limit of their broker."""
    clock = Clock()
    monkeypatch.setattr(fetch_rate, "RateBucket", lambda rate: RateBucket(rate, clock))
    rate = FetchRate(bytes_per_s=101, broker_bytes_per_s=51)
    one, same, other = (rate.pace(Broker(number, host, 9092)) for number, host in ((0, "a"), (1, "a"), (2, "b")))
    one.add(10_100)
    assert one.wait_s() == same.wait_s() > 190
    assert other.wait_s() == 100
    assert FetchRate().pace(Broker(0, "a", 9092)).wait_s() == 0


def test_processes_share_a_rate() -> None:
    rate = FetchRate(bytes_per_s=100, broker_bytes_per_s=10).share_of(5)
    assert rate == FetchRate(bytes_per_s=20, broker_bytes_per_s=2)
    assert FetchRate().share_of(5) == FetchRate()


def paced(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all connections share one bucket of 1,000 bytes per second, on this clock."""
    bucket = RateBucket(1000, clock)
    monkeypatch.setattr(FetchRate, "pace", lambda _rate, _broker: FetchPace((bucket,)))


def test_a_reader_keeps_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    paced(clock, monkeypatch)
    settings = ReadSettings(sizes=FetchSizes(fetch_bytes=500))
    with FakeCluster(logs={0: holding(0, 300)}) as cluster:
        source = Source(cluster="main", generation=Generation.MODERN, brokers=cluster.bootstrap, read_settings=settings)
        reader = ModernReader(source.connect(sleep=clock.sleep), settings)
        began_s = clock.now_s
        planned = PlannedRange("clicks", OffsetRange(BrokerPartition(None, 0), 0, 300), incarnation="")
        [batches] = reader.read([planned])
        rows = sum(decoded.batch.num_rows for decoded in batches)
        reader.close()
    size = sum(len(data) for _, data in cluster.logs[0].entries)
    assert rows == 300
    assert len(clock.waits) > 3
    assert clock.now_s - began_s >= (size - 1000) / 1000


def test_a_connection_to_0_7_keeps_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    paced(clock, monkeypatch)
    folder = tmp_path / "clicks-0"
    folder.mkdir()
    (folder / f"{0:020d}.kafka").write_bytes(message_set([b"x" * 91] * 50))
    with BrokerServer07(BrokerConfig07(broker_id=0, data_dir=tmp_path)) as server:
        broker = Broker(0, "127.0.0.1", server.port)
        connection = BrokerConnection07(broker, RetryPolicy(timeout_s=5), sleep=clock.sleep)
        fetch = FetchRequest07("clicks", 0, 0, 3000)
        connection.request(fetch)
        assert clock.waits == []
        connection.request(OffsetsRequest07("clicks", 0, -1, 1))  # no records
        assert clock.waits == []
        assert connection.request_ahead(fetch)() is None
        connection.request(fetch)
        assert clock.waits == [3.0]
        connection.close()
