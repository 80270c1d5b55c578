"""A modern broker with a topic that is not loaded yet, and fixtures that run commands on it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, TopicPartition

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from tests.live import LiveCluster, numbered
from tests.pipelines.loaded import Loaded
from tests.publishing import publish

PARTITIONS = 3
RECORDS_PER_PARTITION = 30


def run(settings: Path, *arguments: str) -> Result:
    """Run a command with a settings file."""
    return CliRunner().invoke(main, ["--settings", str(settings), *arguments])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """A broker with the topic `clicks`: three partitions with 30 numbered records each."""

    port: int
    home: Path

    @property
    def address(self) -> str:
        """The bootstrap address."""
        return f"127.0.0.1:{self.port}"

    @property
    def topic(self) -> Loaded:
        """The topic `clicks` and its table."""
        return Loaded(self.home / "penstock.toml")

    def configure(self, extra: str = "") -> None:
        """Write the settings file. `extra` has further settings of the cluster."""
        self.topic.settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{self.address}"\n{extra}\n')

    def publish(self, count: int, *, start: int = 0) -> None:
        """Publish numbered records to the partitions in turn, ten records at a time."""
        publish("clicks", numbered(count, start), bootstrap=self.address, batch_size=10)

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets of a group with another client."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        try:
            partitions = [TopicPartition("clicks", number, offset) for number, offset in offsets.items()]
            consumer.commit(offsets=partitions, asynchronous=False)
        finally:
            consumer.close()

    def committed(self, group: str) -> dict[int, int]:
        """The committed offsets of a group that another client sees."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        try:
            partitions = [TopicPartition("clicks", number) for number in range(PARTITIONS)]
            return {committed.partition: committed.offset for committed in consumer.committed(partitions, timeout=30)}
        finally:
            consumer.close()

    def __call__(self, *arguments: str) -> Result:
        """Run a command with the settings of this broker."""
        return run(self.topic.settings, *arguments)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", partitions=PARTITIONS)
    with ModernBrokerServer(config) as server:
        created = Stand(port=server.port, home=tmp_path)
        created.configure()
        created.publish(PARTITIONS * RECORDS_PER_PARTITION)
        yield created


@pytest.fixture
def old(live: LiveCluster) -> Callable[..., Result]:
    """Runs commands on the live 0.7 cluster."""
    return lambda *arguments: run(live.settings, *arguments)
