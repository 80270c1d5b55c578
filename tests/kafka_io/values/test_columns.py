"""A column never changes its type: a field goes into a column that holds it, or into a new one."""

from functools import partial

import pyarrow as pa
import pytest

from kafka_io.errors import InvalidSchema
from kafka_io.values.column_types import TYPE, holds, is_union
from kafka_io.values.columns import COMMENT, FIELD, assign, assign_members, described, grow, grow_until_stable

RECORD = pa.struct([("a", pa.int64())])
LONG, DOUBLE, TEXT, BYTES = pa.int64(), pa.float64(), pa.string(), pa.binary()


def union(*members: pa.DataType) -> pa.DataType:
    """The type of a union's column. Its members say that their types have no names of their own."""
    return pa.struct(
        [pa.field(f"member{index}", member, True, {TYPE: b"null"}) for index, member in enumerate(members)]
    )


def test_a_record_whose_fields_have_the_names_of_members_is_no_union() -> None:  # fault A29
    record = pa.struct([("member0", TEXT)])
    assert (is_union(record), is_union(union(TEXT)), is_union(pa.struct([]))) == (False, True, False)
    columns = grow(pa.schema([]), [pa.field("x", record)])
    renamed = described("x", pa.struct([described("list", TEXT, aliases=("member0",))]))
    assert grow(columns, [renamed]).field("x").type == columns.field("x").type


@pytest.mark.parametrize(
    ("column", "field", "expected"),
    [
        (DOUBLE, LONG, True),
        (LONG, DOUBLE, False),
        (TEXT, BYTES, True),
        (BYTES, TEXT, True),
        (LONG, TEXT, False),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
        (pa.decimal128(38, 2), pa.decimal128(38, 3), False),
        (pa.list_(DOUBLE), pa.list_(pa.field("element", LONG)), True),
        (pa.list_(LONG), LONG, False),
        (pa.map_(TEXT, DOUBLE), pa.map_(TEXT, LONG), True),
        (pa.map_(TEXT, LONG), pa.list_(LONG), False),
        (pa.struct([("a", LONG)]), pa.struct([("b", TEXT)]), True),
        (pa.struct([("a", LONG)]), union(LONG), False),
        (union(LONG, TEXT), TEXT, True),
        (union(LONG, TEXT), pa.struct([("a", LONG)]), False),
        (union(LONG), union(TEXT), True),
    ],
)
def test_a_column_holds_what_avro_promotes_to_its_type(column: pa.DataType, field: pa.DataType, expected: bool) -> None:
    assert holds(column, field) is expected


def test_a_field_whose_type_changes_gets_another_column_and_keeps_the_first() -> None:
    first = grow(pa.schema([]), [pa.field("price", LONG)])
    second = grow(first, [pa.field("price", TEXT)])
    assert second.names == ["price", "price_2"]
    assert second.field("price_2").metadata == {FIELD: b"price"}
    third = grow(second, [pa.field("price", pa.bool_())])
    assert third.names == ["price", "price_2", "price_3"]
    for kind, name in ((LONG, "price"), (TEXT, "price_2"), (pa.bool_(), "price_3")):
        assert assign([pa.field("price", kind)], third) == [third.names.index(name)]
        assert grow(third, [pa.field("price", kind)]).equals(third, check_metadata=True)


def test_a_renamed_field_with_an_alias_stays_in_its_column() -> None:
    columns = grow(pa.schema([]), [pa.field("customer", TEXT)])
    renamed = described("client", TEXT, aliases=["buyer", "customer"])
    assert grow(columns, [renamed]).names == ["customer"]


def test_a_column_with_an_alias_takes_values_of_the_old_name() -> None:
    columns = grow(pa.schema([]), [described("client", TEXT, aliases=["customer"], comment="who pays")])
    assert columns.field("client").metadata[COMMENT] == b"who pays"
    assert grow(columns, [pa.field("customer", TEXT)]).names == ["client"]


def test_names_are_unique_without_regard_to_case() -> None:
    columns = grow(pa.schema([]), [pa.field("id", LONG), pa.field("ID", LONG)])
    assert columns.names == ["id", "ID_2"]
    assert assign([pa.field("ID", LONG), pa.field("Id", LONG)], columns) == [1, None]


def test_a_column_takes_the_field_of_its_own_name_before_one_with_its_name_as_an_alias() -> None:
    columns = grow(pa.schema([]), [pa.field("customer", TEXT)])
    fields = [described("client", TEXT, aliases=["customer"]), pa.field("customer", TEXT)]
    assert assign(fields, columns) == [None, 0]
    assert grow(columns, fields).names == ["customer", "client"]


def test_a_name_that_delta_refuses_is_written_with_underscores() -> None:
    columns = grow(pa.schema([]), [pa.field("unit price;eur", LONG), pa.field("", LONG)])
    assert columns.names == ["unit_price_eur", "_"]
    assert grow(columns, [pa.field("unit price;eur", LONG)]) == columns


def test_structs_grow_at_any_depth() -> None:
    inner = pa.struct([("a", LONG)])
    columns = grow(pa.schema([]), [pa.field("x", pa.list_(pa.field("element", pa.map_(TEXT, inner))))])
    wider = pa.struct([("a", TEXT), ("b", LONG)])
    grown = grow(columns, [pa.field("x", pa.list_(pa.field("element", pa.map_(TEXT, wider))))])
    assert [field.name for field in grown.field("x").type.value_type.item_type] == ["a", "a_2", "b"]


def test_a_union_grows_by_types_in_whatever_order_they_stand() -> None:
    columns = grow(pa.schema([]), [pa.field("x", union(LONG, TEXT))])
    grown = grow(columns, [pa.field("x", union(TEXT, pa.bool_(), LONG))])
    assert grown.field("x").type.equals(union(LONG, TEXT, pa.bool_()))
    assert is_union(grown.field("x").type)
    assert grow(grown, [pa.field("x", LONG)]) == grown


@pytest.mark.parametrize(("wide", "narrow"), [(DOUBLE, LONG), (TEXT, BYTES), (BYTES, TEXT)])
def test_a_type_goes_into_the_member_of_exactly_this_type_wherever_the_member_is(
    wide: pa.DataType, narrow: pa.DataType
) -> None:
    """A long in a member of doubles would lose digits, and bytes in a member of texts fail if they are no UTF-8."""
    for place in ("member0", "member1", "member2"):
        assert assign_members([pa.field(place, narrow)], list(union(wide, narrow))) == [1]


@pytest.mark.parametrize(("wide", "narrow"), [(DOUBLE, LONG), (TEXT, BYTES), (BYTES, TEXT)])
def test_a_union_of_a_type_and_of_one_that_holds_it_has_a_member_for_each(
    wide: pa.DataType, narrow: pa.DataType
) -> None:
    columns = grow(pa.schema([]), [pa.field("x", union(pa.bool_(), wide))])
    assert grow(columns, [pa.field("x", union(pa.bool_(), narrow))]) == columns
    grown = grow(columns, [pa.field("x", union(pa.bool_(), narrow, wide))])
    assert grown.field("x").type.equals(union(pa.bool_(), wide, narrow))
    assert grow(grown, [pa.field("x", union(wide, narrow))]) == grown


def test_records_without_names_go_into_the_members_of_their_places() -> None:
    """Any struct holds any record, so a member that happens to have the same fields is not the right one."""
    old, new = pa.struct([("a", LONG)]), pa.struct([("a", LONG), ("b", LONG)])
    assert assign_members([pa.field("member0", old)], list(union(new, old))) == [0]


def named(place: int, *type_names: str, kind: pa.DataType = RECORD) -> pa.Field:
    """A type of a union with its names."""
    return described(f"member{place}", kind, type_names=type_names)


@pytest.mark.parametrize(
    ("types", "members", "expected"),
    [
        (["a.A", "a.B"], ["a.B", "a.A"], [1, 0]),
        (["b.A"], ["a.A", "b.A"], [1]),
        (["b.A"], ["a.A", "c.A"], [0]),
        (["b.A", "a.A"], ["a.A"], [None, 0]),
        (["b.A", "c.A"], ["a.A"], [0, None]),
        (["a.C"], ["a.A", "a.B"], [None]),
        (["a.New,a.Old"], ["a.Other", "a.Old"], [1]),
        (["a.Old"], ["a.Other", "a.New,a.Old"], [1]),
        (["b.Old"], ["a.Other", "a.New,a.Old"], [1]),
        (["a.New,a.Old", "a.Old"], ["a.Old"], [None, 0]),
        (["A"], ["a.A"], [0]),
    ],
)
def test_a_type_with_a_name_goes_into_the_member_of_its_full_name_or_else_of_its_unqualified_name(
    types: list[str], members: list[str], expected: list[int | None]
) -> None:
    of_names = [[named(place, names) for place, names in enumerate(each)] for each in (types, members)]
    assert assign_members(*of_names) == expected


def test_a_type_with_a_name_and_one_without_a_name_never_share_a_member() -> None:
    """An enum is a text in its column, and a fixed type is bytes, but neither is the text or the bytes of the union."""
    text, enum = named(0, "string", kind=TEXT), named(1, "a.Enum", kind=TEXT)
    assert assign_members([enum, text], [text, enum]) == [1, 0]
    assert assign_members([enum], [text]) == [None]
    assert assign_members([text], [enum]) == [None]
    kind = grow(pa.schema([pa.field("x", pa.struct([text]))]), [described("x", TEXT, type_names=["a.Enum"])])[0].type
    assert [member.metadata[TYPE] for member in kind] == [b"string", b"a.Enum"]
    grown = grow(pa.schema([pa.field("x", kind)]), [described("x", TEXT, type_names=["b.Enum"], aliases=["y"])])
    assert grown == pa.schema([pa.field("x", kind)])


def test_the_members_of_a_new_column_keep_the_names_of_their_types_and_other_columns_do_not_have_them() -> None:
    members = pa.struct([named(0, "a.A"), named(1, "a.B")])
    fields = [described("plain", RECORD, type_names=["a.A"]), pa.field("items", pa.list_(pa.field("item", members)))]
    plain, items = grow(pa.schema([]), fields)
    assert plain.metadata is None
    assert [member.metadata[TYPE] for member in items.type.value_type] == [b"a.A", b"a.B"]


def test_an_outermost_union_grows_by_types_as_a_union_in_a_column_does() -> None:
    columns = grow(pa.schema([pa.field("id", LONG)]), [named(0, "a.A"), named(1, "long", kind=LONG)])
    assert columns.names == ["id", "member0", "member1"]
    types = [named(0, "long", kind=LONG), named(1, "a.B"), named(2, "b.A")]
    grown = grow(columns, types)
    assert grown.names == ["id", "member0", "member1", "member2"]
    assert assign(types, grown) == [2, 3, 1]
    assert grow(grown, types).equals(grown, check_metadata=True)


def test_a_record_in_a_union_grows_in_its_member() -> None:
    columns = grow(pa.schema([]), [pa.field("x", union(LONG, pa.struct([("a", LONG)])))])
    grown = grow(columns, [pa.field("x", pa.struct([("b", TEXT)]))])
    assert grown.field("x").type.equals(union(LONG, pa.struct([("a", LONG), ("b", TEXT)])))


def test_columns_grow_by_schemas_until_no_schema_adds_anything() -> None:
    """In the second round `old` leaves the column `new`, and takes its member `x` into its own column."""
    new, other = described("new", pa.struct([("c", LONG)])), described("old", pa.struct([("b", LONG)]))
    old = described("old", pa.struct([described("x", LONG)]), aliases=["new"])
    steps = [partial(grow, fields=[field]) for field in (new, old, other)]
    columns = grow_until_stable(pa.schema([]), steps)
    assert [(column.name, [member.name for member in column.type]) for column in columns] == [
        ("new", ["c", "x"]),
        ("old", ["b", "x"]),
    ]
    assert grow_until_stable(columns, steps).equals(columns, check_metadata=True)


def test_columns_that_grow_in_every_round_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="still need new columns after 100 rounds"):
        grow_until_stable(pa.schema([]), [lambda columns: columns.append(pa.field(f"f{len(columns)}", LONG))])
