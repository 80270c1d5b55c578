"""Change events of Debezium: the row after the change, and what changed it."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.debezium.columns import (
    columns_of_debezium,
    columns_of_debezium_json,
    envelope_of,
    fields_of_keys,
)
from kafka_io.values.debezium.decoder import DebeziumDecoder
from kafka_io.values.json.decoder import JsonDecoder
from kafka_io.values.json.inference import grow_by_fields
from kafka_io.values.json.reading import JsonReading, reading_of

SOURCE = {"lsn": 24023128, "table": "orders"}


def event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    """A change event."""
    return {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 1700000000000}


ROWS: list[dict[str, Any]] = [{"id": 1, "note": "a"}, {"id": 1, "note": None}]
CHANGES: list[dict[str, Any] | None] = [
    event("r", None, ROWS[0]),
    event("u", ROWS[0], ROWS[1]),
    event("d", ROWS[1]),
    None,
    event("t"),
]
EXPECTED: list[dict[str, Any]] = [
    {**ROWS[0], "__op": "r", "__ts_ms": 1700000000000, "__source": SOURCE},
    {**ROWS[1], "__op": "u", "__ts_ms": 1700000000000, "__source": SOURCE},
    {**ROWS[1], "__op": "d", "__ts_ms": 1700000000000, "__source": SOURCE},
    {"id": None, "note": None, "__op": None, "__ts_ms": None, "__source": None},
    {"id": None, "note": None, "__op": "t", "__ts_ms": 1700000000000, "__source": SOURCE},
]


def values_of(*documents: Mapping[str, Any] | None) -> pa.BinaryArray:
    """Documents as JSON values; None is a tombstone."""
    return pa.array(
        [None if document is None else json.dumps(document).encode() for document in documents], pa.binary()
    )


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_an_event_gives_the_row_after_the_change_and_a_delete_the_row_before(is_wrapped: bool) -> None:
    wrapped = [change and {"schema": None, "payload": change} for change in CHANGES]
    columns = columns_of_debezium_json(json.dumps(change).encode() for change in CHANGES if change)
    decoded = DebeziumDecoder(columns, JsonDecoder).decode(values_of(*(wrapped if is_wrapped else CHANGES)))
    decoded.rows.validate(full=True)
    assert (decoded.rows.to_pylist(), decoded.failures) == (EXPECTED, [])


def test_envelopes_of_both_kinds_can_alternate() -> None:
    mixed = [CHANGES[0], {"payload": CHANGES[1]}, {"payload": CHANGES[2]}, None, CHANGES[4]]
    columns = columns_of_debezium_json(json.dumps(change).encode() for change in CHANGES if change)
    assert DebeziumDecoder(columns, JsonDecoder).decode(values_of(*mixed)).rows.to_pylist() == EXPECTED


def test_a_value_that_is_no_event_is_a_failure_of_its_row() -> None:
    columns = pa.schema({"id": pa.int64(), "__op": pa.string()})
    values = values_of(
        event("c", None, {"id": 1}), {"id": 2}, event("c", None, {"id": "x"}), None, {"after": {"id": 5}}
    )
    decoded = DebeziumDecoder(columns, JsonDecoder).decode(values)
    assert decoded.rows["id"].to_pylist() == [1, None, None, None, None]
    assert [failure.row for failure in decoded.failures] == [1, 2, 4]
    assert decoded.failures[0].reason == "the value is not a change event of Debezium: it has no op"
    assert decoded.failures[1].reason.startswith("after.id: the value has another type")


CONNECT_ROW = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int32"},
        {"field": "name", "type": "string", "doc": "the customer"},
        {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "seen", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "tags", "type": "array", "items": {"type": "string"}},
        {"field": "counts", "type": "map", "keys": {"type": "string"}, "values": {"type": "int64"}},
        {"field": "odd", "type": "map", "keys": {"type": "int32"}, "values": {"type": "int64"}},
    ],
}
CONNECT = {
    "type": "struct",
    "fields": [
        {**CONNECT_ROW, "field": "before"},
        {**CONNECT_ROW, "field": "after"},
        {"field": "op", "type": "string"},
    ],
}


def test_the_schema_in_the_values_gives_the_types() -> None:
    row = {
        "id": 1,
        "name": "a",
        "born": 15706,
        "at": 1357020000000001,
        "seen": "2013-01-01T06:00:00Z",
        "tags": ["x"],
        "counts": {"a": 1},
        "odd": [[1, 2]],
    }
    value = {"schema": CONNECT, "payload": {"before": None, "after": row, "op": "c", "ts_ms": 1}}
    columns = columns_of_debezium_json([b"{", json.dumps(value).encode(), None])
    assert columns.names == [*row, "__op", "__ts_ms"]
    assert columns.field("name").metadata == {b"comment": b"the customer"}
    assert reading_of(columns.field("odd")) is JsonReading.TEXT
    [decoded] = DebeziumDecoder(columns, JsonDecoder).decode(values_of(value)).rows.to_pylist()
    assert decoded == {
        **row,
        "born": date(2013, 1, 1),
        "at": datetime.fromisoformat("2013-01-01T06:00:00.000001"),
        "seen": datetime(2013, 1, 1, 6, tzinfo=UTC),
        "counts": [("a", 1)],
        "odd": "[[1, 2]]",
        "__op": "c",
        "__ts_ms": 1,
    }


AVRO_ENVELOPE = """{"type": "record", "name": "Envelope", "fields": [
    {"name": "before", "default": null, "type": ["null", {"type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"], "default": null}]}]},
    {"name": "after", "type": ["null", "Value"], "default": null},
    {"name": "op", "type": "string"}]}"""


def test_avro_values_give_the_same_rows() -> None:
    schemas = {1: parse_avro(AVRO_ENVELOPE)}
    columns = columns_of_debezium(columns_of_avro(schemas[1]))
    assert columns == pa.schema({"id": pa.int64(), "note": pa.string(), "__op": pa.string(), "__ts_ms": pa.int64()})
    decoder = DebeziumDecoder(columns, lambda envelope: AvroDecoder(envelope, schemas))
    create, delete = b"\0\0\0\0\1\0\2\2\2\2a\2c", b"\0\0\0\0\1\2\2\0\0\2d"
    decoded = decoder.decode(pa.array([create, delete, None, b"\0\0\0\0\2"], pa.binary()))
    assert decoded.rows["id"].to_pylist() == [1, 1, None, None]
    assert decoded.rows["note"].to_pylist() == ["a", None, None, None]
    assert decoded.rows["__op"].to_pylist() == ["c", "d", None, None]
    assert not decoded.failures
    assert decoded.unknown_schemas == {2}


def test_a_schema_without_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="not an envelope of Debezium"):
        columns_of_debezium(pa.schema({"op": pa.string()}))
    with pytest.raises(ValueError, match="not an envelope of Debezium"):
        columns_of_debezium_json([b'{"id": 1}'])


def test_columns_of_the_table_are_read_from_the_fields_that_they_name() -> None:
    columns = pa.schema([pa.field("price_2", pa.string(), metadata={"field": "price"}), ("price", pa.int64())])
    assert envelope_of(columns).field("after").type.field(0).metadata == {b"field": b"price"}
    values = values_of(event("c", None, {"price": 7}), event("c", None, {"price": "seven"}))
    rows = DebeziumDecoder(columns, JsonDecoder).decode(values).rows.to_pylist()
    assert rows == [{"price_2": None, "price": 7}, {"price_2": "seven", "price": None}]


def schema_of(after: str) -> bytes:
    """An event whose schema has this member, as text."""
    return b'{"schema": {"fields": [%s]}, "payload": {}}' % after.encode()


@pytest.mark.parametrize("name", [{}, [], 7])
def test_the_name_of_a_type_may_be_anything(name: Any) -> None:
    member = {"field": "a", "type": "int32", "name": name}
    event = schema_of(json.dumps({"field": "after", "type": "struct", "fields": [member]}))
    assert columns_of_debezium_json([event]).field("a").type == pa.int64()


def test_a_type_that_is_nested_very_deep_is_json_text_where_it_is_too_deep() -> None:
    begin = '{"field": "a", "type": "struct", "fields": ['
    deep = begin * 450 + '{"field": "a", "type": "int32"}' + "]}" * 450
    kind = columns_of_debezium_json([schema_of(deep.replace('"a"', '"after"', 1))]).field("a").type
    levels = 0
    while pa.types.is_struct(kind):
        [member] = kind
        kind, levels = member.type, levels + 1
    assert (levels, reading_of(member)) == (32, JsonReading.TEXT)


@pytest.mark.parametrize("part", ["field", "doc", "name"])
def test_an_event_or_a_key_that_is_not_unicode_says_nothing_and_others_do(part: str) -> None:
    member = {"field": "a", "type": "int32"}
    row = [{**member, part: "\ud800"}], [member]
    events = [schema_of(json.dumps({"field": "after", "type": "struct", "fields": members})) for members in row]
    assert columns_of_debezium_json(events).names == ["a", "__op", "__ts_ms"]
    keys = [json.dumps({"schema": {"fields": members}, "payload": {"a": 1}}).encode() for members in row]
    assert pa.schema(fields_of_keys(keys)) == pa.schema({"a": pa.int64()})


def decoded_alone(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of events, decoded with the columns that their sample gives."""
    columns = columns_of_debezium_json(json.dumps(event).encode() for event in events)
    decoded = DebeziumDecoder(columns, JsonDecoder).decode(values_of(*events))
    decoded.rows.validate(full=True)
    assert (decoded.failures, len(decoded.new_keys)) == ([], 0)
    return list(decoded.rows.to_pylist())


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("op", ["t", "d", "m", "c"])
def test_events_without_a_row_have_the_columns_about_the_event(op: str, is_wrapped: bool) -> None:  # fault A09
    bare = {"op": op, "ts_ms": 1, "source": {"lsn": 2}, "after": {}}
    about = {"__op": op, "__ts_ms": 1, "__source": {"lsn": 2}}
    assert decoded_alone({"payload": bare} if is_wrapped else bare) == [about]
    assert decoded_alone({"op": op}) == [{"__op": op, "__ts_ms": None}]


def test_what_an_event_says_besides_the_row_has_columns() -> None:  # faults A10, A19
    message = {"op": "m", "ts_ms": 1, "message": {"prefix": "p", "content": "Ymxh"}}
    update = {"op": "u", "updateDescription": {"updatedFields": '{"a": 1}', "removedFields": ["b"]}, "patch": "p"}
    change = {**event("c", None, {"id": 1}), "transaction": {"id": "x", "total_order": 1}}
    rows = decoded_alone(message, update, change)
    assert [{name: cell for name, cell in row.items() if cell is not None} for row in rows] == [
        {"__op": "m", "__ts_ms": 1, "__message": message["message"]},
        {"__op": "u", "__updateDescription": update["updateDescription"], "__patch": "p"},
        {
            "id": 1,
            "__op": "c",
            "__ts_ms": 1700000000000,
            "__source": SOURCE,
            "__transaction": {"id": "x", "total_order": 1},
        },
    ]


def test_a_field_of_an_event_without_a_column_is_reported_unless_it_is_empty() -> None:  # fault A10
    values = values_of(event("c"), {**event("c"), "transaction": {"id": 1}}, {"op": "t", "message": {}, "patch": None})
    columns = pa.schema({"__op": pa.string(), "__ts_ms": pa.int64(), "__source": pa.struct({"lsn": pa.int64()})})
    assert DebeziumDecoder(columns, JsonDecoder).decode(values).new_keys.tolist() == [0, 1]  # `table` of the source


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_row_in_a_text_is_decoded(is_wrapped: bool) -> None:  # fault A19
    def mongo(op: str, after: str | None, before: str | None = None) -> dict[str, Any]:
        own = event(op, before, after)
        return {"schema": None, "payload": own} if is_wrapped else own

    events = [
        mongo("c", '{"_id": {"$oid": "a"}, "n": 1, "__op": "own"}'),
        mongo("u", None, '{"n": 1}'),
        mongo("d", None, '{"n": 2}'),
        event("r", None, {"n": 3}),
    ]
    rows = decoded_alone(*events)
    assert [(row["_id"], row["n"], row["value__op"], row["__op"]) for row in rows] == [
        ({"$oid": "a"}, 1, "own", "c"),
        (None, None, None, "u"),
        (None, 2, None, "d"),
        (None, 3, None, "r"),
    ]
    broken = [mongo("c", "{"), mongo("c", '{"n": "x"}'), mongo("c", '{"new": 1}'), mongo("d", "7"), None]
    columns = columns_of_debezium_json(json.dumps(event).encode() for event in events)
    decoded = DebeziumDecoder(columns, JsonDecoder).decode(values_of(*broken))
    assert [failure.row for failure in decoded.failures] == [0, 1]
    assert decoded.failures[0].reason == "the text of the row: the document is not complete (byte 1)"
    assert decoded.new_keys.tolist() == [2]
    assert [row["__op"] for row in decoded.rows.to_pylist()] == [None, None, "c", "d", None]


def test_what_is_new_around_a_row_in_a_text_is_reported() -> None:  # fault A10
    """The row is before the source, so a decoder that expects no text has not read the source."""
    known = {"op": "c", "after": '{"n": 1}', "source": {"lsn": 1}}
    new = {**known, "source": {"lsn": 1, "snapshot": "last"}}
    columns = columns_of_debezium_json(values_of(known).to_pylist())
    decoded = DebeziumDecoder(columns, JsonDecoder).decode(values_of(known, new, {**new, "after": '{"n": 1, "m": 2}'}))
    assert (decoded.failures, decoded.new_keys.tolist()) == ([], [1, 2])


def test_a_field_of_the_row_that_is_named_as_a_column_about_the_event_has_a_column() -> None:
    row = {"__op": "own", "__v": 1, "__source": 2, "value__op": 3, "valuevalue__op": 4}
    [decoded] = decoded_alone(event("c", None, row))
    assert (decoded["value__op"], decoded["__v"], decoded["value__source"]) == ("own", 1, 2)
    assert (decoded["valuevalue__op"], decoded["valuevaluevalue__op"]) == (3, 4)
    assert (decoded["__op"], decoded["__source"]) == ("c", SOURCE)


SEMANTIC: Mapping[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "a decimal": (
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
        ["MDk=", "gA==", "AA==", 12.5, "S0oxAaY3hQ8I1zMyAAAAAA==", "/////////////////////w=="],
        [Decimal("123.45"), Decimal("-1.28"), Decimal("0.00"), Decimal("12.50"), None, Decimal("-0.01")],
    ),
    "a time in ms": ({"type": "int32", "name": "io.debezium.time.Time"}, [1, 86_399_999], [1_000, 86_399_999_000]),
    "a time in us": ({"type": "int64", "name": "io.debezium.time.MicroTime"}, [1, -5], [1, -5]),
    "a time in ns": ({"type": "int64", "name": "io.debezium.time.NanoTime"}, [1_999], [1]),
    "a time of Connect": ({"type": "int32", "name": "org.apache.kafka.connect.data.Time"}, [7], [7_000]),
}


@pytest.mark.parametrize(("schema", "given", "expected"), SEMANTIC.values(), ids=SEMANTIC)
def test_the_schema_gives_decimals_their_scale_and_times_their_unit(  # fault A16
    schema: dict[str, Any], given: list[Any], expected: list[Any]
) -> None:
    row = {"type": "struct", "fields": [{**schema, "field": "x"}]}
    envelope = {"type": "struct", "fields": [{**row, "field": "after"}, {"field": "op", "type": "string"}]}
    values = [{"schema": envelope, "payload": {"op": "c", "after": {"x": value}}} for value in given]
    columns = columns_of_debezium_json([json.dumps(values[0]).encode()])
    decoded = DebeziumDecoder(columns, JsonDecoder).decode(values_of(*values))
    assert decoded.rows["x"].to_pylist() == expected
    assert [failure.row for failure in decoded.failures] == [row for row, value in enumerate(expected) if value is None]
    # A column of an earlier version keeps its type, and no other is added for the same field.
    kind = {"bytes": pa.binary()}.get(schema["type"], pa.int64())
    before = pa.schema([("x", kind), ("__op", pa.string()), ("__ts_ms", pa.int64())])
    assert grow_by_fields(before, columns) == before
    raw = DebeziumDecoder(before, JsonDecoder).decode(values_of(values[0])).rows["x"].to_pylist()[0]
    assert raw == (base64.b64decode(given[0]) if kind == pa.binary() else given[0])


@pytest.mark.parametrize("parameters", [None, {}, {"scale": "-1"}, {"scale": "39"}, {"scale": []}, 7])
def test_a_decimal_without_a_scale_that_a_column_can_have_is_bytes(parameters: Any) -> None:
    member = {"field": "a", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
    event = schema_of(json.dumps({"field": "after", "type": "struct", "fields": [member]}))
    assert columns_of_debezium_json([event]).field("a").type == pa.binary()
