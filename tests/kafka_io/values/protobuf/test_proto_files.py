"""Protobuf schemas in files: texts that import each other, and descriptor sets."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_io.errors import InvalidSchema
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.descriptors import parse_descriptor_set
from kafka_io.values.protobuf.files import read_protobuf

HEAD = 'syntax = "proto3"; package shop; '
TIME = 'import "google/protobuf/timestamp.proto"; '


def write(folder: Path, name: str, text: str) -> Path:
    """Write a `.proto` file."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEAD + text)
    return file


def test_imports_are_found_beside_the_file_or_in_the_first_folder_that_has_them(tmp_path: Path) -> None:
    order = write(tmp_path, "order.proto", 'import "a/place.proto"; message Order { Place place = 1; }')
    write(tmp_path, "a/place.proto", f'{TIME}import "b.proto"; message Place {{ B b = 1; }}')
    write(tmp_path, "b.proto", "message B { int32 beside = 1; }")
    place = pa.struct({"b": pa.struct({"beside": pa.int64()})})
    assert columns_of_protobuf(read_protobuf(order)) == pa.schema({"place": place})
    write(tmp_path, "first/b.proto", "message B { int32 first = 1; }")
    columns = columns_of_protobuf(read_protobuf(order, [tmp_path / "first", tmp_path]))
    assert columns.field("place").type.field("b").type == pa.struct({"first": pa.int64()})


def test_a_file_may_begin_with_a_mark_of_utf_8(tmp_path: Path) -> None:  # fault F06
    order = write(tmp_path, "order.proto", "message Order { int32 id = 1; }")
    order.write_text(order.read_text(), encoding="utf-8-sig")
    assert columns_of_protobuf(read_protobuf(order)).names == ["id"]


def test_a_descriptor_set_contains_the_imports_and_the_comments(tmp_path: Path) -> None:
    text = 'import "place.proto"; message Order {\n// Where to.\nPlace place = 1; }'
    order = write(tmp_path, "order.proto", text)
    write(tmp_path, "place.proto", f"{TIME}message Place {{ google.protobuf.Timestamp at = 1; }}")
    schema = read_protobuf(order)
    file = tmp_path / "order.desc"
    file.write_bytes(schema.descriptor_set())
    for again in (read_protobuf(file), parse_descriptor_set(schema.descriptor_set())):
        assert columns_of_protobuf(again).equals(columns_of_protobuf(schema), check_metadata=True)
        assert again.comments == {"shop.Order.place": "Where to."}
        assert again.first_message == "shop.Order"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"order.proto": "message Order { oops }"}, "order.proto: the .proto text has an unexpected } in line 1"),
        ({"order.proto": 'import "b.proto";'}, "order.proto: the import b.proto is in none of the folders "),
        ({"order.proto": 'import "b.proto";', "b.proto": "oops"}, "b.proto: the .proto text has an unexpected oops"),
        ({"order.proto": 'import "order.proto";'}, "order.proto: the Protobuf schema is not valid"),
        ({"order.proto": "message Order { Place place = 1; }"}, "order.proto: the Protobuf schema is not valid"),
    ],
)
def test_a_file_that_is_not_valid_is_named(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    for name, text in files.items():
        write(tmp_path, name, text)
    with pytest.raises(InvalidSchema, match=re.escape(reason)):
        read_protobuf(tmp_path / "order.proto")


def test_bytes_that_are_neither_a_text_nor_a_descriptor_set_are_refused(tmp_path: Path) -> None:
    for name, reason in (("a.proto", "the text is not valid UTF-8"), ("a.desc", "the file is not a descriptor set")):
        file = tmp_path / name
        file.write_bytes(b"\xff\xff")
        with pytest.raises(InvalidSchema, match=rf"{re.escape(str(file))}: {reason}"):
            read_protobuf(file)
    with pytest.raises(FileNotFoundError):
        read_protobuf(tmp_path / "lost.proto")
