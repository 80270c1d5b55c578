"""A topic on live brokers of each kind, loaded into a table."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.talk import Client, batch
from tests.live import LiveCluster, numbered
from tests.pipelines.maintenance.loaded import Loaded


@dataclass(slots=True)
class Modern:
    """A modern broker with the topic `clicks` of one partition, in small segments."""

    server: ModernBrokerServer
    home: Path

    @property
    def address(self) -> str:
        """The address at which clients connect first."""
        return f"127.0.0.1:{self.server.port}"

    @property
    def topic(self) -> Loaded:
        """The topic `clicks` and its table."""
        return Loaded(self.home / "penstock.toml")

    def publish(self, count: int, *, first: int = 0, of: int = 10) -> None:
        """Numbered records a second apart, in batches of so many."""
        with Client(self.server.port) as client:
            for number in range(first, first + count, of):
                client.produce("clicks", batch(min(of, first + count - number), first=number))

    def configure(self) -> None:
        """Write the settings for the broker as it is now."""
        self.topic.settings.write_text(
            f'lake = "{self.home / "lake"}"\n[clusters.main]\nbootstrap = "{self.address}"\n'
            "[caps]\nslice_records = 25\nattempts = 2\n"
        )

    def expire(self) -> None:
        """Retention takes the oldest segment, while the broker is down."""
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
        made = Modern(running.enter_context(ModernBrokerServer(config)), tmp_path)
        with Client(made.server.port) as client:
            assert client.create("clicks") == 0
        made.configure()
        yield made


@pytest.fixture
def old(live: LiveCluster) -> Loaded:
    """A topic of 0.7 in four partitions, loaded by two runs."""
    topic = Loaded(live.settings)
    for part in (numbered(300), numbered(300, start=300)):
        live.publish("clicks", part)
        topic.load()
    return topic
