"""Embedded clusters of each generation, and fixtures that disturb the connections to them."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.opening import open_cluster
from kafka_io.errors import ConnectionLost
from kafka_io.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from kafka_io.model import Bounds, Generation, OffsetRange, TopicEntry
from kafka_io.producer.settings import ProducerSettings
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.wire.schema import Request

TOPIC = "clicks"
WAIT_S = 60.0
SHORT_RETRIES = RetryPolicy(timeout_s=30.0, backoff=Backoff(attempts=3, first_s=0.1, max_s=0.1))
SETTINGS = ProducerSettings(retry_policy=SHORT_RETRIES)


@dataclass(slots=True)
class World:
    """A cluster of one broker. `address` has the arguments with which `open_cluster` and `open_producer` find it."""

    generation: Generation
    address: dict[str, Any]
    start: Callable[[], BrokerServer07 | ModernBrokerServer]
    server: BrokerServer07 | ModernBrokerServer

    def stop(self) -> None:
        """Stop the broker."""
        self.server.stop()

    def restart(self) -> None:
        """Start the broker again, at the same port and with the same data."""
        self.server = self.start()

    def rows(self, topic: str = TOPIC, *, committed: bool = True) -> list[dict[str, Any]]:
        """All stored records, sorted by partition and offset."""
        stored: list[dict[str, Any]] = []
        with open_cluster("main", read_settings=ReadSettings(committed=committed), **self.address) as cluster:
            entry = _registered(cluster, topic)
            for partition, bounds in cluster.bounds(topic, entry.partitions).items():
                assert isinstance(bounds, Bounds)
                reader = cluster.source(partition).open()
                planned = PlannedRange(
                    topic=topic,
                    offsets=OffsetRange(partition, bounds.earliest, bounds.latest),
                    incarnation=entry.incarnation,
                )
                stored += [
                    {"partition": partition, **row}
                    for batches in reader.read([planned])
                    for decoded in batches
                    for row in decoded.batch.to_pylist()
                ]
                reader.close()
        return stored

    def values(self, topic: str = TOPIC, *, committed: bool = True) -> list[bytes]:
        """The values of all stored records."""
        return [row["value"] for row in self.rows(topic, committed=committed)]


def _registered(cluster: Cluster, topic: str) -> TopicEntry:
    """The topic in ZooKeeper. In 0.7 a broker registers a topic some time after its first message."""
    deadline_s = time.monotonic() + WAIT_S
    while (entry := cluster.topic(topic)) is None or not entry.partitions:
        assert time.monotonic() < deadline_s, f"{topic} is not registered"
        time.sleep(0.05)
    return entry


OpenWorld = Callable[..., World]


@pytest.fixture
def open_world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenWorld]:
    """Opens a cluster of one broker, of any generation, and stops it after the test."""
    with ExitStack() as running:

        def open_(generation: Generation, *, partitions: int = 2) -> World:
            port = 0
            if generation is Generation.V07:
                zookeeper = str(request.getfixturevalue("chroot"))

                def start() -> BrokerServer07 | ModernBrokerServer:
                    config = BrokerConfig07(broker_id=0, data_dir=tmp_path / "data", port=port, partitions=partitions)
                    return running.enter_context(BrokerServer07(config, zookeeper=zookeeper))
            else:

                def start() -> BrokerServer07 | ModernBrokerServer:
                    config = ModernBrokerConfig(
                        broker_id=1, data_dir=tmp_path / "data", port=port, partitions=partitions, generation=generation
                    )
                    return running.enter_context(ModernBrokerServer(config))

            server = start()
            port = server.port
            address = (
                {"bootstrap": f"127.0.0.1:{port}"} if generation is not Generation.V07 else {"zookeeper": zookeeper}
            )
            return World(generation=generation, address=address, start=start, server=server)

        yield open_


GENERATIONS = [pytest.param(Generation.V07, marks=pytest.mark.zookeeper), Generation.V08, Generation.MODERN]


@pytest.fixture(params=GENERATIONS, ids=str)
def world(request: pytest.FixtureRequest, open_world: OpenWorld) -> World:
    """A cluster of one broker; the test runs once for each generation."""
    return open_world(request.param)


@pytest.fixture
def modern(open_world: OpenWorld) -> World:
    """A modern cluster."""
    return open_world(Generation.MODERN)


@pytest.fixture
def lose_answers(monkeypatch: pytest.MonkeyPatch) -> list[type[Request[Any]]]:
    """The test adds types of requests. For each entry one answer to such a request is lost with its connection."""
    lost_answers: list[type[Request[Any]]] = []
    original = ModernBrokerConnection.request

    def request(connection: ModernBrokerConnection, sent: Request[Any], *, max_version: int | None = None) -> Any:
        answer = original(connection, sent, max_version=max_version)
        if type(sent) in lost_answers:
            lost_answers.remove(type(sent))
            connection.close()
            raise ConnectionLost("the answer was lost")
        return answer

    monkeypatch.setattr(ModernBrokerConnection, "request", request)
    return lost_answers


@pytest.fixture
def produce_codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The test adds error codes. Each answers one Produce request, which is not sent; -1 is an empty answer."""
    codes: list[int] = []
    original = ModernBrokerConnection.request

    def request(connection: ModernBrokerConnection, sent: Request[Any], *, max_version: int | None = None) -> Any:
        if not isinstance(sent, ProduceRequest) or not codes:
            return original(connection, sent, max_version=max_version)
        code = codes.pop(0)
        if code < 0:
            return ProduceResponse(responses=())
        return ProduceResponse(
            responses=tuple(
                ProduceTopicResponse(
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        ProducePartitionResponse(index=partition.index, error_code=code, base_offset=-1)
                        for partition in topic.partition_data
                    ),
                )
                for topic in sent.topic_data
            )
        )

    monkeypatch.setattr(ModernBrokerConnection, "request", request)
    return codes


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Values that contain their number."""
    return [b"%d" % number for number in range(first, first + count)]
