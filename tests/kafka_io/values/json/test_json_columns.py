"""Columns of JSON values: from a JSON Schema, from the settings, from a sample."""

import json
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.values.json.decoder import JsonDecoder
from kafka_io.values.json.inference import (
    MAX_VALUES,
    columns_of_sample,
    fields_of_sample,
    grow_by_sample,
    merged_fields,
    without_empty,
)
from kafka_io.values.json.reading import JsonReading, json_field, json_text, reading_of
from kafka_io.values.json.schema import columns_of_json_schema
from kafka_io.values.json.settings import columns_of_settings

UTC = pa.timestamp("us", tz="UTC")


def property_column(schema: Any, **others: Any) -> pa.Field:
    """The column of a property `x` with this JSON Schema."""
    return columns_of_json_schema(json.dumps({"type": "object", "properties": {"x": schema}, **others})).field(0)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "integer"}, pa.int64()),
        ({"type": ["null", "integer", "number"]}, pa.float64()),
        ({"type": "string"}, pa.string()),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"type": "string", "format": "date-time"}, UTC),
        ({"type": "string", "format": "uuid"}, pa.string()),
        ({"type": "string", "contentEncoding": "base64"}, pa.binary()),
        ({"type": "boolean"}, pa.bool_()),
        ({"enum": ["a", "b", None]}, pa.string()),
        ({"const": 7}, pa.int64()),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, pa.int64()),
        ({"type": "array", "items": {"type": "string"}}, pa.list_(pa.string())),
        ({"type": "object", "additionalProperties": {"type": "number"}}, pa.map_(pa.string(), pa.float64())),
        ({"properties": {"y": {"type": "integer"}}}, pa.struct({"y": pa.int64()})),
        ({"$ref": "#/definitions/y"}, pa.date32()),
    ],
)
def test_a_property_becomes_a_column_of_its_type(schema: Any, kind: pa.DataType) -> None:
    field = property_column(schema, definitions={"y": {"type": "string", "format": "date"}})
    assert (field.type, reading_of(field), field.nullable) == (kind, None, True)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object"},
        {"type": "array"},
        {"type": "array", "items": [{"type": "string"}]},
        {"type": ["string", "integer"]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"enum": ["a", 1]},
        {"$ref": "#/definitions/nothing"},
        {"$ref": "unknown.json"},
        {"$ref": "#/properties/x"},
    ],
)
def test_what_is_not_understood_becomes_json_text(schema: Any) -> None:
    field = property_column(schema)
    assert (field.type, reading_of(field)) == (pa.string(), JsonReading.TEXT)


def test_a_schema_that_contains_itself_becomes_json_text_where_it_begins_again() -> None:
    node = {"type": "object", "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}
    columns = columns_of_json_schema(json.dumps({"$ref": "#/$defs/node", "$defs": {"node": node}}))
    assert columns.types == [pa.int64(), pa.string()]
    assert reading_of(columns.field("next")) is JsonReading.TEXT


def test_references_lead_into_other_schemas_and_back_to_their_own_definitions() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "other.json#/definitions/a~1b"}}}
    other = {"definitions": {"a/b": {"$ref": "#/definitions/c"}, "c": {"type": "boolean"}}}
    columns = columns_of_json_schema(json.dumps(schema), {"other.json": json.dumps(other)})
    assert columns.types == [pa.bool_()]


def test_logical_types_of_kafka_connect_are_numbers_since_1970() -> None:
    moment = property_column({"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp"})
    day = property_column({"type": "integer", "title": "org.apache.kafka.connect.data.Date"})
    assert (moment.type, reading_of(moment)) == (UTC, JsonReading.EPOCH_MILLIS)
    assert (day.type, reading_of(day)) == (pa.date32(), JsonReading.EPOCH_DAYS)


def test_a_description_becomes_the_comment_of_the_column() -> None:
    described = property_column({"type": "integer", "description": "what it is"})
    nullable = property_column({"oneOf": [{"type": "null"}, {"type": "integer"}], "description": "what it is"})
    assert described.metadata == nullable.metadata == {b"comment": b"what it is"}


@pytest.mark.parametrize(
    ("schema", "reason"), [("{", "not valid JSON"), ("true", "no object"), ('{"type": "string"}', "no object")]
)
def test_a_schema_without_columns_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        columns_of_json_schema(schema)


def test_columns_are_listed_in_the_settings() -> None:
    columns = columns_of_settings(
        {
            "id": "long",
            "amount": "DECIMAL(12, 2)",
            "at": {"type": "timestamp_ms", "comment": "when", "key": "placed-at"},
            "tags": "array<string>",
            "lines": "array<struct<sku: string, price: decimal(9,4), sent: date_days>>",
            "attributes": "map<string, json>",
        }
    )
    assert columns.equals(
        pa.schema(
            [
                pa.field("id", pa.int64()),
                pa.field("amount", pa.decimal128(38, 2)),
                pa.field("at", UTC, metadata={"comment": "when", "field": "placed-at", "json": "epoch-ms"}),
                pa.field("tags", pa.list_(pa.string())),
                pa.field(
                    "lines",
                    pa.list_(
                        pa.struct(
                            [
                                pa.field("sku", pa.string()),
                                pa.field("price", pa.decimal128(38, 4)),
                                json_field("sent", pa.date32(), JsonReading.EPOCH_DAYS),
                            ]
                        )
                    ),
                ),
                pa.field("attributes", pa.map_(pa.string(), json_text("value"))),
            ]
        ),
        check_metadata=True,
    )
    document = b'{"placed-at": 0, "lines": [{"sent": 1, "price": 1.5}], "attributes": {"a": [1]}}'
    [row] = JsonDecoder(columns).decode(pa.array([document], pa.binary())).rows.to_pylist()
    assert (row["at"].year, row["lines"][0]["sent"].day, row["attributes"]) == (1970, 2, [("a", "[1]")])


@pytest.mark.parametrize(
    "kind",
    ["", "text", "long long", "array", "array<>", "array<long", "map<long, long>", "struct<>", "struct<a long>",
     "struct<a: long,>", "decimal", "decimal(10, 39)", "array<" * 40 + "long" + ">" * 40],
)  # fmt: skip
def test_an_unknown_type_in_the_settings_is_refused_with_the_known_ones(kind: str) -> None:
    with pytest.raises(ValueError, match=r"column x has the unknown type .*; types are .*timestamp_ms"):
        columns_of_settings({"x": kind})


def test_an_unknown_option_of_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="column x has an unknown option typ; options are type, comment and key"):
        columns_of_settings({"x": {"typ": "long"}})
    with pytest.raises(ValueError, match="column x has no type"):
        columns_of_settings({"x": {}})
    with pytest.raises(ValueError, match="empty"):
        columns_of_settings({})


def sample(*documents: Any) -> list[bytes]:
    """Documents as values."""
    return [json.dumps(document).encode() for document in documents]


def test_a_sample_gives_the_narrowest_types_that_hold_it() -> None:
    values = sample(
        {"a": 1, "b": 1, "c": 2**63, "d": True, "e": "2024-01-01", "f": [1, None], "g": {"h": 1}, "i": None, "j": []},
        {"a": -1, "b": 1.5, "c": 1, "f": [2.5], "g": {"k": "x"}, "l": {}},
    )
    assert columns_of_sample([*values, None, b"{", b"[]"]) == pa.schema(
        {
            "a": pa.int64(),
            "b": pa.float64(),
            "c": pa.decimal128(38, 0),
            "d": pa.bool_(),
            "e": pa.string(),
            "f": pa.list_(pa.float64()),
            "g": pa.struct({"h": pa.int64(), "k": pa.string()}),
        }
    )


@pytest.mark.parametrize("others", [1, [1], {"a": 1}, True])
def test_values_of_several_types_become_json_text(others: Any) -> None:
    columns = columns_of_sample(sample({"x": "text"}, {"x": others}))
    assert (columns.field("x").type, reading_of(columns.field("x"))) == (pa.string(), JsonReading.TEXT)


def test_an_object_with_very_many_keys_becomes_json_text() -> None:
    columns = columns_of_sample(sample({"x": {str(number): number for number in range(300)}}))
    assert reading_of(columns.field("x")) is JsonReading.TEXT


def test_a_sample_is_bounded() -> None:
    values = sample(*({"a": 1} for _ in range(MAX_VALUES)), {"b": 1})
    assert columns_of_sample(values).names == ["a"]


def test_columns_only_grow_and_a_type_that_does_not_fit_gets_a_column_of_its_own() -> None:
    columns = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("day", pa.date32()),
            pa.field("price", pa.decimal128(38, 2)),
            json_text("any"),
            json_field("at", UTC, JsonReading.EPOCH_MILLIS),
            pa.field("lines", pa.list_(pa.struct({"sku": pa.string()}))),
            pa.field("counts", pa.map_(pa.string(), pa.int64())),
        ]
    )
    fitting = {"id": 1, "day": "x", "price": 1.5, "any": [], "at": 0, "lines": [{"sku": "a"}], "counts": {"a": 1}}
    assert grow_by_sample(columns, sample(fitting)).equals(columns, check_metadata=True)
    grown = grow_by_sample(columns, sample({"id": "x", "lines": [{"sku": "a", "count": 1}], "new": 1}))
    assert grown.names == [*columns.names, "id_2", "new"]
    assert grown.field("lines").type == pa.list_(pa.struct({"sku": pa.string(), "count": pa.int64()}))
    decoded = JsonDecoder(grown).decode(pa.array(sample({"id": "x"}, {"id": 1}), pa.binary()))
    assert (decoded.rows["id"].to_pylist(), decoded.rows["id_2"].to_pylist()) == ([None, 1], ["x", None])


def test_schemas_that_use_each_other_cannot_multiply_without_limit() -> None:
    """Each level has two properties of the next one: two million columns at 20 levels."""
    levels = {
        f"level{level}": {"properties": {name: {"$ref": f"#/$defs/level{level + 1}"} for name in "ab"}}
        for level in range(20)
    }
    definitions = {**levels, "level20": {"type": "integer"}}
    assert property_column({"$ref": "#/$defs/level10"}, **{"$defs": definitions}).type.num_fields == 2
    with pytest.raises(ValueError, match="the JSON Schema has more than 10000 fields"):
        property_column({"$ref": "#/$defs/level0"}, **{"$defs": definitions})


@pytest.mark.parametrize(
    ("shared", "kind"),
    [
        ({"enum": ["x"] * 5_000}, pa.string()),
        ({"type": ["null", "integer"] * 2_500}, pa.int64()),
        ({"oneOf": [{"type": "null"}] * 5_000 + [{"type": "integer"}]}, pa.int64()),
    ],
)
def test_a_long_list_that_many_fields_refer_to_is_read_once(  # fault H11
    shared: Any, kind: pa.DataType
) -> None:
    fields = 2_000
    properties = {f"field{number}": {"$ref": "#/$defs/shared"} for number in range(fields)}
    text = json.dumps({"properties": properties, "$defs": {"shared": shared}})
    steps = 0

    def step(_frame: Any, _event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)  # it is called for each line, also for each round of a comprehension
    try:
        columns = columns_of_json_schema(text)
    finally:
        sys.settrace(before)
    assert (len(columns), columns.field(0).type) == (fields, kind)
    assert steps < 250 * fields + 10 * 5_000  # a list for each field would be ten million


def test_an_inferred_decimal_holds_only_integers_and_other_values_of_the_key_get_columns_of_their_own() -> None:
    columns = grow_by_sample(pa.schema([]), sample({"x": 2**63}))
    assert columns.field("x").type == pa.decimal128(38, 0)
    grown = grow_by_sample(grow_by_sample(columns, sample({"x": 0.5})), sample({"x": "text"}))
    assert (grown.names, grown.types[1:]) == (["x", "x_2", "x_3"], [pa.float64(), pa.string()])
    decoded = JsonDecoder(grown).decode(pa.array(sample({"x": 2**63}, {"x": 0.5}, {"x": "text"}), pa.binary()))
    assert decoded.failures == []
    rows = [list(row.values()) for row in decoded.rows.to_pylist()]
    assert rows == [[Decimal(2**63), None, None], [None, 0.5, None], [None, None, "text"]]


def test_new_members_of_an_object_get_columns_even_if_the_key_also_has_a_column_of_json_text() -> None:
    """The struct is the first column of the key, so objects go into it."""
    text = {"field": "x", "json": "text"}
    inner = pa.struct([pa.field("x", pa.struct({"a": pa.int64()})), pa.field("x_2", pa.string(), metadata=text)])
    columns = pa.schema([*inner, pa.field("y", inner)])
    of_struct, of_text = {"a": 1, "b": 2}, 3
    documents = sample({"x": of_struct, "y": {"x": of_struct}}, {"x": of_text, "y": {"x": of_text}})
    grown = grow_by_sample(columns, documents[:1])
    assert grown.field("x").type == pa.struct({"a": pa.int64(), "b": pa.int64()})
    rows = JsonDecoder(grown).decode(pa.array(documents, pa.binary())).rows.to_pylist()
    in_columns = ({"x": of_struct, "x_2": None}, {"x": None, "x_2": str(of_text)})
    assert rows == [{**row, "y": row} for row in in_columns]


HOLDERS = {
    "id": pa.int64(),
    "text": pa.string(),
    "day": pa.date32(),
    "price": pa.decimal128(38, 2),
    "place": pa.struct({"city": pa.string()}),
    "tags": pa.list_(pa.string()),
    "lists": pa.list_(pa.list_(pa.int64())),
    "lines": pa.list_(pa.struct({"sku": pa.string()})),
    "counts": pa.map_(pa.string(), pa.int64()),
}


@pytest.mark.parametrize(
    ("value", "held_by"),
    [
        (None, {*HOLDERS}),
        ({}, {"place", "counts"}),
        ([], {"tags", "lists", "lines"}),
        ([None], {"tags", "lists", "lines"}),
        ([[]], {"lists"}),
        ([{}], {"lines"}),
        ({"other": {}}, {"place"}),
        ([{"other": []}, None], {"lines"}),
    ],
)
def test_an_empty_value_goes_into_a_column_that_holds_it_or_into_one_of_json_text(value: Any, held_by: Any) -> None:
    columns = pa.schema(HOLDERS)
    for name in HOLDERS:
        values = sample({name: value, "unknown": value})
        grown = grow_by_sample(columns, values)
        assert grown.names == [*HOLDERS, *([] if name in held_by else [f"{name}_2"])]
        assert grow_by_sample(grown, values).equals(grown, check_metadata=True)
        decoded = JsonDecoder(grown).decode(pa.array(values, pa.binary()))
        assert decoded.failures == []
        if name not in held_by:
            assert decoded.rows.to_pylist()[0] == {**dict.fromkeys(grown.names), f"{name}_2": json.dumps(value)}


def test_members_of_structs_get_columns_for_empty_values_in_the_same_way() -> None:
    columns = grow_by_sample(pa.schema([]), sample({"x": {"a": 1, "b": {}}, "y": [{"a": 1}]}))
    assert columns == pa.schema({"x": pa.struct({"a": pa.int64()}), "y": pa.list_(pa.struct({"a": pa.int64()}))})
    documents = sample({"x": {"a": {}, "b": {}}, "y": [{"a": []}, {"a": 2}]})
    grown = grow_by_sample(columns, documents)
    rows = JsonDecoder(grown).decode(pa.array(documents, pa.binary())).rows.to_pylist()
    assert rows == [{"x": {"a": None, "a_2": "{}"}, "y": [{"a": None, "a_2": "[]"}, {"a": 2, "a_2": None}]}]


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        ({}, {"a": 1}, pa.struct({"a": pa.int64()})),
        ([], [1], pa.list_(pa.int64())),
        ([{}], [{"a": 1}], pa.list_(pa.struct({"a": pa.int64()}))),
        ({"a": []}, {"b": 1}, pa.struct({"b": pa.int64()})),
        ({}, 1, pa.string()),
        ([], {"a": 1}, pa.string()),
        ([{}], [1], pa.string()),
        ({}, [], pa.string()),
    ],
)
def test_two_samples_give_the_field_of_one_sample_with_the_values_of_both(
    left: Any, right: Any, merged: pa.DataType
) -> None:
    values = sample({"x": left}, {"x": right})
    for first, second in (values, values[::-1]):
        fields = merged_fields([fields_of_sample([first]), fields_of_sample([second])])
        assert without_empty(fields) == list(columns_of_sample([first, second]))
        assert fields[0].type == fields_of_sample([first, second])[0].type
        assert without_empty(fields)[0].type == merged


DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcXYZ "), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.dictionaries(st.sampled_from("abcA"), DOCUMENTS, max_size=4), min_size=1, max_size=5))
def test_a_sample_decodes_with_its_own_columns(documents: list[dict[str, Any]]) -> None:
    """Spark does not distinguish names by case, so some columns have other names than their keys."""
    values = [json.dumps(document).encode() for document in documents]
    columns = grow_by_sample(pa.schema([]), values)
    assert grow_by_sample(columns, values).equals(columns, check_metadata=True)
    decoded = JsonDecoder(columns).decode(pa.array(values, pa.binary()))
    assert decoded.failures == []


BASE = "https://example.org/schemas/"
PLACE = {"type": "object", "properties": {"code": {"$ref": "#/$defs/number"}}, "$defs": {"number": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        ({"$id": BASE + "a.json", "$defs": {"p": PLACE, "number": {"type": "integer"}},
          "properties": {"x": {"$ref": BASE + "a.json#/$defs/p"}}}, {}),
        ({"$id": BASE + "a.json", "$defs": {"p": {"$id": "p.json", **PLACE}},
          "properties": {"x": {"$ref": BASE + "p.json"}}}, {}),
        ({"$id": BASE + "a.json", "properties": {"x": {"$ref": "p.json"}}}, {"any": {"$id": BASE + "p.json", **PLACE}}),
        ({"$id": BASE + "a.json", "properties": {"x": {"$ref": "p.json"}}}, {BASE + "p.json": PLACE}),
        ({"properties": {"x": {"$ref": BASE + "p.json#"}}}, {"p": {"id": BASE + "p.json#", **PLACE}}),
        ({"properties": {"x": {"$ref": "p.json"}}}, {"p.json": PLACE}),
    ],
)  # fmt: skip
def test_a_reference_to_an_absolute_url_is_followed(  # fault F15
    schema: dict[str, Any], references: dict[str, dict[str, Any]]
) -> None:
    texts = {name: json.dumps(reference) for name, reference in references.items()}
    assert columns_of_json_schema(json.dumps(schema), texts).field("x").type == pa.struct({"code": pa.int64()})


@pytest.mark.parametrize("id_", [7, [], "a b", "http://[", ""])
def test_an_id_that_is_no_url_leads_nowhere(id_: Any) -> None:
    schema = json.dumps({"$id": id_, "properties": {"x": {"$ref": "other.json"}, "y": {"$id": id_}}})
    assert reading_of(columns_of_json_schema(schema).field("x")) is JsonReading.TEXT
