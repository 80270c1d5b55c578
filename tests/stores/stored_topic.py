"""The topic `clicks` of a fake cluster, and its table in a store. Commands run in this process or in drivers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from deltalake import DeltaTable

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from pipelines.maintenance.clean import CleanResult, clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.stores.lake import Lake
from resources.stores.store_options import store_options
from tests.crash.child import DriverOptions
from tests.crash.drivers import Driver
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.records import holding
from tests.pipelines.loaded import Loaded

OFFERED = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
_QUICK = {"timeout": "10s", "backoff_config.init_backoff": "10ms", "backoff_config.max_backoff": "100ms"}
"""Options with which a failed request is repeated soon."""
LOAD = ("load", "clicks", "--json")


def new_cluster() -> FakeCluster:
    """A cluster whose topic has a few records in two partitions."""
    return FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)}, offered=OFFERED, topic_id=UUID(int=7))


@dataclass(frozen=True, slots=True)
class StoredTopic(Loaded):
    """The topic, as the settings file describes it.

    Args:
        home: the folder of the settings file and of the drivers.
        fake: the cluster.
        root: the URI of the lake.
        options: the options of the lake.
    """

    home: Path
    fake: FakeCluster
    root: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, home: Path, fake: FakeCluster, bucket: str, options: Mapping[str, str]) -> "StoredTopic":
        """A topic with a new lake in this bucket; writes its settings file."""
        topic = cls(home / "penstock.toml", home, fake, f"{bucket}/lake-{uuid4().hex[:12]}", options)
        topic.configure(options)
        return topic

    def configure(self, options: Mapping[str, str], *, caps: str = "attempts = 2\nslice_records = 15\n") -> None:
        """Write the settings file, with these options of the lake, and these lines of the section [caps]."""
        lines = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in {**_QUICK, **options}.items())
        bootstrap = ",".join(broker.address for broker in self.fake.bootstrap)
        self.settings.write_text(
            f'lake = "{self.root}"\n[lake_options]\n{lines}[clusters.main]\nbootstrap = "{bootstrap}"\n[caps]\n{caps}'
        )

    @property
    def handle(self) -> DeltaTable:
        """A new handle of the table."""
        lake: Lake = self.table.lake
        return DeltaTable(self.table.uri, storage_options=store_options(lake.options))

    def grow(self, count: int = 10) -> None:
        """Append records to both partitions."""
        for number, log in list(self.fake.logs.items()):
            self.fake.logs[number] = holding(0, log.end + count)

    def check(self) -> None:
        """Check that `verify` proves the table, and that each record of the topic has its row exactly once."""
        proof = verify(self.table)
        assert proof.proven, proof.problems
        assert self.positions() == [
            (partition, offset) for partition, log in sorted(self.fake.logs.items()) for offset in range(log.end)
        ]

    def positions(self) -> list[tuple[Any, ...]]:
        """Partition and offset of each row, sorted."""
        rows = self.handle.to_pyarrow_dataset().to_table(["partition", "offset"])
        return sorted(zip(*(rows.column(name).to_pylist() for name in ("partition", "offset")), strict=True))

    def rewind(self, version: int) -> None:
        """Rewind the table to a version."""
        rewind(plan_rewind(self.table, version, run="rewinder"))

    def clean(self) -> CleanResult:
        """Delete all files that the table does not need, and merge small ones."""
        return clean(self.table, keep=timedelta(0), target_bytes=2**20, dry_run=False)

    def start(self, *arguments: str, kill_at: str = "") -> Driver:
        """Start a `penstock` command in a process that ends or stops at `kill_at`."""
        folder = self.home / f"driver-{uuid4().hex}"
        folder.mkdir()
        command = ["--settings", str(self.settings), *arguments]
        return Driver.start(folder, command, DriverOptions(slices_per_commit=100), kill_at=kill_at)
