"""Protobuf schemas: from texts, descriptors in Base64 and descriptor sets, with the files that they import."""

import base64
import re

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from kafka_io.errors import InvalidSchema
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.descriptors import parse_descriptor_set, parse_protobuf
from kafka_io.values.protobuf.proto_text import file_of_text

PLACE = 'syntax = "proto3"; package shop; message Place { string city = 1; }'
ORDER = 'syntax = "proto3"; package shop; import "shop/place.proto"; message Order { Place place = 1; message Line {} }'


def in_base64(name: str, text: str) -> str:
    return base64.b64encode(file_of_text(name, text).SerializeToString()).decode()


def test_a_schema_refers_to_another_file_by_the_name_that_it_imports() -> None:
    schema = parse_protobuf(ORDER, {"shop/place.proto": PLACE})
    assert columns_of_protobuf(schema) == pa.schema({"place": pa.struct({"city": pa.string()})})
    assert schema.message_at((0, 0)).full_name == "shop.Order.Line"


def test_a_map_of_the_text_is_no_message_in_the_index_path() -> None:  # fault A28
    """Confluent's serializers count the messages of the registered text, also an entry that it declares."""
    line, tags = "message Line { int32 n = 1; }", "map<string, string> tags = 1;"
    entry = "message TagsEntry { option map_entry = true; string key = 1; string value = 2; }"
    texts = (f"{tags} {line}", f"{line} {tags}", f"repeated TagsEntry tags = 1; {entry} {line}")
    schemas = [parse_protobuf(f'syntax = "proto3"; message Order {{ {text} }}') for text in texts]
    places = [{name: path for path, name in schema.message_names()}["Order.Line"] for schema in schemas]
    assert places == [(0, 0), (0, 0), (0, 1)]
    for schema, place in zip(schemas, places, strict=True):
        assert schema.message_at(place).full_name == "Order.Line"


def test_a_descriptor_in_base64_is_as_good_as_a_text() -> None:
    texts = parse_protobuf(ORDER, {"shop/place.proto": PLACE})
    mixed = parse_protobuf(in_base64("order.proto", ORDER), {"shop/place.proto": in_base64("p.proto", PLACE)})
    assert columns_of_protobuf(mixed) == columns_of_protobuf(texts)


def test_the_last_file_of_a_descriptor_set_is_its_schema() -> None:
    files = descriptor_pb2.FileDescriptorSet(
        file=[file_of_text("shop/place.proto", PLACE), file_of_text("order.proto", ORDER)]
    )
    schema = parse_descriptor_set(files.SerializeToString())
    assert schema.first_message == "shop.Order"
    assert columns_of_protobuf(schema, "shop.Place").names == ["city"]


def test_files_of_google_and_confluent_need_not_be_given() -> None:
    imports = "".join(
        f'import "{name}.proto"; '
        for name in ("google/protobuf/timestamp", "google/protobuf/type", "confluent/meta", "confluent/type/decimal")
    )
    schema = parse_protobuf(f'syntax = "proto3"; {imports} message A {{ confluent.type.Decimal price = 1; }}')
    assert columns_of_protobuf(schema).field("price").type.field("value").type == pa.binary()


def test_a_type_under_the_name_of_one_of_google_is_not_mistaken_for_it() -> None:
    lookalike = 'syntax = "proto3"; package google.protobuf; message Timestamp { string text = 1; }'
    order = 'syntax = "proto3"; import "t.proto"; message A { google.protobuf.Timestamp at = 1; }'
    schema = parse_protobuf(order, {"t.proto": lookalike})
    assert columns_of_protobuf(schema) == pa.schema({"at": pa.struct({"text": pa.string()})})


def test_a_file_of_google_is_not_taken_from_the_references() -> None:
    changed = 'syntax = "proto3"; package google.protobuf; message Timestamp { string text = 1; }'
    order = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp at = 1; }'
    )
    schema = parse_protobuf(order, {"google/protobuf/timestamp.proto": changed})
    assert columns_of_protobuf(schema) == pa.schema({"at": pa.timestamp("us", "UTC")})


@pytest.mark.parametrize(
    ("text", "imports", "reason"),
    [
        (ORDER, {}, "imports shop/place.proto, which its references do not contain"),
        ('import "google/protobuf/any";', {}, "imports google/protobuf/any, which its references do not contain"),
        ('import "b"; ', {"b": 'import "c";', "c": 'import "b";'}, "is not valid"),
        ("AAAA", {}, "neither a .proto text nor a descriptor in Base64"),
        ("A", {}, "neither a .proto text nor a descriptor in Base64"),
    ],
)
def test_a_schema_that_lacks_something_is_refused(text: str, imports: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidSchema, match=re.escape(reason)):
        parse_protobuf(text, imports)


@pytest.mark.parametrize("data", [b"", b"\xff", b"syntax"])
def test_bytes_that_are_no_descriptor_set_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidSchema, match="descriptor set"):
        parse_descriptor_set(data)


@pytest.mark.parametrize("place", ["name", "dependency", "package", "comment"])
def test_a_descriptor_with_a_text_that_is_not_utf8_is_refused(place: str) -> None:
    """google.protobuf reads such a text as bytes."""
    file = file_of_text("a.proto", 'syntax = "proto3"; package A; message Order { /* A */ int32 id = 1; }')
    if place == "dependency":
        file.dependency.append("A")
    file.name = "A" if place == "name" else "a.proto"
    data = file.SerializeToString().replace(b"\1A", b"\1\xff")
    assert b"\xff" in data
    with pytest.raises(InvalidSchema, match="not valid UTF-8"):
        parse_protobuf(base64.b64encode(data).decode())
    with pytest.raises(InvalidSchema, match="not valid UTF-8"):
        parse_descriptor_set(b"\x0a" + bytes([len(data)]) + data)


def test_a_path_and_a_name_without_a_message_are_refused() -> None:
    schema = parse_protobuf(PLACE)
    with pytest.raises(InvalidSchema, match=re.escape("no message with the index path [0, 1]")):
        schema.message_at((0, 1))
    with pytest.raises(InvalidSchema, match=r"no message shop\.Order"):
        schema.message("shop.Order")


def test_more_fields_than_a_table_can_have_are_refused() -> None:
    """Messages that use each other multiply: 30 levels of 2 are a billion columns."""
    doubled = "".join(f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }} " for i in range(30))
    schema = parse_protobuf(f'syntax = "proto3"; {doubled} message M30 {{ int32 a = 1; }}')
    with pytest.raises(InvalidSchema, match="more than 10000 fields"):
        columns_of_protobuf(schema)
