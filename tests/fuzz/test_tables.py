"""Odd values in tables: each reader finds each row by each of its values."""

import pytest
from pyspark.sql import SparkSession

from tests.fuzz.tables import check_table


@pytest.mark.spark
def test_spark_finds_each_row_by_each_of_its_values(spark: SparkSession) -> None:
    first = [b'{"id": 1, "x": {"y": 2.5, "z": true}, "t": "a`b", "b.c": -0.0}', None]
    rows = check_table([first, [b'{"id": 7, "l": [1, 2]}']], {"format": "json"}, session=spark)
    assert [row["id"] for row in rows] == [1, None, 7]
