"""A summary of each day, in PySpark: totals to which each row of the topic's table is added exactly once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock import DeltaOutput, Increment, apply_increment
from pipelines.table.lake_table import LakeTable


def summary_output(folder: Path) -> DeltaOutput:
    """The table of the summary, which is no topic and so not in the lake."""
    return DeltaOutput(uri=str(folder / "flights_per_day"))


def update_summary(table: LakeTable, into: DeltaOutput, session: SparkSession) -> Mapping[str, Any] | None:
    """Add the flights that are new to the totals of their days; returns the facts, or None if nothing is new.

    The totals and the version of the table up to which they count are one commit. So no flight counts twice, whenever
    a process dies. Totals cannot take back a flight: with `on_replaced="fail"` rows that were replaced are an error.
    """
    return apply_increment(
        table,
        lambda increment: _totals(increment, into, session),
        consumer="daily",
        into=into,
        on_replaced="fail",
        removing=lambda _: "day IS NOT NULL",  # the new totals replace all old ones
    )


def _totals(increment: Increment, into: DeltaOutput, session: SparkSession) -> DataFrame:
    """The known totals and the rows that are new, added up by day."""
    flights = increment.spark(session, ["time_hour", "dep_delay"])
    day, flight, delay = sf.to_date("time_hour"), sf.lit(1), sf.col("dep_delay")
    rows = flights.select(day.alias("day"), flight.alias("flights"), delay.alias("minutes_late"))
    known = into.open()
    if known is not None:
        rows = rows.unionByName(session.createDataFrame(known.to_pyarrow_table()))
    return rows.groupBy("day").agg(sf.sum("flights").alias("flights"), sf.sum("minutes_late").alias("minutes_late"))


def summary_rows(into: DeltaOutput) -> list[dict[str, Any]]:
    """The days and their totals."""
    table = into.open()
    assert table is not None
    rows: pa.Table = table.to_pyarrow_table().sort_by("day")
    return [{**row, "day": str(row["day"])} for row in rows.to_pylist()]
