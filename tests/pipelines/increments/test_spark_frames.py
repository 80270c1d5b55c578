"""PySpark reads the rows of increments and writes those of outputs, with the same effects as Arrow."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import apply_increment, increments
from pipelines.increments.source_columns import SOURCE_COLUMNS
from resources.errors import IncrementOvertaken, OutputRefused
from tests.pipelines.increments.stored_outputs import KINDS, StoredOutput, rows_of
from tests.pipelines.increments.table_histories import EVENTS, TableHistory
from tests.thorough import first

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[3]


def output_rows(uri: str) -> pa.Table:
    return DeltaTable(uri).to_pyarrow_table()


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_an_output_of_spark_equals_a_full_recomputation(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    random = Random(seed)
    history, uri = TableHistory(tmp_path / "lake", random), str(tmp_path / "out")
    history.happen("load")
    for event in ["load", "replay", "load", "cut", *random.choices(EVENTS, k=4)]:
        history.happen(event)
        apply_increment(
            history.table, lambda increment: increment.spark(spark), consumer="c", into=DeltaOutput(uri=uri)
        )
        assert rows_of(output_rows(uri)) == history.source_rows(), history.events
    copied = {file.parent.name for file in (tmp_path / "out").glob("increment-*/*.parquet")}
    assert copied <= {Path(file).parent.name for file in all_files(uri)}


def all_files(uri: str) -> set[str]:
    """The files of all versions of a table."""
    newest = DeltaTable(uri).version()
    return {file for version in range(newest + 1) for file in DeltaTable(uri, version=version).file_uris()}


def test_the_second_of_two_drivers_is_overtaken(spark: SparkSession, tmp_path: Path) -> None:
    history, uri = TableHistory(tmp_path / "lake", Random(2)), str(tmp_path / "out")
    for removes in (False, False, True):
        history.happen("load")
        if removes:
            history.happen("cut")
        first = increments(history.table, consumer="c", into=DeltaOutput(uri=uri))
        with first as early, increments(history.table, consumer="c", into=DeltaOutput(uri=uri)) as late:
            late_rows = late.spark(spark)
            early.commit(early.spark(spark))
            history.happen("load")
            apply_increment(history.table, lambda own: own.spark(spark), consumer="c", into=DeltaOutput(uri=uri))
            with pytest.raises(IncrementOvertaken):
                late.commit(late_rows)
        assert rows_of(output_rows(uri)) == history.source_rows()


def typed(frame: DataFrame) -> DataFrame:
    """Columns of many types; the partition column has values that are odd as names of folders."""
    return frame.select(
        *SOURCE_COLUMNS.names,
        sf.col("offset").cast("decimal(12,2)").alias("amount"),
        sf.col("loaded_at").alias("time"),
        sf.col("loaded_at").cast("date").alias("day"),
        (sf.col("offset") / 3).alias("ratio"),
        sf.struct(sf.col("offset").alias("x")).alias("place"),
        sf.when(sf.col("partition") == 0, sf.lit("a b/c=%:é")).alias("text"),
    )


@pytest.mark.parametrize("partition_by", [(), ("text",)])
def test_files_of_spark_have_types_partitions_and_bounds(
    partition_by: Sequence[str], spark: SparkSession, tmp_path: Path
) -> None:
    history, uri = TableHistory(tmp_path / "lake", Random(2)), str(tmp_path / "out")
    output = DeltaOutput(uri=uri, partition_by=partition_by)
    for event in ("load", "load", "load"):
        history.happen(event)
        apply_increment(history.table, lambda increment: typed(increment.spark(spark)), consumer="c", into=output)
    table = DeltaTable(uri)
    rows = table.to_pyarrow_table()
    assert rows_of(rows) == history.source_rows()
    assert {str(rows.schema.field(name).type) for name in ("amount", "time", "day", "ratio")} == {
        "decimal128(12, 2)",
        "timestamp[us, tz=UTC]",
        "date32[day]",
        "double",
    }
    assert set(rows.column("text").to_pylist()) == {"a b/c=%:é", None}
    for name in ("amount", "time", "ratio", "_source_offset"):
        value = rows.column(name)[3]
        expected = rows.filter(pc.equal(rows.column(name), value)).num_rows
        assert table.to_pyarrow_dataset().count_rows(filter=pads.field(name) == value) == expected > 0
    history.happen("replay")
    apply_increment(history.table, lambda increment: typed(increment.spark(spark)), consumer="c", into=output)
    assert rows_of(output_rows(uri)) == history.source_rows()


def test_a_new_column_is_added_and_another_type_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    history, uri = TableHistory(tmp_path / "lake", Random(2)), str(tmp_path / "out")

    def apply(**columns: object) -> None:
        history.happen("load")
        apply_increment(
            history.table,
            lambda increment: increment.spark(spark, []).withColumns(columns),  # type: ignore[arg-type] # columns
            consumer="c",
            into=DeltaOutput(uri=uri),
        )

    apply()
    apply(length=sf.lit(5))
    assert set(output_rows(uri).column("length").to_pylist()) == {None, 5}
    with pytest.raises(OutputRefused, match="length has the type string, but integer"):
        apply(length=sf.lit("5"))
    apply(length=sf.lit(7))
    assert rows_of(output_rows(uri)) == history.source_rows()


def test_rows_of_spark_need_the_columns_of_their_source(spark: SparkSession, tmp_path: Path) -> None:
    history = TableHistory(tmp_path / "lake", Random(2))
    history.happen("load")
    output = DeltaOutput(uri=str(tmp_path / "out"))
    with pytest.raises(OutputRefused, match="no column _source"):
        apply_increment(
            history.table, lambda increment: increment.spark(spark).select("value"), consumer="c", into=output
        )


def test_spark_reads_only_the_files_of_the_increment(spark: SparkSession, tmp_path: Path) -> None:
    history = TableHistory(tmp_path / "lake", Random(2))
    output = DeltaOutput(uri=str(tmp_path / "out"))
    for _ in range(3):
        history.happen("load")
        with increments(history.table, consumer="c", into=output) as increment:
            frame = increment.spark(spark)
            read = {Path(file).name for file in frame.inputFiles()}
            assert read == {Path(file.path).name for file in increment._rows(increment.difference.added).files()}
            increment.commit(frame)
    assert len(read) < len(history.handle().file_uris())


def test_an_empty_increment_is_an_empty_frame(spark: SparkSession, tmp_path: Path) -> None:
    history = TableHistory(tmp_path / "lake", Random(2))
    with increments(history.table, consumer="c", into=DeltaOutput(uri=str(tmp_path / "out"))) as increment:
        assert not increment
        assert increment.spark(spark).count() == 0
        assert increment.spark(spark).columns == increment.arrow().schema.names


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_output_in_a_database_takes_a_frame_of_spark(
    stored: StoredOutput, spark: SparkSession, tmp_path: Path
) -> None:
    history = TableHistory(tmp_path / "lake", Random(2))
    output = stored.output()
    for event in ("load", "replay", "cut", "load"):
        history.happen(event)
        apply_increment(history.table, lambda increment: increment.spark(spark), consumer="c", into=output)
    table = stored.table()
    assert table is not None
    assert rows_of(table) == history.source_rows()
