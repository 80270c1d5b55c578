"""Columns of Debezium's change events: those of the row, and those that say what changed it.

    __op                 c (create), u (update), d (delete), r (read by a snapshot), t (truncate), m (message)
    __ts_ms              when the connector handled the change, in milliseconds since 1970
    __source             where the change stands in the database's log: a struct that depends on the connector
    __transaction        the transaction of the change, and its place in it
    __message            what a program wrote into the log of Postgres
    __updateDescription  the change of a document of MongoDB; __patch and __filter before Debezium 2

The first two always exist, and the others as soon as an event or its schema has them. The names begin as those that
Debezium's own ExtractNewRecordState adds, so they rarely collide with a row's columns. A field of a row with such a
name has `value` before its name: `value__op`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kafka_io.values.columns import FIELD, field_name
from kafka_io.values.json.inference import (
    MAX_VALUES,
    fields_of_documents,
    fields_of_sample,
    list_of,
    merged_fields,
    read_object,
    without_empty,
)
from kafka_io.values.json.reading import JsonReading, json_field, json_text, reading_of

OP, TS_MS, SOURCE = "__op", "__ts_ms", "__source"
_MORE = ("transaction", "message", "updateDescription", "patch", "filter")
ENVELOPE_FIELDS = {OP: "op", TS_MS: "ts_ms", SOURCE: "source", **{f"__{name}": name for name in _MORE}}
"""The columns that say what changed the row, and the fields of the envelope that they hold."""
_OWN = "value"
"""The prefix for a field of a row that has the same name as a column about the event."""
BEFORE, AFTER, PAYLOAD = "before", "after", "payload"
_ROWS = (AFTER, BEFORE)

_MAX_DEPTH = 32
_UTC, _LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
_DECIMAL, _DIGITS = "org.apache.kafka.connect.data.Decimal", 38
_SCALES = frozenset(map(str, range(_DIGITS + 1)))
_CONNECT_TYPES: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), pa.int64()),
    **dict.fromkeys(("float", "float32", "double", "float64"), pa.float64()),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_SEMANTIC_TYPES: Mapping[str, tuple[pa.DataType, JsonReading | None]] = {
    "io.debezium.time.Date": (pa.date32(), JsonReading.EPOCH_DAYS),
    "io.debezium.time.Time": (pa.int64(), JsonReading.TIME_MILLIS),
    "io.debezium.time.MicroTime": (pa.int64(), JsonReading.TIME_MICROS),
    "io.debezium.time.NanoTime": (pa.int64(), JsonReading.TIME_NANOS),
    "io.debezium.time.Timestamp": (_LOCAL, JsonReading.EPOCH_MILLIS),
    "io.debezium.time.MicroTimestamp": (_LOCAL, JsonReading.EPOCH_MICROS),
    "io.debezium.time.NanoTimestamp": (_LOCAL, JsonReading.EPOCH_NANOS),
    "io.debezium.time.ZonedTimestamp": (_UTC, None),
    "org.apache.kafka.connect.data.Date": (pa.date32(), JsonReading.EPOCH_DAYS),
    "org.apache.kafka.connect.data.Time": (pa.int64(), JsonReading.TIME_MILLIS),
    "org.apache.kafka.connect.data.Timestamp": (_UTC, JsonReading.EPOCH_MILLIS),
}


def columns_of_debezium(envelope: pa.Schema) -> pa.Schema:
    """The columns of a topic, from the columns of its envelope: `before`, `after`, `op`, `ts_ms`, `source` and others.

    Raises:
        ValueError: the envelope has neither a row nor a message.
    """
    rows = [envelope.field(name).type for name in _ROWS if name in envelope.names]
    rows = [kind for kind in rows if pa.types.is_struct(kind)]
    if not rows and "message" not in envelope.names:
        raise ValueError("the schema is not an envelope of Debezium: it has no struct named after or before")
    return pa.schema(_columns(rows[0] if rows else (), envelope))


def _columns(row: Iterable[pa.Field], envelope: Iterable[pa.Field]) -> list[pa.Field]:
    """The columns for these fields of a row and of the envelope around it."""
    by_name = {field.name: field for field in envelope}
    others = {column: by_name.get(name) for column, name in ENVELOPE_FIELDS.items() if column not in {OP, TS_MS}}
    return [
        *(field.with_name(_OWN + field.name) if _is_reserved(field.name) else field for field in row),
        pa.field(OP, pa.string()),
        pa.field(TS_MS, pa.int64()),
        *(field.with_name(column) for column, field in others.items() if field is not None),
    ]


def _is_reserved(name: str) -> bool:
    """Whether a field of a row has the name of a column about the event, or what such a field gets instead of it."""
    while name.startswith(_OWN):
        name = name.removeprefix(_OWN)
    return name in ENVELOPE_FIELDS


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
    schemas, inferred, texts = dict[str, Any](), list[dict[str, Any]](), list[dict[str, Any]]()
    for value, _ in zip(values, range(MAX_VALUES), strict=False):
        document = read_object(value) or {}
        event = _event(document)
        rows = {name: row for name in _ROWS if (row := _row_in_text(event.get(name))) is not None}
        schema = document.get("schema")
        if isinstance(schema, dict):
            schemas[json.dumps(schema)] = schema
            texts += rows.values()
        elif event:
            about = {name: field for name, field in event.items() if name not in _ROWS or isinstance(field, dict)}
            inferred.append({**about, **rows})
    envelopes = [*map(_members, schemas.values()), fields_of_documents(inferred)]
    rows_of = [field.type for name in _ROWS for fields in envelopes for field in fields if field.name == name]
    row_fields = merged_fields([*filter(pa.types.is_struct, rows_of), fields_of_documents(texts)])
    envelope = merged_fields(envelopes)
    if not row_fields and "op" not in {field.name for field in envelope}:
        raise ValueError("the value is not an envelope of Debezium: it has no struct named after or before, and no op")
    return _columns(row_fields, envelope)


def _event(document: dict[str, Any]) -> dict[str, Any]:
    """The envelope in a document; empty if the document has no envelope."""
    places = (document, document.get(PAYLOAD))
    return next((place for place in places if isinstance(place, dict) and isinstance(place.get("op"), str)), {})


def _row_in_text(row: Any) -> dict[str, Any] | None:
    """The row that a text holds, as the connector of MongoDB writes it."""
    return read_object(row.encode()) if isinstance(row, str) else None


def fields_of_keys(keys: Iterable[bytes | None]) -> list[pa.Field]:
    """The fields of a sample of JSON keys: from the schemas in the keys, and inferred from keys without one."""
    schemas, others = dict[str, Any](), list[bytes]()
    for key, _ in zip(keys, range(MAX_VALUES), strict=False):
        document = read_object(key)
        if document is None or list(document) != ["schema", PAYLOAD]:
            others.append(key or b"")
        elif isinstance(document["schema"], dict):
            schemas[json.dumps(document["schema"])] = document["schema"]
        else:
            others.append(json.dumps(document[PAYLOAD]).encode())
    return merged_fields([*map(_members, schemas.values()), fields_of_sample(others)])


def envelope_of(columns: pa.Schema) -> pa.Schema:
    """The columns that a decoder of envelopes fills, for the columns of a table.

    JSON values have the envelope itself, or a schema and the envelope as `payload`. A field of the envelope for which
    the table has no column is a JSON text.
    """
    return _envelope(columns, pa.struct([_in_row(column) for column in columns if not is_about(column)]))


def text_envelope_of(columns: pa.Schema) -> pa.Schema:
    """The same for envelopes in which the rows are texts."""
    return _envelope(columns, pa.string())


def row_of(columns: pa.Schema) -> pa.Schema:
    """The columns that a decoder of rows fills, for the columns of a table."""
    return pa.schema([_in_row(column) for column in columns if not is_about(column)])


def is_about(column: pa.Field) -> bool:
    """Whether a column holds a field of the envelope."""
    return field_name(column) in ENVELOPE_FIELDS


def lacking(columns: pa.Schema) -> list[str]:
    """The fields of the envelope for which there is no column."""
    present = {field_name(column) for column in columns}
    return [name for column, name in ENVELOPE_FIELDS.items() if column not in present]


def _envelope(columns: pa.Schema, row: pa.DataType) -> pa.Schema:
    about = [_with_key(column, ENVELOPE_FIELDS[field_name(column)]) for column in columns if is_about(column)]
    members = [
        *(pa.field(name, row) for name in (BEFORE, AFTER)),
        pa.field("op", pa.string()),
        *(column for column in about if column.metadata[FIELD] != b"op"),
        *(json_text(name) for name in lacking(columns) if name != "op"),
    ]
    return pa.schema([*members, pa.field(PAYLOAD, pa.struct(members))])


def _in_row(column: pa.Field) -> pa.Field:
    """The field of the row that a column holds."""
    name = field_name(column)
    return _with_key(column, name.removeprefix(_OWN)) if _is_reserved(name) else column


def _with_key(column: pa.Field, key: str) -> pa.Field:
    return column.with_metadata({**(column.metadata or {}), FIELD: key.encode()})


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
    if semantic == _DECIMAL and (scale := _scale(schema)) is not None:
        return json_field(name, pa.decimal128(_DIGITS, scale), JsonReading.DECIMAL_BYTES, comment)
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


def _scale(schema: Mapping[str, Any]) -> int | None:
    """The scale of a decimal, which its schema has as a text; None if a column cannot have it."""
    parameters = schema.get("parameters")
    scale = str(parameters.get("scale")) if isinstance(parameters, dict) else ""
    return int(scale) if scale in _SCALES else None
