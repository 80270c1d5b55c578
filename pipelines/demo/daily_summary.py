"""A summary of each day, in PySpark: totals to which each row of the topic's table is added exactly once."""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock import DeltaOutput, Increment, apply_increment
from pipelines.loading.table import LakeTable

_TOTALS = ("flights", "minutes_late")


def summary_output(folder: Path) -> DeltaOutput:
    """The table of the summary, which is no topic and so not in the lake."""
    return DeltaOutput(uri=str(folder / "flights_per_day"))


def update_summary(table: LakeTable, into: DeltaOutput, session: SparkSession) -> Mapping[str, Any] | None:
    """Add the flights that are new to the totals of their days; returns the facts, or None if nothing is new.

    The totals and the version of the table up to which they count are one commit. So no flight counts twice, whenever
    a process dies. Totals cannot take back a flight: with `on_replaced="fail"` rows that were replaced are an error.
    """

    def totals(increment: Increment) -> DataFrame:
        flights = increment.spark(session, ["time_hour", "dep_delay"]).withColumn("day", sf.to_date("time_hour"))
        new = flights.groupBy("day").agg(sf.count("*").alias("flights"), sf.sum("dep_delay").alias("minutes_late"))
        before = into.open()
        known = [session.createDataFrame(before.to_pyarrow_table())] if before else []
        return (
            reduce(DataFrame.unionByName, known, new)
            .groupBy("day")
            .agg(*(sf.sum(name).alias(name) for name in _TOTALS))
        )

    # All totals are replaced by the result, which has a row for each day.
    return apply_increment(
        table, totals, consumer="daily", into=into, on_replaced="fail", removing=lambda _: "day IS NOT NULL"
    )


def summary_rows(into: DeltaOutput) -> list[dict[str, Any]]:
    """The days and their totals."""
    table = into.open()
    assert table is not None
    rows: pa.Table = table.to_pyarrow_table().sort_by("day")
    return [{**row, "day": str(row["day"])} for row in rows.to_pylist()]
