"""Large orders, with PySpark. Only the files that belong to the newest version of the table are read."""

from pathlib import Path

import dagster as dg
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

ORDERS = dg.AssetKey(["lake", "main", "orders"])
TABLE = Path(__file__).parent / "lake" / "tables" / "main" / "orders"


@dg.asset(deps=[ORDERS], kinds={"spark"})
def large_orders() -> dg.MaterializeResult:
    """The orders of at least 100."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.option("basePath", str(TABLE)).parquet(*DeltaTable(TABLE).file_uris())
    return dg.MaterializeResult(metadata={"orders": orders.where(col("amount") >= 100).count()})
