"""A small table: its files are written as a worker writes them, and committed as a load commits."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import Table

from kafka_io.errors import Where
from kafka_io.model import Broker, BrokerPartition, Generation, OffsetRange
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from pipelines.commit.commit import CommitResult, LoadChange, commit
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.slice_file import SliceFile
from pipelines.iceberg.iceberg_table import IcebergLakeTable
from pipelines.identity.identity import table_state
from pipelines.layout.rows import table_rows
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.stores.lake import Lake
from resources.stores.table_catalog import EMBEDDED, TableCatalog

ONLY_DELTA = pytest.mark.parametrize("small", ["delta"], indirect=True)
"""A test that does with deltalake what other programs do."""
SOURCE = Source(
    cluster="main", generation=Generation.V07, brokers=(Broker(0, "127.0.0.1", 1),), read_settings=ReadSettings()
)


class Small:
    """The table of the 0.7 topic `clicks`, whose messages take ten bytes of log each. Subclasses store it."""

    table: TableStore

    def __init__(self) -> None:
        self.topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
        self._loaded_at = 0

    def loading(self, *facts: SliceFacts, snapshot: TableSnapshot | None = None, run: str = "run") -> LoadChange:
        """The change of a load with these facts, planned on `snapshot` or on the newest version."""
        return LoadChange(state=table_state(snapshot or self.table.snapshot(), self.topic), facts=facts, run=run)

    def commit(
        self,
        *facts: SliceFacts,
        snapshot: TableSnapshot | None = None,
        run: str = "run",
        table: TableStore | None = None,
    ) -> CommitResult:
        """Commit facts, planned on `snapshot` or on the newest version."""
        snapshot = snapshot or self.table.snapshot()
        return commit(
            table or self.table, snapshot, self.loading(*facts, snapshot=snapshot, run=run), sleep=lambda _: None
        )

    def covered(self) -> dict[BrokerPartition, tuple[int, int]]:
        """The offsets that the newest version of the table covers."""
        return dict(table_state(self.table.snapshot(), self.topic).covered)


class StoredSmall(Small):
    """A small table on disk. Subclasses have the format."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.lake = Lake(root=str(root))
        self.uri = self.lake.table_uri("main", "clicks")

    def task(self, offsets: OffsetRange) -> FetchTask:
        """The task of a slice."""
        return FetchTask(
            spark_task=0,
            source=SOURCE,
            planned=PlannedRange(topic="clicks", offsets=offsets, incarnation="7"),
            table_uri=self.uri,
            folder="date=2026-01-02",
            options={},
            parquet_codec="zstd",
            loaded_at_us=0,
        )

    def write(self, start: int, stop: int, *, partition: int = 0, rows: int | None = None) -> SliceFacts:
        """Write a slice's file with one row per ten bytes."""
        row_offsets = list(range(start, stop, 10))[:rows]
        columns = {"offset": pa.array(row_offsets, pa.int64()), "value": pa.array([b"x"] * len(row_offsets))}
        return self.write_columns(OffsetRange(BrokerPartition(0, partition), start, stop), columns)

    def next_loading_time(self) -> int:
        """The loading time of the next file."""
        return self._loaded_at + 1

    def write_columns(
        self, offsets: OffsetRange, columns: Mapping[str, pa.Array], *, broker: int | None = 0, inner: int | None = 0
    ) -> SliceFacts:
        """Write a slice's file with these columns of its rows; one is `offset`. From 0.8 on, rows have no broker."""
        self._loaded_at = self.next_loading_time()
        constants: dict[str, object] = {
            "topic": "clicks",
            "broker": broker,
            "partition": offsets.partition.partition,
            "inner": inner,
            "loaded_at": self._loaded_at,
        }
        file = SliceFile(self.task(offsets))
        with file:
            if len(columns["offset"]):
                file.write(table_rows(pa.RecordBatch.from_pydict(dict(columns)), constants))
        return SliceFacts(
            range=CommittedRange(
                offsets=offsets,
                rows=file.rows,
                bytes=offsets.size,
                loaded_at_us=self._loaded_at,
            ),
            files=file.files,
        )


class SmallTable(StoredSmall):
    """A small Delta table on disk."""

    table: DeltaLakeTable

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.table = DeltaLakeTable.of(self.lake, "main", "clicks")
        self.table.snapshot()

    def handle(self) -> DeltaTable:
        """A new deltalake handle of the newest version."""
        table = self.lake.open(self.uri)
        assert table is not None
        return table

    def rows(self) -> int:
        """The number of rows that any reader of Delta sees."""
        return int(self.handle().to_pyarrow_dataset().count_rows())


class SmallIcebergTable(StoredSmall):
    """A small Iceberg table on disk, in an embedded catalog."""

    table: IcebergLakeTable

    def __init__(self, root: Path, catalog: TableCatalog = EMBEDDED) -> None:
        super().__init__(root)
        self.catalog = catalog.open(str(root), {})
        self.table = IcebergLakeTable(
            lake=self.lake,
            uri=self.uri,
            where=Where(cluster="main", topic="clicks"),
            catalog=self.catalog,
            identifier=("main", "clicks"),
        )
        self.table.snapshot()

    def handle(self) -> Table:
        """What pyiceberg knows of the newest snapshot."""
        return self.catalog.load_table(self.table.identifier)

    def rows(self) -> int:
        """The number of rows that any reader of Iceberg sees."""
        return int(self.handle().scan().to_arrow().num_rows)


FORMATS: Mapping[str, type[SmallTable] | type[SmallIcebergTable]] = {"delta": SmallTable, "iceberg": SmallIcebergTable}
"""The small tables of all formats, for laws that hold for each of them."""
