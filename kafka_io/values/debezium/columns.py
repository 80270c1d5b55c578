"""Columns of Debezium's change events: those of the row, and three that say what changed it.

    __op        c (create), u (update), d (delete), r (read by a snapshot), t (truncate), m (message)
    __ts_ms     when the connector handled the change, in milliseconds since 1970
    __source    where the change stands in the database's log: a struct that depends on the connector

The names begin as those that Debezium's own ExtractNewRecordState adds, so they rarely collide with a row's columns.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kafka_io.values.json.inference import MAX_VALUES, fields_of_sample, list_of, merged_fields, without_empty
from kafka_io.values.json.reading import JsonReading, json_field, json_text, reading_of

OP, TS_MS, SOURCE = "__op", "__ts_ms", "__source"
ENVELOPE_FIELDS = {OP: "op", TS_MS: "ts_ms", SOURCE: "source"}
"""The columns that say what changed the row, and the fields of the envelope that they hold."""

_MAX_DEPTH = 32
_UTC, _LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
_CONNECT_TYPES: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), pa.int64()),
    **dict.fromkeys(("float", "float32", "double", "float64"), pa.float64()),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_SEMANTIC_TYPES: Mapping[str, tuple[pa.DataType, JsonReading | None]] = {
    "io.debezium.time.Date": (pa.date32(), JsonReading.EPOCH_DAYS),
    "io.debezium.time.Timestamp": (_LOCAL, JsonReading.EPOCH_MILLIS),
    "io.debezium.time.MicroTimestamp": (_LOCAL, JsonReading.EPOCH_MICROS),
    "io.debezium.time.NanoTimestamp": (_LOCAL, JsonReading.EPOCH_NANOS),
    "io.debezium.time.ZonedTimestamp": (_UTC, None),
    "org.apache.kafka.connect.data.Date": (pa.date32(), JsonReading.EPOCH_DAYS),
    "org.apache.kafka.connect.data.Timestamp": (_UTC, JsonReading.EPOCH_MILLIS),
}


def columns_of_debezium(envelope: pa.Schema) -> pa.Schema:
    """The columns of a topic, from the columns of its envelope: `before`, `after`, `op`, `ts_ms`, `source`.

    Raises:
        ValueError: the envelope has no row.
    """
    rows = [envelope.field(name).type for name in ("after", "before") if name in envelope.names]
    rows = [kind for kind in rows if pa.types.is_struct(kind)]
    if not rows:
        raise ValueError("the schema is not an envelope of Debezium: it has no struct named after or before")
    source = [envelope.field("source").with_name(SOURCE)] if "source" in envelope.names else []
    return pa.schema([*rows[0], pa.field(OP, pa.string()), pa.field(TS_MS, pa.int64()), *source])


def columns_of_debezium_json(values: Iterable[bytes | None]) -> pa.Schema:
    """The columns for a sample of JSON values: from the schemas in the values, and inferred from values without one.

    Raises:
        ValueError: no value is an envelope of Debezium.
    """
    return pa.schema(without_empty(fields_of_events(values)))


def fields_of_events(values: Iterable[bytes | None]) -> list[pa.Field]:
    """The fields of a sample of JSON values, also those with empty types; see `columns_of_debezium_json`.

    Raises:
        ValueError: no value is an envelope of Debezium.
    """
    schemas, others = dict[str, Any](), list[bytes]()
    for value, _ in zip(values, range(MAX_VALUES), strict=False):
        document = _loaded(value or b"")
        schema = document.get("schema") if isinstance(document, dict) else None
        if isinstance(schema, dict):
            schemas[json.dumps(schema)] = schema
        else:
            others.append(value or b"")
    inferred = pa.schema(fields_of_sample(others))
    payload = [inferred.field("payload").type] if "payload" in inferred.names else []
    envelopes = [*map(_members, schemas.values()), list(inferred), *map(list, filter(pa.types.is_struct, payload))]
    merged = pa.schema(merged_fields(envelopes))
    rows = [merged.field(name).type for name in ("after", "before") if name in merged.names]
    row = pa.field("after", pa.struct(merged_fields(filter(pa.types.is_struct, rows))))
    about = [merged.field("source")] if "source" in merged.names else []
    return list(columns_of_debezium(pa.schema([*([row] if row.type.num_fields else []), *about])))


def fields_of_keys(keys: Iterable[bytes | None]) -> list[pa.Field]:
    """The fields of a sample of JSON keys: from the schemas in the keys, and inferred from keys without one."""
    schemas, others = dict[str, Any](), list[bytes]()
    for key, _ in zip(keys, range(MAX_VALUES), strict=False):
        document = _loaded(key or b"")
        is_wrapped = isinstance(document, dict) and list(document) == ["schema", "payload"]
        if is_wrapped and isinstance(document["schema"], dict):
            schemas[json.dumps(document["schema"])] = document["schema"]
        else:
            others.append(json.dumps(document["payload"]).encode() if is_wrapped else key or b"")
    return merged_fields([*map(_members, schemas.values()), fields_of_sample(others)])


def envelope_of(columns: pa.Schema) -> pa.Schema:
    """The columns that a decoder of envelopes fills, for the columns of a table.

    JSON values have the envelope itself, or a schema and the envelope as `payload`.
    """
    row = pa.struct([field for field in columns if field.name not in ENVELOPE_FIELDS])
    about = [columns.field(name).with_name(ENVELOPE_FIELDS[name]) for name in (TS_MS, SOURCE) if name in columns.names]
    members = [pa.field("before", row), pa.field("after", row), pa.field("op", pa.string()), *about]
    return pa.schema([*members, pa.field("payload", pa.struct(members))])


def _loaded(value: bytes) -> Any:
    try:
        document = json.loads(value)
        json.dumps(document, ensure_ascii=False).encode()  # refuses lone surrogates
    except (ValueError, RecursionError):
        return None
    return document


def _members(schema: Mapping[str, Any], depth: int = 0) -> list[pa.Field]:
    """The fields of a struct in a schema of Kafka Connect, which is `depth` levels deep."""
    fields = schema.get("fields")
    members = [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    return [_field(str(member.get("field", "")), member, depth) for member in members]


def _field(name: str, schema: Any, depth: int) -> pa.Field:  # noqa: PLR0911 - one for each kind of type
    """The field of a schema of Kafka Connect; JSON text if its type is not known or too deep."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return json_text(name)
    kind, comment, semantic = str(schema.get("type")), str(schema.get("doc", "")), str(schema.get("name"))
    if semantic in _SEMANTIC_TYPES:
        return json_field(name, *_SEMANTIC_TYPES[semantic], comment)
    if kind in _CONNECT_TYPES:
        return json_field(name, _CONNECT_TYPES[kind], None, comment)
    if kind == "struct" and (members := _members(schema, depth + 1)):
        return json_field(name, pa.struct(members), None, comment)
    if kind == "array":
        return list_of(name, _field("item", schema.get("items"), depth + 1), comment)
    keys = schema.get("keys")
    if kind == "map" and isinstance(keys, dict) and keys.get("type") == "string":
        value = _field("value", schema.get("values"), depth + 1)
        return json_text(name, comment) if reading_of(value) else json_field(name, pa.map_(pa.string(), value))
    return json_text(name, comment)
