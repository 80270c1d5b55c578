"""Fixtures: a topic on a modern broker and a topic on 0.7 brokers, each loaded into a table."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.talk import Client, batch
from tests.live import LiveCluster, numbered
from tests.pipelines.loaded import Loaded


@dataclass(slots=True)
class Modern:
    """A modern broker with the topic `clicks` of one partition, in small segments."""

    server: ModernBrokerServer
    home: Path

    @property
    def address(self) -> str:
        """The bootstrap address."""
        return f"127.0.0.1:{self.server.port}"

    @property
    def topic(self) -> Loaded:
        """The topic `clicks` and its table."""
        return Loaded(self.home / "penstock.toml")

    def publish(self, count: int, *, first: int = 0, batch_size: int = 10) -> None:
        """Publish numbered records with timestamps a second apart, in batches of `batch_size`."""
        with Client(self.server.port) as client:
            for number in range(first, first + count, batch_size):
                client.produce("clicks", batch(min(batch_size, first + count - number), first=number))

    def configure(self) -> None:
        """Write the settings file with the current port of the broker."""
        self.topic.settings.write_text(
            f'lake = "{self.home / "lake"}"\n[clusters.main]\nbootstrap = "{self.address}"\n'
            "[caps]\nslice_records = 25\nattempts = 2\n"
        )

    def expire(self) -> None:
        """Stop the broker, delete the oldest segment as retention does, and start the broker again."""
        self.server.stop()
        oldest, *_ = sorted((self.home / "broker" / "clicks-0").glob("*.log"))
        for file in oldest.parent.glob(f"{oldest.stem}.*"):
            file.unlink()
        self.server.start()
        self.configure()


@pytest.fixture
def modern(tmp_path: Path) -> Iterator[Modern]:
    with ExitStack() as running:
        config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", segment_bytes=1500)
        modern_topic = Modern(running.enter_context(ModernBrokerServer(config)), tmp_path)
        with Client(modern_topic.server.port) as client:
            assert client.create("clicks") == 0
        modern_topic.configure()
        yield modern_topic


@pytest.fixture
def old(live: LiveCluster) -> Loaded:
    """A topic of 0.7 in four partitions, loaded by two runs."""
    topic = Loaded(live.settings)
    for part in (numbered(300), numbered(300, start=300)):
        live.publish("clicks", part)
        topic.load()
    return topic
