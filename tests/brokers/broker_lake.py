"""A lake that loads from a real broker through Spark, with the settings of one cluster."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipelines.comparison.deep_verify import DeepProof, deep_verify
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.ledger import LedgerEntry
from pipelines.load.load import Loader
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import Proof, verify
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from resources.stores.lake import Lake
from tests.brokers.reading import ReadRecord

CLUSTER = "main"
# Small caps, so that little data is split into several slices, and each slice needs several fetches.
_CAPS = {"slice_records": 2500, "driver_slices": 1, "fetch_bytes": 20_000, "attempts": 8, "request_timeout_s": 10}


class BrokerLake:
    """A lake of one cluster, whose loads run in a session that all tests share.

    Without a session each load must be small enough for this process.
    """

    def __init__(self, folder: Path, session: SparkSession | None, cluster: ClusterSettings, **caps: Any) -> None:
        clusters = {CLUSTER: cluster}
        self.settings = Settings(lake=str(folder / "lake"), clusters=clusters, caps=Caps(**{**_CAPS, **caps}))
        self.lake = Lake.of(self.settings)
        self._session = session

    def load(self, topic: str, *, once_planned: Callable[[], None] = lambda: None) -> TopicLoad:
        """Load the new records of a topic. `once_planned` is called between the plan and the first fetch."""

        def session() -> SparkSession:
            once_planned()
            assert self._session is not None, "the load is too large for one process"
            return self._session

        with open_cluster(self.settings, CLUSTER) as cluster:
            return Loader.of(self.settings, cluster, session).load(topic)

    def prove(self, topic: str) -> Proof:
        """Verify the table of a topic."""
        return verify(DeltaLakeTable.of(self.lake, CLUSTER, topic))

    def prove_deeply(self, topic: str) -> DeepProof:
        """Verify the table of a topic, and compare its rows with the brokers' records."""
        with open_cluster(self.settings, CLUSTER) as cluster:
            return deep_verify(DeltaLakeTable.of(self.lake, CLUSTER, topic), cluster)

    def entries(self, topic: str) -> Sequence[LedgerEntry]:
        """The ledger of a table, from the newest entry to the first."""
        table = DeltaLakeTable.of(self.lake, CLUSTER, topic)
        return [entry for _, entry in table.entries(table.snapshot())]

    def table(self, topic: str) -> pa.Table:
        """The rows that any Delta reader sees. The table is verified first."""
        proof = self.prove(topic)
        assert proof.proven, proof.problems
        return DeltaTable(self.lake.table_uri(CLUSTER, topic)).to_pyarrow_table()

    def rows(self, topic: str) -> list[ReadRecord]:
        """The rows, sorted by partition and offset, in the form in which an independent client reads records."""
        table = self.table(topic).sort_by([("partition", "ascending"), ("offset", "ascending")])
        times = table.column("timestamp").cast(pa.int64())
        columns = [table.column(name).to_pylist() for name in ("partition", "offset", "key", "value", "headers")]
        kinds = table.column("timestampType").to_pylist()
        return [
            ReadRecord(
                partition=partition,
                offset=offset,
                key=key,
                value=value,
                headers=tuple((header["key"], header["value"]) for header in headers or ()),
                timestamp=None if time is None else (kind, time / 1000),
            )
            for partition, offset, key, value, headers, time, kind in zip(
                *columns, times.to_pylist(), kinds, strict=True
            )
        ]
