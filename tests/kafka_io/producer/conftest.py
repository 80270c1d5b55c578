"""A cluster of each generation in this process, and what a producer's tests do to it."""

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
HASTY = RetryPolicy(timeout_s=30.0, backoff=Backoff(attempts=3, first_s=0.1, max_s=0.1))
SETTINGS = ProducerSettings(retry_policy=HASTY)


@dataclass(slots=True)
class World:
    """A cluster; `at` is how it is found."""

    generation: Generation
    at: dict[str, Any]
    start: Callable[[], BrokerServer07 | ModernBrokerServer]
    server: BrokerServer07 | ModernBrokerServer

    def stop(self) -> None:
        """End the broker."""
        self.server.stop()

    def restart(self) -> None:
        """Start it again, at the same port and with the same data."""
        self.server = self.start()

    def rows(self, topic: str = TOPIC, *, committed: bool = True) -> list[dict[str, Any]]:
        """All that is stored, by partition and offset."""
        found: list[dict[str, Any]] = []
        with open_cluster("main", read_settings=ReadSettings(committed=committed), **self.at) as cluster:
            entry = _registered(cluster, topic)
            for place, bounds in cluster.bounds(topic, entry.partitions).items():
                assert isinstance(bounds, Bounds)
                reader = cluster.source(place).open()
                span = PlannedRange(
                    topic=topic,
                    offsets=OffsetRange(place, bounds.earliest, bounds.latest),
                    incarnation=entry.incarnation,
                )
                found += [
                    {"partition": place, **row}
                    for batches in reader.read([span])
                    for decoded in batches
                    for row in decoded.batch.to_pylist()
                ]
                reader.close()
        return found

    def values(self, topic: str = TOPIC, *, committed: bool = True) -> list[bytes]:
        """The values alone."""
        return [row["value"] for row in self.rows(topic, committed=committed)]


def _registered(cluster: Cluster, topic: str) -> TopicEntry:
    """In 0.7 a broker has a message before it has registered the topic."""
    deadline_s = time.monotonic() + WAIT_S
    while (entry := cluster.topic(topic)) is None or not entry.partitions:
        assert time.monotonic() < deadline_s, f"{topic} is not registered"
        time.sleep(0.05)
    return entry


OpenWorld = Callable[..., World]


@pytest.fixture
def open_world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenWorld]:
    """Opens a cluster of one broker, of any generation; it ends with the test."""
    with ExitStack() as running:

        def open_(generation: Generation, *, partitions: int = 2) -> World:
            port = 0
            if generation is Generation.V07:
                zookeeper = str(request.getfixturevalue("chroot"))

                def start() -> BrokerServer07 | ModernBrokerServer:
                    config = BrokerConfig07(
                        broker_id=0, data_dir=tmp_path / "data", port=port, partitions=partitions, flush_messages=1
                    )
                    return running.enter_context(BrokerServer07(config, zookeeper=zookeeper))
            else:

                def start() -> BrokerServer07 | ModernBrokerServer:
                    config = ModernBrokerConfig(
                        broker_id=1, data_dir=tmp_path / "data", port=port, partitions=partitions, generation=generation
                    )
                    return running.enter_context(ModernBrokerServer(config))

            server = start()
            port = server.port
            at = {"bootstrap": f"127.0.0.1:{port}"} if generation is not Generation.V07 else {"zookeeper": zookeeper}
            return World(generation=generation, at=at, start=start, server=server)

        yield open_


GENERATIONS = [pytest.param(Generation.V07, marks=pytest.mark.zookeeper), Generation.V08, Generation.MODERN]


@pytest.fixture(params=GENERATIONS, ids=str)
def world(request: pytest.FixtureRequest, open_world: OpenWorld) -> World:
    """A cluster of each generation."""
    return open_world(request.param)


@pytest.fixture
def modern(open_world: OpenWorld) -> World:
    """A modern cluster."""
    return open_world(Generation.MODERN)


@pytest.fixture
def lose_answers(monkeypatch: pytest.MonkeyPatch) -> list[type[Request[Any]]]:
    """Requests of these types are done, and their answers lost with the connection: one for each entry."""
    losing: list[type[Request[Any]]] = []
    ask = ModernBrokerConnection.request

    def request(link: ModernBrokerConnection, asked: Request[Any], *, max_version: int | None = None) -> Any:
        answer = ask(link, asked, max_version=max_version)
        if type(asked) in losing:
            losing.remove(type(asked))
            link.close()
            raise ConnectionLost("the answer was lost")
        return answer

    monkeypatch.setattr(ModernBrokerConnection, "request", request)
    return losing


@pytest.fixture
def produce_codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Codes that the next Produce requests are answered with, in place of being sent; below 0 the answer is empty."""
    codes: list[int] = []
    ask = ModernBrokerConnection.request

    def request(link: ModernBrokerConnection, asked: Request[Any], *, max_version: int | None = None) -> Any:
        if not isinstance(asked, ProduceRequest) or not codes:
            return ask(link, asked, max_version=max_version)
        code = codes.pop(0)
        if code < 0:
            return ProduceResponse(responses=())
        return ProduceResponse(
            responses=tuple(
                ProduceTopicResponse(
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        ProducePartitionResponse(index=one.index, error_code=code, base_offset=-1)
                        for one in topic.partition_data
                    ),
                )
                for topic in asked.topic_data
            )
        )

    monkeypatch.setattr(ModernBrokerConnection, "request", request)
    return codes


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Values that tell which they are."""
    return [b"%d" % number for number in range(first, first + count)]
