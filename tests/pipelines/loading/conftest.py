"""A small table made by hand: files as a worker writes them, committed as a load does."""

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.client.reading import Reading
from kafka_io.client.source import Source
from kafka_io.model import Broker, BrokerPartition, Generation
from pipelines.loading import ledger
from pipelines.loading.commit import commit, spans
from pipelines.loading.fetch import SliceFile
from pipelines.loading.ledger import Entry, Range, Topic
from pipelines.loading.rows import PARTITION_COLUMN, TABLE_SCHEMA, table_rows
from pipelines.loading.work import Facts, Work
from resources.lake import Lake

SOURCE = Source(cluster="main", generation=Generation.V07, brokers=(Broker(0, "127.0.0.1", 1),), reading=Reading())


class SmallTable:
    """The table of topic `clicks`, whose messages take ten bytes of log each."""

    def __init__(self, root: Path) -> None:
        self.lake = Lake(root=str(root))
        self.topic = Topic(cluster="main", name="clicks", incarnation="7")
        self.uri = self.lake.table_uri("main", "clicks")
        self.lake.create(self.uri, TABLE_SCHEMA, partition_by=[PARTITION_COLUMN], configuration=ledger.CONFIGURATION)

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
            loaded_at_us=0,
        )
        offsets = list(range(start, stop, 10))[:rows]
        file = SliceFile(work)
        with file:
            if offsets:
                columns = {"offset": pa.array(offsets, pa.int64()), "inner": pa.array([0] * len(offsets), pa.int32())}
                decoded = pa.RecordBatch.from_pydict({**columns, "value": pa.array([b"x"] * len(offsets))})
                constants = {"topic": "clicks", "broker": 0, "partition": partition, "loaded_at": datetime.now(UTC)}
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
            first=file.first,
            last=file.last,
        )

    def entry(self, facts: Sequence[Facts], covered: ledger.Covered, *, run: str = "run") -> Entry:
        """What a load would write about `facts`."""
        return Entry(
            commit=uuid.uuid4().hex,
            run=run,
            code="test",
            topic=self.topic,
            ranges=tuple(Range.of(one) for one in facts),
            covered=spans(covered, facts),
        )

    def commit(self, *facts: Facts, table: DeltaTable | None = None, run: str = "run") -> int:
        """Commit `facts` on `table`, or on a fresh handle."""
        handle = table or self.handle()
        entry = self.entry(facts, ledger.standing(self.lake, handle, self.topic).covered, run=run)
        return commit(self.lake, handle, entry, facts)

    def covered(self) -> dict[BrokerPartition, tuple[int, int]]:
        """What the newest version covers."""
        return dict(ledger.standing(self.lake, self.handle(), self.topic).covered)

    def rows(self) -> int:
        """The rows any reader of Delta sees."""
        return int(self.handle().to_pyarrow_dataset().count_rows())


@pytest.fixture
def small(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path / "lake")


Maker = Callable[[], SmallTable]
