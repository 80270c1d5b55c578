"""Avro values with odd names, types and numbers, of schemas that change, loaded into tables that readers read."""

import json
import random
from typing import Any

from pyspark.sql import SparkSession

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fuzz.avro_changes import changing_schemas
from tests.fuzz.leaves import lost
from tests.fuzz.sized import joined, parted
from tests.fuzz.tables import check_table
from tests.kafka_io.values.avro.making import SchemaMaker, ValueMaker, framed
from tests.oracles import avro as oracle

NAMES = (
    "a", "A", "b", "B", "a_b", "a_2", "A_2", "member0", "member1", "key", "value", "list", "element", "months", "days",
    "date", "offset", "partition", "schema", "_error", "_raw", "_tombstone", "_kafka_offset", "_KAFKA_offset",
    "_kafka_key_a", "__op", "_", "a.b", "a b", "\u00e9", "\u00c9", "a\0b",
)  # fmt: skip
"""Names of fields. Older libraries did not check them, so a registry can have names with dots and spaces."""
_LEVELS = (24, 34, 45, 60)


def odd_avro_loads(rng: random.Random) -> bytes:
    """The schemas as a line of JSON, and a few loads of values: each is the number of its schema and a body."""
    schemas = [_deep(rng)] if not rng.randrange(12) else changing_schemas(rng, SchemaMaker(rng), NAMES)
    writers = [ValueMaker(rng, dict(oracle.parse(schema).named), is_odd=True) for schema in schemas]

    def value(newest: int) -> bytes:
        number = rng.randrange(newest + 1)
        return bytes([number]) + writers[number].value(schemas[number])

    loads = [
        joined(value(min(number, len(schemas) - 1)) for _ in range(rng.randrange(1, 4)))
        for number in range(rng.randrange(len(schemas), len(schemas) + 2))
    ]
    return json.dumps(schemas).encode() + b"\n" + joined(loads)


def _deep(rng: random.Random) -> Any:
    """A number in many records, arrays or maps."""
    schema: Any = rng.choice(("long", "string", ["null", "long"]))
    for level in range(rng.choice(_LEVELS)):
        match rng.randrange(4):
            case 0:
                schema = {"type": "array", "items": schema}
            case 1:
                schema = {"type": "map", "values": schema}
            case _:
                fields = [{"name": rng.choice(NAMES), "type": schema}]
                schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return {"type": "record", "name": "Root", "fields": [{"name": "x", "type": schema}]}


def check_odd_avro(data: bytes, _rng: random.Random, session: SparkSession | None = None) -> str:
    """Check that each row has what its value has, and that all readers find it by it.

    Returns "read" if all values were decoded, else "refused".
    """
    line, _, remaining = data.partition(b"\n")
    schemas = json.loads(line)
    loads = [parted(load) for load in parted(remaining)]
    with EmbeddedSchemaRegistry() as registry:
        ids = [registry.register(f"s{number}-value", json.dumps(schema)) for number, schema in enumerate(schemas)]
        rows = check_table(
            [[framed(ids[value[0]], value[1:]) for value in load] for load in loads],
            {"format": "avro"},
            registries={"main": {"url": registry.url}},
            session=session,
        )
    judges = [oracle.parse(schema) for schema in schemas]
    for value, row in zip((value for load in loads for value in load), rows, strict=True):
        _check_row(judges[value[0]], value[1:], row)
    return "refused" if any(row["_error"] is not None for row in rows) else "read"


def _check_row(judge: oracle.Schema, body: bytes, row: dict[str, Any]) -> None:
    expected, refusal = None, ""
    try:
        expected = judge.row(body)
    except oracle.Refused as error:
        refusal = f"refused: {error}"
    if row["_error"] is not None:
        is_right = refusal or _may_be_refused(row["_error"])
        assert is_right, f"{body!r} is refused ({row['_error']}), and not {expected}"
        assert row["_raw"][5:] == body
        return
    assert not refusal, f"{body!r} is not {refusal}"
    own = {name: cell for name, cell in row.items() if not name.startswith("_kafka_")}
    missing = lost(expected, own)
    assert not missing, f"{body!r} lost {missing}: {own}"


def _may_be_refused(reason: str) -> bool:
    """Whether a good value has this reason only because its column has another type, as Avro's resolution allows."""
    return "a text is not valid UTF-8" in reason or "would round the number" in reason
