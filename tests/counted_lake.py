"""A lake in a store that counts requests, with one table of any number of commits, and the cluster of its topic."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn
from uuid import uuid4

import msgspec
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.ledger import KEY, SEQUENCE
from pipelines.reports.outcome import TopicLoad
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster
from tests.fakes.loaders import loader_of
from tests.fakes.object_store import ObjectStore
from tests.fakes.records import holding

STEP = 5
"""The offsets of a commit."""
_ENTRIES_PER_CHECKPOINT = 10


def no_spark() -> NoReturn:
    """Fail, because a small load needs no Spark."""
    raise AssertionError("a small load needs no Spark")


@dataclass
class CountedLake:
    """A lake with one table in the store, and the cluster of its topic."""

    store: ObjectStore
    fake: FakeCluster
    name: str

    @property
    def settings(self) -> Settings:
        """The settings of the lake and the cluster."""
        bootstrap = ",".join(broker.address for broker in self.fake.bootstrap)
        return Settings(
            lake=f"s3://bucket/{self.name}",
            lake_options=self.store.options,
            clusters={"main": ClusterSettings(bootstrap=bootstrap)},
            caps=Caps(attempts=1, request_timeout_s=5),
        )

    @property
    def version(self) -> int:
        """The table's newest version."""
        snapshot = self.table.existing()
        assert snapshot is not None
        return snapshot.version

    @property
    def data_files(self) -> list[str]:
        """The keys of the table's data files."""
        return [
            key
            for key in self.store.objects
            if key.startswith(self.name) and key.endswith(".parquet") and "_delta_log" not in key
        ]

    @property
    def table(self) -> DeltaLakeTable:
        """The topic's table."""
        return DeltaLakeTable.of(Lake.of(self.settings), "main", "clicks")

    def load(self) -> TopicLoad:
        """A load that ends well."""
        with open_cluster(self.settings, "main") as cluster:
            load = loader_of(self.settings, cluster, no_spark, fetch=fetch_here).load("clicks")
        assert load.error is None
        return load

    def counted(self, act: Callable[[], object]) -> int:
        """The number of requests that an action sends."""
        before = len(self.store.requests)
        act()
        return len(self.store.requests) - before

    def commit_until(self, version: int) -> None:
        """Write entries with gaps of partition 0, which need no files, until the table has this version."""
        snapshot, id_ = self.table.existing(), BrokerPartition(None, 0)
        assert snapshot is not None
        entry = snapshot.entry
        assert entry is not None
        for number in range(snapshot.version + 1, version + 1):
            start, stop = entry.covered[id_][1], entry.covered[id_][1] + STEP
            gap = CommittedRange(offsets=OffsetRange(id_, start, stop), gaps={EXPIRED: STEP})
            covered = {**entry.covered, id_: (entry.covered[id_][0], stop)}
            state = replace(entry.state, covered=covered)
            entry = replace(entry, commit=uuid4().hex, sequence=entry.sequence + 1, ranges=(gap,), state=state)
            entry = replace(entry, planned_on="")  # nobody reads the commit before it
            numbers = {SEQUENCE: entry.sequence, entry.topic.app_id(id_): stop}
            actions = [
                {"commitInfo": {"timestamp": number, "operation": "WRITE", KEY: entry.to_json()}},
                *({"txn": {"appId": app_id, "version": value}} for app_id, value in numbers.items()),
            ]
            text = b"\n".join(map(msgspec.json.encode, actions))
            self.store.put(f"{self.name}/main/clicks/_delta_log/{number:020d}.json", text)
            if number and number % _ENTRIES_PER_CHECKPOINT == 0 and version - number < _ENTRIES_PER_CHECKPOINT:
                DeltaTable(self.table.uri, storage_options=dict(self.table.lake.options)).create_checkpoint()
        self.fake.logs[0] = holding(0, entry.covered[id_][1])
