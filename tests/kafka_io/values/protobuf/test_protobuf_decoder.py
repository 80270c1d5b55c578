"""Rows of Protobuf values, of whole and of broken ones, and what happens if schema and columns differ."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kafka_io.errors import InvalidSchema
from kafka_io.values.column_types import MAX_NESTING, nesting
from kafka_io.values.columns import grow
from kafka_io.values.decoding import DecodedValues
from kafka_io.values.kernels import protobuf_rows
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.decoder import ProtobufDecoder, warm
from kafka_io.values.protobuf.descriptors import ProtobufSchema, fields_of, message_class, parse_protobuf
from tests.kafka_io.values.avro.making import varint

IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "struct")
)


def proto3(messages: str) -> ProtobufSchema:
    return parse_protobuf(f'syntax = "proto3"; {IMPORTS} {messages}')


def proto2(messages: str) -> ProtobufSchema:
    return parse_protobuf(f'syntax = "proto2"; {messages}')


def rows(decoded: DecodedValues) -> list[dict[str, Any]]:
    decoded.rows.validate(full=True)
    return list(decoded.rows.to_pylist())


def decode(schema: ProtobufSchema, *bodies: bytes | None, columns: pa.Schema | None = None) -> DecodedValues:
    """The rows of messages of the first type, without a frame."""
    decoder = ProtobufDecoder(columns_of_protobuf(schema) if columns is None else columns, schema)
    return decoder.decode(pa.array(bodies, pa.binary()))


def row(schema: ProtobufSchema, body: bytes) -> dict[str, Any]:
    decoded = decode(schema, body)
    assert decoded.failures == []
    return rows(decoded)[0]


def reason(schema: ProtobufSchema, body: bytes) -> str:
    """Why a value is refused; the values before and after it decode."""
    decoded = decode(schema, b"", body, b"")
    [failure] = decoded.failures
    good, bad, _ = rows(decoded)
    assert failure.row == 1
    assert set(bad.values()) <= {None}
    assert good == rows(decode(schema, b""))[0]
    return failure.reason


# Values


NUMBERS = (
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
    "double", "float", "string", "bytes",
)  # fmt: skip


def test_each_scalar_has_its_column_and_its_extremes() -> None:
    schema = proto3("message A {" + "".join(f"{name} {name}_ = {i};" for i, name in enumerate(NUMBERS, 1)) + "}")
    values: Sequence[dict[str, Any]] = [
        {"int32_": -(1 << 31), "int64_": -(1 << 63), "uint32_": (1 << 32) - 1, "uint64_": (1 << 64) - 1},
        {"sint32_": -(1 << 31), "sint64_": -(1 << 63), "fixed32_": (1 << 32) - 1, "fixed64_": (1 << 64) - 1},
        {"sfixed32_": -(1 << 31), "sfixed64_": -(1 << 63), "bool_": True, "double_": -1e300, "float_": 0.1},
        {"string_": "M\u00fcnchen \U0001f600", "bytes_": b"\0\xff"},
    ]
    message = message_class(schema.message("A"))
    decoded_rows = rows(decode(schema, *(message(**value).SerializeToString() for value in values)))
    zeros = {f"{name}_": 0 for name in NUMBERS} | {"bool_": False, "string_": "", "bytes_": b""}
    for value, expected in zip(decoded_rows, values, strict=True):
        assert value == zeros | expected | ({"float_": pytest.approx(0.1, abs=1e-8)} if "float_" in expected else {})
    assert columns_of_protobuf(schema).field("uint64_").type == pa.decimal128(38, 0)
    assert {columns_of_protobuf(schema).field(f"{name}_").type for name in NUMBERS[:3]} == {pa.int64()}


def test_a_field_that_is_not_set_is_null_only_if_protobuf_can_distinguish_it_from_its_default() -> None:
    schema = proto3(
        "message A { int32 a = 1; optional int32 b = 2; string c = 3; E d = 4; repeated int32 e = 5; A f = 6;"
        "map<string, int32> g = 7; oneof h { int32 i = 8; string j = 9; } } enum E { NONE = 0; }"
    )
    assert row(schema, b"") == {
        "a": 0, "b": None, "c": "", "d": "NONE", "e": [], "f": None, "g": [], "i": None, "j": None,
    }  # fmt: skip


def test_a_default_that_proto2_declares_stands_for_a_field_that_is_not_set() -> None:
    schema = proto2(
        "message A { optional int32 a = 1; optional int32 b = 2 [default = -7]; optional string c = 3 [default = 'x'];"
        "optional double d = 4 [default = nan]; optional E e = 5 [default = TWO]; required bool f = 6;"
        "optional uint64 g = 7 [default = 0xffffffffffffffff]; } enum E { ONE = 1; TWO = 2; }"
    )
    decoded_row = row(schema, b"")
    assert decoded_row.pop("d") != decoded_row.get("d")  # NaN
    assert decoded_row == {"a": None, "b": -7, "c": "x", "e": "TWO", "f": None, "g": Decimal((1 << 64) - 1)}


def test_well_known_types_have_columns_of_their_own() -> None:
    schema = proto3(
        "message A { google.protobuf.Timestamp a = 1; google.protobuf.Duration b = 2; google.protobuf.Int64Value c = 3;"
        "google.protobuf.StringValue d = 4; google.protobuf.Struct e = 5; repeated google.protobuf.BoolValue f = 6; }"
    )
    message = message_class(schema.message("A"))()
    message.a.seconds, message.a.nanos = -1, 999_999_999
    message.b.seconds, message.b.nanos = -2, -1
    message.c.value = 0
    message.e["price"] = 1.5
    message.f.add().value = True
    message.f.add()
    assert row(schema, message.SerializeToString()) == {
        "a": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        "b": -2_000_001,
        "c": 0,
        "d": None,
        "e": '{"price":1.5}',
        "f": [True, False],
    }


def test_a_message_inside_itself_is_json() -> None:
    schema = proto3("message A { int64 id = 1; A next = 2; repeated A others = 3; }")
    message = message_class(schema.message("A"))(id=1)
    message.next.next.id = 3
    message.others.add(id=4)
    decoded_row = row(schema, message.SerializeToString())
    assert decoded_row == {"id": 1, "next": '{"next":{"id":"3"}}', "others": ['{"id":"4"}']}


# fault A12
def test_a_message_without_fields_is_a_text_that_says_that_it_is_there() -> None:
    schema = proto3("message A { E a = 1; repeated E b = 2; map<string, E> c = 3; int32 d = 4; } message E {}")
    assert [str(column.type) for column in columns_of_protobuf(schema)][:2] == ["string", "list<element: string>"]
    assert row(schema, b"\x0a\0\x12\0\x1a\5\x0a\1x\x12\0\x20\1") == {"a": "{}", "b": ["{}"], "c": [("x", None)], "d": 1}
    assert row(schema, b"") == {"a": None, "b": [], "c": [], "d": 0}


# fault E15
@pytest.mark.parametrize("repeated", ["", "repeated "])
def test_messages_that_are_nested_deeper_than_readers_allow_are_json(repeated: str) -> None:
    deep = "".join(f"message M{level} {{ {repeated}M{level + 1} a = 1; }} " for level in range(60))
    schema = proto3(f"{deep} message M60 {{ int32 b = 1; repeated int32 c = 2; map<int32, int32> d = 3; }}")
    columns = columns_of_protobuf(schema)
    assert max(nesting(column.type) for column in columns) <= MAX_NESTING
    body = b"\x08\7"
    for _ in range(60):
        body = (
            b"\x0a" + bytes([len(body)]) + body
            if len(body) < 128
            else b"\x0a" + bytes([len(body) % 128 + 128, len(body) // 128]) + body
        )
    text = str(row(schema, body))
    assert '{"a":' in text
    assert '{"b":7}' in text


# fault A12
def test_a_oneof_of_messages_without_fields_keeps_which_member_is_set() -> None:
    schema = proto3("message A { oneof what { Created a = 1; Deleted b = 2; } } message Created {} message Deleted {}")
    assert row(schema, b"\x0a\0") == {"a": "{}", "b": None}
    assert row(schema, b"\x12\0") == {"a": None, "b": "{}"}
    assert row(schema, b"\x0a\0\x12\2\x08\1") == {
        "a": None,
        "b": "{}",
    }  # the last member counts; it has an unknown field
    assert row(schema, b"") == {"a": None, "b": None}


def test_an_enum_is_its_first_name_or_its_number_if_it_has_no_name() -> None:
    schema = proto3(
        "message A { repeated E a = 1; } enum E { option allow_alias = true; ZERO = 0; NIL = 0; MINUS = -1; FAR = 99; }"
    )
    body = b"\x0a\x18\0\x63\x05" + b"\xff" * 9 + b"\x01" + b"\x80\x80\x80\x80\xf8" + b"\xff" * 4 + b"\x01"
    body = b"\x0a" + bytes([len(body) - 2]) + body[2:]
    assert row(schema, body) == {"a": ["ZERO", "FAR", "5", "MINUS", "-2147483648"]}


def test_a_number_that_a_closed_enum_lacks_counts_as_an_unknown_field() -> None:
    schema = proto2(
        "message A { optional E a = 1; repeated E b = 2; map<int32, E> c = 3; optional int32 d = 4; }"
        "enum E { NONE = 0; ONE = 1; }"
    )
    body = b"\x08\1\x08\5" + b"\x12\3\1\5\1" + b"\x1a\4\x08\1\x10\5" + b"\x1a\4\x08\2\x10\1" + b"\x20\7"
    assert row(schema, body) == {"a": "ONE", "b": ["ONE", "ONE"], "c": [(2, "ONE")], "d": 7}


# The order of fields and what comes twice


def test_fields_come_in_any_order_and_lists_in_parts() -> None:
    schema = proto3("message A { int32 a = 1; repeated int32 b = 2; repeated string c = 3; int32 far = 5000; }")
    body = b"\xc0\xb8\x02\x09" + b"\x10\1" + b"\x1a\1x" + b"\x12\2\2\3" + b"\x1a\1y" + b"\x08\7" + b"\x10\4"
    assert row(schema, body) == {"a": 7, "b": [1, 2, 3, 4], "c": ["x", "y"], "far": 9}


@pytest.mark.parametrize("kind", ["int32", "sint64", "bool", "fixed32", "double", "E"])
@pytest.mark.parametrize("packed", ["true", "false"])
def test_lists_are_read_packed_or_not_whatever_the_schema_says(kind: str, packed: str) -> None:
    enum = "enum E { ZERO = 0; ONE = 1; }"
    schema, other = (
        proto3(f"message A {{ repeated {kind} a = 1 [packed = {value}]; }} {enum}")
        for value in (packed, "false" if packed == "true" else "true")
    )
    message = message_class(other.message("A"))(a=[1, 0, 1])
    expected = {"E": ["ONE", "ZERO", "ONE"]}.get(kind, [1, 0, 1])
    assert row(schema, message.SerializeToString() + message.SerializeToString())["a"] == expected * 2


def test_of_a_scalar_the_last_value_counts() -> None:
    schema = proto3("message A { int32 a = 1; string b = 2; uint64 c = 3; int32 d = 4; }")
    body = b"\x08\1\x12\5first\x18\1" + b"\x08\2\x12\1x\x18\2\x20\3"
    assert row(schema, body) == {"a": 2, "b": "x", "c": 2, "d": 3}


def test_messages_that_come_twice_are_merged() -> None:
    schema = proto3(
        "message A { B b = 1; google.protobuf.Timestamp at = 2; }"
        "message B { int32 c = 1; int32 d = 2; repeated int32 e = 3; }"
    )
    body = b"\x0a\4\x08\1\x18\1" + b"\x12\2\x08\1" + b"\x0a\4\x10\2\x18\2" + b"\x12\2\x10\0"
    assert row(schema, body) == {"b": {"c": 1, "d": 2, "e": [1, 2]}, "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}


def test_of_a_oneof_the_last_member_counts_even_without_a_column() -> None:
    schema = proto3("message A { oneof o { int32 a = 1; string b = 2; B c = 3; } } message B { int32 d = 1; }")
    body = b"\x08\1" + b"\x12\1x"
    assert row(schema, body) == {"a": None, "b": "x", "c": None}
    assert row(schema, body + b"\x08\3") == {"a": 3, "b": None, "c": None}
    decoded = decode(schema, body, columns=pa.schema({"a": pa.int64()}))
    assert rows(decoded) == [{"a": None}]


def test_of_a_key_that_a_map_has_twice_the_last_value_counts() -> None:
    schema = proto3("message A { map<string, int32> a = 1; map<int64, B> b = 2; } message B { int32 c = 1; }")
    body = b"\x0a\5\x0a\1x\x10\1" + b"\x0a\5\x0a\1y\x10\2" + b"\x0a\5\x0a\1x\x10\3" + b"\x12\0"
    decoded_row = row(schema, body)
    assert sorted(decoded_row["a"]) == [("x", 3), ("y", 2)]
    assert decoded_row["b"] == [(0, {"c": 0})]


def test_a_large_map_has_all_its_keys() -> None:
    schema = proto3("message A { map<int32, string> a = 1; }")
    message = message_class(schema.message("A"))(a={key: str(key) for key in range(500)})
    assert dict(row(schema, message.SerializeToString())["a"]) == dict(message.a)


def test_a_map_entry_with_an_unknown_field_is_left_out_and_the_next_row_keeps_its_values() -> None:
    """google.protobuf ignores the whole entry. The fields of its value were read before the unknown one."""
    schema = proto3(
        "message A { map<int32, B> a = 1; } message B { C b = 1; repeated int32 c = 2; } message C { int32 d = 1; }"
    )
    value = b"\x0a\2\x08\5" + b"\x12\1\7"
    entry = b"\x08\1" + b"\x12\7" + value
    decoded = decode(schema, b"\x0a\x0d" + entry + b"\x18\2", b"\x0a\x0b" + entry)
    assert decoded.failures == []
    assert rows(decoded) == [{"a": []}, {"a": [(1, {"b": {"d": 5}, "c": [7]})]}]


def test_a_text_must_be_utf8_also_in_a_column_of_bytes() -> None:
    schema = proto3("message A { string a = 1; bytes b = 2; }")
    bodies = (b"\x0a\1x", b"\x0a\1\xff", b"\x12\1x", b"\x12\1\xff")
    decoded = decode(schema, *bodies, columns=pa.schema({"a": pa.binary(), "b": pa.string()}))
    refused = {"a": None, "b": None}
    assert rows(decoded) == [{"a": b"x", "b": ""}, refused, {"a": b"", "b": "x"}, refused]
    assert {failure.row: failure.reason for failure in decoded.failures} == {
        1: "a: a text is not valid UTF-8 (byte 0)",
        3: "b: a text is not valid UTF-8 (byte 0)",
    }


def test_unknown_fields_of_each_wire_type_are_skipped() -> None:
    schema = proto3("message A { int32 a = 1; B b = 3; } message B { int32 c = 1; }")
    unknown = b"\x78\x96\1" + b"\x79" + b"1" * 8 + b"\x7a\3abc" + b"\x7b\x08\1\x0b\x10\2\x0c\x7c" + b"\x7d1234"
    assert row(schema, unknown + b"\x08\1" + unknown + b"\x1a\2\x08\2" + unknown) == {"a": 1, "b": {"c": 2}}


def test_groups_are_messages() -> None:
    schema = proto2(
        "message A { repeated group B = 1 { optional int32 c = 1; optional group D = 2 { } } optional int32 e = 2; }"
    )
    assert row(schema, b"\x0b\x08\1\x13\x14\x0c\x0b\x0c\x10\5") == {
        "b": [{"c": 1, "d": "{}"}, {"c": None, "d": None}],
        "e": 5,
    }


# Values that are refused


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\x08", "a: a number is longer than 64 bits"),
        (b"\x08" + b"\xff" * 10 + b"\1", "a: a number is longer than 64 bits"),
        (b"\x80", "a field has no valid number"),
        (b"\0\1", "a field has no valid number"),
        (b"\xff\xff\xff\xff\x1f\1", "a field has no valid number"),
        (b"\x12\5abc", "b: a length is greater than the bytes that are left (byte 0)"),
        (b"\x12\xff\xff\xff\xff\x0f", "b: a length is greater than the bytes that are left"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "b: a length is greater than the bytes that are left"),
        (b"\x08\1\x12\2\xc3\x28", "b: a text is not valid UTF-8 (byte 2)"),
        (b"\x08\1\x12\2\xed\xa0", "b: a text is not valid UTF-8"),
        (b"\x0a\1x", "a: the field has another wire type than in the schema"),
        (b"\x10\1", "b: the field has another wire type than in the schema"),
        (b"\x1d\1\1\1\1", "c: the field has another wire type than in the schema"),
        (b"\x19\1\1", "c: the value ends before this field does"),
        (b"\x22\5\1\1\1\1\1", "d[]: the value ends before this field does"),
        (b"\x2a\2\x08\x80", "e.f: a number is longer than 64 bits"),
        (b"\x2a\3\x12\1", "e: a length is greater than the bytes that are left"),
        (b"\x7e", "a field has an unknown wire type"),
        (b"\x7f\1", "a field has an unknown wire type"),
        (b"\x7b\x08\1", "the value ends before this field does"),
        (b"\x7b\x08\1\x74", "a group ends that did not begin"),
        (b"\x7c", "a group ends that did not begin"),
        (b"\x7b" * 200, "messages are nested deeper than 100 levels"),
        (b"\x32\x08\x08" + b"\xff" * 6 + b"\x7f", "g: a time is not between the years 1 and 9999"),
        (b"\x32\2\x10\xff", "g: a number is longer than 64 bits"),
        (b"\x32\2\x0d\1", "g: the field has another wire type"),
        (b"\x79\1", "the value ends before this field does"),
        (b"\x7d\1", "the value ends before this field does"),
        (b"\x3a\x0b\x11" + b"\0\0\0\0\0\0\xf0\x7f" + b"\x78\1", "h: the message has no JSON"),  # it is infinity
    ],
)
def test_a_broken_value_is_refused_with_its_reason_and_its_place(body: bytes, expected: str) -> None:
    schema = proto3(
        "message A { int32 a = 1; string b = 2; fixed64 c = 3; repeated float d = 4; B e = 5;"
        "google.protobuf.Timestamp g = 6; google.protobuf.Value h = 7; } message B { int32 f = 1; }"
    )
    assert reason(schema, body).startswith(expected)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"\x0a\4\xa0\xe7\4\x08" + b"\x12\0", "f"),  # an entry with an unknown part, and another field
        (b"\x0a\x09\xa0\xe7\4\x08" + b"\x0d\1\0\0\0", "m.key"),  # in the entry itself
        (b"\x1a\2\x08\1" + b"\x1a\3\x0a\1x", "s.a"),  # a message in two parts
        (b"\x1a\2\x08\1" + b"\x1a\7\x12\5\x0d\1\0\0\0", "s.t.seconds"),
        (b"\x1a\2\x08\1" + b"\x1a\0" + b"\x22\3\x0a\1x", "r.a"),
        (b"\x1a\2\x08\1" + b"\x1a\0" + b"\x2a\3\x0a\1x", "w.value"),
        (b"\x1a\2\x08\1" + b"\x1a\0" + b"\x0a\7\x08\1\x12\3\x0a\1x", "m.value.a"),
    ],
)
def test_a_wrong_wire_type_is_refused_also_in_a_value_that_google_protobuf_writes_again(  # fault R29
    body: bytes, place: str
) -> None:
    schema = proto3(
        "message A { map<int64, S> m = 1; fixed32 f = 2; S s = 3; repeated S r = 4; google.protobuf.Int32Value w = 5; }"
        "message S { int32 a = 1; google.protobuf.Timestamp t = 2; map<int32, int32> n = 3; }"
    )
    assert reason(schema, body).startswith(place)
    assert "the field has another wire type than in the schema" in reason(schema, body)


def test_what_google_protobuf_keeps_as_unknown_for_other_reasons_is_no_wrong_wire_type() -> None:
    schema = proto2(
        "message A { optional B b = 1; optional A a = 2; }"
        "enum E { ZERO = 0; }"
        "message B { optional E e = 1; repeated int32 p = 2; map<int32, E> m = 3; }"
    )
    part = b"\x08\7" + b"\x12\2\1\2" + b"\x1a\4\x08\1\x10\7"
    body = b"\x0a" + bytes([len(part)]) + part + b"\x0a\0" + b"\x12\2\x0a\0"
    assert row(schema, body) == {"b": {"e": None, "p": [1, 2], "m": []}, "a": '{"b":{}}'}


def test_every_cut_of_a_value_is_refused_or_a_shorter_value() -> None:
    schema = proto3(
        "message A { int64 a = 1; B b = 2; repeated sint32 c = 3; map<string, double> d = 4; fixed32 e = 5;"
        "string f = 6; }"
        "message B { string g = 1; B h = 2; }"
    )
    message = message_class(schema.message("A"))(a=-1, c=[1, -200], d={"x": 1.5}, e=7, f="text")
    message.b.g = "inner"
    message.b.h.g = "json"
    body = message.SerializeToString()
    for size in range(len(body)):
        try:
            message.ParseFromString(body[:size])
        except Exception:  # noqa: BLE001 - it raises whatever comes
            assert reason(schema, body[:size])
        else:
            assert row(schema, body[:size])["a"] == message.a


def test_values_that_are_refused_late_leave_no_trace_in_lists() -> None:
    schema = proto3("message A { repeated B a = 1; map<int32, string> b = 2; } message B { repeated string c = 1; }")
    good = b"\x0a\3\x0a\1x\x12\5\x08\1\x12\1y"
    decoded = decode(schema, good, good + b"\xff", good, None, good[:-1], good)
    assert [failure.row for failure in decoded.failures] == [1, 4]
    expected = {"a": [{"c": ["x"]}], "b": [(1, "y")]}
    nothing = {"a": None, "b": None}
    assert rows(decoded) == [expected, nothing, expected, nothing, nothing, expected]


def test_column_buffers_grow_while_values_are_decoded() -> None:
    schema = proto3(
        "message A { repeated int64 a = 1; string b = 2; map<int32, string> c = 3; repeated B d = 4;"
        "A e = 5; } message B { int32 f = 1; }"
    )
    message = message_class(schema.message("A"))(a=range(5000), b="x" * 20_000, c={1: "y" * 5000})
    for number in range(2000):
        message.d.add(f=number)
    message.e.b = "z" * 10_000
    body = message.SerializeToString()
    decoder = ProtobufDecoder(columns_of_protobuf(schema), schema)
    for bodies in ([b"\x12\1x"], [body, b"\x12\1x", body]):
        decoded = decoder.decode(pa.array(bodies, pa.binary()))
        assert decoded.failures == []
        for decoded_row, expected in zip(rows(decoded), bodies, strict=True):
            message.ParseFromString(expected)
            assert decoded_row["a"] == list(message.a)
            assert (decoded_row["b"], decoded_row["c"]) == (message.b, list(message.c.items()))
            assert [item["f"] for item in decoded_row["d"]] == [item.f for item in message.d]
            assert (decoded_row["e"] is None) != message.HasField("e")


def test_nothing_is_decoded_without_columns() -> None:
    decoded = decode(proto3("message A { int32 a = 1; }"), b"\x08\1", None, columns=pa.schema([]))
    assert decoded.rows.num_rows == 2
    assert decoded.failures == []


# Schema and columns


def test_a_column_without_a_field_is_null_and_a_field_without_a_column_is_checked_and_dropped() -> None:
    schema = proto3("message A { int32 a = 1; B b = 2; map<string, B> m = 3; } message B { string c = 1; B d = 2; }")
    columns = pa.schema({"a": pa.int64(), "z": pa.list_(pa.string())})
    decoded = decode(
        schema, b"\x08\1\x12\3\x0a\1x", b"\x08\1\x12\5\x12\3\x0a\1\xff", b"\x1a\4\x12\2\x0a\5", columns=columns
    )
    assert rows(decoded)[0] == {"a": 1, "z": None}
    assert [(failure.row, failure.reason.split(" (")[0]) for failure in decoded.failures] == [
        (1, "c: a text is not valid UTF-8"),
        (2, "c: a length is greater than the bytes that are left"),
    ]


def test_columns_of_the_table_take_fields_of_other_types_that_fit() -> None:
    schema = proto3(
        "message A { int32 a = 1; bytes b = 2; string c = 3; sint64 d = 4; repeated E e = 5; } enum E { ONE = 0; }"
    )
    columns = pa.schema(
        {"a": pa.float64(), "b": pa.string(), "c": pa.binary(), "d": pa.string(), "e": pa.list_(pa.binary())}
    )
    decoded = decode(schema, b"\x08\2\x12\1x\x1a\1y\x2a\1\0", b"\x12\1\xff", b"\x20\2", b"", columns=columns)
    assert rows(decoded)[0] == {"a": 2.0, "b": "x", "c": b"y", "d": None, "e": [b"ONE"]}
    assert rows(decoded)[3] == {"a": 0.0, "b": "", "c": b"", "d": None, "e": []}
    assert [(failure.row, failure.reason) for failure in decoded.failures] == [
        (1, "b: a text is not valid UTF-8 (byte 0)"),
        (2, "d: the column has type string, and the value int64 (byte 0)"),
    ]


def test_a_double_takes_no_integer_that_it_would_round() -> None:  # fault A27
    schema = proto3("message A { sint64 a = 1; repeated sint64 c = 3; }")
    columns = pa.schema({"a": pa.float64(), "c": pa.list_(pa.float64())})
    exact, rounded = varint((1 << 53) + 2), varint((1 << 53) + 1)
    values = (b"\x08" + exact, b"\x08" + rounded, b"\x18" + exact + b"\x18" + rounded, b"")
    decoded = decode(schema, *values, columns=columns)
    assert [rows(decoded)[number] for number in (0, 3)] == [{"a": 9007199254740994.0, "c": []}, {"a": 0.0, "c": []}]
    assert [(failure.row, failure.reason.split(" (")[0]) for failure in decoded.failures] == [
        (1, "a: the column has doubles, and would round the number"),
        (2, "c[]: the column has doubles, and would round the number"),
    ]


def test_the_keys_of_a_map_keep_their_type() -> None:
    of_texts, of_numbers = (proto3(f"message A {{ map<{kind}, int32> a = 1; }}") for kind in ("string", "int64"))
    columns = grow(columns_of_protobuf(of_texts), columns_of_protobuf(of_numbers))
    assert columns.names == ["a", "a_2"]
    assert columns.field("a_2").type.key_type == pa.int64()


# Frames


def framed(schema_id: int, path: bytes, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + path + body


def test_frames_name_the_schema_and_the_message_type() -> None:
    old = proto3("message A { int32 a = 1; message In { int32 c = 1; } } message B { string b = 1; }")
    new = proto3("message A { int32 a = 1; optional string d = 2; }")
    columns = pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.int64(), "d": pa.string()})
    schemas = {1: old, 2: new}
    decoder = ProtobufDecoder(columns, schemas)
    values: list[bytes | None] = [
        framed(1, b"\0", b"\x08\1"),
        framed(2, b"\2\0", b"\x12\1x"),
        framed(1, b"\2\2", b"\x0a\1y"),
        framed(1, b"\4\0\0", b"\x08\3"),
        None,
        framed(1, b"\2\4", b""),
        framed(9, b"\0", b""),
        framed(1, b"\x80", b""),
        b"",
    ]
    decoded = decoder.decode(pa.array(values, pa.binary()))
    empty = {"a": None, "b": None, "c": None, "d": None}
    assert rows(decoded)[:5] == [
        empty | {"a": 1}, empty | {"a": 0, "d": "x"}, empty | {"b": "y"}, empty | {"c": 3}, empty,
    ]  # fmt: skip
    assert decoded.unknown_schemas == {9}
    assert [(failure.row, failure.reason) for failure in decoded.failures] == [
        (5, "the .proto file has no message with the index path [2]"),
        (7, "the index path of the Protobuf message is invalid"),
        (8, "the value is empty: it has no frame with the id of a schema"),
    ]
    schemas[9] = old
    assert decoder.decode(pa.array(values, pa.binary())).unknown_schemas == frozenset()


def test_as_many_paths_as_values_are_refused_one_by_one() -> None:
    schema = proto3("message A { int32 a = 1; }")
    decoder = ProtobufDecoder(pa.schema({"a": pa.int64()}), {1: schema})
    paths = [b"\2" + bytes([0x80 | number & 0x7F, number >> 7]) for number in range(2, 4000, 2)]
    decoded = decoder.decode(pa.array([framed(1, path, b"\x08\1") for path in [*paths, b"\0"]], pa.binary()))
    assert [failure.row for failure in decoded.failures] == list(range(len(paths)))
    assert decoded.rows.column("a")[-1].as_py() == 1


def test_values_of_other_message_types_are_refused_if_one_is_wanted() -> None:
    schema = proto3("message A { int32 a = 1; } message B { int32 a = 1; }")
    decoder = ProtobufDecoder(pa.schema({"a": pa.int64()}), {1: schema}, "B")
    decoded = decoder.decode(pa.array([framed(1, b"\0", b"\x08\1"), framed(1, b"\2\2", b"\x08\2")], pa.binary()))
    assert rows(decoded) == [{"a": None}, {"a": 2}]
    assert [failure.reason for failure in decoded.failures] == ["the value is a A, and the columns are those of B"]
    with pytest.raises(InvalidSchema, match="no message C"):
        ProtobufDecoder(pa.schema({"a": pa.int64()}), schema, "C")


def test_the_kernels_are_compiled_once_and_before_there_is_data() -> None:
    warm()
    merged = framed(1, b"\0", b"\x0a\2\x08\1" + b"\x0a\2\x10\2")
    schema = proto3("message A { B b = 1; } message B { int32 c = 1; int32 d = 2; }")
    decoded = ProtobufDecoder(columns_of_protobuf(schema), {1: schema}).decode(pa.array([merged], pa.binary()))
    assert rows(decoded) == [{"b": {"c": 1, "d": 2}}]
    assert len(protobuf_rows.decode_rows.signatures) == 1  # type: ignore[attr-defined]


EXTENSIONS = proto2(
    "package shop; message Order { optional int64 id = 1; extensions 100 to max; optional Order inner = 3; "
    "optional Line line = 4; } "
    "message Line { extensions 5 to 9; } "
    "extend Order { optional double weight = 100; repeated sint32 sizes = 101 [packed = true]; "
    'optional string note = 102 [default = "none"]; repeated group Part = 103 { optional int32 number = 1; } } '
    "message Shop { extend Order { optional Shop shop = 200; optional string weight = 201; } "
    "optional string name = 1; extend Line { optional bool big = 7; } }"
)


def test_extensions_are_columns() -> None:  # fault F13
    """The extensions that the schema's own files declare: google.protobuf is the judge of the bytes."""
    order_type = message_class(EXTENSIONS.message("shop.Order"))
    order = order_type(id=1)
    extensions = {field.full_name: field for field in fields_of(EXTENSIONS.message("shop.Order")) if field.is_extension}
    order.Extensions[extensions["shop.weight"]] = 1.5
    order.Extensions[extensions["shop.sizes"]].extend([-1, 2])
    order.Extensions[extensions["shop.part"]].add(number=4)
    order.Extensions[extensions["shop.Shop.shop"]].name = "here"
    order.Extensions[extensions["shop.Shop.weight"]] = "heavy"
    order.line.Extensions[fields_of(EXTENSIONS.message("shop.Line"))[0]] = True
    order.inner.Extensions[extensions["shop.weight"]] = 2.5
    body = order.SerializeToString()
    expected = {
        "id": 1,
        "inner": '{"[shop.weight]":2.5}',
        "line": {"big": True},
        "weight": 1.5,
        "sizes": [-1, 2],
        "note": "none",
        "part": [{"number": 4}],
        "shop": {"name": "here"},
        "shop.Shop.weight": "heavy",
    }
    assert row(EXTENSIONS, body) == expected
    columns = columns_of_protobuf(EXTENSIONS)
    without = pa.schema([columns.field("id")])
    assert rows(decode(EXTENSIONS, body, columns=without)) == [{"id": 1}]
    [failure] = decode(EXTENSIONS, b"\xa0\x06\x01", columns=without).failures
    assert "weight" in failure.reason


def test_extensions_of_a_message_set_are_no_fields() -> None:  # fault F13
    """A message set writes them in another form."""
    schema = proto2(
        "message Set { option message_set_wire_format = true; extensions 4 to max; } "
        "message Order { extend Set { optional Order order = 100; } optional int64 id = 1; optional Set set = 2; }"
    )
    assert [field.name for field in fields_of(schema.message("Set"))] == []
    assert columns_of_protobuf(schema, "Order").names == ["id", "set"]
