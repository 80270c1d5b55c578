"""Logs for a fake cluster, and the rows that a table has of them. A record's value is its incarnation and offset."""

from itertools import pairwise
from pathlib import Path

from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from pipelines.delta.delta_table import DeltaLakeTable
from resources.stores.lake import Lake
from tests.fakes.cluster import Log


def holding(start: int, stop: int, *, incarnation: str = "first", epoch: int = 5) -> Log:
    """A log with one record at each offset of `[start, stop)`, in batches of five records."""
    edges = [*range(start, stop, 5), stop]
    entries = []
    for low, high in pairwise(edges):
        records = [Record(offset=offset, value=f"{incarnation} {offset}".encode()) for offset in range(low, high)]
        entries.append((high - 1, record_batch(records)))
    return Log(entries=entries, start=start, end=stop, epoch=epoch)


def numbered(start: int, stop: int, incarnation: str = "first") -> list[str]:
    """The values of the records `[start, stop)`."""
    return [f"{incarnation} {number}" for number in range(start, stop)]


def table(folder: Path) -> DeltaLakeTable:
    """The table of topic `clicks` in a lake."""
    return DeltaLakeTable.of(Lake(root=str(folder)), "main", "clicks")


def values(folder: Path, partition: int = 0) -> list[str]:
    """The values of a partition's rows in the table of topic `clicks`, in the order in which they were loaded."""
    rows = (
        DeltaTable(table(folder).uri).to_pyarrow_table().sort_by([("loaded_at", "ascending"), ("offset", "ascending")])
    )
    columns = zip(rows.column("partition").to_pylist(), rows.column("value").to_pylist(), strict=True)
    return [value.decode() for number, value in columns if number == partition]
