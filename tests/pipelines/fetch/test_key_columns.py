"""Keys of records become columns of their own, whose names no field of a value can have."""

import json
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.topic_schema import topic_schema
from resources.kafka import open_schema_registry
from resources.settings.settings import Settings
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import TypedTopic

Pair = tuple[bytes | None, bytes | None]
KEY = "_kafka_key_"


def append(log: Log, *pairs: Pair) -> None:
    """Append a batch of records with these keys and values."""
    records = [
        Record(offset=log.end + number, timestamp=1_700_000_000_000, key=key, value=value)
        for number, (key, value) in enumerate(pairs)
    ]
    log.entries.append((records[-1].offset, record_batch(records)))
    log.end += len(records)


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: Log(entries=[], start=0, end=0)}
    with fake:
        format_ = {"format": "json", "key_format": "json", "max_bad_share": 1}
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)


def test_a_text_is_one_column_and_the_bytes_stay(topic: TypedTopic) -> None:
    topic.format_ = {"format": "text", "key_format": "text", "max_bad_share": 1}
    append(topic.fake.logs[0], (b"k", b"v"), (None, b"v"), (b"\xff", b"v"), (b"\xff", b"\xfe"))
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 4, 2)
    assert [tuple(row.values()) for row in topic.rows("_kafka_key", f"{KEY}value", "value", "_error", "_raw")] == [
        (b"k", "k", "v", None, None),
        (None, None, "v", None, None),
        (b"\xff", None, "v", "key: the value is not valid UTF-8", b"v"),
        (b"\xff", None, None, "the value is not valid UTF-8", b"\xfe"),
    ]
    assert topic.deep().problems == ()


def test_fields_of_keys_and_values_may_have_the_same_names_and_a_tombstone_has_its_key(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], (b'{"id": 1}', b'{"id": "v", "_kafka_key_id": 5}'), (b'{"id": 2}', None))
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 2, 0)
    assert [tuple(row.values()) for row in topic.rows("id", f"{KEY}id", "value_kafka_key_id", "_tombstone")] == [
        ("v", 1, 5, False),
        (None, 2, None, True),
    ]
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert {column.name: column.field for column in shown.columns} == {
        "id": "id",
        "value_kafka_key_id": "_kafka_key_id",
        f"{KEY}id": "key.id",
    }
    assert topic.deep().problems == ()


@pytest.mark.slow
def test_columns_of_keys_grow_with_their_first_rows_and_other_types_get_other_columns(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], (b'{"id": 1}', b'{"a": 1}'))
    assert topic.load().warnings == ()
    append(topic.fake.logs[0], (b'{"id": "x", "shop": 4}', b'{"a": 2}'), (b'{"id": 3}', b'{"b": 3}'))
    load = topic.load()
    assert (load.error, load.bad_records, load.files) == (None, 0, 1)
    assert load.warnings == (
        f"the field 'key.id' had the type int64 before: the new column {KEY}id_2 holds it, with the type string",
    )
    names = (f"{KEY}id", f"{KEY}id_2", f"{KEY}shop", "a", "b")
    assert [tuple(row.values()) for row in topic.rows(*names)] == [
        (1, None, None, 1, None),
        (None, "x", 4, 2, None),
        (3, None, None, None, 3),
    ]
    assert topic.load().warnings == ()
    assert topic.deep().problems == ()
    assert (topic.replay().error, topic.replay().changed) == (None, False)


def test_a_table_gets_columns_for_keys_when_the_settings_name_their_format(topic: TypedTopic) -> None:
    topic.format_ = {"format": "json"}
    append(topic.fake.logs[0], (b'{"id": 1}', b'{"a": 1}'))
    topic.load()
    topic.format_ = {**topic.format_, "key_format": "json"}
    assert topic.replay().changed
    assert topic.rows(f"{KEY}id") == [{f"{KEY}id": 1}]
    topic.format_ = {"format": "json"}
    append(topic.fake.logs[0], (b'{"id": 2}', b'{"a": 1}'))
    topic.load()
    assert topic.rows("_kafka_key", f"{KEY}id")[1] == {"_kafka_key": b'{"id": 2}', f"{KEY}id": None}


def test_keys_of_debezium_are_read_with_and_without_a_schema(topic: TypedTopic) -> None:
    topic.format_ = {"format": "debezium", "key_format": "debezium", "max_bad_share": 1}
    field = {"field": "id", "type": "int32"}
    schema = {"type": "struct", "fields": [field, {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}]}
    keys: list[Any] = [
        {"id": 1},
        {"schema": schema, "payload": {"id": 2, "day": 15706}},
        {"schema": None, "payload": {"id": 3}},
        {"schema": None, "payload": {"id": 4, "late": "x"}},
    ]
    append(topic.fake.logs[0], *((json.dumps(key).encode(), b'{"op": "r", "after": {"id": 1}}') for key in keys))
    append(topic.fake.logs[0], (b"{}", None), (b'{"schema": null, "payload": 7}', None))
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 6, 1)
    rows = topic.rows(f"{KEY}id", f"{KEY}day", f"{KEY}late", "_tombstone")
    assert [tuple(map(str, row.values())) for row in rows] == [
        ("1", "None", "None", "False"),
        ("2", "2013-01-01", "None", "False"),
        ("3", "None", "None", "False"),
        ("4", "None", "x", "False"),
        ("None", "None", "None", "True"),
        ("None", "None", "None", "True"),
    ]
    assert topic.deep().problems == ()


def test_keys_in_avro_have_their_own_schemas_which_the_table_remembers(topic: TypedTopic) -> None:
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}

    def encoded(schema_id: int, number: int) -> bytes:
        body = BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(key), {"id": number})
        return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()

    with EmbeddedSchemaRegistry() as registry:
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {"format": "json", "key_format": "avro", "max_bad_share": 1}
        id_ = registry.register("clicks-key", json.dumps(key))
        append(topic.fake.logs[0], (encoded(id_, 1), b'{"id": "v"}'), (encoded(99, 2), b'{"id": "w"}'))
        load = topic.load()
        assert (load.error, load.rows, load.bad_records) == (None, 2, 1)
        rows = topic.rows(f"{KEY}id", "id", "_error", "_raw")
        assert [tuple(row.values()) for row in rows] == [
            (1, "v", None, None),
            (None, "w", "key: the registry main has no schema with the id 99", b'{"id": "w"}'),
        ]
        append(topic.fake.logs[0], (encoded(id_, 3), b"{}"))
        before = len(registry.requests)
        fetches: list[int] = []
        load = topic.load(on_progress=lambda _topic: lambda done, _total: fetches.append(done))
        assert (load.error, load.bad_records, len(fetches)) == (None, 0, 1)
        assert registry.requests[before:] == [f"GET /schemas/ids/{id_}"]
        assert topic.deep().problems == ()


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


NEW_FIELD = {"json": (b'{"id": 5, "shop": "x"}', b'{"id": 6}'), "protobuf": (b"\0\x08\5\x12\1x", b"\0\x08\6")}
SCHEMAS = {
    "json": [
        json.dumps({"properties": {"id": {"type": "integer"}, **more}}) for more in ({}, {"shop": {"type": "string"}})
    ],
    "protobuf": [f'syntax = "proto3"; message Key {{ int32 id = 1; {more} }}' for more in ("", "string shop = 2;")],
}


@pytest.mark.parametrize("key_format", ["json", "protobuf"])
def test_keys_in_json_and_protobuf_have_schemas_in_a_registry_and_grow_with_them(
    topic: TypedTopic, key_format: str
) -> None:
    with_shop, without = NEW_FIELD[key_format]
    with EmbeddedSchemaRegistry() as registry:
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {"format": "json", "key_format": key_format, "key_registry": "main", "max_bad_share": 1}
        first, second = (
            registry.register("clicks-key", text, schema_type=key_format.upper()) for text in SCHEMAS[key_format]
        )
        append(topic.fake.logs[0], (framed(first, without), b'{"a": 1}'), (None, b"{}"), (without, b"{}"))
        append(topic.fake.logs[0], (framed(99, without), b"{}"))
        load = topic.load()
        assert (load.error, load.rows, load.bad_records) == (None, 4, 2)
        append(topic.fake.logs[0], (framed(second, with_shop), None), (framed(first, without), b"{}"))
        load = topic.load()
        assert (load.error, load.rows, load.bad_records, load.files) == (None, 2, 0, 1)
        rows = [tuple(row.values()) for row in topic.rows(f"{KEY}id", f"{KEY}shop", "_tombstone")]
        assert topic.deep().problems == ()
        errors = [row["_error"] for row in topic.rows("_error")]
    assert [row[::2] for row in rows] == [
        (6, False),
        (None, False),
        (None, False),
        (None, False),
        (5, True),
        (6, False),
    ]
    assert (rows[0][1], rows[4][1], rows[5][1]) == (None, "x", None)
    assert errors[2].startswith("key: the value has ")
    assert errors[3] == "key: the registry main has no schema with the id 99"


KEY_TYPES = """syntax = "proto3"; package shop;
message Store { string name = 1; }
message OrderKey { int64 id = 1; message Part { int64 number = 1; } }"""


@pytest.mark.parametrize(
    ("message", "column", "decoded"),
    [(None, "name", [None, "x", None]), ("shop.OrderKey", "id", [7, None, None]),
     ("shop.OrderKey.Part", "number", [None, None, 9])],
)  # fmt: skip
def test_keys_in_protobuf_have_the_message_type_of_the_settings(
    topic: TypedTopic, message: str | None, column: str, decoded: list[Any]
) -> None:
    with EmbeddedSchemaRegistry() as registry:
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {"format": "text", "key_format": "protobuf", "key_message": message, "max_bad_share": 1}
        id_ = registry.register("clicks-key", KEY_TYPES, schema_type="PROTOBUF")
        keys = (
            b"\2\2\x08\7",
            b"\0\x0a\1x",
            b"\4\2\0\x08\x09",
        )  # the paths [1], [0] and [1, 0], each before its message
        append(topic.fake.logs[0], *((framed(id_, key), b"v") for key in keys))
        load = topic.load()
        assert (load.error, load.rows, load.bad_records) == (None, 3, 2)
        assert [row[f"{KEY}{column}"] for row in topic.rows(f"{KEY}{column}")] == decoded
        assert topic.deep().problems == ()
    assert [row["_error"] is None for row in topic.rows("_error")] == [value is not None for value in decoded]


def test_keys_that_did_not_decode_are_decoded_again_from_the_table(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], (b'{"id": 1}', b'{"a": 1}'), (b"abc", b'{"a": 2}'), (b"def", None))
    assert topic.load().bad_records == 2
    topic.format_ = {**topic.format_, "key_format": "text"}
    format_, registries = topic.settings.format_of("clicks"), partial(open_schema_registry, topic.settings)
    result = redecode(RedecodeRequest(table=topic.table, format=format_, open_registry=registries, run="again"))
    assert (result.failure, result.decoded, result.bad_records) == (None, 2, 0)
    assert [tuple(row.values()) for row in topic.rows(f"{KEY}id", f"{KEY}value", "a", "_error", "_tombstone")] == [
        (1, None, 1, None, False),
        (None, "abc", 2, None, False),
        (None, "def", None, None, True),
    ]


@pytest.mark.parametrize(
    ("section", "error"),
    [
        ({"key_format": "text"}, '`key_format` needs a `format` other than "raw"'),
        ({"format": "text", "key_format": "avro"}, 'topics.orders.key_registry: keys in "avro" need the name of'),
        ({"format": "text", "key_format": "protobuf"}, 'topics.orders.key_registry: keys in "protobuf" need the'),
        ({"format": "text", "key_format": "json", "key_message": "a.B"}, "`key_message` belongs to the key format"),
        ({"format": "text", "key_format": "protobuf", "key_message": "a b"}, "key_message: write the full name of"),
        ({"format": "text", "key_registry": "x"}, "topics.orders.key_registry: there is no registry 'x'"),
    ],
)
def test_a_wrong_section_is_refused_with_its_place(section: Any, error: str) -> None:
    minimal = {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:9092"}}}
    with pytest.raises(ValueError, match=error):
        Settings.model_validate({**minimal, "topics": {"orders": section}})


def test_the_registry_of_keys_is_that_of_the_values_or_the_only_one() -> None:
    urls = {name: {"url": f"http://127.0.0.1:{port}"} for name, port in (("main", 1), ("other", 2))}
    minimal = {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:9092"}}}

    def registries(section: Any, **named: Any) -> tuple[str | None, str | None]:
        settings = Settings.model_validate({**minimal, "registries": named, "topics": {"orders": section}})
        format_ = settings.format_of("orders")
        return format_.registry, format_.key_registry

    keys = {"key_format": "avro"}
    assert registries({**keys, "format": "avro", "registry": "other"}, **urls) == ("other", "other")
    assert registries({**keys, "format": "json"}, main=urls["main"]) == (None, "main")
    assert registries({**keys, "format": "avro"}, main=urls["main"]) == ("main", "main")
    assert registries({**keys, "format": "text", "key_registry": "other"}, **urls) == (None, "other")
    assert registries({"key_format": "protobuf", "format": "text"}, main=urls["main"]) == (None, "main")
    assert registries({"key_format": "json", "format": "avro"}, main=urls["main"]) == ("main", None)
