"""A small table made by hand: files as a worker writes them, committed as a load does."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from kafka_io.client.reading import Reading
from kafka_io.client.source import Source
from kafka_io.model import Broker, BrokerPartition, Generation
from pipelines.loading.commit import Committed, Loading, commit
from pipelines.loading.fetch import SliceFile
from pipelines.loading.ledger import Topic
from pipelines.loading.rows import table_rows
from pipelines.loading.standing import standing
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot, TableLog
from pipelines.loading.work import Facts, Work
from resources.lake import Lake

SOURCE = Source(cluster="main", generation=Generation.V07, brokers=(Broker(0, "127.0.0.1", 1),), reading=Reading())


class Small:
    """The table of topic `clicks`, whose messages take ten bytes of log each, wherever it is."""

    table: TableLog

    def __init__(self) -> None:
        self.topic = Topic(cluster="main", name="clicks", incarnation="7")
        self._times = 0

    def loading(self, *facts: Facts, at: Snapshot | None = None, run: str = "run") -> Loading:
        """What a load would do about `facts`, planned on `at`."""
        return Loading(standing=standing(at or self.table.snapshot(), self.topic), facts=facts, run=run)

    def commit(
        self, *facts: Facts, at: Snapshot | None = None, run: str = "run", log: TableLog | None = None
    ) -> Committed:
        """Commit `facts`, planned on `at` or on the newest version."""
        at = at or self.table.snapshot()
        return commit(log or self.table, at, self.loading(*facts, at=at, run=run), rest=lambda _: None)

    def covered(self) -> dict[BrokerPartition, tuple[int, int]]:
        """What the newest version covers."""
        return dict(standing(self.table.snapshot(), self.topic).covered)


class SmallTable(Small):
    """A real one."""

    table: LakeTable

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.lake = Lake(root=str(root))
        self.uri = self.lake.table_uri("main", "clicks")
        self.table = LakeTable.of(self.lake, "main", "clicks")
        self.table.snapshot()

    def handle(self) -> DeltaTable:
        """A fresh handle."""
        table = self.lake.open(self.uri)
        assert table is not None
        return table

    def write(self, start: int, stop: int, *, partition: int = 0, rows: int | None = None) -> Facts:
        """One slice's file with a row per ten bytes."""
        work = Work(
            task=0,
            source=SOURCE,
            topic="clicks",
            incarnation="7",
            broker=0,
            partition=partition,
            start=start,
            stop=stop,
            table_uri=self.uri,
            folder="date=2026-01-02",
            options={},
            parquet_codec="zstd",
            loaded_at_us=0,
        )
        offsets = list(range(start, stop, 10))[:rows]
        self._times += 1
        file = SliceFile(work)
        with file:
            if offsets:
                columns = {"offset": pa.array(offsets, pa.int64()), "inner": pa.array([0] * len(offsets), pa.int32())}
                decoded = pa.RecordBatch.from_pydict({**columns, "value": pa.array([b"x"] * len(offsets))})
                constants = {"topic": "clicks", "broker": 0, "partition": partition, "loaded_at": self._times}
                file.write(table_rows(decoded, constants))
        return Facts(
            broker=0,
            partition=partition,
            start=start,
            stop=stop,
            rows=file.rows,
            bytes=stop - start,
            path=file.path if file.rows else None,
            size=file.size,
            stats=file.stats,
            loaded_at_us=self._times,
        )

    def rows(self) -> int:
        """The rows any reader of Delta sees."""
        return int(self.handle().to_pyarrow_dataset().count_rows())
