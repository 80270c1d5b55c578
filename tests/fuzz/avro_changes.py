"""Values of two or three Avro schemas of one topic, mixed and mutated, in columns that grew from all the schemas."""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.columns import grow, grow_until_stable
from kafka_io.values.decoding import DecodedValues
from tests.fuzz.avro_values import row_of, same
from tests.fuzz.grown_columns import GrownColumns
from tests.fuzz.sized import joined, parted
from tests.kafka_io.values.avro.making import SchemaMaker, ValueMaker, framed, mutated
from tests.oracles import avro as oracle

_MOST_VALUES = 20
_NAMES = ("f0", "f1", "f2", "f3", "F0", "f0_2", "days", "months", "value", "a b")
"""Names of fields: some collide if case does not count, or with the name of a second column, or in a duration."""
_NAMESPACES = ("", "a", "a.b")
_UNKNOWN = 99
_DURATION = {"type": "fixed", "size": 12, "logicalType": "duration"}


def mutated_changes(rng: random.Random) -> bytes:
    """The schemas as a line of JSON, and values: each is the number of its schema and a body, after its size."""
    schemas = changing_schemas(rng, SchemaMaker(rng), _NAMES)
    writers = [ValueMaker(rng, dict(oracle.parse(schema).named)) for schema in schemas]
    values = []
    for _ in range(rng.randrange(1, _MOST_VALUES)):
        number = rng.randrange(len(schemas))
        body = writers[number].value(schemas[number])
        values.append(
            bytes([rng.choice((number, number, number, _UNKNOWN) if not rng.randrange(8) else (number,))])
            + (body if rng.randrange(3) else mutated(rng, body))
        )
    return json.dumps(schemas).encode() + b"\n" + joined(values)


def changing_schemas(rng: random.Random, maker: SchemaMaker, names: Sequence[str]) -> list[Any]:
    """Two or three schemas whose fields have some of these names. Most of them are changes of the one before."""
    schemas = [_renamed(rng, maker.record() if rng.randrange(6) else maker.any(2), names)]
    for _ in range(rng.choice((1, 1, 2))):
        is_new = rng.randrange(3) == 0
        other = _renamed(rng, maker.record(), names) if is_new else _changed(rng, schemas[-1], maker, names)
        schemas.append(other)
    return schemas


def _records(schema: Any) -> Iterator[dict[str, Any]]:
    """The records in a schema, the outermost first."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _records(branch)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema
        for inner in (schema.get("items"), schema.get("values"), *(f["type"] for f in schema.get("fields", ()))):
            yield from _records(inner)


def _renamed(rng: random.Random, schema: Any, names: Sequence[str]) -> Any:
    """The schema with other names for its fields."""
    for record in _records(schema):
        fields = record["fields"]
        for field, name in zip(fields, rng.sample(names, len(fields)), strict=True):
            field["name"] = name
    return schema


def _changed(rng: random.Random, schema: Any, maker: SchemaMaker, names: Sequence[str]) -> Any:
    """The schema after one to three changes, or a union of it and another type."""
    schema = copy.deepcopy(schema)
    if not rng.randrange(4):
        schema = _with_other_names(rng, schema)
    if not rng.randrange(8):
        branches = schema if isinstance(schema, list) else [schema]
        other = rng.choice((maker.record(2), "int", "string", _namesake(rng, schema)))
        is_possible = other not in branches and all(isinstance(branch, dict) for branch in (*branches,))
        return [*branches, other] if is_possible else schema
    records = list(_records(schema))
    for _ in range(rng.choice((1, 2, 3)) if records else 0):
        _change(rng, rng.choice(records), maker, names)
    return schema


def _with_other_names(rng: random.Random, schema: Any) -> Any:
    """The schema after its types got another namespace, or after a record got another name."""
    records = list(_records(schema))
    if not records or rng.randrange(2):
        other = dict(zip(_NAMESPACES, rng.sample(_NAMESPACES, len(_NAMESPACES)), strict=True))
        for branch in _named_branches(schema):  # types inside it have the same namespace
            branch["namespace"] = other[branch.get("namespace", "")]
        return schema
    old = rng.choice(records)["name"]
    schema = json.loads(json.dumps(schema).replace(f'"{old}"', f'"{old}_new"'))
    for record in _records(schema):
        if record["name"] == f"{old}_new":
            record["aliases"] = [old]
    return schema


def _named_branches(schema: Any) -> list[dict[str, Any]]:
    """The types with names of an outermost union, or the schema itself if it has a name."""
    branches = schema if isinstance(schema, list) else [schema]
    return [branch for branch in branches if isinstance(branch, dict) and "name" in branch]


def _namesake(rng: random.Random, schema: Any) -> Any:
    """A record with fewer fields whose name differs from that of a record of the schema only in its namespace."""
    used = {branch.get("namespace", "") for branch in _named_branches(schema)}
    free = [namespace for namespace in _NAMESPACES if namespace not in used]
    records = [branch for branch in _named_branches(schema) if branch["type"] == "record"]
    if not records or not free:
        return "boolean"
    record = copy.deepcopy(rng.choice(records))
    fields = [field for field in record["fields"] if "record" not in json.dumps(field)]
    return {**record, "fields": fields[:2], "namespace": rng.choice(free)}


def _change(rng: random.Random, record: dict[str, Any], maker: SchemaMaker, names: Sequence[str]) -> None:
    """Change the fields of a record, as their owner would."""
    fields = record["fields"]
    free = [name for name in names if name not in {field["name"] for field in fields}]
    kind = rng.randrange(6)
    if kind == 0 or not fields:
        fields.insert(rng.randrange(len(fields) + 1), {"name": rng.choice(free), "type": _any(rng, maker)})
        return
    field = rng.choice(fields)
    match kind:
        case 1:
            fields.remove(field)
        case 2:
            field["aliases"], field["name"] = [field["name"]], rng.choice(free)
        case 3:
            rng.shuffle(fields)
        case 4:
            field["type"] = _any(rng, maker)
        case _:
            field["type"] = _as_union(rng, field["type"])


def _any(rng: random.Random, maker: SchemaMaker) -> Any:
    return rng.choice((maker.any(2), maker.any(1), {**_DURATION, "name": maker._name()}))


def _as_union(rng: random.Random, schema: Any) -> Any:
    """A union of the type and another one, in any order. If it has all simple types already, only the order changes."""
    branches = schema if isinstance(schema, list) else [schema]
    more = [name for name in ("null", "boolean", "long", "string", "bytes") if name not in branches]
    changed = [*branches, *rng.sample(more, min(1, len(more)))]
    return rng.sample(changed, len(changed))


def read_changes(data: bytes, _limits: DecodeLimits) -> None:
    """Only decode."""
    schemas, values = _parts(data)
    decoder, _columns = _decoder(schemas)
    decoder.decode(values)


def check_changes(data: bytes, rng: random.Random) -> str:
    """Check that each value has the row of the oracle, or fails if the oracle refuses it.

    Returns "read" if no value failed, else "refused".
    """
    schemas, values = _parts(data)
    decoder, own = _decoder(schemas)
    decoded = decoder.decode(values)
    _check_decoder(decoder, own, values, decoded, rng)
    failed = {failure.row for failure in decoded.failures}
    judges = [
        GrownColumns(oracle.parse(schema), columns, decoder.columns)
        for schema, columns in zip(schemas, own, strict=True)
    ]
    for row, value in enumerate(parted(data.partition(b"\n")[2])):
        is_known = value[0] < len(schemas)
        expected = judges[value[0]].row(value[1:]) if is_known else dict.fromkeys(decoder.columns.names)
        assert (row in failed) == (expected is None), f"row {row}: {value!r} gives {expected}"
        if expected is not None:
            try:
                actual = row_of(decoded, row)
            except OverflowError:  # Python has no such date
                continue
            assert same(actual, expected), f"row {row} is {actual}, and not {expected}"
    return "refused" if failed else "read"


def _check_decoder(
    decoder: AvroDecoder, own: list[pa.Schema], values: pa.BinaryArray, decoded: DecodedValues, rng: random.Random
) -> None:
    """Check the columns, the failures, and that a part of the values gives the same rows."""
    columns = decoder.columns
    assert len({name.casefold() for name in columns.names}) == len(columns.names)
    for fields in own:
        assert grow(columns, fields).equals(columns, check_metadata=True), f"no column holds a field of {fields}"
    decoded.rows.validate(full=True)
    assert decoded.rows.num_rows == len(values)
    assert decoded.unknown_schemas <= {1 + _UNKNOWN}
    assert [failure.row for failure in decoded.failures] == sorted({failure.row for failure in decoded.failures})
    for failure in decoded.failures:
        assert failure.reason.isprintable()
    first = rng.randrange(len(values))
    part = decoder.decode(values.slice(first))
    with suppress(OverflowError):  # Python has not all dates
        assert repr(part.rows.to_pylist()) == repr(decoded.rows.slice(first).to_pylist())
    assert [failure.row + first for failure in part.failures] == [f.row for f in decoded.failures if f.row >= first]


def _decoder(schemas: list[Any]) -> tuple[AvroDecoder, list[pa.Schema]]:
    """The decoder of all schemas for the columns that grew from them, and the columns of each schema."""
    types = [parse_avro(json.dumps(schema)) for schema in schemas]
    own = [columns_of_avro(avro) for avro in types]
    columns = grow_until_stable(pa.schema([]), [partial(grow, fields=fields) for fields in own])
    return AvroDecoder(columns, dict(enumerate(types, 1))), own


def _parts(data: bytes) -> tuple[list[Any], pa.BinaryArray]:
    """The schemas, and the values with their frames."""
    line, _, values = data.partition(b"\n")
    return json.loads(line), pa.array([framed(1 + value[0], value[1:]) for value in parted(values)], pa.binary())
