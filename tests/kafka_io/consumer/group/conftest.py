"""An embedded broker with groups: topics with numbered messages, and members that are polled in turn."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster.modern_cluster import ModernCluster
from kafka_io.consumer.group.consumer import GroupConsumer
from kafka_io.consumer.group.fetcher import ConsumedBatch
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.model import Generation, TopicPartition
from kafka_io.reader.reader import FetchSizes, ReadSettings
from kafka_io.reader.source import Source
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.talk import Client, batch
from tests.publishing import publish

SOON_S = 60.0
PARTITIONS = 4


@dataclass
class GroupBroker:
    """An embedded broker with clients that publish to its topics and join its groups."""

    folder: Path
    running: ExitStack
    generation: Generation = Generation.MODERN
    port: int = 0
    published: Counter[str] = field(default_factory=Counter)
    server: ModernBrokerServer | None = None

    def start(self) -> None:
        """Start the broker, at the port that it had before."""
        config = ModernBrokerConfig(
            broker_id=1,
            data_dir=self.folder / "data",
            generation=self.generation,
            port=self.port,
            partitions=PARTITIONS,
        )
        self.server = self.running.enter_context(ModernBrokerServer(config))
        self.port = self.server.port

    def stop(self) -> None:
        """Stop the broker. It forgets the members of its groups."""
        assert self.server is not None
        self.server.stop()

    @property
    def address(self) -> str:
        """The bootstrap address."""
        return f"127.0.0.1:{self.port}"

    def cluster(self, sizes: FetchSizes = FetchSizes()) -> ModernCluster:  # noqa: B008 - it is immutable
        """A client of the broker."""
        retry_policy = RetryPolicy(timeout_s=30.0, backoff=Backoff(attempts=8, first_s=0.1, max_s=1.0))
        read_settings = ReadSettings(sizes=sizes, retry_policy=retry_policy)
        bootstrap = parse_bootstrap(self.address)
        given = Source(
            cluster="main",
            generation=self.generation,
            brokers=bootstrap,
            read_settings=read_settings,
            refuses_newer=self.generation is Generation.V08,
        )
        return self.running.enter_context(ModernCluster(given))

    def publish(self, count: int, *, topic: str = "clicks") -> list[bytes]:
        """Publish numbered messages to the partitions in turn; the numbers continue after those of the last call."""
        first = self.published[topic]
        values = [f"{topic} {number}".encode() for number in range(first, first + count)]
        self.published[topic] += count
        pinned = Generation.V08 if self.generation is Generation.V08 else None
        publish(topic, values, bootstrap=self.address, generation=pinned, batch_size=1)
        return values

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        with Client(self.port) as client:
            assert client.create(topic, partitions) == 0

    def append(self, topic: str, count: int) -> None:
        """Append one batch of numbered records to partition 0, with timestamps a second apart; see `talk.numbered`."""
        with Client(self.port) as client:
            assert client.produce(topic, batch(count)).error_code == 0

    def member(self, *, group: str = "readers", **settings: Any) -> GroupConsumer:
        """A member with short intervals; it is closed after the test."""
        group_settings = {
            name: settings.pop(name) for name in tuple(settings) if name in GroupSettings.__dataclass_fields__
        }
        member = GroupSettings(**{"group": group, "heartbeat_s": 0.1, "refresh_s": 300.0, **group_settings})
        if "pattern" not in settings:
            settings.setdefault("topics", ["clicks"])
        return self.running.enter_context(GroupConsumer(self.cluster(), member, **settings))


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Everything that a test opens; it is closed after the test."""
    with ExitStack() as running:
        yield running


@pytest.fixture
def empty_broker(tmp_path: Path, running: ExitStack) -> GroupBroker:
    """A running broker without topics."""
    group_broker = GroupBroker(tmp_path, running)
    group_broker.start()
    return group_broker


@pytest.fixture
def group_broker(empty_broker: GroupBroker) -> GroupBroker:
    """A running broker with the topic `clicks`."""
    empty_broker.create("clicks", PARTITIONS)
    return empty_broker


Read = dict[GroupConsumer, list[ConsumedBatch]]


def poll_until(members: Iterable[GroupConsumer], holds: Callable[[Read], bool]) -> Read:
    """Poll the members in turn until `holds` is true of the batches that they have read."""
    members = list(members)
    read: Read = {member: [] for member in members}
    deadline_s = time.monotonic() + SOON_S
    while not holds(read):
        assert time.monotonic() < deadline_s, [sorted(member.assignment) for member in members]
        for member in members:
            read[member] += member.poll(0.05)
    return read


def shares_are(*sizes: int) -> Callable[[Read], bool]:
    """The condition that members own these numbers of partitions, in any order, and no partition has two owners."""

    def holds(read: Read) -> bool:
        assignments = [member.assignment for member in read]
        assigned = frozenset[TopicPartition]().union(*assignments)
        return sorted(map(len, assignments)) == sorted(sizes) and len(assigned) == sum(sizes)

    return holds


def values(batches: Iterable[ConsumedBatch]) -> list[bytes]:
    """The values of all records."""
    return [value for batch in batches for value in batch.records.column("value").to_pylist()]


def all_values(read: Read) -> list[bytes]:
    """The values that the members have read together, sorted."""
    return sorted(value for batches in read.values() for value in values(batches))
