"""The column `_kafka_schema_id` of typed tables whose values have schemas in a registry."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from kafka_io.values.framing import read_frames
from pipelines.fetch.decode_plan import Learned, WriterSchemas, plan_decoding
from pipelines.fetch.typed_rows import TypedRows
from pipelines.layout.layout import TYPED
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.rewrite import RewriteRequest, rewrite
from pipelines.rewrites.topic_schema import topic_schema
from pipelines.verify.verify import verify
from resources.kafka import open_schema_registry
from resources.settings.topic_formats import TopicFormat
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, registered_topic
from tests.pipelines.schemas.test_schema_headers import Headers, guid_of, log_of

IDS = "_kafka_schema_id"
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
CLICK = json.dumps({"type": "record", "name": "Click", "fields": [{"name": "id", "type": "long"}]})
OF_ORDER, OF_CLICK, UNKNOWN = b"\0\0\0\0\1", b"\0\0\0\0\2", b"\0\0\0\0\x63"


def test_a_row_has_the_id_of_its_schema_also_if_that_is_0() -> None:
    known = {0: RegisteredSchema(id=0, schema_type=SchemaType.AVRO, text=ORDER)}
    learned = Learned(schemas=WriterSchemas(known=known))
    plan, _ = plan_decoding(TopicFormat(format="avro", registry="main"), TYPED, learned)
    assert plan is not None
    values = pa.array([b"\0\0\0\0\0\2", b"no frame", None], pa.binary())
    records = pa.RecordBatch.from_pydict({"offset": pa.array(range(3), pa.int64()), "value": values})
    assert TypedRows(plan).rows(records, {}).column(IDS).to_pylist() == [0, None, None]


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as running:
        running.register("orders", ORDER)
        running.register("clicks", CLICK)
        yield running


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path, registry: EmbeddedSchemaRegistry) -> Iterator[TypedTopic]:
    with registered_topic(fake, tmp_path, registry, format="avro", max_bad_share=1) as registered:
        yield registered


def ids(topic: TypedTopic) -> list[int | None]:
    return [row[IDS] for row in topic.rows(IDS)]


def load(topic: TypedTopic, records: Sequence[tuple[bytes | None, Headers]]) -> None:
    topic.fake.logs = {0: log_of(records)}
    result = topic.load()
    assert (result.error, result.rows) == (None, len(records))


def request_of(topic: TypedTopic) -> RedecodeRequest:
    registries = partial(open_schema_registry, topic.settings)
    return RedecodeRequest(
        table=topic.table, format=topic.settings.format_of("clicks"), open_registry=registries, run="again"
    )


def test_each_row_has_the_id_in_the_frame_of_its_value(topic: TypedTopic, registry: EmbeddedSchemaRegistry) -> None:
    guid = guid_of(registry, 2)
    load(
        topic,
        [
            (OF_ORDER + b"\x0a", []),
            (OF_CLICK + b"\x0a", []),
            (None, [("__value_schema_id", OF_CLICK)]),  # a tombstone
            (b"\x0c", [("__value_schema_id", OF_CLICK)]),
            (b"\x0c", [("__value_schema_id", guid)]),
            (guid + b"\x0c", []),
            (OF_ORDER, []),  # the frame is valid, and the value after it is not
            (UNKNOWN + b"\x0a", []),
            (b"\1" + bytes(16) + b"\x0a", []),  # no schema has this GUID
            (b"no frame", []),
            (b"\0\xff\xff\xff\xff\x0a", []),  # the id is negative
            (b"", []),
        ],
    )
    assert ids(topic) == [1, 2, None, 2, 2, 2, 1, 99, None, None, None, None]
    assert topic.deep().problems == ()
    assert verify(topic.table).proven
    shown = topic_schema(topic.table, topic.settings.format_of("clicks")).columns[0]
    assert (shown.name, shown.type, shown.comment, shown.is_new) == (
        IDS,
        "long",
        "the id of the value's schema in the registry",
        False,
    )


def test_ids_of_8_bytes_are_in_the_column_too(topic: TypedTopic) -> None:
    topic.format_ = {**topic.format_, "id_bytes": 8}
    load(topic, [(bytes(8) + b"\2\x0a", []), (OF_ORDER + b"\x0a", []), (bytes(8), [])])
    assert ids(topic) == [2, 1, 0]
    assert topic.deep().problems == ()


ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", json.loads(ORDER)]},
        {"name": "after", "type": ["null", "Order"]},
        {"name": "op", "type": "string"},
    ],
}
JSON_SCHEMA, PROTO = '{"properties": {"id": {"type": "integer"}}}', 'syntax = "proto3"; message A { int32 id = 1; }'
OTHER_FORMATS: Mapping[str, tuple[dict[str, Any], str, str, bytes]] = {
    "json": ({"format": "json", "registry": "main"}, "JSON", JSON_SCHEMA, b'{"id": 5}'),
    "protobuf": ({"format": "protobuf"}, "PROTOBUF", PROTO, b"\0\x08\5"),
    "debezium": ({"format": "debezium", "registry": "main"}, "AVRO", json.dumps(ENVELOPE), b"\0\2\x0a\2c"),
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_all_formats_with_frames_have_the_column(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, name: str
) -> None:
    format_, kind, text, body = OTHER_FORMATS[name]
    number = registry.register("clicks-value", text, schema_type=kind)
    topic.format_ = {**format_, "max_bad_share": 1}
    load(topic, [(b"\0" + number.to_bytes(4, "big") + body, []), (None, [])])
    assert topic.rows(IDS, "id", "_error") == [
        {IDS: number, "id": 5, "_error": None},
        {IDS: None, "id": None, "_error": None},
    ]
    assert topic.deep().problems == ()


def test_formats_without_frames_have_no_such_column(topic: TypedTopic) -> None:
    topic.format_ = {"format": "json", "key_format": "avro", "max_bad_share": 1}
    load(topic, [(b'{"id": 5, "_kafka_schema_id": 7}', [])])
    assert topic.rows("id", "value_kafka_schema_id") == [{"id": 5, "value_kafka_schema_id": 7}]
    assert IDS not in DeltaTable(topic.table.uri).to_pyarrow_table().column_names


def test_the_column_is_dictionary_encoded_and_has_statistics(topic: TypedTopic) -> None:
    load(topic, [(OF_ORDER + b"\x0a", []), (OF_CLICK + b"\x0a", []), (None, [])])
    table = DeltaTable(topic.table.uri)
    files = table.get_add_actions(flatten=True)
    bounds = [files.column(f"{kind}.{IDS}").to_pylist() for kind in ("min", "max", "null_count")]
    assert bounds == [[1], [2], [1]]
    [file] = table.file_uris()
    group = pq.ParquetFile(file).metadata.row_group(0)
    [column] = [group.column(at) for at in range(group.num_columns) if group.column(at).path_in_schema == IDS]
    assert "RLE_DICTIONARY" in column.encodings


def without_the_column(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of a version that did not have the column."""
    with monkeypatch.context() as earlier:
        earlier.setattr("pipelines.fetch.decode_plan._has_schema_ids", lambda *_: False)
        load(topic, [(OF_ORDER + b"\x0a", []), (UNKNOWN + b"\x0a", [])])


def test_a_table_without_the_column_does_not_get_it(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    without_the_column(topic, monkeypatch)
    before = DeltaTable(topic.table.uri).schema().to_json()
    append(topic.fake.logs[0], [OF_CLICK + b"\x0a"])
    assert (topic.load().error, topic.replay().error) == (None, None)
    assert DeltaTable(topic.table.uri).schema().to_json() == before
    assert topic.deep().problems == ()


@pytest.mark.slow
def test_with_add_schema_ids_a_table_gets_the_column_and_a_replay_fills_it(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_the_column(topic, monkeypatch)
    topic.format_ = {**topic.format_, "add_schema_ids": True}
    append(topic.fake.logs[0], [OF_CLICK + b"\x0a"])
    result = topic.load()
    assert (result.error, result.rows) == (None, 1)
    assert ids(topic) == [None, None, 2]
    topic.format_ = {**topic.format_, "add_schema_ids": False}
    append(topic.fake.logs[0], [OF_ORDER + b"\x0a"])
    assert topic.load().error is None
    assert ids(topic) == [None, None, 2, 1]  # a table with the column keeps filling it
    assert topic.replay().error is None
    assert ids(topic) == [1, 99, 2, 1]
    assert topic.deep().problems == ()


def test_a_redecode_fills_the_column_of_records_that_did_not_decode(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_the_column(topic, monkeypatch)
    for number in range(3, 100):
        registry.register(f"s{number}", ORDER.replace("Order", f"Order{number}"))
    topic.format_ = {**topic.format_, "add_schema_ids": True}
    result = redecode(request_of(topic))
    assert (result.failure, result.decoded) == (None, 1)
    assert ids(topic) == [None, 99]
    assert verify(topic.table).proven


def test_a_rewrite_keeps_the_ids(topic: TypedTopic) -> None:
    load(topic, [(OF_ORDER + b"\x0a", []), (OF_CLICK + b"\x0a", []), (None, [])])
    topic.format_ = {**topic.format_, "load": {"drop": ["id"]}}
    request = RewriteRequest(table=topic.table, format=topic.settings.format_of("clicks"), run="again")
    assert rewrite(request).failure is None
    assert topic.rows(IDS, "id") == [{IDS: id_, "id": None} for id_ in (1, 2, None)]
    assert verify(topic.table).proven


# fault F11
def test_a_rule_for_headers_keeps_those_that_name_the_schema(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.format_ = {**topic.format_, "load": {"headers": []}}
    load(topic, [(b"\x0c", [("__value_schema_id", b"\0\0\0\0\3"), ("user", b"Ada")]), (b"\x0c", [("user", b"Ada")])])
    assert topic.rows(IDS, "_kafka_headers") == [
        {IDS: 3, "_kafka_headers": [{"key": "__value_schema_id", "value": b"\0\0\0\0\3"}]},
        {IDS: None, "_kafka_headers": None},
    ]
    registry.register("late", ORDER.replace("Order", "Late"))
    assert (redecode(request_of(topic)).decoded, ids(topic)) == (1, [3, None])
    assert topic.deep().problems == ()


def test_a_raw_table_gets_the_column_when_it_becomes_typed(topic: TypedTopic) -> None:
    format_, topic.format_ = topic.format_, {}
    load(topic, [(OF_ORDER + b"\x0a", []), (OF_CLICK + b"\x0a", []), (None, []), (b"no frame", [])])
    topic.format_ = format_
    assert convert_table(request_of(topic)).failure is None
    assert ids(topic) == [1, 2, None, None]
    assert topic.deep().problems == ()


def test_a_deep_verify_compares_the_column(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    load(topic, [(OF_ORDER + b"\x0a", []), (OF_CLICK + b"\x0a", [])])
    # Both schemas have the same fields, so only the column differs.
    monkeypatch.setattr(
        "kafka_io.values.avro.decoder.read_frames",
        lambda values: replace(read_frames(values), ids=np.ones(len(values), np.int32)),
    )
    assert topic.deep().problems == ("partition 0 differs from its broker: 1 row, at offsets 1",)
