"""Odd values in tables: each reader finds each row by each of its values."""

import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.fuzz.odd_tables import check_odd_loads, odd_loads
from tests.fuzz.tables import check_table

_LAST = "\U0010ffff"  # no character is larger
_DOTS: Mapping[str, tuple[list[Any], dict[str, Any]]] = {
    "beside a struct": ([{"a.b": 1000, "a": {"b": 1}}, {"a": {"b": 2}}], {}),
    "after a struct": ([{"a": {"b": 1}, "a.b": 1000}], {}),
    "beside a list": ([{"a.list.element": 1000, "a": [1], "a.list.element.b": "x", "c": [{"b": 2}]}], {}),
    "of three levels": ([{"a.b.c": 1000, "a": {"b": {"c": 1}}, "a.b": {"c": 2}}], {}),
    "declared": ([{"a.b": 1000, "a": {"b": 1}}], {"columns": {"a.b": "long", "a": "struct<b: long>"}}),
    "of events": ([{"op": "c", "after": {"a.b": 1000, "a": {"b": 1}}}], {"format": "debezium"}),
}


@pytest.mark.parametrize(("documents", "format_"), _DOTS.values(), ids=_DOTS)
def test_a_dot_in_a_name_is_no_path(documents: list[Any], format_: dict[str, Any]) -> None:  # fault A08
    values = [json.dumps(document).encode() for document in documents]
    assert check_table([values, values[:1]], {"format": "json", **format_})[0]["_error"] is None


@pytest.mark.parametrize(
    "text", ["y" * 64, "y" * 65, "y" * 5_000, _LAST * 200, "a" * 65 + _LAST * 70, "a" * 64 + _LAST]
)
def test_a_long_text_is_found_by_its_value(text: str) -> None:
    """The log has the first characters of a bound, and Parquet no bound of more than 4 KiB."""
    values = [json.dumps({"x": value}).encode() for value in (text, "b", text + "z")]
    check_table([values, values[:1], values[1:2]], {"format": "json"})


_ZERO = "a\0b"
_NULS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "beside its twin": ({_ZERO: 1, "a_b": 2}, {}),
    "nested": ({"x": {_ZERO: 1}, "l": [{"\0": [{_ZERO: "\0"}]}]}, {}),
    "of events": ({"op": "c", "after": {_ZERO: 1}, "source": {_ZERO: 2}}, {"format": "debezium"}),
    "declared": ({_ZERO: 1}, {"columns": {_ZERO: "long", "b": "string"}}),
    "in a schema": ({_ZERO: {_ZERO: 1}}, {"json_schema": json.dumps({"properties": {_ZERO: {
        "additionalProperties": {"type": "integer"}, "type": "object"}}})}),
}  # fmt: skip


@pytest.mark.parametrize(("document", "format_"), _NULS.values(), ids=_NULS)
def test_a_nul_in_a_name_is_replaced(document: dict[str, Any], format_: dict[str, Any]) -> None:  # fault E01
    value = json.dumps(document).encode()
    [row, again] = check_table([[value], [value]], {"format": "json", **format_})
    assert (row["_error"], again["_error"]) == (None, None)
    assert "\0" not in "".join(row)


@pytest.mark.spark
def test_spark_finds_each_row_by_each_of_its_values(spark: SparkSession) -> None:
    first = [b'{"id": 1, "x": {"y": 2.5, "z\\u0000": true}, "t": "a`b", "b.c": -0.0, "b": {"c": 1}}', None]
    rows = check_table([first, [b'{"id": 7, "l": [1, 2]}']], {"format": "json"}, session=spark)
    assert [row["id"] for row in rows] == [1, None, 7]


INPUTS = 12
"""The inputs of odd names and values that a normal test loads; `make fuzz` goes on for hours."""


def test_odd_names_and_values_are_found_by_all_readers() -> None:
    rng = random.Random(7)
    ended = Counter(check_odd_loads(odd_loads(rng), rng) for _ in range(INPUTS))
    assert ended["read"]


@pytest.mark.spark
def test_spark_finds_odd_names_and_values(spark: SparkSession) -> None:
    rng = random.Random(8)
    assert check_odd_loads(odd_loads(rng), rng, spark)
