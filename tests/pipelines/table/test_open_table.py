"""A snapshot is a value. Whatever implements OpenTable and TableStore can stand behind the rooms above."""

import random
from dataclasses import replace

import pyarrow as pa

from kafka_io.model import BrokerPartition
from pipelines.comparison.table_rows import TableRows
from pipelines.layout.rows import TABLE_SCHEMA
from pipelines.status.hour_counts import first_time_ms
from pipelines.table.open_table import OpenTable, TableSize, file_paths
from pipelines.table.table_store import TableSnapshot, TableStore
from tests.fakes.open_table import FakeOpenTable
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.store import Row, SimStore
from tests.small_table import SmallTable

A = BrokerPartition(None, 0)


def sim_store() -> SimStore:
    return SimStore(scheduler=Scheduler(rng=random.Random(1), odds=Odds.calm()))


def test_the_fakes_implement_the_interfaces(small: SmallTable) -> None:
    store: TableStore = sim_store()
    versions: list[OpenTable] = [FakeOpenTable(), store.snapshot().opened, small.table.snapshot().opened]
    for opened in versions:
        assert (opened.count(), file_paths(opened), TableSize.of(opened)) == (0, set(), TableSize())
        assert opened.layout.table_schema.names == opened.schema().names
        assert [field["name"] for field in opened.fields()] == opened.schema().names
        assert opened.dataset().count_rows() == 0


def test_snapshots_of_the_same_version_are_equal_and_print_only_their_facts(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    first, again = small.table.snapshot(), small.table.snapshot()
    assert first == again
    assert first.opened is not again.opened
    assert repr(first) == repr(again)
    assert "open_table" not in repr(first)
    small.commit(small.write(50, 60))
    assert small.table.newer(first) != first


def test_a_snapshot_opens_its_version_only_when_something_is_asked_of_it() -> None:
    def read() -> dict[str, pa.Table]:
        opened.append(1)
        return {"a.parquet": pa.table({"offset": [7]})}

    opened: list[int] = []
    snapshot = TableSnapshot(version=3, entry=None, open_table=FakeOpenTable(read=read))
    assert replace(snapshot, version=4).next_sequence == 1
    assert opened == []
    assert snapshot.rows == "1"
    assert opened == [1]


def test_a_snapshot_of_the_simulation_keeps_the_rows_of_its_version() -> None:
    store = sim_store()
    store.versions.append(replace(store.versions[0], files={"a": (Row(A, 0, 1, 1), Row(A, 1, 1, 1))}))
    before = store.peek()
    store.versions.append(replace(store.versions[0], files={}))
    assert (before.rows, store.peek().rows) == ("2", "0")
    assert before.opened.dataset().to_table()["offset"].to_pylist() == [0, 1]


def test_rooms_above_ask_a_version_for_nothing_else(small: SmallTable) -> None:
    """The same rows behind another implementation give the same results."""
    small.commit(small.write(0, 50), small.write(0, 30, partition=1))
    delta = small.table.snapshot()
    rows = delta.opened.dataset().to_table().select(TABLE_SCHEMA.names)
    fake = replace(delta, open_table=FakeOpenTable(read=lambda: {"date=2026-01-02/all.parquet": rows}, uri=small.uri))
    assert fake.rows == delta.rows == "8"
    assert TableSize.of(fake.opened).rows == TableSize.of(delta.opened).rows == 8
    partition = BrokerPartition(0, 0)
    for snapshot in (delta, fake):
        live = TableRows(small.table, snapshot, small.topic).of(partition)
        assert [counted for _, counted in live.counts(0, 50)] == [5]
        assert first_time_ms(small.table, snapshot, "timestamp", 0) is None
