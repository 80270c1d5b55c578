"""Random changes of a schema: the rows of both versions are in the columns of a table that grew by both."""

import io
import json
import random
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.columns import grow
from tests.fuzz.avro_values import row_of, same
from tests.kafka_io.values.avro.changing import Evolution, Record
from tests.kafka_io.values.avro.making import ValueMaker, framed
from tests.kafka_io.values.avro.test_differential import EXAMPLES, RANDOM
from tests.oracles import avro as oracle
from tests.oracles.fastavro_rows import FastavroSchema

ORDERS = [(0, 1), (1, 0)]


def encoded(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def grown(schemas: Sequence[Any], order: tuple[int, ...]) -> pa.Schema:
    """The columns of a table that had the versions in this order."""
    columns = pa.schema([])
    for version in order:
        columns = grow(columns, columns_of_avro(parse_avro(json.dumps(schemas[version]))))
    return columns


def check_evolution(rng: random.Random, record: Record, order: tuple[int, ...]) -> None:
    schemas = record.types()
    columns = grown(schemas, order)
    assert columns.names == list(dict.fromkeys(record.columns(order).values())), schemas
    assert grown(schemas, (*order, *order)).equals(columns, check_metadata=True), schemas
    versions = [rng.randrange(2) for _ in range(8)]
    values = [ValueMaker(rng, dict(oracle.parse(schema).named)) for schema in schemas]
    bodies = [values[version].value(schemas[version]) for version in versions]
    types = {id_: parse_avro(json.dumps(schema)) for id_, schema in enumerate(schemas, 1)}
    framed_values = [framed(1 + version, body) for version, body in zip(versions, bodies, strict=True)]
    decoded = AvroDecoder(columns, types).decode(pa.array(framed_values, pa.binary()))
    refused = {failure.row for failure in decoded.failures}
    assert all("would round the number" in failure.reason for failure in decoded.failures), schemas
    judges = [FastavroSchema(schema) for schema in schemas]
    for row, (version, body) in enumerate(zip(versions, bodies, strict=True)):
        written = judges[version].row(body)
        if row in refused:
            assert _is_rounded(written), (schemas, version)
        else:
            assert same(row_of(decoded, row), record.in_column(written, version, order)), (schemas, version)


def _is_rounded(value: Any) -> bool:
    """Whether a value has an integer that no double holds."""
    if isinstance(value, dict):
        return any(map(_is_rounded, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_rounded, value))
    return isinstance(value, int) and int(float(value)) != value


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=EXAMPLES)
@given(rng=RANDOM)
def test_rows_of_two_versions_are_what_fastavro_reads_in_the_columns_of_both(
    order: tuple[int, ...], rng: random.Random
) -> None:
    check_evolution(rng, Evolution(rng).record(), order)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (["null", "string", "long"], ["null", "string", "double", "long"], ("long", 2**53 + 1)),
        (["string", "double"], ["string", "double", "long"], ("long", 2**53 + 1)),
        (["long", "string"], ["long", "string", "bytes"], ("bytes", b"\xff")),
        (["long", "bytes", "string"], ["long", "string", "bytes"], ("bytes", b"\xff")),
    ],
)
def test_a_value_of_a_union_that_grew_or_has_another_order_is_not_changed(
    old: Any, new: Any, value: tuple[str, Any]
) -> None:
    """A double holds a long and a text holds bytes, but not every long and not all bytes."""
    versions = tuple({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]} for kind in (old, new))
    columns = grown(versions, (0, 1))
    decoder = AvroDecoder(columns, {1: parse_avro(json.dumps(versions[1]))})
    decoded = decoder.decode(pa.array([framed(1, encoded(versions[1], {"x": value}))], pa.binary()))
    assert decoded.failures == []
    [row] = decoded.rows.column("x").to_pylist()
    assert same([content for content in row.values() if content is not None], [value[1]])


def test_random_changes_have_every_kind() -> None:
    kinds: set[str] = set()
    for seed in range(60):
        evolution = Evolution(random.Random(seed))
        evolution.record()
        kinds |= evolution.moves
    assert kinds == {
        *("add", "drop", "rename", "keep", "reorder", "a nested record", "a record contains itself"),
        *("the same type", "a type of the same column", "a type of another column"),
        *("an integer to a real number", "a text to bytes", "bytes to a text"),
        *("more symbols of an enum", "an enum to a text", "items of an array", "items of a map"),
        *(f"a record {move}" for move in ("keeps its name", "with another namespace", "with another name")),
        *("a type to a union", "a union", "null is now allowed", "null was allowed", "null stays allowed"),
    }


def defaulted(kind: Any, default: Any) -> tuple[Any, Any]:
    """Two versions of a record with a record inside it. In the second, both have a field `x` with a default."""
    declared = {"name": "x", "type": kind, "default": default}
    # A named type is declared where it is first used.
    is_named = isinstance(kind, dict) and "name" in kind
    return nested(), nested(inner=[declared], outer=[{**declared, "type": kind["name"]} if is_named else declared])


def nested(inner: Sequence[Any] = (), outer: Sequence[Any] = ()) -> Any:
    """A record with a record inside it, and these fields after the others."""
    inner_record = {"type": "record", "name": "Inner", "fields": [{"name": "id", "type": "long"}, *inner]}
    fields = [{"name": "id", "type": "long"}, {"name": "inner", "type": inner_record}, *outer]
    return {"type": "record", "name": "R", "fields": fields}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("long", 5),
        ("string", "unknown"),
        (["double", "null"], 0.5),
        ({"type": "array", "items": "long"}, [1, 2]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "record", "name": "P", "fields": [{"name": "a", "type": "long"}]}, {"a": 3}),
    ],
)
def test_a_field_that_the_writer_lacks_is_null_and_not_the_default_of_another_version(
    order: tuple[int, ...], kind: Any, default: Any
) -> None:
    """The writer may be older than the field, or newer than its removal."""
    versions = defaulted(kind, default)
    lacking, having = (fastavro.parse_schema(schema) for schema in versions)
    written = {"id": 1, "inner": {"id": 2}}
    full = {"id": 1, "inner": {"id": 2, "x": default}, "x": default}
    bodies = [encoded(lacking, written), encoded(having, full)]
    assert fastavro.schemaless_reader(io.BytesIO(bodies[0]), lacking, having) == full
    types = {version: parse_avro(json.dumps(schema)) for version, schema in enumerate(versions, 1)}
    values = pa.array([framed(version, body) for version, body in enumerate(bodies, 1)], pa.binary())
    decoded = AvroDecoder(grown(versions, order), types).decode(values)
    assert decoded.failures == []
    assert decoded.rows.to_pylist() == [{"id": 1, "inner": {"id": 2, "x": None}, "x": None}, full]
