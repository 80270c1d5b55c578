"""Every engine reads the same rows of a table with folders of event days, also of the folder without a day."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import apply_increment
from pipelines.state_tables.proof import prove_state
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from tests.fakes.cluster import FakeCluster
from tests.fakes.days import DAY_MS, FIRST_DAY, FIRST_MS, DayTopic, append_at, day_topic, log_at
from tests.pipelines.increments.keyed_tables import BY_KEY

pytestmark = pytest.mark.slow  # each test fills a table and changes it

TIMES = [FIRST_MS, 0, FIRST_MS + DAY_MS, FIRST_MS + 40 * DAY_MS, FIRST_MS + 1, FIRST_MS + 2]
NEXT = FIRST_DAY + timedelta(days=1)
ROWS = [(0, FIRST_DAY), (1, None), (2, NEXT), (3, None), (4, FIRST_DAY), (5, FIRST_DAY)]
"""Offset and day of each row."""


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DayTopic]:
    with FakeCluster(logs={0: log_at(TIMES[:3])}) as fake:
        loaded = day_topic(fake, tmp_path_factory.mktemp("lake"), {})
        loaded.load()
        append_at(fake.logs[0], TIMES[3:])
        loaded.load()
        yield loaded


@pytest.fixture
def table(topic: DayTopic) -> DeltaTable:
    return topic.handle


Pairs = list[tuple[int, date | None]]


def read_with_deltalake(table: DeltaTable) -> Pairs:
    rows = table.to_pyarrow_table(columns=["offset", "event_day"])
    return list(zip(*(rows.column(name).to_pylist() for name in ("offset", "event_day")), strict=True))


def read_with_duckdb(table: DeltaTable) -> Pairs:
    with duckdb.connect() as database:
        database.register("clicks", table.to_pyarrow_dataset())
        return database.sql('SELECT "offset", event_day FROM clicks').fetchall()


def read_with_polars(table: DeltaTable) -> Pairs:
    return pl.scan_delta(table.table_uri).select("offset", "event_day").collect().rows()


READERS: dict[str, Callable[[DeltaTable], Pairs]] = {
    "deltalake": read_with_deltalake,
    "DuckDB": read_with_duckdb,
    "Polars": read_with_polars,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_every_engine_reads_the_same_rows_and_days(read: Callable[[DeltaTable], Pairs], table: DeltaTable) -> None:
    assert sorted(read(table), key=lambda row: row[0]) == ROWS


def test_filters_find_the_rows_of_a_day_and_those_without_one(table: DeltaTable) -> None:
    rows = table.to_pyarrow_dataset()
    assert rows.count_rows(filter=pc.field("event_day") == FIRST_DAY) == 3
    assert rows.count_rows(filter=pc.field("event_day").is_null()) == 2
    with duckdb.connect() as database:
        database.register("clicks", rows)
        times = "\"timestamp\" >= '2024-03-01 00:00:00+00' AND \"timestamp\" < '2024-03-02 00:00:00+00'"
        assert database.sql(f"SELECT count(*) FROM clicks WHERE {times}").fetchall() == [(3,)]
    days = pl.scan_delta(table.table_uri).filter(pl.col("event_day").is_null()).select("offset").collect()
    assert sorted(days["offset"]) == [1, 3]


def read_with_spark(spark: SparkSession, table: DeltaTable) -> Pairs:
    """Spark reads the files of the log with the schema of the log: there is no Delta connector for this Spark."""
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    files = spark.read.schema(schema).option("basePath", table.table_uri).parquet(*table.file_uris())
    return [
        (row["offset"], row["event_day"]) for row in files.orderBy("offset").select("offset", "event_day").collect()
    ]


@pytest.mark.spark
def test_spark_reads_the_same_rows_and_days(table: DeltaTable, spark: SparkSession) -> None:
    assert read_with_spark(spark, table) == ROWS


@pytest.mark.spark
def test_an_increment_in_spark_has_the_rows_without_a_day(topic: DayTopic, spark: SparkSession, tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "output"))
    apply_increment(
        topic.table, lambda increment: increment.spark(spark, ["value", "event_day"]), consumer="c", into=output
    )
    assert _seen(output) == ROWS


def _seen(output: DeltaOutput) -> Pairs:
    rows = DeltaTable(output.uri).to_pyarrow_table().sort_by("_source_offset")
    return list(zip(rows.column("_source_offset").to_pylist(), rows.column("event_day").to_pylist(), strict=True))


def test_increments_read_exactly_their_rows_from_the_files_of_all_days(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_at(TIMES)}) as fake:
        topic, output = day_topic(fake, tmp_path / "lake", {}), DeltaOutput(uri=str(tmp_path / "output"))
        topic.load()
        increments: list[Mapping[str, Any] | None] = []

        def apply() -> None:
            rows = lambda increment: increment.arrow(["value", "event_day"])  # noqa: E731 - three uses
            increments.append(apply_increment(topic.table, rows, consumer="c", into=output))

        apply()
        append_at(fake.logs[0], TIMES)
        topic.load()
        apply()
        lost = next(file for file in topic.handle.file_uris() if "__HIVE_DEFAULT_PARTITION__" in file)
        Path(lost).unlink()
        assert topic.replay().changed
        apply()
        apply()
        expected = [*ROWS, *((offset + len(TIMES), day) for offset, day in ROWS)]
        assert _seen(output) == expected
        assert [done and done["new"] for done in increments] == [6, 6, 0, None]


def test_a_state_table_has_the_newest_row_of_each_key_from_the_files_of_all_days(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_at(TIMES)}) as fake:
        topic = day_topic(fake, tmp_path / "lake", {})
        topic.load()
        update_state(topic.table, BY_KEY)
        append_at(fake.logs[0], TIMES[:3])
        topic.load()
        update_state(topic.table, BY_KEY)
        handle = state_output(topic.table).open()
        assert handle is not None
        assert sorted(read_with_deltalake(handle)) == [*ROWS[3:], *((offset + 6, day) for offset, day in ROWS[:3])]
        assert prove_state(topic.table, BY_KEY).proven
        Path(topic.handle.file_uris()[0]).unlink()
        assert topic.replay().changed
        update_state(topic.table, BY_KEY)
        assert prove_state(topic.table, BY_KEY).proven
