"""Random schemas and values: the decoder gives the rows of the specification, and those that fastavro gives."""

import io
import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from tests.fuzz.avro_values import check_rows, check_values, decode, expected_row, mutated_values, row_of, same
from tests.kafka_io.values.avro.making import SchemaMaker, ValueMaker, framed, mutated
from tests.oracles import avro as oracle
from tests.oracles.fastavro_rows import FastavroSchema, without_logical_types

# Without the JIT compiler each input takes a hundred times as long.
EXAMPLES = 60 if os.environ.get("NUMBA_DISABLE_JIT") != "1" else 10
RANDOM = st.integers(0, 2**32).map(random.Random)


def read_by_fastavro(schema: Any, body: bytes) -> bool:
    """Whether fastavro reads exactly these bytes."""
    stream = io.BytesIO(body)
    try:
        fastavro.schemaless_reader(stream, schema)
    except Exception:  # noqa: BLE001 - it raises whatever comes
        return False
    return stream.tell() == len(body)


def fastavro_reads_all(schema: Any, bodies: Iterable[bytes]) -> bool:
    parsed = fastavro.parse_schema(without_logical_types(schema))
    return all(read_by_fastavro(parsed, body) for body in bodies)


def values_of_a_schema(rng: random.Random) -> tuple[Any, list[bytes]]:
    """A schema with namespaces, and bodies of its values."""
    maker = SchemaMaker(rng, has_namespaces=True)
    schema = maker.record() if rng.randrange(4) else maker.any(2)
    values = ValueMaker(rng, dict(oracle.parse(schema).named))
    return schema, [values.value(schema) for _ in range(rng.randrange(1, 8))]


def check_all_rows(schema: Any, bodies: list[bytes], judge: oracle.Schema) -> None:
    """Check that each body is decoded, and has the row that the judge gives it."""
    decoded = decode(schema, bodies)
    assert decoded.failures == [], schema
    for row, body in enumerate(bodies):
        expected = expected_row(judge, decoded.rows.schema.names, body)
        assert expected is not None
        assert same(row_of(decoded, row), expected), (schema, body)


@settings(deadline=None, max_examples=EXAMPLES)
@given(rng=RANDOM)
def test_any_value_of_any_schema_gives_the_row_of_the_specification(rng: random.Random) -> None:
    schema, bodies = values_of_a_schema(rng)
    check_all_rows(schema, bodies, oracle.parse(schema))


@settings(deadline=None, max_examples=2 * EXAMPLES)
@given(rng=RANDOM)
def test_any_value_of_any_schema_gives_the_row_that_fastavro_reads(rng: random.Random) -> None:
    schema, bodies = values_of_a_schema(rng)
    check_all_rows(schema, bodies, FastavroSchema(schema))


@pytest.mark.parametrize(
    "logical",
    ["time-micros", *(f"{zone}timestamp-{unit}" for zone in ("", "local-") for unit in ("millis", "micros", "nanos"))],
)
def test_the_greatest_and_the_smallest_times_give_the_rows_of_the_specification(logical: str) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "t", "type": {"type": "long", "logicalType": logical}}],
    }
    greatest = (1 << 63) - 1
    numbers = [sign * (greatest // factor) + near for factor in (1, 1000) for sign in (1, -1) for near in (-1, 0, 1)]
    in_range = [number for number in numbers if -greatest - 1 <= number <= greatest]
    bodies = []
    for number in in_range:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, without_logical_types(schema), {"t": number})
        bodies.append(stream.getvalue())
    assert len(bodies) == 11
    check_rows(schema, bodies)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_values_fail_alone_and_their_neighbours_keep_their_rows(seed: int) -> None:
    rng = random.Random(seed)
    ended = Counter(check_values(mutated_values(rng), rng) for _ in range(EXAMPLES))
    assert "refused" in ended


@pytest.mark.parametrize("seed", range(3))
def test_fastavro_reads_every_value_that_the_decoder_accepts(seed: int) -> None:
    rng, accepted = random.Random(seed), 0
    for _ in range(EXAMPLES // 3):
        schema = SchemaMaker(rng).record()
        values = ValueMaker(rng, dict(oracle.parse(schema).named))
        bodies = [mutated(rng, values.value(schema)) for _ in range(10)]
        failed = {failure.row for failure in decode(schema, bodies).failures}
        good = [body for row, body in enumerate(bodies) if row not in failed]
        accepted += len(good)
        assert fastavro_reads_all(schema, good), schema
    assert accepted


ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}},
    ],
}


def type_with_a_name(rng: random.Random, base: str) -> Any:
    """A record, an enum or a fixed type, by the first letter of its name, in one of several namespaces."""
    name = rng.choice(("", "a.", "b.")) + base
    extra = {"name": f"f{rng.randrange(3)}", "type": ["null", "string"], "default": None}
    kinds: dict[str, dict[str, Any]] = {
        "R": {"type": "record", "fields": [{"name": "id", "type": "long"}, extra]},
        "E": {"type": "enum", "symbols": ["A", "B"]},
        "F": {"type": "fixed", "size": 2},
    }
    return {**kinds[base[0]], "name": name}


def writers_union(rng: random.Random) -> list[Any]:
    """A union of types, whose names differ also without their namespaces."""
    names = rng.sample(("R1", "R2", "E1", "E2", "F1", "F2"), rng.randrange(1, 6))
    return rng.sample(["null", "string", *(type_with_a_name(rng, name) for name in names)], len(names) + 2)


def readers_union(rng: random.Random, writers: Sequence[Any]) -> list[Any]:
    """A union of other types of these names, some with other namespaces, some with new names and aliases."""
    types = {}
    for base in [name.rpartition(".")[2] for name in names_of(writers)]:
        if rng.randrange(5) == 0:
            alias = rng.choice((base, next(name for name in names_of(writers) if name.endswith(base))))
            declared = {**type_with_a_name(rng, base), "name": f"New{base}", "aliases": [alias]}
            types[declared["name"]] = declared
        else:
            several = [type_with_a_name(rng, base) for _ in range(rng.randrange(3))]
            types |= {declared["name"]: declared for declared in several}
    return rng.sample(["null", "string", "long", *types.values()], len(types) + 3)


def names_of(union: Sequence[Any]) -> list[str]:
    return [branch["name"] for branch in union if isinstance(branch, dict)]


def value_of(declared: Any) -> Any:
    """A value of a type with a name."""
    return {"record": {"id": 7}, "enum": "B", "fixed": b"xy"}[declared["type"]]


@pytest.mark.slow
@settings(deadline=None, max_examples=3 * EXAMPLES)
@given(rng=RANDOM)
def test_a_type_of_a_union_goes_into_the_member_of_the_type_to_which_fastavro_resolves_it(rng: random.Random) -> None:
    """If a union has the full name, but another type with the same unqualified name before it, fastavro differs."""
    writers = writers_union(rng)
    readers = readers_union(rng, writers)
    writer, reader = ({**ORDER, "fields": [{"name": "x", "type": union}]} for union in (writers, readers))
    of_writer, of_reader = (fastavro.parse_schema(schema) for schema in (writer, reader))
    decoder = AvroDecoder(columns_of_avro(parse_avro(json.dumps(reader))), {1: parse_avro(json.dumps(writer))})
    for declared in (branch for branch in writers if isinstance(branch, dict)):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, of_writer, {"x": (declared["name"], value_of(declared))})
        name = declared["name"] if declared["name"] in names_of(readers) else None
        with suppress(fastavro.read.SchemaResolutionError):
            body.seek(0)
            resolved: Any = fastavro.schemaless_reader(body, of_writer, of_reader, return_named_type=True)
            name = name or resolved["x"][0]
        decoded = decoder.decode(pa.array([framed(1, body.getvalue())], pa.binary()))
        assert bool(decoded.failures) == (name is None), (writer, reader, declared)
        members = [branch for branch in readers if branch != "null"]
        row = row_of(decoded, 0)["x"] or {}
        filled = [index for index, member in enumerate(row.values()) if member is not None]
        places = [place for place, member in enumerate(members) if isinstance(member, dict) and member["name"] == name]
        assert filled == places, (writer, reader, declared)


@settings(deadline=None, max_examples=EXAMPLES)
@given(rng=RANDOM)
def test_columns_of_another_schema_get_what_fastavro_resolves(rng: random.Random) -> None:
    """The reader's schema lacks fields, has others, in another order, and promotes ints."""
    fields = rng.sample(ORDER["fields"], rng.randrange(1, 6))
    is_int = rng.randrange(2) == 1
    writer = {**ORDER, "fields": [{**f, "type": "int"} if f["name"] == "price" and is_int else f for f in fields]}
    named = oracle.parse(writer).named
    body = ValueMaker(rng, dict(named)).value(writer)
    optional = {"type": ["null", "string"], "default": None}
    wanted = [f for f in ORDER["fields"] if f["name"] in {field["name"] for field in fields} and rng.randrange(3)]
    reader = {**ORDER, "fields": [*wanted, {"name": "extra", **optional}]}
    avro, columns = parse_avro(json.dumps(writer)), columns_of_avro(parse_avro(json.dumps(reader)))
    value = pa.array([b"\0\0\0\0\1" + body], pa.binary())
    decoded = AvroDecoder(columns, {1: avro}).decode(value)
    assert decoded.failures == []
    of_writer, of_reader = (fastavro.parse_schema(schema) for schema in (writer, reader))
    assert same(row_of(decoded, 0), fastavro.schemaless_reader(io.BytesIO(body), of_writer, of_reader))
