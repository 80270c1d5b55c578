"""Avro values to rows: columns of every type, writers' schemas that change, and values that nobody should have sent."""

import io
import json
import struct
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder, warm
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.columns import grow
from kafka_io.values.decoding import DecodedValues
from kafka_io.values.kernels import avro_rows, frames
from kafka_io.values.kernels.avro_program import FREE_ITEMS, MAX_DEPTH
from tests.kafka_io.values.avro.making import framed, varint

LONG, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()


def record(**fields: Any) -> dict[str, Any]:
    """A record; a field is a type, or a whole declaration with `type`, `doc` or `aliases` beside a type."""
    declared = [field if isinstance(field, dict) and "of" in field else {"of": field} for field in fields.values()]
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": field["of"], **field} for name, field in zip(fields, declared, strict=True)],
    }


def encoded(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def decoder(columns: pa.Schema | None, *schemas: Any) -> AvroDecoder:
    """A decoder whose schemas have the ids 1, 2 ...; the columns are those of the first by default."""
    types = [parse_avro(json.dumps(schema)) for schema in schemas]
    chosen = columns if columns is not None else grow(pa.schema([]), columns_of_avro(types[0]))
    return AvroDecoder(chosen, dict(enumerate(types, 1)))


def binary(values: Iterable[bytes | None]) -> pa.BinaryArray:
    return pa.array(list(values), pa.binary())


def decode_bodies(schema: Any, *bodies: bytes, columns: pa.Schema | None = None) -> DecodedValues:
    decoded = decoder(columns, schema).decode(binary(framed(1, body) for body in bodies))
    decoded.rows.validate(full=True)
    return decoded


def rows_of(schema: Any, *values: Any, columns: pa.Schema | None = None) -> list[Any]:
    """The rows of values that fastavro writes; none may fail."""
    decoded = decode_bodies(schema, *(encoded(schema, value) for value in values), columns=columns)
    assert decoded.failures == []
    rows: list[Any] = decoded.rows.to_pylist()
    return rows


def reasons(decoded: DecodedValues) -> Mapping[int, str]:
    return {failure.row: failure.reason for failure in decoded.failures}


MOMENT = datetime(2013, 1, 1, 5, 17, 0, 123456, UTC)
CASES: list[tuple[Any, Any, pa.DataType, Any]] = [
    ("boolean", True, pa.bool_(), True),
    ("int", -(2**31), LONG, -(2**31)),
    ("long", 2**63 - 1, LONG, 2**63 - 1),
    ("float", 0.1, DOUBLE, struct.unpack("f", struct.pack("f", 0.1))[0]),
    ("double", 5e-324, DOUBLE, 5e-324),
    ("bytes", b"\xff\0", pa.binary(), b"\xff\0"),
    ("string", "\U0001f600", TEXT, "\U0001f600"),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(), b"ab"),
    ({"type": "enum", "name": "E", "symbols": ["A", "BC"]}, "BC", TEXT, "BC"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-12.34"), pa.decimal128(38, 2),
     Decimal("-12.34")),
    ({"type": "fixed", "name": "F", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 0},
     Decimal(10**38 - 1), pa.decimal128(38, 0), Decimal(10**38 - 1)),
    ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), TEXT, str(uuid.UUID(int=7))),
    ({"type": "int", "logicalType": "date"}, date(1900, 2, 28), pa.date32(), date(1900, 2, 28)),
    ({"type": "int", "logicalType": "time-millis"}, MOMENT.time(), LONG, 19_020_123_000),
    ({"type": "long", "logicalType": "time-micros"}, MOMENT.time(), LONG, 19_020_123_456),
    ({"type": "long", "logicalType": "timestamp-millis"}, MOMENT, pa.timestamp("us", "UTC"),
     MOMENT.replace(microsecond=123_000)),
    ({"type": "long", "logicalType": "timestamp-micros"}, MOMENT, pa.timestamp("us", "UTC"), MOMENT),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, MOMENT.replace(tzinfo=None), pa.timestamp("us"),
     MOMENT.replace(tzinfo=None)),
    ({"type": "array", "items": "long"}, [1, 2], pa.list_(LONG), [1, 2]),
    ({"type": "map", "values": "long"}, {"a": 1}, pa.map_(TEXT, LONG), [("a", 1)]),
    (["null", "int"], None, LONG, None),
    (["int", "null"], 3, LONG, 3),
    (["int", "long", "null"], 3, LONG, 3),
    (["float", "double"], 0.5, DOUBLE, 0.5),
    (["null", "int", "string"], "x", pa.struct({"member0": LONG, "member1": TEXT}), {"member0": None, "member1": "x"}),
    (["null", "int", "string"], None, pa.struct({"member0": LONG, "member1": TEXT}), None),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "column", "expected"), CASES)
def test_each_type_has_its_column_and_value(schema: Any, value: Any, column: pa.DataType, expected: Any) -> None:
    declared = record(x=schema)
    columns = columns_of_avro(parse_avro(json.dumps(declared)))
    assert columns.field("x").type.equals(column)
    assert rows_of(declared, {"x": value}) == [{"x": expected}]


FIRST_DAY, LAST_DAY = (
    date.min.toordinal() - date(1970, 1, 1).toordinal(),
    date.max.toordinal() - date(1970, 1, 1).toordinal(),
)


# fault E02
@pytest.mark.parametrize(
    ("kind", "logical", "per_day"),
    [
        ("int", "date", 1),
        *(("long", f"{local}timestamp-{unit}", per_day) for local in ("", "local-") for unit, per_day in
          (("millis", 86_400_000), ("micros", 86_400_000_000))),
    ],
)  # fmt: skip
def test_a_time_that_readers_in_python_cannot_read_is_refused(kind: str, logical: str, per_day: int) -> None:
    schema = record(
        a={"type": kind, "logicalType": logical}, b={"type": "array", "items": {"type": kind, "logicalType": logical}}
    )
    first, last = FIRST_DAY * per_day, (LAST_DAY + 1) * per_day - 1
    items = varint(1)
    bodies = [varint(number) + items + varint(0) + varint(0) for number in (first - 1, first, last, last + 1)]
    bodies += [varint(0) + items + varint(number) + varint(0) for number in (first, last + 1)]
    decoded = decode_bodies(schema, *bodies)
    assert list(reasons(decoded)) == [0, 3, 5]
    assert reasons(decoded)[0] == "a: a date or time is outside of the years 1 to 9999 (byte 0)"
    years = {row["a"].year for row in decoded.rows.to_pylist() if row["a"]}  # as readers in Python read them
    assert years == {1, 1970, 9999}


def test_nanoseconds_are_cut_towards_the_past() -> None:
    decoded = decode_bodies({"type": "long", "logicalType": "timestamp-nanos"}, varint(-1), varint(1999))
    assert decoded.rows.column("value").to_pylist() == [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
    ]


def test_a_duration_and_a_uuid_of_bytes_have_columns() -> None:
    schema = record(
        d={"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
        u={"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
    )
    decoded = decode_bodies(schema, struct.pack("<III", 1, 2, 2**32 - 1) + uuid.UUID(int=1 << 127).bytes)
    assert decoded.rows.to_pylist() == [
        {"d": {"months": 1, "days": 2, "milliseconds": 2**32 - 1}, "u": "80000000-0000-0000-0000-000000000000"}
    ]


def test_columns_have_the_comments_of_the_schema() -> None:
    columns = columns_of_avro(parse_avro(json.dumps(record(x={"of": "int", "doc": "how many", "aliases": ["y", "z"]}))))
    assert columns.field("x").metadata == {b"comment": b"how many", b"aliases": b"y,z"}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("string", "a", {"value": "a"}),
        (["null", "string"], None, {"value": None}),
        (["null", record(x="int")], {"x": 1}, {"x": 1}),
        (["null", record(x="int")], None, {"x": None}),
        (["int", record(x="int")], {"x": 1}, {"member0": None, "member1": {"x": 1}}),
        ({"type": "array", "items": "int"}, [1], {"value": [1]}),
    ],
)
def test_a_schema_that_is_no_record_has_columns_too(schema: Any, value: Any, expected: Any) -> None:
    assert rows_of(schema, value) == [expected]


def test_a_recursive_type_is_json_where_it_recurs() -> None:
    schema = record(id="long", next=["null", "R"], children={"type": "array", "items": "R"})
    leaf: dict[str, Any] = {"id": 1, "next": None, "children": []}
    [row] = rows_of(schema, {"id": 3, "next": {**leaf, "children": [leaf]}, "children": [leaf, leaf]})
    assert row["id"] == 3
    assert json.loads(row["next"]) == {**leaf, "children": [leaf]}
    assert [json.loads(child) for child in row["children"]] == [leaf, leaf]


def empty(name: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": []}


# fault A12
def test_a_record_without_fields_is_visible_where_a_union_says_whether_it_is_there() -> None:
    assert rows_of([empty("Created"), empty("Deleted")], ("Deleted", {}), ("Created", {})) == [
        {"member0": None, "member1": "{}"},
        {"member0": "{}", "member1": None},
    ]
    assert rows_of(record(flag=["null", empty("Flag")], id="int"), {"flag": {}, "id": 1}, {"flag": None, "id": 2}) == [
        {"flag": "{}", "id": 1},
        {"flag": None, "id": 2},
    ]
    nothing_inside = {**empty("Nothing"), "fields": [{"name": "x", "type": "null"}]}
    assert rows_of(record(a=["long", empty("Flag"), nothing_inside]), {"a": ("Nothing", {"x": None})}, {"a": 7}) == [
        {"a": {"member0": None, "member1": None, "member2": "{}"}},
        {"a": {"member0": 7, "member1": None, "member2": None}},
    ]
    assert rows_of(["null", empty("Flag")], {}, None) == [{"value": "{}"}, {"value": None}]
    assert rows_of(record(a=empty("Flag"), id="int"), {"a": {}, "id": 1}) == [{"id": 1}]


def test_a_record_that_gets_its_first_field_gets_another_column() -> None:
    before = record(flag=["null", empty("Flag")])
    after = record(flag=["null", {**empty("Flag"), "fields": [{"name": "x", "type": "int"}]}])
    columns = grow(
        grow(pa.schema([]), columns_of_avro(parse_avro(json.dumps(before)))),
        columns_of_avro(parse_avro(json.dumps(after))),
    )
    rows = rows_of(before, {"flag": {}}, columns=columns) + rows_of(after, {"flag": {"x": 1}}, columns=columns)
    assert rows == [{"flag": "{}", "flag_2": None}, {"flag": None, "flag_2": {"x": 1}}]


def test_long_texts_and_lists_grow_the_memory_of_the_decoder_and_later_batches_fit() -> None:
    schema = record(x="string", y={"type": "array", "items": "string"})
    values = [{"x": "x" * 100_000, "y": ["y" * 10] * 10_000}, {"x": "", "y": []}] * 3
    avro = decoder(None, schema)
    bodies = binary(framed(1, encoded(schema, value)) for value in values)
    first, second = avro.decode(bodies), avro.decode(bodies)
    assert first.rows.to_pylist() == second.rows.to_pylist() == values


def test_a_reason_is_printable_even_if_the_name_of_a_column_is_not() -> None:
    columns = pa.schema([("a\nb", LONG)])
    decoded = decode_bodies(record(**{"a\nb": "long"}), b"\x80", columns=columns)
    assert reasons(decoded) == {0: "'a\\nb': a number is not a valid int or long (byte 0)"}


def test_a_list_in_several_blocks_outgrows_the_memory_of_the_decoder() -> None:
    for blocks_of in (200, 255, 256, 257):
        body = (varint(blocks_of) + b"\2" * blocks_of) * 2 + b"\0"
        [row] = decode_bodies({"type": "array", "items": "int"}, body).rows.column("value").to_pylist()
        assert row == [1] * (2 * blocks_of)


def test_answers_stay_valid_after_the_next_call() -> None:
    avro = decoder(None, record(x="string"))
    first = avro.decode(binary([framed(1, encoded("string", "one"))]))
    avro.decode(binary([framed(1, encoded("string", "two"))]))
    assert first.rows.to_pylist() == [{"x": "one"}]


# The twelve moves between a writer's schema and the columns of a table: the columns, the writer's schema, a value, the
# row of it, and the columns after they grew.
OLD = record(id="long", price="double", note="string")
MOVES: dict[str, tuple[Any, Any, Any, Any, list[str]]] = {
    "the writer adds a field": (
        OLD, record(id="long", price="double", note="string", more="int"),
        {"id": 1, "price": 2.0, "note": "n", "more": 3},
        {"id": 1, "price": 2.0, "note": "n", "more": 3}, ["id", "price", "note", "more"],
    ),
    "the writer drops a field": (
        OLD, record(id="long", note="string"), {"id": 1, "note": "n"},
        {"id": 1, "price": None, "note": "n"}, ["id", "price", "note"],
    ),
    "the writer renames a field and keeps the old name as an alias": (
        OLD, record(id="long", price="double", comment={"of": "string", "aliases": ["note"]}),
        {"id": 1, "price": 2.0, "comment": "n"}, {"id": 1, "price": 2.0, "note": "n"}, ["id", "price", "note"],
    ),
    "the table knows the new name, the writer the old one": (
        record(id="long", comment={"of": "string", "aliases": ["note"]}), record(id="long", note="string"),
        {"id": 1, "note": "n"}, {"id": 1, "comment": "n"}, ["id", "comment"],
    ),
    "the writer reorders its fields": (
        OLD, record(note="string", price="double", id="long"), {"id": 1, "price": 2.0, "note": "n"},
        {"id": 1, "price": 2.0, "note": "n"}, ["id", "price", "note"],
    ),
    "the writer has an int where the column is a double": (
        OLD, record(id="long", price="int", note="string"), {"id": 1, "price": 2, "note": "n"},
        {"id": 1, "price": 2.0, "note": "n"}, ["id", "price", "note"],
    ),
    "the writer promotes an int to a long": (
        record(id="int"), record(id="long"), {"id": 2**40}, {"id": 2**40}, ["id"],
    ),
    "the writer has bytes where the column is text": (
        OLD, record(id="long", price="double", note="bytes"), {"id": 1, "price": 2.0, "note": b"n"},
        {"id": 1, "price": 2.0, "note": "n"}, ["id", "price", "note"],
    ),
    "the writer's field becomes optional": (
        OLD, record(id="long", price=["null", "double"], note="string"), {"id": 1, "price": None, "note": "n"},
        {"id": 1, "price": None, "note": "n"}, ["id", "price", "note"],
    ),
    "the writer's union grows": (
        record(x=["null", "int", "string"]), record(x=["null", "int", "boolean", "string"]), {"x": True},
        {"x": {"member0": None, "member1": None, "member2": True}}, ["x"],
    ),
    "the table's union has more types than the writer": (
        record(x=["null", "int", "string"]), record(x="string"), {"x": "a"},
        {"x": {"member0": None, "member1": "a"}}, ["x"],
    ),
    "the writer changes a type that the column does not hold": (
        OLD, record(id="long", price="string", note="string"), {"id": 1, "price": "2", "note": "n"},
        {"id": 1, "price": None, "note": "n", "price_2": "2"}, ["id", "price", "note", "price_2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "value", "row", "names"), MOVES.values(), ids=MOVES.keys())
def test_columns_continue_through_a_change_of_schema(
    old: Any, new: Any, value: Any, row: Any, names: list[str]
) -> None:
    columns = grow(pa.schema([]), columns_of_avro(parse_avro(json.dumps(old))))
    grown = grow(columns, columns_of_avro(parse_avro(json.dumps(new))))
    assert grown.names == names
    assert rows_of(new, value, columns=grown) == [row]


def test_a_field_inside_a_struct_resolves_as_one_of_the_table() -> None:
    old = record(
        a={"type": "array", "items": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}}
    )
    fields = [{"name": "y", "type": "string"}, {"name": "x", "type": "int"}]
    new = record(a={"type": "array", "items": {"type": "record", "name": "I", "fields": fields}})
    columns = grow(pa.schema([]), columns_of_avro(parse_avro(json.dumps(old))))
    assert rows_of(new, {"a": [{"x": 1, "y": "z"}]}, columns=columns) == [{"a": [{"x": 1}]}]


def test_a_value_whose_type_the_columns_do_not_hold_fails_with_the_column() -> None:
    columns = pa.schema([("price", LONG), ("other", LONG)])
    decoded = decode_bodies(record(price="string"), encoded("string", "2"), columns=columns)
    assert reasons(decoded) == {0: "price: the column has type int64, and the value string (byte 0)"}


def test_schemas_that_alternate_fill_one_batch() -> None:
    new = record(note="string", id="int", extra="int")
    values = [{"id": row, "price": 1.5, "note": str(row), "extra": 0} for row in range(100)]
    bodies = [framed(1 + row % 2, encoded((OLD, new)[row % 2], value)) for row, value in enumerate(values)]
    decoded = decoder(None, OLD, new).decode(binary(bodies))
    assert decoded.failures == []
    prices = (1.5, None)
    assert decoded.rows.to_pylist() == [{"id": row, "price": prices[row % 2], "note": str(row)} for row in range(100)]


def test_a_schema_that_is_unknown_is_reported_and_its_values_do_not_fail() -> None:
    schemas = {1: parse_avro('"long"')}
    avro = AvroDecoder(pa.schema([("value", LONG)]), schemas)
    values = binary([framed(1, varint(5)), framed(9, varint(6)), None, framed(8, b""), framed(9, varint(7))])
    decoded = avro.decode(values)
    assert decoded.rows.column("value").to_pylist() == [5, None, None, None, None]
    assert decoded.unknown_schemas == {8, 9}
    assert decoded.failures == []
    schemas[9] = parse_avro('"int"')
    assert avro.decode(values).rows.column("value").to_pylist() == [5, 6, None, None, 7]
    assert avro.decode(values).unknown_schemas == {8}


def test_frames_and_bodies_that_are_broken_are_reported_in_the_order_of_rows() -> None:
    good = framed(1, encoded("string", "good"))
    values = [good, b"", good[:-1], good, good + b"!", b"\3\0" + bytes(16), framed(1, b"\4\xff\xff"), good, None]
    decoded = decoder(None, record(x="string")).decode(binary(values))
    assert decoded.rows.column("x").to_pylist() == ["good", None, None, "good", None, None, None, "good", None]
    assert list(reasons(decoded)) == [1, 2, 4, 5, 6]
    assert reasons(decoded)[2] == "x: a length is negative, or greater than the bytes that are left (byte 0)"
    assert reasons(decoded)[6] == "x: a text is not valid UTF-8 (byte 0)"


FIXED = {"type": "fixed", "name": "F", "size": 2}
DURATION = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}


def rows_of_all(*values: tuple[Any, bytes]) -> tuple[list[Any], Mapping[int, str]]:
    """The rows of bodies, each with its schema, in columns that grew from all these schemas, and the reasons."""
    columns = pa.schema([])
    for schema, _ in values:
        columns = grow(columns, columns_of_avro(parse_avro(json.dumps(schema))))
    bodies = binary(framed(number, body) for number, (_, body) in enumerate(values, 1))
    decoded = decoder(columns, *(schema for schema, _ in values)).decode(bodies)
    decoded.rows.validate(full=True)
    return decoded.rows.to_pylist(), reasons(decoded)


def test_a_duration_fills_its_members_of_a_struct_that_has_another_member_of_the_same_name() -> None:
    texts = record(x={**record(days="string"), "name": "I"})
    duration = struct.pack("<III", 1, 2, 3)
    rows, failed = rows_of_all((texts, b"\2a"), (record(x=DURATION), duration), (texts, b"\2b"))
    empty = {"days": None, "months": None, "days_2": None, "milliseconds": None}
    parts = {"days": None, "months": 1, "days_2": 2, "milliseconds": 3}
    assert rows == [{"x": {**empty, "days": "a"}}, {"x": parts}, {"x": {**empty, "days": "b"}}]
    assert failed == {}


def test_a_duration_is_refused_if_a_member_holds_other_numbers() -> None:
    doubles = record(x={**record(days="double"), "name": "I"})
    rows, failed = rows_of_all((doubles, bytes(8)), (record(x=DURATION), bytes(12)), (doubles, bytes(8)))
    empty = {"days": 0.0, "months": None, "milliseconds": None}
    assert rows == [{"x": empty}, {"x": None}, {"x": empty}]
    assert list(failed) == [1]


def test_an_outermost_union_fills_the_columns_of_its_types_beside_those_of_an_earlier_record() -> None:
    """A topic that gets a second type of event has a union of records from then on."""
    ordered, paid = record(id="int", place="string"), {**record(id="int"), "name": "Paid"}
    rows, failed = rows_of_all(
        (record(id="int"), b"\2"), (["null", ordered, paid], b"\2\4\2a"), (["null", ordered, paid], b"\4\6")
    )
    empty = {"id": None, "member0": None, "member1": None}
    assert rows == [{**empty, "id": 1}, {**empty, "member0": {"id": 2, "place": "a"}}, {**empty, "member1": {"id": 3}}]
    assert failed == {}


def test_an_outermost_union_whose_types_change_places_keeps_its_columns() -> None:
    rows, failed = rows_of_all(
        (["int", "string"], b"\0\2"), (["string", "int"], b"\0\2a"), (["string", "int"], b"\2\4")
    )
    assert rows == [
        {"member0": 1, "member1": None},
        {"member0": None, "member1": "a"},
        {"member0": 2, "member1": None},
    ]
    assert failed == {}


def test_a_text_must_be_utf8_also_in_a_column_of_bytes() -> None:
    rows, failed = rows_of_all(
        (record(x="bytes"), b"\2\xff"), (record(x="string"), b"\2a"), (record(x="string"), b"\2\xff")
    )
    assert rows == [{"x": b"\xff"}, {"x": b"a"}, {"x": None}]
    assert failed == {2: "x: a text is not valid UTF-8 (byte 0)"}


def test_fixed_bytes_fit_into_a_column_of_texts_as_other_bytes_do() -> None:
    rows, failed = rows_of_all((record(x="string"), b"\2a"), (record(x=FIXED), b"bc"), (record(x=FIXED), b"b\xff"))
    assert rows == [{"x": "a"}, {"x": "bc"}, {"x": None}]
    assert failed == {2: "x: a text is not valid UTF-8 (byte 0)"}


def test_the_json_of_a_recursive_type_fits_into_a_column_of_bytes() -> None:
    recursive = record(x=["null", "R"])
    rows, failed = rows_of_all((record(x="bytes"), b"\2a"), (recursive, b"\2\0"))
    assert (rows, failed) == ([{"x": b"a"}, {"x": b'{"x":null}'}], {})


def blocks(*counts: int) -> bytes:
    return b"".join(map(varint, counts)) + b"\0"


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ("string", varint(2**62), "length"),
        ("string", varint(-1), "length"),
        ("long", b"\xff" * 11, "valid int or long"),
        ("long", b"\x80", "valid int or long"),
        ("int", varint(2**31), "valid int or long"),
        ("double", bytes(7), "ends before"),
        ("boolean", b"", "ends before"),
        ("boolean", b"\2", "neither 0 nor 1"),
        ({"type": "array", "items": "long"}, blocks(2**62), "more items"),
        ({"type": "array", "items": "long"}, varint(-(2**63)) + b"\0\0", "more items"),
        ({"type": "map", "values": "null"}, blocks(5), "more items"),
        ({"type": "array", "items": "null"}, blocks(2**40), "items without bytes"),
        ({"type": "array", "items": "null"}, blocks(*[900] * 4), "items without bytes"),
        (["null", "int"], varint(2), "no such branch"),
        (["null", "int", "long"], varint(-1), "no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, varint(1), "no such symbol"),
        ({"type": "enum", "name": "E", "symbols": []}, varint(0), "no such symbol"),
        ({"type": "long", "logicalType": "timestamp-millis"}, varint(2**62), "years 1 to 9999"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50},
            encoded("bytes", (10**38).to_bytes(16, "big")),
            "38 digits",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50},
            encoded("bytes", (-(10**38)).to_bytes(20, "big", signed=True)),
            "38 digits",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50},
            encoded("bytes", b"\1" + bytes(16)),
            "38 digits",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50},
            encoded("bytes", b"\0\xff" + bytes(15)),
            "38 digits",
        ),
    ],
)
def test_a_value_that_nobody_should_have_sent_fails_at_once(schema: Any, body: bytes, reason: str) -> None:
    start = time.process_time()
    decoded = decode_bodies(schema, b"", body)
    assert reason in reasons(decoded)[1]
    assert time.process_time() - start < 20  # compilation included


def test_items_without_bytes_are_limited_and_not_refused() -> None:
    schema = record(x={"type": "array", "items": "null"})
    assert rows_of(schema, {"x": [None] * FREE_ITEMS}) == [{"x": [None] * FREE_ITEMS}]


def test_a_recursion_that_is_too_deep_fails_and_does_not_end_the_process() -> None:
    schema = record(next=["null", "R"])
    deep, too_deep = MAX_DEPTH - 1, 10**6
    decoded = decode_bodies(schema, b"\2" * deep + b"\0", b"\2" * too_deep + b"\0")
    assert list(reasons(decoded)) == [1]
    assert f"deeper than {MAX_DEPTH} levels" in reasons(decoded)[1]
    assert decoded.rows.column("next")[0].as_py().count("next") == deep


def test_a_record_that_directly_contains_itself_fails() -> None:
    assert "deeper" in reasons(decode_bodies(record(next="R", x="int"), b"\0"))[0]


def test_the_kernels_are_compiled_once_and_before_there_is_data() -> None:
    warm()
    decode_bodies(record(x="int"), varint(1))
    assert len(avro_rows.decode_rows.signatures) == len(frames.read_frames.signatures) == 1  # type: ignore[attr-defined]


def test_a_column_of_another_kind_is_refused_when_the_decoder_is_made() -> None:
    with pytest.raises(TypeError, match="x has type float"):
        AvroDecoder(pa.schema([("x", pa.float32())]), {})


# fault E27
def test_a_value_with_a_key_twice_in_a_map_is_refused() -> None:
    def entries(*keys: str) -> bytes:
        return varint(len(keys)) + b"".join(varint(len(key)) + key.encode() + varint(1) for key in keys) + b"\0"

    schema = record(tags={"type": "map", "values": "long"}, parts={"type": "array", "items": "long"})
    bodies = [entries(*keys) + b"\0" for keys in ("ab", "c", "ba", "aba", "cab")]
    decoded = decode_bodies(schema, *bodies)
    assert [(failure.row, failure.reason) for failure in decoded.failures] == [
        (3, "tags: a key of the map occurs twice")
    ]
    assert decoded.rows["tags"].to_pylist() == [[("a", 1), ("b", 1)], [("c", 1)], [("b", 1), ("a", 1)], None, [
        ("c", 1), ("a", 1), ("b", 1)]]  # fmt: skip


# fault E27
def test_a_map_of_a_type_that_contains_itself_has_each_key_once() -> None:
    schema = record(inner={"type": "map", "values": "R"})
    once, twice = b"\2\2a" + b"\0" + b"\0", b"\4\2a" + b"\0" + b"\2a" + b"\0" + b"\0"
    inner_twice = b"\2\2x" + twice + b"\0"
    decoded = decode_bodies(schema, once, b"\2\2x" + once + b"\0", inner_twice, b"\2\2x" + inner_twice + b"\0")
    assert [(failure.row, failure.reason) for failure in decoded.failures] == [
        (2, "inner.value: a key of the map occurs twice"),
        (3, "inner.value: a key of the map occurs twice"),
    ]
    assert decoded.rows["inner"].to_pylist() == [
        [("a", '{"inner":{}}')],
        [("x", '{"inner":{"a":{"inner":{}}}}')],
        None,
        None,
    ]


_WHOLE = [0, -1, 1 << 53, (1 << 53) + 2, -(1 << 63), 1 << 62, 2_147_483_647]
_ROUNDED = [(1 << 53) + 1, -(1 << 53) - 1, (1 << 63) - 1, 10**18 + 1]


def test_a_double_takes_no_integer_that_it_would_round() -> None:  # fault A27
    schema, columns = (
        record(a={"type": "array", "items": "long"}, b="long"),
        pa.schema({"a": pa.list_(DOUBLE), "b": DOUBLE}),
    )
    values = [{"a": [number], "b": 1} for number in (*_WHOLE, *_ROUNDED)]
    decoded = decode_bodies(schema, *(encoded(schema, value) for value in values), columns=columns)
    assert [row["a"] for row in decoded.rows.to_pylist()[: len(_WHOLE)]] == [[float(number)] for number in _WHOLE]
    assert [failure.row for failure in decoded.failures] == [*range(len(_WHOLE), len(values))]
    assert {failure.reason.split(" (")[0] for failure in decoded.failures} == {
        "a[]: the column has doubles, and would round the number"
    }


@pytest.mark.parametrize(
    ("name", "sent", "stored"), [("NanoTime", 5_999, 5.0), ("NanoTime", -1, -1.0), ("Time", 7, 7e3)]
)
def test_a_double_takes_a_time_of_day_in_microseconds(name: str, sent: int, stored: float) -> None:  # fault A27
    schema = record(a={"type": "int" if name == "Time" else "long", "connect.name": f"io.debezium.time.{name}"})
    assert rows_of(schema, {"a": sent}, columns=pa.schema({"a": DOUBLE})) == [{"a": stored}]
