"""A modern broker with a topic that is not loaded yet, and commands on it."""

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
from tests.pipelines.maintenance.loaded import Loaded
from tests.publishing import publish

PARTITIONS = 3
EACH = 30


def run(settings: Path, *arguments: str) -> Result:
    """A command."""
    return CliRunner().invoke(main, ["--settings", str(settings), *arguments])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The topic `clicks` of three partitions with 30 numbered records each."""

    port: int
    home: Path

    @property
    def address(self) -> str:
        """Where clients begin."""
        return f"127.0.0.1:{self.port}"

    @property
    def topic(self) -> Loaded:
        """The topic as the settings tell of it."""
        return Loaded(self.home / "penstock.toml")

    def configure(self, extra: str = "") -> None:
        """Write the settings; `extra` is of the cluster."""
        self.topic.settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{self.address}"\n{extra}\n')

    def publish(self, count: int, *, start: int = 0) -> None:
        """Numbered records, ten to a partition by turns."""
        publish("clicks", numbered(count, start), bootstrap=self.address, batch_size=10)

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """What a client of others commits for its group."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        try:
            asked = [TopicPartition("clicks", number, offset) for number, offset in offsets.items()]
            consumer.commit(offsets=asked, asynchronous=False)
        finally:
            consumer.close()

    def committed(self, group: str) -> dict[int, int]:
        """What a client of others sees of a group."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        try:
            asked = [TopicPartition("clicks", number) for number in range(PARTITIONS)]
            return {one.partition: one.offset for one in consumer.committed(asked, timeout=30)}
        finally:
            consumer.close()

    def __call__(self, *arguments: str) -> Result:
        """A command."""
        return run(self.topic.settings, *arguments)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", partitions=PARTITIONS)
    with ModernBrokerServer(config) as server:
        made = Stand(port=server.port, home=tmp_path)
        made.configure()
        made.publish(PARTITIONS * EACH)
        yield made


@pytest.fixture
def old(live: LiveCluster) -> Callable[..., Result]:
    """Commands on the live cluster of 0.7."""
    return lambda *arguments: run(live.settings, *arguments)
