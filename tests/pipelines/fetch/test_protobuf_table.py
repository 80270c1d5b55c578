"""Protobuf values become the columns of message types, which a schema registry or a file of the settings has."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from kafka_io.values.protobuf.files import read_protobuf
from pipelines.rewrites.topic_schema import topic_schema
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import CountedFetches, TypedTopic, append, log_of, registered_topic

PLACE = 'syntax = "proto3"; package shop; message Place { string city = 1; }'
CLICK = """syntax = "proto3"; package shop; import "shop/place.proto";
message Click {
  // The number.
  int64 id = 1;
  Place place = 2;
}
message Refund { string reason = 1; }"""
WIDER = CLICK.replace("Place place = 2;", "Place place = 2; repeated string tags = 3; map<int32, Place> others = 4;")
FIRST, SECOND = b"\0", b"\2\2"
"""The index paths of the two message types."""


def framed(schema_id: int, path: bytes, value: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + path + value


def register(registry: EmbeddedSchemaRegistry, text: str) -> int:
    registry.register("place", PLACE, schema_type="PROTOBUF")
    return registry.register(
        "clicks-value", text, schema_type="PROTOBUF", references=[("shop/place.proto", "place", 1)]
    )


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as embedded:
        yield embedded


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path, registry: EmbeddedSchemaRegistry) -> Iterator[TypedTopic]:
    with registered_topic(fake, tmp_path, registry, format="protobuf", max_bad_share=1) as registered:
        yield registered


def test_the_fields_of_messages_are_columns_and_a_new_one_lands_with_its_first_rows(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    click = register(registry, CLICK)
    topic.fake.logs = {0: log_of([framed(click, FIRST, b"\x08\1\x12\3\x0a\1x"), None, framed(click, FIRST, b"\x08")])}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 1)
    wider = register(registry, WIDER)
    values = [framed(wider, FIRST, b"\x08\2\x1a\1t\x22\6\x08\5\x12\2\x0a\0"), framed(click, FIRST, b"\x08\3")]
    append(topic.fake.logs[0], values)
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.files) == (None, 2, 0, 1)
    rows = topic.rows("id", "place", "tags", "others", "_error", "_tombstone")
    assert [(row["id"], row["place"], row["tags"], row["others"]) for row in rows] == [
        (1, {"city": "x"}, None, None),
        (None, None, None, None),
        (None, None, None, None),
        (2, None, ["t"], [(5, {"city": ""})]),
        (3, None, None, None),
    ]
    assert rows[2]["_error"].startswith("id: a number is longer than 64 bits, or the value ends before it does")
    assert topic.deep().problems == ()
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert [column.comment for column in shown.columns if column.name == "id"] == ["The number."]


def test_values_of_another_message_type_are_kept_until_the_settings_name_it(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    click = register(registry, CLICK)
    topic.fake.logs = {0: log_of([framed(click, SECOND, b"\x0a\6broken"), framed(click, FIRST, b"\x08\1")])}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 1)
    assert topic.rows("_error")[0]["_error"] == ("the value is a shop.Refund, and the columns are those of shop.Click")
    topic.format_ = {**topic.format_, "message": "shop.Refund"}
    append(topic.fake.logs[0], [framed(click, SECOND, b"\x0a\4lost")])
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert topic.rows("id", "reason")[-1] == {"id": None, "reason": "lost"}


def test_by_choice_a_table_has_the_fields_of_all_message_types_that_occur(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    click = register(registry, CLICK)
    topic.format_ = {**topic.format_, "message": "*"}
    clicks = [framed(click, FIRST, b"\x08\1")] * 1_500
    topic.fake.logs = {0: log_of([*clicks, framed(click, b"\2\x08", b"")])}
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert (load.error, load.rows, load.bad_records) == (None, 1_501, 1)
    assert fetches.sizes == [1_000, 1_000, 1_501]  # a sample shows the id, and the next one the message type
    assert set(topic.snapshot.layout.values.names) >= {"id", "place"}
    append(topic.fake.logs[0], [framed(click, SECOND, b"\x0a\4lost"), framed(click, FIRST, b"\x08\2")])
    load = topic.load(fetch=fetches)
    assert (load.error, load.bad_records, fetches.sizes[3:]) == (None, 0, [2, 2])
    assert [(row["id"], row["reason"]) for row in topic.rows("id", "reason")[-2:]] == [(None, "lost"), (2, None)]
    assert topic.entry.schemas.messages == (f"{click} shop.Click", f"{click} shop.Refund")
    assert topic.deep().problems == ()
    append(topic.fake.logs[0], [framed(click, SECOND, b"\x0a\4lost")])
    assert (topic.load(fetch=fetches).error, fetches.sizes[5:]) == (None, [1])


def test_a_schema_that_has_no_such_message_or_is_in_another_language_makes_its_values_undecodable(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    click, avro = register(registry, CLICK), registry.register("clicks-avro", '"string"')
    topic.fake.logs = {0: log_of([framed(click, FIRST, b""), framed(avro, b"", b"\2a"), framed(77, b"\x80", b"")])}
    topic.format_ = {**topic.format_, "message": "shop.Order"}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 3)
    assert [row["_error"] for row in topic.rows("_error")] == [
        f"the schema {click} cannot be used: the Protobuf schema has no message shop.Order",
        f"the schema {avro} cannot be used: the schema {avro} has the type AVRO, but the format needs Protobuf",
        "the registry main has no schema with the id 77",
    ]


@pytest.fixture
def local(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    """A topic whose message types are in `clicks.proto`, which imports a file of the folder `shared`."""
    (tmp_path / "shared" / "shop").mkdir(parents=True)
    (tmp_path / "shared" / "shop" / "place.proto").write_text(PLACE)
    (tmp_path / "clicks.proto").write_text(CLICK)
    format_ = {
        "format": "protobuf",
        "proto_file": str(tmp_path / "clicks.proto"),
        "proto_path": [str(tmp_path / "shared")],
        "max_bad_share": 1,
    }
    fake.logs = {0: log_of([b"\x08\1\x12\3\x0a\1x", None, b"\x08"])}
    with fake:
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)


def test_messages_without_a_frame_become_the_columns_of_a_proto_file_and_grow_with_it(local: TypedTopic) -> None:
    load = local.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 1)
    assert local.deep().problems == ()
    Path(local.format_["proto_file"]).write_text(WIDER)
    append(local.fake.logs[0], [b"\x08\2\x1a\1t", b"\x08\3"])
    load = local.load()
    assert (load.error, load.rows, load.bad_records, load.files) == (None, 2, 0, 1)
    rows = local.rows("id", "place", "tags", "_raw", "_tombstone")
    assert [(row["id"], row["place"], row["tags"]) for row in rows] == [
        (1, {"city": "x"}, None), (None, None, None), (None, None, None), (2, None, ["t"]), (3, None, []),
    ]  # fmt: skip
    assert (rows[1]["_tombstone"], rows[2]["_raw"]) == (True, b"\x08")
    shown = topic_schema(local.table, local.settings.format_of("clicks"))
    assert [column.comment for column in shown.columns if column.name == "id"] == ["The number."]


def test_a_descriptor_set_gives_the_columns_of_the_message_type_that_the_settings_name(local: TypedTopic) -> None:
    file = Path(local.format_["proto_file"])
    schema = read_protobuf(file, [Path(local.format_["proto_path"][0])])
    compiled = file.with_suffix(".desc")
    compiled.write_bytes(schema.descriptor_set())
    local.format_ = {"format": "protobuf", "proto_file": str(compiled), "message": "shop.Refund"}
    local.fake.logs = {0: log_of([b"\x0a\4lost"])}
    load = local.load()
    assert (load.error, load.rows, load.bad_records) == (None, 1, 0)
    assert local.rows("reason") == [{"reason": "lost"}]


def test_a_proto_file_that_cannot_be_used_fails_the_load_with_its_place(local: TypedTopic) -> None:
    file = Path(local.format_["proto_file"])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"proto_path": ()}, f"{file}: the import shop/place.proto is in none of the folders {file.parent}"),
        ({"proto_file": str(file.with_name("lost.proto"))}, "lost.proto: no such file or directory"),
        ({"message": "shop.Order"}, "the Protobuf schema has no message shop.Order"),
    ]
    for changed, error in wrong:
        load = replace(local, format_={**local.format_, **changed}).load()
        assert load.error is not None
        assert error in load.error
        assert load.rows == 0
