"""JSON to Avro: the same bytes as fastavro writes for the same value, or a refusal that names the field."""

import io
import json
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import InvalidValue
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.avro.writer import avro_from_json

MOMENT = datetime(2013, 1, 1, 5, 17, 0, 123456, UTC)
ID = "12345678-1234-5678-1234-567812345678"


def logical(kind: Any, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def written(schema: Any, value: Any) -> bytes:
    """A JSON value as our writer encodes it."""
    return avro_from_json(parse_avro(json.dumps(schema)), json.dumps(value).encode())


def by_fastavro(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


FIXED = {"type": "fixed", "name": "F", "size": 3}
CASES: list[tuple[Any, Any, Any]] = [
    (logical("int", "date"), "1969-12-31", date(1969, 12, 31)),
    (logical("int", "date"), 15706, 15706),
    (logical("int", "time-millis"), "05:17:00.123", time(5, 17, 0, 123000)),
    (logical("long", "time-micros"), "05:17:00.123456", time(5, 17, 0, 123456)),
    (logical("long", "timestamp-millis"), "2013-01-01T05:17:00.123Z", MOMENT.replace(microsecond=123000)),
    (logical("long", "timestamp-micros"), "2013-01-01T06:17:00.123456+01:00", MOMENT),
    (logical("long", "timestamp-micros"), -1, -1),
    (logical("long", "timestamp-nanos"), "1970-01-01T00:00:00.000001Z", 1000),
    (logical("long", "local-timestamp-micros"), "2013-01-01T05:17:00.123456", MOMENT.replace(tzinfo=None)),
    (logical("bytes", "decimal", precision=12, scale=2), "-1.28", Decimal("-1.28")),
    (logical("bytes", "decimal", precision=12, scale=2), "12.5", Decimal("12.50")),
    (logical("bytes", "decimal", precision=12, scale=2), 0, Decimal(0)),
    (logical("fixed", "decimal", name="D", size=9, precision=20, scale=4), "-7.5", Decimal("-7.5")),
    (logical("string", "uuid"), ID, uuid.UUID(ID)),
    (FIXED, "a\u00ffb", b"a\xffb"),
    ("bytes", "\u0000\u00ff", b"\x00\xff"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    (["null", "long", "string"], None, None),
    (["null", "long", "string"], "x", "x"),
    (["null", "double"], 3, 3.0),
    ({"type": "array", "items": "int"}, [], []),
    ({"type": "map", "values": "int"}, {"\u20ac": 1, "": -1}, {"\u20ac": 1, "": -1}),
    ("float", 0.1, 0.1),
]


@pytest.mark.parametrize(("schema", "value", "python"), CASES)
def test_a_value_of_each_type_is_written_as_fastavro_does(schema: Any, value: Any, python: Any) -> None:
    assert written(schema, value) == by_fastavro(schema, python)


def test_a_decimal_keeps_all_digits_of_a_number() -> None:
    schema = logical("bytes", "decimal", precision=38, scale=10)
    text = "1234567890123456789012345678.0123456789"
    assert avro_from_json(parse_avro(json.dumps(schema)), text.encode()) == by_fastavro(schema, Decimal(text))


LEAVES: st.SearchStrategy[tuple[Any, Any]] = st.one_of(
    st.tuples(st.just("null"), st.none()),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("string"), st.text(st.characters(exclude_categories=["Cs"]))),
)


def containers(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Lists, maps and nullable values of another type; the values are JSON and Python alike."""
    return st.one_of(
        inner.map(lambda pair: ({"type": "array", "items": pair[0]}, [pair[1], pair[1]])),
        inner.map(lambda pair: ({"type": "map", "values": pair[0]}, {"a": pair[1]})),
        inner.filter(lambda pair: pair[0] != "null" and not isinstance(pair[0], list)).map(
            lambda pair: (["null", pair[0]], pair[1])
        ),
    )


@given(st.lists(st.recursive(LEAVES, containers, max_leaves=3), max_size=5))
def test_records_are_written_as_fastavro_does(pairs: list[tuple[Any, Any]]) -> None:
    schema = record(**{f"f{number}": kind for number, (kind, _) in enumerate(pairs)})
    value = {f"f{number}": field for number, (_, field) in enumerate(pairs)}
    assert written(schema, value) == by_fastavro(schema, value)


def test_a_missing_field_gets_its_default() -> None:
    schema = record(a="int")
    schema["fields"] += [
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": {"type": "array", "items": "int"}, "default": [7]},
        {"name": "d", "type": "bytes", "default": "\u00ff"},
    ]
    assert written(schema, {"a": 1}) == by_fastavro(schema, {"a": 1, "b": None, "c": [7], "d": b"\xff"})


def test_a_recursive_type_is_written() -> None:
    schema = record(next=["null", "R"], n="int")
    value = {"n": 1, "next": {"n": 2, "next": None}}
    assert written(schema, value) == by_fastavro(schema, value)


NESTED = record(a={"type": "array", "items": {"type": "record", "name": "I", "fields": [{"name": "n", "type": "int"}]}})


@pytest.mark.parametrize(
    ("schema", "document", "reason"),
    [
        ("int", "2147483648", "expected a whole number of 32 bits, not 2147483648"),
        ("long", "1.0", "expected a whole number of 64 bits"),
        ("long", "true", "expected a whole number of 64 bits, not true"),
        ("double", '"1"', "expected a number"),
        ("double", "1e999", "expected a number that double holds"),
        ("float", "1e39", "expected a number that float holds"),
        ("double", "NaN", "NaN is not JSON"),
        ("boolean", "0", "expected true or false, not 0"),
        ("null", "0", "expected null, not 0"),
        ("string", "7", "expected a text, not 7"),
        ("string", '"\\ud800"', "half of a surrogate pair"),
        ("bytes", '"\u20ac"', "characters are bytes"),
        (FIXED, '"ab"', "expected 3 bytes"),
        (logical("int", "date"), '"2013-13-01"', "expected date in ISO 8601"),
        (logical("long", "timestamp-millis"), '"2013-01-01T00:00:00"', "expected timestamp-millis in ISO 8601"),
        (logical("long", "local-timestamp-millis"), '"2013-01-01T00:00:00Z"', "expected local-timestamp-millis"),
        (logical("long", "timestamp-millis"), '"2013-01-01T00:00:00.000001Z"', "more precise than timestamp-millis"),
        (logical("string", "uuid"), '"x"', "expected a UUID"),
        (logical("bytes", "decimal", precision=4, scale=2), "1.234", "a decimal with 2 digits after the point"),
        (logical("bytes", "decimal", precision=4, scale=2), '"x"', "a decimal with 2 digits after the point"),
        (logical("fixed", "decimal", name="D", size=1, precision=2, scale=0), "200", "a decimal with 0 digits"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, '"C"', "expected one of A, B"),
        ({"type": "array", "items": "int"}, "{}", "expected a list"),
        ({"type": "map", "values": "int"}, "[]", "expected an object"),
        (["null", "int"], '"x"', "expected a whole number of 32 bits"),
        (["int", "boolean"], '"x"', "one of the union's types"),
        (record(a="int"), "{}", "a: the field is missing and has no default"),
        (record(a="int"), '{"a": 1, "b": 2}', "R has no field b"),
        (record(a="int"), "[1]", "expected an object with the fields of R"),
        (NESTED, '{"a": [{"n": 1}, {"n": "x"}]}', "a.1.n: expected a whole number"),
        ("int", "1 2", "the value is not JSON"),
        ("int", "", "the value is not JSON"),
        ("int", "[" * 100_000, "the value is not JSON"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(schema: Any, document: str, reason: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        avro_from_json(parse_avro(json.dumps(schema)), document.encode())
    assert reason in str(raised.value)
    assert len(str(raised.value)) < 400
