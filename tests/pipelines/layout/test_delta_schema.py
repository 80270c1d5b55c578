"""Columns survive the way into Delta's schema and back, with their comments and the names of their fields."""

import json

import pyarrow as pa
import pytest
from deltalake import Schema
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.values.columns import FIELD, described
from pipelines.layout.delta_schema import arrow_columns, delta_fields
from pipelines.layout.layout import RAW, TYPED, TableLayout

SIMPLE = st.sampled_from(
    [
        *(pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us", tz="UTC"), pa.decimal128(38, 0), pa.decimal128(38, 9)),
    ]
)
TYPES = st.recursive(
    SIMPLE,
    lambda inner: (
        inner.map(lambda kind: pa.list_(pa.field("element", kind)))
        | inner.map(lambda kind: pa.map_(pa.string(), kind))
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([described(f"m{number}", kind) for number, kind in enumerate(kinds)])
        )
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(TYPES, st.text(max_size=5), st.sampled_from(["", "price"])), max_size=4))
def test_columns_are_the_same_after_deltalake_has_written_their_schema(
    columns: list[tuple[pa.DataType, str, str]],
) -> None:
    fields = []
    for number, (kind, comment, field) in enumerate(columns):
        column = described(f"c{number}", kind, comment=comment, aliases=["old"])
        fields.append(column.with_metadata({**column.metadata, FIELD: field.encode()}) if field else column)
    schema = pa.schema(fields)
    written = Schema.from_json(json.dumps({"type": "struct", "fields": delta_fields(schema)})).to_json()
    assert arrow_columns(json.loads(written)["fields"]).equals(schema, check_metadata=True)


def test_the_comment_of_a_column_has_the_key_that_every_engine_shows() -> None:
    [field] = delta_fields([described("price", pa.int64(), comment="in cents")])
    assert field == {"name": "price", "type": "long", "nullable": True, "metadata": {"comment": "in cents"}}


def test_elements_may_be_null() -> None:
    fields = delta_fields([pa.field("a", pa.list_(pa.int64())), pa.field("b", pa.map_(pa.string(), pa.int64()))])
    assert [field["type"] for field in fields] == [
        {"type": "array", "elementType": "long", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    ]


def test_a_layout_is_read_from_the_schema_of_its_table() -> None:
    price = described("price", pa.int64(), comment="in cents")
    values = pa.schema([price, pa.field("price_2", pa.string(), metadata={FIELD: b"price"})])
    layout = TableLayout(is_typed=True, values=values)
    read = TableLayout.of_delta(Schema.from_arrow(layout.table_schema).to_json())
    assert read == layout
    assert read.values.equals(values, check_metadata=True)
    assert TableLayout.of_delta(Schema.from_arrow(RAW.table_schema).to_json()) == RAW


@pytest.mark.parametrize(
    "kind",
    [
        pa.int32(),
        pa.list_(pa.int32()),
        pa.map_(pa.string(), pa.int32()),
        pa.map_(pa.int32(), pa.string()),
        pa.struct([("a", pa.int64()), ("b", pa.int32())]),
    ],
    ids=str,
)
def test_a_column_of_another_program_is_left_as_it_is(kind: pa.DataType) -> None:
    columns = [*TYPED.table_schema, pa.field("theirs", kind)]
    assert TableLayout.of_delta(Schema.from_arrow(pa.schema(columns)).to_json()).others == ("theirs",)
