"""Texts of `.proto` files: read as protoc reads them, or refused with the line."""

import re
import time
import tracemalloc
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import files
from typing import Any

import pytest

from kafka_io.errors import InvalidSchema
from kafka_io.values.protobuf.descriptors import fields_of, parse_descriptor_set, parse_protobuf
from kafka_io.values.protobuf.proto_text import file_of_text


def facts(message: Any) -> Mapping[str, Any]:
    """What decides how a message type is decoded."""
    return {
        "fields": [
            (
                field.name,
                field.number,
                field.type,
                field.is_repeated,
                field.has_presence,
                field.default_value if field.message_type is None else None,
                field.message_type and field.message_type.full_name,
                field.enum_type and [(value.name, value.number) for value in field.enum_type.values],
                field.containing_oneof and field.containing_oneof.name,
            )
            for field in message.fields
        ],
        "nested": {nested.name: facts(nested) for nested in message.nested_types},
        "is_entry": message.GetOptions().map_entry,
    }


def test_files_of_google_are_read_as_protoc_reads_them() -> None:
    """The package has the texts, and the descriptors that protoc made of them."""
    paths = [path for path in files("googleapis-common-protos") or () if path.suffix == ".proto"]
    texts = {str(path): path.read_text(encoding="utf-8") for path in paths}
    schema = parse_protobuf('syntax = "proto3";' + "".join(f'import "{name}";' for name in texts), texts)
    compared = 0
    for name in texts:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        for message in module.DESCRIPTOR.message_types_by_name.values():
            assert facts(schema.message(message.full_name)) == facts(message), message.full_name
            compared += 1
    assert compared > 100


PROTO2 = r"""
// Orders of a shop.
syntax = "proto2";
package shop.v1;
import "google/protobuf/timestamp.proto";
option java_package = "org" ".example";
option (my.option).part = { a: 1 b: [1, 2] c { d: "}" } };

// An order.
message Order {
  // The number
  // of the order.
  required int64 id = 0x1 [default = 010, (confluent.field_meta) = { doc: "x" }, deprecated = true];
  /* What the customer
   * wrote. */
  optional string note = 2 [default = "a\"b" '\x41\101\u00e9'];
  optional bytes data = 3 [default = "\000\377\\\""];

  // Stands alone.

  repeated Line lines = 4;
  optional group Extra = 5 { optional .shop.v1.Order.Kind kind = 1 [default = B]; }
  oneof choice { option (x) = 1; string text = 6; Line line = 7; }
  map<string, Line> by_name = 8;
  optional double top = 9 [default = -inf];
  optional float rate = 10 [default = -1.5e3];
  extensions 100 to 199;
  reserved 50, 60 to max;
  reserved "old";
  message Line { optional google.protobuf.Timestamp at = 1; };
  enum Kind { option allow_alias = true; A = 0; B = 1; C = 1 [deprecated = true]; D = -5; reserved 7; }
  extend Order { optional int32 more = 100; }
}
service Shop { rpc Get (Order) returns (stream Order) { option (http) = { get: "/" }; } }
extend Order { optional int32 further = 101; }
;
"""


def test_everything_that_a_file_of_proto2_may_have_is_read() -> None:
    schema = parse_protobuf(PROTO2)
    fields = {field.name: field for field in schema.message("shop.v1.Order").fields}
    assert list(fields) == [
        "id", "note", "data", "lines", "extra", "text", "line", "by_name", "top", "rate",
    ]  # fmt: skip
    defaults = {name: field.default_value for name, field in fields.items() if field.has_default_value}
    assert defaults == {"id": 8, "note": 'a"bAA\u00e9', "data": b'\0\xff\\"', "top": float("-inf"), "rate": -1500.0}
    assert fields["extra"].type == fields["extra"].TYPE_GROUP
    assert fields["extra"].message_type.fields_by_name["kind"].default_value == 1
    assert [field.name for field in fields["text"].containing_oneof.fields] == ["text", "line"]
    assert fields["by_name"].message_type.GetOptions().map_entry


def test_comments_directly_before_a_field_document_it() -> None:
    assert parse_protobuf(PROTO2).comments == {
        "shop.v1.Order.id": "The number of the order.",
        "shop.v1.Order.note": "What the customer wrote.",
    }


def test_a_field_of_proto3_knows_whether_it_is_set_if_it_is_optional() -> None:
    schema = parse_protobuf(
        'syntax = "proto3"; message A { int32 a = 1; optional int32 b = 2; oneof _b { int32 c = 3; } }'
    )
    assert [field.has_presence for field in schema.message("A").fields] == [False, True, True]


def test_an_edition_has_the_features_that_it_states() -> None:
    schema = parse_protobuf(
        'edition = "2023"; option features.field_presence = IMPLICIT; option features.enum_type = CLOSED;'
        "message A { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT];"
        "A c = 3 [features.message_encoding = DELIMITED]; E d = 4 [features.field_presence = EXPLICIT]; }"
        "enum E { NONE = 0; }"
    )
    fields = schema.message("A").fields
    assert [field.has_presence for field in fields] == [False, True, True, True]
    assert fields[2].type == fields[2].TYPE_GROUP
    assert fields[3].enum_type.is_closed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('syntax = "proto3"; message A {\n  int32 a = ; }', "unexpected ; in line 2"),
        ('syntax = "proto3"; message A { int32 a = 1; ', "ends too early, in line 1"),
        ('syntax = "proto4";', "the syntax proto4 of the .proto text is not known"),
        ('edition = "1999";', "the edition 1999 of the .proto text is not known"),
        ("message A { int32 a = 1; }", "unexpected a in line 1"),  # proto2 needs a label
        ('syntax = "proto3"; message A { int32 a = 0; }', "0 in line 1 of the .proto text is not a field number"),
        (
            'syntax = "proto3"; message A { int32 a = 1.5; }',
            "1.5 in line 1 of the .proto text is not an integer of at most 64 bits",
        ),
        (
            'syntax = "proto3"; message A { int32 a = 09; }',
            "09 in line 1 of the .proto text is not an integer of at most 64 bits",
        ),
        # Python refuses to print a number of so many digits. This text was found by fuzzing.
        (
            f"message A {{ optional int32 a = 1 [default = 0{'7' * 9000}]; }}",
            "in line 1 of the .proto text is not an integer",
        ),
        (
            f"message A {{ optional int32 a = 1 [default = 0x{'f' * 9000}]; }}",
            "in line 1 of the .proto text is not an integer",
        ),
        ('syntax = "proto3"; enum E { A = 99999999999; }', "is not a number of an enum"),
        (
            'syntax = "proto3"; message A { B b = 1; }',
            "the Protobuf schema is not valid: \"couldn't resolve name 'B'\"",
        ),
        ('syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }', "the Protobuf schema is not valid"),
        ('syntax = "proto3"; message A.B { }', "unexpected A.B in line 1"),
        ('syntax = "proto3"; bogus A { }', "unexpected bogus in line 1"),
        ('syntax = "proto3"; message A { int32 a = 1 [features.bogus = X]; }', "unexpected X in line 1"),
        ('syntax = "proto2"; message A { optional int32 a = 1 [default = {}]; }', "unexpected { in line 1"),
        ('syntax = "proto3"; message A { \x00', r"unexpected '\x00' in line 1"),
        ('syntax = "proto3"; import "a', 'unexpected " in line 1'),
        ("message A {}\n/* message B {}", "the .proto text has a comment without an end in line 2"),
        ('syntax = "proto3";' + "message A {" * 40, "nested deeper than 32 levels"),
    ],
)
def test_a_text_that_does_not_follow_the_language_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=re.escape(reason)):
        parse_protobuf(text)


def test_a_comment_that_is_not_unicode_is_a_comment() -> None:
    """A registry sends texts as JSON, which can express half of a surrogate pair."""
    schema = parse_protobuf('syntax = "proto3"; message A { /* one \ud800 */ int32 a = 1; }')
    assert schema.comments == {"A.a": "one ?"}


def test_a_text_is_read_in_a_time_that_grows_with_its_length() -> None:
    """A registry may send 16 MB; the pool of google.protobuf is not asked here."""
    nested = "[" * 30_000
    with pytest.raises(InvalidSchema, match="ends too early"):
        file_of_text("a.proto", f'syntax = "proto3"; option (a) = {nested}')
    for text in ("service A { " + "/* " * 30_000, "syntax" + " " * 100_000 + "= 1;"):
        start = time.process_time()
        with pytest.raises(InvalidSchema):
            parse_protobuf(text)
        assert time.process_time() - start < 1


@pytest.mark.parametrize("token", ['"%s"', "'%s'", "%s"])
def test_a_long_token_takes_no_more_memory_than_a_few_times_its_length(token: str) -> None:
    text = f"option a = {token % (500_000 * 'a.')}a;" if token == "%s" else f"option a = {token % (1_000_000 * 'a')};"
    tracemalloc.start()
    file_of_text("a.proto", text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(text)


def test_extensions_of_a_file_are_fields() -> None:  # fault F13
    schema = parse_protobuf(PROTO2)
    order = schema.message("shop.v1.Order")
    assert [field.full_name for field in fields_of(order)[len(order.fields) :]] == [
        "shop.v1.Order.more",
        "shop.v1.further",
    ]
    assert fields_of(schema.message("shop.v1.Order.Line")) == list(schema.message("shop.v1.Order.Line").fields)


EXTENDED = """
syntax = "proto2";
import "google/protobuf/descriptor.proto";
package shop;
extend google.protobuf.FieldOptions { optional string doc = 50000; }
extend .google.protobuf.MessageOptions { optional string owner = 50001; }
message Before { optional int32 id = 1; }
// Not of a field.
extend Order {
  // What it weighs.
  optional double weight = 100;
  repeated group Part = 101 {
    // Its number.
    optional int32 number = 1;
  }
}
message Order { required int64 id = 1 [(doc) = "x"]; extensions 100 to max; }
message Shop {
  extend Order { /* Of the shop. */ optional Shop shop = 200; optional string weight = 201; }
  optional string name = 1;
}
"""


def test_messages_of_groups_of_extensions_have_their_place_in_the_file() -> None:  # fault F13
    """The path in a frame counts them, as protoc does."""
    schema = parse_protobuf(EXTENDED)
    names = ["shop.Before", "shop.Part", "shop.Order", "shop.Shop"]
    assert [schema.message_at((number,)).full_name for number in range(4)] == names
    assert schema.comments == {
        "shop.weight": "What it weighs.",
        "shop.Part.number": "Its number.",
        "shop.Shop.shop": "Of the shop.",
    }
    again = parse_descriptor_set(schema.descriptor_set())
    assert again.comments == schema.comments
    assert [field.full_name for field in fields_of(again.message("shop.Order"))] == [
        "shop.Order.id",
        "shop.weight",
        "shop.part",
        "shop.Shop.shop",
        "shop.Shop.weight",
    ]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("extend A { optional int32 b = 200; }", "extension"),
        ("extend Nothing { optional int32 b = 100; }", "Nothing"),
        ("extend A { optional int32 b = 100; optional int32 c = 100; }", "duplicate extension"),
        ("extend A { optional int32 b = 100;", "ends too early"),
        ("extend { optional int32 b = 100; }", "unexpected"),
    ],
)
def test_a_wrong_extension_is_refused(statement: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse_protobuf(f'syntax = "proto2"; message A {{ extensions 100 to 110; }} {statement}')
