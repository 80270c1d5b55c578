"""Schemas: what is accepted, and what is refused with a reason, whatever the text is."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.errors import InvalidSchema
from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.schema import (
    Array,
    AvroType,
    Decimal,
    Enumeration,
    FixedBytes,
    Map,
    Primitive,
    RecordType,
    Union,
    parse_avro,
)
from kafka_io.values.column_types import MAX_NESTING, nesting


def parsed(schema: Any) -> AvroType:
    return parse_avro(json.dumps(schema))


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": type_} for i, type_ in enumerate(fields)],
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("long", Primitive("long")),
        ({"type": "long"}, Primitive("long")),
        ({"type": {"type": "long"}}, Primitive("long")),
        ({"type": "int", "logicalType": "date"}, Primitive("int", "date")),
        ({"type": "long", "logicalType": "date"}, Primitive("long")),
        ({"type": "int", "logicalType": ["date"]}, Primitive("int")),
        ({"type": "string", "logicalType": "uuid"}, Primitive("string", "uuid")),
        ({"type": "array", "items": "int"}, Array(Primitive("int"))),
        ({"type": "map", "values": ["null", "int"]}, Map(Union((Primitive("null"), Primitive("int"))))),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, Enumeration(("A", "B"))),
        ({"type": "fixed", "name": "F", "size": 3}, FixedBytes(3)),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, FixedBytes(12, "duration")),
        ({"type": "fixed", "name": "F", "size": 11, "logicalType": "duration"}, FixedBytes(11)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal(2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, Decimal(0)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 4}, Primitive("bytes")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 40}, Primitive("bytes")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10**9}, Decimal(0)),
        ({"type": "bytes", "logicalType": "decimal"}, Primitive("bytes")),
        ({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9}, Decimal(0, 4)),
        ({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 10}, FixedBytes(4)),
        ({"type": "fixed", "name": "F", "size": 0, "logicalType": "decimal", "precision": 1}, FixedBytes(0)),
        ({"type": "int", "logicalType": "something of another library"}, Primitive("int")),
    ],
)
def test_a_type_is_read_and_an_invalid_logical_type_counts_as_none(schema: Any, expected: AvroType) -> None:
    assert parsed(schema) == expected


def test_a_name_means_the_type_of_its_namespace() -> None:
    schema = record(
        {"type": "fixed", "name": "F", "size": 1}, "F", "a.F", {"type": "fixed", "name": "b.F", "size": 2}, "b.F"
    )
    root = parsed({**schema, "namespace": "a"})
    assert isinstance(root, RecordType)
    assert root.name == "a.R"
    assert [field.type for field in root.fields] == [
        FixedBytes(1),
        FixedBytes(1),
        FixedBytes(1),
        FixedBytes(2),
        FixedBytes(2),
    ]


def test_a_name_means_the_type_of_its_namespace_before_one_without_a_namespace() -> None:
    without = {"type": "fixed", "name": "F", "size": 1, "namespace": ""}
    inside = {"type": "fixed", "name": "F", "size": 2}
    root = parsed({**record(without, inside, "F"), "name": "a.R"})
    assert isinstance(root, RecordType)
    assert [field.type for field in root.fields] == [FixedBytes(1), FixedBytes(2), FixedBytes(2)]


def test_a_type_may_contain_itself() -> None:
    root = parsed(record("long", ["null", "R"]))
    assert isinstance(root, RecordType)
    assert root.fields[1].type == Union((Primitive("null"), root))


def test_a_schema_uses_the_types_of_its_references() -> None:
    reference = json.dumps({"type": "fixed", "name": "other.F", "size": 5})
    root = parse_avro(json.dumps(record("other.F")), [reference])
    assert isinstance(root, RecordType)
    assert root.fields[0].type == FixedBytes(5)


DEEP: Any = "int"
for _ in range(200):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (3, "an Avro type is"),
        (None, "an Avro type is"),
        ({}, "an Avro type is"),
        ({"type": None}, "an Avro type is"),
        ("lang", "does not declare"),
        ({"type": "lang"}, "does not declare"),
        ({"type": "array"}, "an Avro type is"),
        ({"type": "record", "name": "R"}, "`fields`"),
        ({"type": "record", "fields": []}, "`name`"),
        ({"type": "record", "name": "R", "fields": [3]}, "not an object"),
        ({"type": "record", "name": "R", "fields": [{"type": "int"}]}, "`name`"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2}, "same name"),
        ({"type": "record", "name": "R", "fields": [{"name": "\ud800", "type": "int"}]}, "`name`"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "aliases": "b"}]}, "`aliases`"),
        (record(record("int")), "twice"),
        ([["null"], "int"], "union"),
        ({"type": "enum", "name": "E", "symbols": [1]}, "`symbols`"),
        ({"type": "fixed", "name": "F", "size": -1}, "size"),
        ({"type": "fixed", "name": "F", "size": True}, "size"),
        ({"type": "fixed", "name": "F"}, "size"),
        (DEEP, "deeper"),
    ],
)
def test_an_invalid_schema_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parsed(schema)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00", "NaN"])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_avro(text)


NAMES = st.sampled_from(
    ["type", "name", "fields", "items", "values", "symbols", "size", "logicalType", "aliases", "scale"]
)
WORDS = st.sampled_from(["record", "array", "map", "enum", "fixed", "int", "bytes", "decimal", "null", "R", "", "a.b"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(schema=JSON)
def test_any_json_gives_columns_or_an_error(schema: Any) -> None:
    with suppress(InvalidSchema):
        columns_of_avro(parsed(schema))


def test_records_inside_each_other_are_limited_whichever_schema_declares_them() -> None:
    references = [
        json.dumps({**record(f"Level{level - 1}" if level else "int"), "name": f"Level{level}"})
        for level in range(2000)
    ]
    for levels in (40, 1999):
        [column] = columns_of_avro(parse_avro(f'"Level{levels}"', references))
        assert column.name == "f0"
        assert nesting(column.type) <= MAX_NESTING


def test_nested_use_of_types_cannot_multiply_without_limit() -> None:
    # Each record has two fields of the type before it: 2^40 fields in the end.
    schema: Any = "int"
    for level in range(40):
        inner = f"R{level - 1}" if level else "int"
        schema = {**record(schema, inner), "name": f"R{level}"}
    with pytest.raises(InvalidSchema, match="more than 10000 fields"):
        columns_of_avro(parsed(schema))


def test_lists_inside_each_other_are_limited_also_if_several_records_declare_them() -> None:
    schema: Any = "int"
    declared: list[str] = []
    for level in range(10):
        for _ in range(60):
            schema = {"type": "array", "items": schema}
        schema = {**record(schema), "name": f"R{level}"}
        declared.append(json.dumps(schema))
        schema = f"R{level}"
    for levels in (1, 9):
        [column] = columns_of_avro(parse_avro(f'"R{levels}"', declared))
        assert column.name == "f0"
        assert nesting(column.type) <= MAX_NESTING
