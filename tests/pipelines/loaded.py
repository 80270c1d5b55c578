"""A topic that is loaded without Spark, and ways to damage its table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import BrokerPartition
from pipelines.comparison.deep_verify import DeepProof, deep_verify
from pipelines.delta.delta_log_segment import commit_file
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.load.load import Loader
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import OnCompacted, ReplayRequest
from pipelines.rewrites.replay_result import TopicReplay
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.progress import Progress, no_progress
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.fakes.loaders import loader_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The topic `clicks` of the cluster `main`, as a settings file describes it."""

    settings: Path

    @contextmanager
    def loader(self, **options: Any) -> Iterator[Loader]:
        """A loader for the topic, which fetches in this process."""
        with self.cluster() as cluster:
            values = {"fetch": fetch_here, **options}
            yield loader_of(Settings.load(self.settings), cluster, _no_spark, **values)

    def cluster(self) -> Cluster:
        """The cluster, open."""
        return open_cluster(Settings.load(self.settings), "main")

    @property
    def table(self) -> DeltaLakeTable:
        """The topic's table."""
        return DeltaLakeTable.of(Lake.of(Settings.load(self.settings)), "main", "clicks")

    def load(self, **options: Any) -> TopicLoad:
        """Load the topic as a schedule does."""
        with self.loader(**options) as loader:
            result = loader.load("clicks")
        assert result.error is None
        return result

    def replay(
        self,
        since: str,
        until: str,
        *partitions: str,
        table: DeltaLakeTable | None = None,
        on_compacted: OnCompacted = "fail",
        on_progress: Progress = no_progress,
        **options: Any,
    ) -> TopicReplay:
        """Fetch it again from one point to another."""
        asked = ReplayRequest.parse("clicks", since, until, partitions, on_compacted=on_compacted, now=NOW)
        with self.loader(**options) as loader:
            return replay(loader.run, table or self.table, asked, on_progress)

    def deep(self) -> DeepProof:
        """The result of a deep verify."""
        with self.cluster() as cluster:
            return deep_verify(self.table, cluster)

    def problems(self) -> tuple[str, ...]:
        """The problems that verify finds in the table."""
        return verify(self.table).problems

    @property
    def handle(self) -> DeltaTable:
        """A fresh handle."""
        return DeltaTable(self.table.uri)

    @property
    def version(self) -> int:
        """The table's newest version."""
        return int(self.handle.version())

    def rows(self, *names: str) -> list[Row]:
        """The rows that any reader of the table sees, in order of partition and offset."""
        order = [(name, "ascending") for name in ("broker", "partition", "offset", "inner")]
        return _tuples(
            self.handle.to_pyarrow_table().sort_by(order), names or ("partition", "offset", "inner", "value")
        )

    def offsets(self, id_: BrokerPartition) -> list[int]:
        """The offsets at which messages of the partition start, each once."""
        result = self.rows("broker", "partition", "offset")
        return sorted({offset for broker, number, offset in result if (broker, number) == (id_.broker, id_.partition)})

    def covered(self, id_: BrokerPartition) -> tuple[int, int]:
        """The offsets `[start, cursor)` that the table covers of a partition."""
        snapshot = self.table.existing()
        assert snapshot is not None
        assert snapshot.entry is not None
        return snapshot.entry.covered[id_]

    def lose(self, id_: BrokerPartition, *offsets: int) -> None:
        """A broken compaction loses rows of the table."""
        self.handle.delete(_where(id_, offsets))
        call_compaction(self.table.uri)

    def spoil(self, id_: BrokerPartition, *offsets: int) -> None:
        """A broken compaction spoils values in the table: only a comparison with the brokers shows it."""
        self.update(id_, *offsets)
        call_compaction(self.table.uri)

    def update(self, id_: BrokerPartition, *offsets: int) -> None:
        """Another program changes values in the table."""
        self.handle.update(updates={"value": "arrow_cast('spoilt', 'Binary')"}, predicate=_where(id_, offsets))

    def staged(self) -> list[Path]:
        """Files that replays left."""
        return [path for path in Path(self.table.uri).glob("_replays/**/*") if path.is_file()]


def call_compaction(uri: str) -> None:
    """Let the newest commit of a table say of itself that it changed no rows."""
    path = Path(uri) / commit_file(DeltaTable(uri).version())
    path.write_text(path.read_text().replace('"dataChange":true', '"dataChange":false'))


def _where(id_: BrokerPartition, offsets: Sequence[int]) -> str:
    broker = "broker IS NULL" if id_.broker is None else f"broker = {id_.broker}"
    return f'{broker} AND partition = {id_.partition} AND "offset" IN ({", ".join(map(str, offsets))})'


def _tuples(table: pa.Table, names: Sequence[str]) -> list[Row]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _no_spark() -> Any:
    raise AssertionError("a load in this process needs no Spark")
