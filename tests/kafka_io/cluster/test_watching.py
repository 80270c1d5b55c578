"""Questions about all topics of an embedded broker need few requests, however many topics it has."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.opening import open_cluster
from kafka_io.cluster.retention import FOREVER, Retention
from kafka_io.errors import AuthorizationFailed, BrokerError, Corrupt
from kafka_io.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse, DescribedConfigs
from kafka_io.model import Bounds, BrokerPartition, Generation
from kafka_io.reader.reader import ReadSettings
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.kafka_io.testing.modern.apis.test_transactions import add, begin, write
from tests.kafka_io.testing.modern.talk import START_MS, Client, batch

TOPICS, PARTITIONS = 30, 4
PARTS = tuple(BrokerPartition(None, number) for number in range(PARTITIONS))
DESCRIBE = DescribeConfigsRequest.API
READ_SETTINGS = ReadSettings(retry_policy=RetryPolicy(timeout_s=10.0, backoff=Backoff(attempts=2)))
Serve = Callable[..., ModernBrokerServer]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a broker on the data of the previous one, which has stopped."""
    with ExitStack() as running:

        def start(**settings: Any) -> ModernBrokerServer:
            running.close()
            config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "data", **settings)
            return running.enter_context(ModernBrokerServer(config))

        yield start


def opened(broker: ModernBrokerServer) -> Cluster:
    return open_cluster("main", bootstrap=f"127.0.0.1:{broker.port}", read_settings=READ_SETTINGS)


def names(count: int = TOPICS) -> list[str]:
    return [f"topic-{number:02}" for number in range(count)]


def fill(broker: ModernBrokerServer) -> None:
    """Topics whose partitions have one record more than their number."""
    with Client(broker.port) as client:
        for name in names():
            assert client.create(name, PARTITIONS) == 0
            for part in PARTS:
                client.produce(name, batch(part.partition + 1), partition=part.partition)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of requests by the name of their API."""
    requests: Counter[str] = Counter()
    original = ModernBrokerConnection.request

    def counted(self: ModernBrokerConnection, request: Any, *, max_version: int | None = None) -> Any:
        requests[request.API.name] += 1
        return original(self, request, max_version=max_version)

    monkeypatch.setattr(ModernBrokerConnection, "request", counted)
    return requests


def test_bounds_of_all_topics_need_as_many_requests_as_those_of_one(serve: Serve, requests: Counter[str]) -> None:
    broker = serve(retention_ms=3_600_000)
    fill(broker)
    everything = dict.fromkeys(names(), PARTS)
    with opened(broker) as cluster:
        assert cluster.bounds_of(everything) == {
            name: {part: Bounds(earliest=0, latest=part.partition + 1, epoch=0) for part in PARTS} for name in names()
        }
        assert requests == {"Metadata": 1, "ListOffsets": 3}  # earliest, last stable, high watermark
        requests.clear()
        last = {name: {part: part.partition for part in PARTS} for name in names()}
        assert cluster.times_at(last) == {
            name: {part: START_MS + 1000 * part.partition for part in PARTS} for name in names()
        }
        assert requests == {"Fetch": 1}
        requests.clear()
        assert cluster.retention(names()) == dict.fromkeys(names(), Retention(ms=3_600_000, bytes=FOREVER))
        assert requests == {"DescribeConfigs": 1}


def test_old_brokers_know_the_times_of_segments_but_not_the_retention(serve: Serve, requests: Counter[str]) -> None:
    fill(serve())
    broker = serve(generation=Generation.V08)
    with opened(broker) as cluster:
        times = cluster.times_at({name: dict.fromkeys(PARTS, 0) for name in names()})
        assert requests == {"Metadata": 1, "ListOffsets": 13}
        assert all(isinstance(time_ms, int) for answers in times.values() for time_ms in answers.values())
        assert cluster.retention(["topic-00"]) == {"topic-00": Retention()}


def test_an_unknown_partition_is_an_error_of_its_own(serve: Serve) -> None:
    broker = serve(auto_create_topics=False)
    with Client(broker.port) as client:
        assert client.create("clicks") == 0
        client.produce("clicks", batch())
    [part] = parts = PARTS[:1]
    topics = {"clicks": parts, "nothing": parts}
    with opened(broker) as cluster:
        bounds = cluster.bounds_of(topics)
        times = cluster.times_at({topic: {part: 0} for topic in topics})
        retention = cluster.retention(topics)
    assert (bounds["clicks"][part], times["clicks"][part]) == (Bounds(earliest=0, latest=3, epoch=0), START_MS)
    assert retention["clicks"] == Retention(ms=FOREVER, bytes=FOREVER)
    for failed in (bounds["nothing"][part], times["nothing"][part], retention["nothing"]):
        assert isinstance(failed, BrokerError)
        assert (failed.code, failed.where.cluster) == (3, "main")


# fault R23
def test_records_of_an_open_transaction_have_no_time(serve: Serve) -> None:
    broker = serve()
    with Client(broker.port) as client:
        assert client.create("clicks") == 0
        client.produce("clicks", batch(2))
        producer = begin(client)
        assert add(client, producer) == 0
        assert write(client, producer) == 0
        with opened(broker) as cluster:
            times = [cluster.times_at({"clicks": {PARTS[0]: offset}})["clicks"][PARTS[0]] for offset in (1, 2)]
    assert times == [START_MS + 1000, None]


@pytest.fixture
def denying() -> Iterator[FakeCluster]:
    """Brokers that answer DescribeConfigs with a refusal."""
    with FakeCluster(logs={0: Log(entries=[], end=0)}, offered={**EVERYTHING, DESCRIBE.key: (0, 0)}) as fake:
        for broker in fake.brokers:
            broker.handlers[DESCRIBE.key] = refusing
        yield fake


def refusing(received: ReceivedRequest) -> DescribeConfigsResponse:
    request: Any = received.request
    denied = [
        DescribedConfigs(
            error_code=29,
            error_message="no",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )
        for resource in request.resources
        if resource.resource_name != "forgotten"
    ]
    return DescribeConfigsResponse(results=tuple(denied))


def test_missing_authorization_is_an_error_of_the_topic(denying: FakeCluster) -> None:
    with open_cluster("main", bootstrap=denying.bootstrap[0].address) as cluster:
        retention = cluster.retention(["clicks", "forgotten"])
    assert isinstance(retention["clicks"], AuthorizationFailed)
    assert isinstance(retention["forgotten"], Corrupt)
