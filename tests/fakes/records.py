"""Logs of a fake cluster with records that tell which they are, and what a table has of them."""

from itertools import pairwise
from pathlib import Path

from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from pipelines.loading.table import LakeTable
from resources.lake import Lake
from tests.fakes.cluster import Log


def holding(start: int, stop: int, *, incarnation: str = "first", epoch: int = 5) -> Log:
    """A log `[start, stop)` with a record at each offset, five to a batch."""
    edges = [*range(start, stop, 5), stop]
    entries = []
    for low, high in pairwise(edges):
        records = [Record(offset=offset, value=f"{incarnation} {offset}".encode()) for offset in range(low, high)]
        entries.append((high - 1, record_batch(records)))
    return Log(entries=entries, start=start, end=stop, epoch=epoch)


def numbered(start: int, stop: int, incarnation: str = "first") -> list[str]:
    """The values of the records `[start, stop)`."""
    return [f"{incarnation} {number}" for number in range(start, stop)]


def table(folder: Path) -> LakeTable:
    """The table of topic `clicks` in a lake."""
    return LakeTable.of(Lake(root=str(folder)), "main", "clicks")


def values(folder: Path, partition: int = 0) -> list[str]:
    """What it has of a partition, in the order of loading."""
    rows = (
        DeltaTable(table(folder).uri).to_pyarrow_table().sort_by([("loaded_at", "ascending"), ("offset", "ascending")])
    )
    columns = zip(rows.column("partition").to_pylist(), rows.column("value").to_pylist(), strict=True)
    return [value.decode() for number, value in columns if number == partition]
