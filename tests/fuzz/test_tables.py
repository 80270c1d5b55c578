"""Odd values in tables: each reader finds each row by each of its values."""

import json
import random
import struct
from collections.abc import Callable, Mapping
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.fuzz.connect_tables import check_connect, seed_of_changes
from tests.fuzz.odd_avro_tables import check_odd_avro, odd_avro_loads
from tests.fuzz.odd_protobuf_tables import check_odd_protobuf, odd_protobuf_loads
from tests.fuzz.odd_tables import check_odd_loads, odd_loads
from tests.fuzz.plain_rows import check_plain_rows, seed_of_rows
from tests.fuzz.readers import check_readers
from tests.fuzz.tables import check_table
from tests.kafka_io.values.avro.making import framed
from tests.thorough import spread

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


def test_numbers_without_an_end_and_small_decimals_are_found_by_their_values() -> None:  # faults A20, A22
    """The bounds in the log are not numbers of JSON, or have an exponent."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}
    fields = [{"name": "x", "type": "double"}, {"name": "y", "type": decimal}]
    cells = ((inf, 0), (-inf, 1), (nan, -1), (1.5, 10**37))
    bodies = [struct.pack("<d", x) + b"\x20" + y.to_bytes(16, "big", signed=True) for x, y in cells]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    with EmbeddedSchemaRegistry() as registry:
        values = [framed(registry.register("clicks-value", schema), body) for body in bodies]
        registries = {"main": {"url": registry.url}}
        rows = check_table([values, *([value] for value in values)], {"format": "avro"}, registries=registries)
    assert [row["x"] for row in rows[:2]] == [inf, -inf]


_MANY_DIGITS = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}


def _odd_numbers(registry: EmbeddedSchemaRegistry) -> list[bytes]:
    fields = [{"name": "x", "type": "double"}, {"name": "y", "type": _MANY_DIGITS}, {"name": "z", "type": "float"}]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    cells = ((inf, 10**30 + 1, nan), (-inf, -(10**37) - 1, nan), (1.5, 9_007_199_254_740_993, nan))
    bodies = [
        struct.pack("<d", x) + b"\x20" + y.to_bytes(16, "big", signed=True) + struct.pack("<f", z) for x, y, z in cells
    ]
    return [framed(registry.register("clicks-value", schema), body) for body in bodies]


def test_numbers_of_replayed_rows_are_found_by_their_values(tmp_path: Path) -> None:  # fault A24
    """A replay lets deltalake write the files: its bounds are rounded and never infinite."""
    with EmbeddedSchemaRegistry() as registry, FakeCluster(logs={0: log_of([])}) as fake:
        first, second, last = _odd_numbers(registry)
        append(fake.logs[0], [first, second, last])
        registries = {"main": {"url": registry.url}}
        topic = TypedTopic(fake=fake, folder=tmp_path, format_={"format": "avro"}, registries=registries)
        assert topic.load().error is None
        before = check_readers(topic.table.uri)
        fake.logs[0] = log_of([second, first, last])
        assert topic.replay().changed
        after = check_readers(topic.table.uri)
    assert [row["y"] for row in after] == [before[number]["y"] for number in (1, 0, 2)]


def test_numbers_are_found_by_their_values_after_files_were_merged() -> None:  # fault A24
    with EmbeddedSchemaRegistry() as registry:
        values = _odd_numbers(registry)
        check_table([values, values], {"format": "avro"}, registries={"main": {"url": registry.url}})


@pytest.mark.spark
def test_spark_finds_each_row_by_each_of_its_values(spark: SparkSession) -> None:
    first = [b'{"id": 1, "x": {"y": 2.5, "z\\u0000": true}, "t": "a`b", "b.c": -0.0, "b": {"c": 1}}', None]
    rows = check_table([first, [b'{"id": 7, "l": [1, 2]}']], {"format": "json"}, session=spark)
    assert [row["id"] for row in rows] == [1, None, 7]


SEEDS, SPARK_SEED = (6, 18), 23
"""A normal test loads a few small inputs of each kind; `make fuzz` goes on for hours.

The cost of an input is the number of its values: each reader is asked for each of them, before and after a merge.
"""
_Make = Callable[[random.Random], bytes]
_Check = Callable[[bytes, random.Random, SparkSession | None], str]
_KINDS: Mapping[str, tuple[_Make, _Check]] = {
    "JSON": (odd_loads, check_odd_loads),
    "Avro": (odd_avro_loads, check_odd_avro),
    "Protobuf": (odd_protobuf_loads, check_odd_protobuf),
    "Kafka Connect": (seed_of_changes, check_connect),
    "Avro and JSON": (seed_of_rows, check_plain_rows),
}


@pytest.mark.parametrize(("make", "check"), _KINDS.values(), ids=_KINDS)
def test_odd_names_and_values_are_found_by_all_readers(make: _Make, check: _Check) -> None:
    ended = [check(make(rng), rng, None) for rng in map(random.Random, SEEDS)]
    assert "read" in ended


@pytest.mark.spark
@pytest.mark.parametrize("kind", spread(2, _KINDS))
def test_spark_finds_odd_names_and_values(kind: str, spark: SparkSession) -> None:
    make, check = _KINDS[kind]
    rng = random.Random(SPARK_SEED)
    assert check(make(rng), rng, spark)
