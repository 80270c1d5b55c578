"""Unpacks a lake, its Kafka clusters and a Dagster home that an older version wrote, and starts servers for them.

tests/golden/write_lake.py created them. The servers are this version's embedded brokers and ZooKeeper on the old data:
they hold the same records, topic ids and ZooKeeper transaction ids, so that a load continues the old tables.
"""

import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from deltalake import DeltaTable

from kafka_io.model import Generation
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from pipelines.cli.main import main
from resources.machines.zookeeper_server import ZooKeeperServer
from resources.topic_names import encode
from tests.golden.write_lake import PORTS

GOLDEN = Path(__file__).parent / "golden"
PARTITIONS = 2
RELEASES = ("0.6.0", "0.1.0")
"""The versions that wrote the lakes in the folder of golden files, the newest first."""


@dataclass(frozen=True, slots=True)
class StoredLake:
    """A copy in `home`: `penstock.toml`, the lake, `dagster`, and the data folders of the servers.

    `expected` is the output that the release printed for its tables, by `<cluster>/<topic>`.
    """

    home: Path
    expected: Mapping[str, Any]

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.home / "penstock.toml"

    def penstock(self, *arguments: str, stdin: bytes | None = None) -> Any:
        """The JSON output of a `penstock` command, which must succeed."""
        result = CliRunner().invoke(main, ["--settings", str(self.settings), *arguments, "--json"], input=stdin)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["results"]

    def publish(self, cluster: str, topic: str, lines: bytes) -> None:
        """Publish lines, spread over the partitions of a topic."""
        self.penstock("publish", topic, "-", "--batch", "3", "--cluster", cluster, stdin=lines)

    def rows(self, name: str) -> set[tuple[Any, ...]]:
        """Position and value of each row of a table."""
        table = self.table(name).to_pyarrow_table()
        columns = (table[column].to_pylist() for column in ("broker", "partition", "offset", "inner", "value"))
        return set(zip(*columns, strict=True))

    def table(self, name: str) -> DeltaTable:
        """The table `<cluster>/<topic>`, as any reader of Delta opens it."""
        cluster, topic = name.split("/")
        return DeltaTable(str(self.home / "lake" / cluster / encode(topic)))


def unpacked(home: Path, release: str) -> StoredLake:
    """A copy of the files that a release wrote.

    The segments of 0.7 get the current time, because its broker deletes segments that are older than a week.
    """
    with tarfile.open(GOLDEN / f"lake_{release}.tar.xz") as archive:
        archive.extractall(home, filter="data")
    for segment in home.rglob("*.kafka"):
        os.utime(segment)
    return StoredLake(home, expected=json.loads((GOLDEN / f"lake_{release}.json").read_text()))


@contextmanager
def servers(lake: StoredLake, *copies: StoredLake) -> Iterator[None]:
    """Run the servers of `lake` for the length of a `with` block. All settings files get their addresses."""
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperServer(None, lake.home / "zookeeper")).connect
        for number in (0, 1):
            old = BrokerConfig07(broker_id=number, data_dir=lake.home / f"broker-{number}", partitions=PARTITIONS)
            running.enter_context(BrokerServer07(old, zookeeper=zookeeper))
        middle = ModernBrokerConfig(
            broker_id=9, data_dir=lake.home / "broker-v09", generation=Generation.V08, partitions=PARTITIONS
        )
        running.enter_context(ModernBrokerServer(middle, zookeeper=f"{zookeeper}/middle"))
        new = ModernBrokerConfig(broker_id=4, data_dir=lake.home / "broker-modern", partitions=PARTITIONS)
        bootstrap = f"127.0.0.1:{running.enter_context(ModernBrokerServer(new)).port}"
        for copy in (lake, *copies):
            text = copy.settings.read_text()
            text = text.replace(f"127.0.0.1:{PORTS['zookeeper']}", zookeeper)
            copy.settings.write_text(text.replace(f"127.0.0.1:{PORTS['modern']}", bootstrap))
        yield
