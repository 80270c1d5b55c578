"""Fixtures for the tests of pipelines: live and fake clusters, small and loaded tables, a Dagster instance."""

import pkgutil
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import Proof, verify
from resources.settings.settings import PATH_VARIABLE, Settings
from resources.stores.lake import Lake
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding
from tests.kafka_io.testing.modern.talk import Client, batch
from tests.live import LiveCluster, live_cluster, numbered
from tests.pipelines.loaded import Loaded
from tests.small_table import SmallTable


@pytest.fixture
def live(chroot: str, tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(chroot, tmp_path / "live") as cluster:
        yield cluster


@pytest.fixture
def load(live: LiveCluster, spark: SparkSession) -> Callable[..., TopicLoad]:
    """Loads a topic of the live cluster with its settings file."""

    def run(topic: str, **options: object) -> TopicLoad:
        settings = Settings.load(live.settings)
        with live.open() as cluster:
            return loader_of(settings, cluster, lambda: spark, **options).load(topic)

    return run


@pytest.fixture
def prove(live: LiveCluster) -> Callable[[str], Proof]:
    """Verifies the table of a topic of the live cluster."""
    lake = Lake(root=str(live.lake))
    return lambda topic: verify(DeltaLakeTable.of(lake, "main", topic))


@pytest.fixture
def small(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path / "lake")


def _instance_in(home: Path) -> dg.DagsterInstance:
    """An instance with one database for the events of all runs. By default each run creates one, which takes long."""
    events = {
        "module": "dagster._core.storage.event_log",
        "class": "ConsolidatedSqliteEventLogStorage",
        "config": {"base_dir": str(home / "events")},
    }
    overrides = {"telemetry": {"enabled": False}, "event_log_storage": events}
    return dg.DagsterInstance.local_temp(str(home), overrides=overrides)


@pytest.fixture(scope="session", autouse=True)
def cached_migrations() -> Iterator[None]:
    """Read the migrations of Dagster's databases once. Dagster reads sixty files for each instance that it opens."""
    directories = pkgutil.resolve_name("alembic.script:ScriptDirectory")  # Dagster's own dependency, and not ours
    read, known = directories.from_config, dict[str, Any]()

    def read_once(config: Any) -> Any:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    with patch.object(directories, "from_config", read_once):
        yield


@pytest.fixture(scope="session")
def empty_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Dagster instance without runs. To create its databases takes longer than many a test."""
    home = tmp_path_factory.mktemp("dagster")
    with _instance_in(home) as local:
        assert not local.get_runs()
    return home


@pytest.fixture
def instance(empty_instance: Path, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance for one test, with storage on disk."""
    home = shutil.copytree(empty_instance, tmp_path / "dagster")
    with _instance_in(home) as local:
        yield local


@pytest.fixture
def configured(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> LiveCluster:
    """The live cluster. The environment names its settings file."""
    monkeypatch.setenv(PATH_VARIABLE, str(live.settings))
    return live


@pytest.fixture
def fake() -> FakeCluster:
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    return FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)}, offered=offered, topic_id=UUID(int=7))


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
