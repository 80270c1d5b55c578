"""Columns of a typed table only grow, keep their types, and never take the names of Penstock's own columns."""

from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import InvalidSchema
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.columns import FIELD, assign, described
from kafka_io.values.json.inference import grow_by_fields
from kafka_io.values.json.reading import json_text
from pipelines.fetch.decode_plan import plan_decoding
from pipelines.fetch.formats import avro_type
from pipelines.layout.columns import ColumnConflict, grown, missing_columns, rename_warnings, with_columns
from pipelines.layout.layout import TYPED, TableLayout
from resources.settings.topic_formats import TopicFormat

LONG, TEXT = pa.int64(), pa.string()
NESTED = (LONG, pa.struct([("x", LONG)]), pa.list_(LONG), pa.map_(TEXT, LONG))
RESERVED = TYPED.taken
TYPES = st.sampled_from([LONG, TEXT, pa.float64(), pa.decimal128(38, 2), pa.struct([("a", LONG)]), pa.list_(LONG)])
NAMES = st.sampled_from(["price", "Price", "price_2", "_error", "_kafka_offset", "_KAFKA_key", "a b", ""])
FIELDS = st.lists(st.tuples(NAMES, TYPES), max_size=5).map(
    lambda pairs: [described(*pair) for pair in dict(pairs).items()]
)


@given(st.lists(FIELDS, max_size=4))
def test_columns_only_grow_and_every_field_has_one_of_its_own(changes: list[list[pa.Field]]) -> None:
    columns = pa.schema([])
    for fields in changes:
        after = grown(columns, fields, RESERVED)
        assert list(after)[: len(columns)] == list(columns) or any(pa.types.is_struct(c.type) for c in columns)
        assert after.names[: len(columns)] == columns.names
        names = [name.casefold() for name in (*after.names, *RESERVED)]
        assert len(set(names)) == len(names)
        assert not any(name.casefold().startswith("_kafka_") for name in after.names)
        for field in fields:
            [place] = assign([field], after)
            assert place is not None
            column = after.field(place)
            assert column.metadata is None or column.metadata.get(FIELD, field.name.encode()) == field.name.encode()
        assert grown(after, fields, RESERVED).equals(after, check_metadata=True)
        assert with_columns(columns, missing_columns(columns, after)).equals(after)
        columns = after


def test_a_field_that_comes_back_with_another_type_gets_another_column_and_a_warning() -> None:
    before = pa.schema([("price", LONG)])
    fields = [described("price", TEXT)]
    after = grown(before, fields)
    assert after.names == ["price", "price_2"]
    assert list(rename_warnings(before, after)) == [
        "the field 'price' had the type int64 before: the new column price_2 holds it, with the type string"
    ]
    assert list(rename_warnings(after, after)) == []
    assert grown(after, [described("price", LONG)]).names == ["price", "price_2"]


@pytest.mark.parametrize(
    ("field", "column"), [("_error", "value_error"), ("_kafka_offset", "value_kafka_offset"), ("_Raw", "value_Raw")]
)
def test_a_field_with_a_reserved_name_gets_value_in_front_of_it(field: str, column: str) -> None:
    after = grown(pa.schema([]), [described(field, LONG)], RESERVED)
    assert after.names == [column]
    assert grown(after, [described(field, LONG)], RESERVED).names == [column]
    assert grown(after, [described(field, TEXT)], RESERVED).names == [column, f"{column}_2"]


def test_a_reserved_name_whose_column_holds_json_text_gets_no_second_column() -> None:
    """The rules of the samples decide which column holds a field, and they are not those of the schemas."""
    columns = grown(pa.schema([]), [json_text("_error")], RESERVED, grow_by_fields)
    assert columns.names == ["value_error"]
    for kind in (LONG, pa.float64(), pa.struct([("a", LONG)])):
        assert grown(columns, [described("_error", kind)], RESERVED, grow_by_fields) == columns


def test_a_name_of_a_column_that_penstock_did_not_add_is_taken() -> None:
    assert grown(pa.schema([]), [described("day", LONG)], ["Day"]).names == ["day_2"]


@pytest.mark.parametrize(
    ("present", "of_file", "missing"),
    [
        ([("a", LONG)], [("a", LONG)], []),
        ([("a", LONG)], [("b", TEXT)], [("b", TEXT)]),
        ([("a", LONG), ("b", TEXT)], [("b", TEXT)], []),
        (
            [("s", pa.struct([("x", LONG)]))],
            [("s", pa.struct([("y", TEXT)]))],
            [("s", pa.struct([("x", LONG), ("y", TEXT)]))],
        ),
        ([("s", pa.struct([("x", LONG), ("y", TEXT)]))], [("s", pa.struct([("y", TEXT)]))], []),
        (
            [("s", pa.list_(pa.struct([("x", LONG)])))],
            [("s", pa.list_(pa.struct([("y", LONG)])))],
            [("s", pa.list_(pa.struct([("x", LONG), ("y", LONG)])))],
        ),
        (
            [("s", pa.map_(TEXT, pa.struct([("x", LONG)])))],
            [("s", pa.map_(TEXT, pa.struct([("y", LONG)])))],
            [("s", pa.map_(TEXT, pa.struct([("x", LONG), ("y", LONG)])))],
        ),
    ],
)
def test_a_commit_adds_what_its_files_have_and_the_table_lacks(
    present: list[tuple[str, pa.DataType]],
    of_file: list[tuple[str, pa.DataType]],
    missing: list[tuple[str, pa.DataType]],
) -> None:
    assert missing_columns(pa.schema(present), pa.schema(of_file)) == pa.schema(missing)


@pytest.mark.parametrize(
    ("present", "of_file"),
    [
        (pa.field("a", LONG), pa.field("a", TEXT)),
        (pa.field("a", LONG), pa.field("A", LONG)),
        (pa.field("a_2", LONG, metadata={FIELD: b"a"}), pa.field("a_2", LONG)),
        (pa.field("s", pa.struct([("x", LONG)])), pa.field("s", pa.struct([("x", TEXT)]))),
        (pa.field("s", pa.struct([("x", LONG)])), pa.field("s", pa.struct([("X", LONG)]))),
        (pa.field("s", pa.list_(LONG)), pa.field("s", pa.list_(TEXT))),
        (pa.field("s", pa.map_(TEXT, LONG)), pa.field("s", pa.map_(TEXT, TEXT))),
        *((pa.field("s", present), pa.field("s", of_file)) for present, of_file in permutations(NESTED, 2)),
        (pa.field("a", LONG), pa.field("_kafka_offset", LONG)),
    ],
)
def test_a_file_whose_column_is_another_one_in_the_table_does_not_fit_it(present: pa.Field, of_file: pa.Field) -> None:
    with pytest.raises(ColumnConflict):
        missing_columns(pa.schema([present]), pa.schema([of_file]), RESERVED)


def test_a_conflict_says_whether_the_type_or_the_field_differs() -> None:
    with pytest.raises(ColumnConflict, match=r"^the table has a column A for the field A, not for a$"):
        missing_columns(pa.schema([("A", LONG)]), pa.schema([("a", LONG)]))
    with pytest.raises(ColumnConflict, match=r"^the table has a column a of type int64, not string$"):
        missing_columns(pa.schema([("a", LONG)]), pa.schema([("a", TEXT)]))


def test_a_column_keeps_the_members_that_nothing_declares_any_more() -> None:
    both = pa.struct([("city", TEXT), ("zip", TEXT)])
    layout = TableLayout(is_typed=True, values=pa.schema([described("place", both)]))
    format_ = TopicFormat(format="json", columns={"place": "struct<city: string>"})
    decode_plan, _ = plan_decoding(format_, layout)
    assert decode_plan is not None
    assert decode_plan.values.field("place").type.get_field_index("zip") >= 0


def test_a_schema_of_another_type_is_refused_also_if_its_text_is_valid() -> None:
    schema = RegisteredSchema(id=7, schema_type=SchemaType.JSON, text='"string"')
    with pytest.raises(InvalidSchema, match="the schema 7 has the type JSON, but the format needs Avro"):
        avro_type(schema)
