"""The environment in which the commands of the pages run: a broker, a lake with loaded tables, a settings file."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from kafka_io.consumer.group_offsets import group_offsets
from kafka_io.model import BrokerPartition
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.layout.conditions import one_of
from pipelines.load.load import Loader
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.state_tables.update import update_state
from resources.kafka import open_cluster
from resources.settings.settings import PATH_VARIABLE, Settings
from resources.stores.lake import Lake
from tests.live import numbered
from tests.pipelines.cursors.written import camus_file, etl_key
from tests.publishing import publish_by_settings

CLUSTER = "old"
IDS = ["c-0003", "c-0007"]
GOLDEN = Path(__file__).parents[1] / "golden"
PAYMENT = '{"type": "record", "name": "Payment", "fields": [{"name": "amount", "type": "double"}]}'
CLICKS = """[topics.clicks]
event_time = "timestamp"
"""
REFUNDS = """[topics.refunds]
format = "json"
columns = { number = "long" }
max_bad_share = 1
"""
CUSTOMERS = """[topics.customers]
format = "json"
columns = { id = "string", email = "string" }
[topics.customers.state]
key = "id"
"""
EVENTS = """[topics.events]
format = "json"
[topics.events.tables]
by = "header:type"
names = { order = "orders" }
"""
VISITS = """[topics.visits]
format = "text"
[topics]
deny = ["visits"]
"""
_PARTITIONS = 4
_LOADS = 3
_PER_LOAD = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A folder with `penstock.toml` and the lake `lake`, the port of the cluster's broker, the URL of a registry."""

    home: Path
    port: int
    registry: str

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.home / "penstock.toml"

    def configure(self, *, typed: bool = False) -> None:
        """Write the settings file. If `typed`, the topic `visits` has a format."""
        self.settings.write_text(
            f'lake = "lake"\n[clusters.{CLUSTER}]\nbootstrap = "127.0.0.1:{self.port}"\n'
            f'[registries.main]\nurl = "{self.registry}"\n{CLICKS}{REFUNDS}{CUSTOMERS}{EVENTS}{VISITS if typed else ""}'
        )

    def publish(self, topic: str, messages: list[bytes]) -> None:
        """Publish messages to all partitions in turn."""
        publish_by_settings(Settings.load(self.settings), topic, messages, cluster=CLUSTER, batch_size=50)

    def load(self, topic: str) -> None:
        """Load the new records of a topic. There are few, so Spark is not needed."""
        settings = Settings.load(self.settings)
        with open_cluster(settings, CLUSTER) as cluster:
            load = Loader.of(settings, cluster, _no_spark).load(topic)
        assert load.error is None

    def table(self, topic: str) -> DeltaLakeTable:
        """The table of a topic."""
        return DeltaLakeTable.of(Lake.of(Settings.load(self.settings)), CLUSTER, topic)

    def update_state(self, topic: str) -> None:
        """Bring the state table of a topic up to date."""
        update_state(self.table(topic), Settings.load(self.settings).options_of(topic))

    def erase(self, topic: str, ids: list[str]) -> None:
        """Erase rows, and delete all that is left of them: the request that the pages certify."""
        request = EraseRequest(table=self.table(topic), condition=one_of("id", ids), run="run", name="T-4711")
        assert erase(request).rows == len(ids)
        self.update_state(topic)
        finish_erasures(self.table(topic), older_than=timedelta(), dry_run=False)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets of a group, as another loader does."""
        with open_cluster(Settings.load(self.settings), CLUSTER) as cluster:
            ends = {BrokerPartition(None, number): offset for number, offset in offsets.items()}
            group_offsets(cluster).commit(group, {topic: ends})


def _no_spark() -> NoReturn:
    raise AssertionError("a small load needs no Spark")


def _age(entry: Path) -> None:
    """Move the time of a log entry one day into the past."""
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] -= 86_400_000
    entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """`clicks` was loaded several times, first a day ago; `views` was loaded once; `orders` was never loaded.

    `customers` has a state table, and two of them are erased. `events` has a second table.
    `refunds` has a record that does not decode.
    `visits` has a raw table, and gets a format after it was loaded.
    """
    home = tmp_path_factory.mktemp("docs")
    config = ModernBrokerConfig(broker_id=0, data_dir=home / "broker", partitions=_PARTITIONS)
    with ModernBrokerServer(config) as broker, EmbeddedSchemaRegistry() as registry:
        registry.register("payments-value", PAYMENT)
        world = World(home=home, port=broker.port, registry=registry.url)
        world.configure()
        for number in range(_LOADS):
            world.publish("clicks", numbered(_PER_LOAD, number * _PER_LOAD))
            world.load("clicks")
            if number == 0:  # each commit keeps the digest of the version before it
                _age(home / "lake" / CLUSTER / "clicks" / "_delta_log" / f"{1:020}.json")
        world.publish("views", numbered(10))
        world.load("views")
        world.publish("visits", numbered(10))
        world.load("visits")
        world.publish("refunds", [*numbered(10), b"{"])
        world.load("refunds")
        people = [{"id": f"c-{number:04}", "email": f"{number}@example.org"} for number in range(10)]
        world.publish("customers", [json.dumps(person).encode() for person in people])
        world.load("customers")
        world.update_state("customers")
        world.erase("customers", IDS)
        world.publish("events", [b'{"id": 1}'])
        world.load("events")
        world.publish("orders", numbered(_PER_LOAD))
        for group in ("old-loader", "connect-orders"):
            world.commit(group, "orders", dict.fromkeys(range(_PARTITIONS), 25))
        yield world


@pytest.fixture
def world(loaded: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy of the loaded lake in the working directory of one command. All commands share the broker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    shutil.copytree(loaded.home / "lake", tmp_path / "lake")
    (tmp_path / "lines.txt").write_bytes(b"\n".join(numbered(20)))
    shutil.copytree(GOLDEN / "spark", tmp_path / "checkpoint")
    (tmp_path / "history" / "2014-03-01-10-00-00").mkdir(parents=True)
    keys = [etl_key("orders", number, 25) for number in range(_PARTITIONS)]
    (tmp_path / "history" / "2014-03-01-10-00-00" / "offsets-m-00000").write_bytes(camus_file(*keys))
    (tmp_path / "payments.jsonl").write_text('{"amount": 12.5}\n{"amount": 1}\n')
    (tmp_path / "offsets.csv").write_text("orders,0,25\n")
    (tmp_path / "ids.txt").write_text("\n".join(IDS))
    copied = World(home=tmp_path, port=loaded.port, registry=loaded.registry)
    copied.configure(typed=True)
    return copied
