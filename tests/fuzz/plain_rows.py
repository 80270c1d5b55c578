"""The same rows as values of Avro and as JSON, in two tables: both must have the same cells in the same columns.

Half of the values have the envelope of Kafka Connect without its rules: a `payload` beside its `schema`. The columns of
JSON are inferred, so only types occur that JSON can tell apart.
"""

import io
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
from pyspark.sql import SparkSession

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fuzz.readers import comparable
from tests.fuzz.tables import check_table
from tests.kafka_io.values.avro.making import framed

_NAMES = ("a", "b", "a_b", "date", "value", "key", "op", "__op", "_error", "_kafka_offset", "schema", "payload")
"""Names without two that differ only in case: which of these gets a number depends on the order of the columns."""
_INSIDE = {"type": "record", "name": "Inside", "fields": [{"name": name, "type": "string"} for name in ("a", "_error")]}
_TYPES: Sequence[tuple[Any, Sequence[Any]]] = (
    ("boolean", (True, False)),
    ("long", (0, -1, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63))),
    ("double", (0.5, -0.0, 0.1, 1e300, 5e-324)),
    ("string", ("", "a", "\0", "x" * 70, "\U0001f600", "2024-02-29", "null")),
    ({"type": "array", "items": "string"}, ([], ["a", ""])),
    ({"type": "array", "items": "double"}, ([1.5, -0.0], [0.25])),
    (_INSIDE, ({"a": "x", "_error": ""}, {"a": "", "_error": "y"})),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loads:
    """The schema of each load, and its rows."""

    schemas: Sequence[Any]
    rows: Sequence[Sequence[Mapping[str, Any]]]

    @classmethod
    def made(cls, rng: random.Random) -> "_Loads":
        """A few loads; a later one can have more fields. The types of fields stay the same."""
        is_wrapped, types, schemas, loads = rng.randrange(2), dict[str, Any](), [], []
        for _ in range(rng.randrange(1, 4)):
            if not types or rng.randrange(2):
                # A type with a name must not be declared twice.
                new = {name: rng.choice(_TYPES) for name in rng.sample(_NAMES, rng.randrange(1, 4))}
                used = [kind for kind, _ in types.values()]
                types |= {name: pair for name, pair in new.items() if name not in types and _is_free(pair, used)}
            rows = [
                {name: rng.choice((None, *values, *values)) for name, (_, values) in types.items()}
                for _ in range(rng.randrange(1, 4))
            ]
            schemas.append(_schema({name: kind for name, (kind, _) in types.items()}, is_wrapped=bool(is_wrapped)))
            loads.append([{"schema": {"type": "struct"}, "payload": row} if is_wrapped else row for row in rows])
        return cls(schemas=schemas, rows=loads)


def _is_free(pair: tuple[Any, Any], used: list[Any]) -> bool:
    """Whether a type may occur beside these, and note it."""
    is_free = pair[0] != _INSIDE or _INSIDE not in used
    used.append(pair[0])
    return is_free


def _schema(types: Mapping[str, Any], *, is_wrapped: bool) -> Any:
    fields = [{"name": name, "type": ["null", kind]} for name, kind in types.items()]
    row = {"type": "record", "name": "Row", "fields": fields}
    about = {"type": "record", "name": "About", "fields": [{"name": "type", "type": "string"}]}
    members = [{"name": "schema", "type": about}, {"name": "payload", "type": row}]
    return {"type": "record", "name": "Envelope", "fields": members} if is_wrapped else row


def seed_of_rows(rng: random.Random) -> bytes:
    """The seed of the loads."""
    return rng.randbytes(8)


def check_plain_rows(data: bytes, _rng: random.Random, session: SparkSession | None = None) -> str:
    """Check that both tables have the same cells, and that readers find them; returns "read"."""
    loads = _Loads.made(random.Random(data))
    values = [[json.dumps(row).encode() for row in rows] for rows in loads.rows]
    in_json = check_table(values, {"format": "json"}, session=session)
    with EmbeddedSchemaRegistry() as registry:
        ids = [registry.register("v-value", json.dumps(schema)) for schema in loads.schemas]
        in_avro = check_table(
            [
                [framed(id_, _body(schema, row)) for row in rows]
                for id_, schema, rows in zip(ids, loads.schemas, loads.rows, strict=True)
            ],
            {"format": "avro"},
            registries={"main": {"url": registry.url}},
        )
    for of_json, of_avro in zip(in_json, in_avro, strict=True):
        assert (of_json["_error"], of_avro["_error"]) == (None, None)
        assert _cells(of_json) == _cells(of_avro)
    return "read"


def _body(schema: Any, row: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), row)
    return stream.getvalue()


def _cells(row: Mapping[str, Any]) -> Any:
    """The cells of fields, without those that are empty: JSON has no column for a field that was always empty."""
    return _full(comparable({name: cell for name, cell in row.items() if not name.startswith("_kafka_")}))


def _full(value: Any) -> Any:
    if isinstance(value, dict):
        members = {name: _full(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member not in (None, [], {})}
    return value
