"""Values whose schema is named by a GUID or in a record header, as newer serializers of Confluent write them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.common.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.schemas.schema_headers import SchemaHeaders, with_azure_frames, with_short_ids
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import TypedTopic, registered_topic

SCHEMA = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
Headers = Sequence[tuple[str, bytes | None]]


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


# faults F11, F14: pyarrow fails to cut the beginning off an even number of values, if no end is given
@pytest.mark.parametrize("count", [1, 2, 3, 4, 1000])
def test_any_number_of_values_loses_its_guid_its_long_id_or_the_name_in_its_header(count: int) -> None:
    guid, short = UUID(int=1), bytes([0, 0, 0, 0, 7])
    framed = pa.array([b"\1" + guid.bytes + b"x"] * count, pa.binary())
    headers = SchemaHeaders("__value_schema_id", {str(guid): 7}, {})
    assert headers.framed(framed, pa.array([[]] * count, _HEADERS)).values.to_pylist() == [short + b"x"] * count
    long_ids = pa.array([bytes(5) + short[1:] + b"x"] * count, pa.binary())
    assert with_short_ids(long_ids).to_pylist() == [short + b"x"] * count
    of_azure = pa.array([[{"key": "content-type", "value": b"avro/binary+id"}]] * count, _HEADERS)
    values = pa.array([b"x"] * count, pa.binary())
    assert with_azure_frames(values, of_azure).to_pylist() == [bytes(4) + b"idx"] * count


def log_of(records: Sequence[tuple[bytes | None, Headers]], key: bytes | None = None) -> Log:
    made = [
        Record(
            offset=number,
            timestamp=1_700_000_000_000,
            key=key,
            value=value,
            headers=tuple((name.encode(), content) for name, content in headers),
        )
        for number, (value, headers) in enumerate(records)
    ]
    return Log(entries=[(made[-1].offset, record_batch(made))], start=0, end=len(made))


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as running:
        running.register("other", '"string"')
        running.register("clicks-value", SCHEMA)
        yield running


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path, registry: EmbeddedSchemaRegistry) -> Iterator[TypedTopic]:
    with registered_topic(fake, tmp_path, registry, format="avro", max_bad_share=1) as registered:
        yield registered


def serialized(registry: EmbeddedSchemaRegistry, field: MessageField, **value: Any) -> tuple[bytes, Headers]:
    """A value or key as Confluent's serializer writes it, with the headers of its record."""
    client = SchemaRegistryClient({"url": registry.url})
    settings = {"auto.register.schemas": True, "schema.id.serializer": header_schema_id_serializer}
    headers: Any = []
    body = AvroSerializer(client, SCHEMA, conf=settings)(value, SerializationContext("clicks", field, headers))
    assert isinstance(body, bytes)
    return body, headers


def guid_of(registry: EmbeddedSchemaRegistry, id_: int) -> bytes:
    client = SchemaRegistryClient({"url": registry.url})
    answer = client._rest_client.get(f"schemas/ids/{id_}", {})
    return bytes(SchemaId("AVRO", guid=answer["guid"]).guid_to_bytes())


# fault F11
def test_values_whose_serializer_writes_the_schema_into_a_header_are_decoded(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    value = serialized(registry, MessageField.VALUE, id=7)
    assert [name for name, _ in value[1]] == ["__value_schema_id"]
    guid = guid_of(registry, 2)
    assert value == (b"\x0e", [("__value_schema_id", guid)])
    records: list[tuple[bytes | None, Headers]] = [
        value,
        (b"\0\0\0\0\2\x0a", [("other", b"x")]),
        (b"\x0c", [("a", None), ("__value_schema_id", b"\0\0\0\0\2"), ("__value_schema_id", b"\0\0\0\0\1")]),
        (guid + b"\x0a", []),
        (None, value[1]),
        (b"\0\0\0\0\2\x08", []),
    ]
    topic.fake.logs = {0: log_of(records)}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 6, 0)
    assert [row["id"] for row in topic.rows("id")] == [7, 5, 6, 5, None, 4]
    assert topic.deep().problems == ()
    before = len(registry.requests)
    topic.fake.logs[0] = log_of([*records, value])
    assert (topic.load().rows, [row["id"] for row in topic.rows("id")][-1]) == (1, 7)
    assert registry.requests[before:] == ["GET /schemas/ids/2"]  # its answer has the GUID, so no slice is fetched twice


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"\1" + bytes(16), "the registry main has no schema with the GUID 00000000-0000-0000-0000-000000000000"),
        (b"\1" + bytes(3), "the header __value_schema_id has no id of a schema"),
        (b"", "the header __value_schema_id has no id of a schema"),
        (None, "the header __value_schema_id has no id of a schema"),
        (b"\2" + bytes(16), "the header __value_schema_id has no id of a schema"),
        (b"\0\0\0\0\x63", "the registry main has no schema with the id 99"),
        (b"\0\0\0\0\2", "id: a number is not a valid int or long (byte 0)"),
    ],
)
def test_a_header_that_names_no_known_schema_makes_a_bad_record(
    topic: TypedTopic, header: bytes | None, reason: str
) -> None:
    topic.fake.logs = {0: log_of([(b"\0\0\0\0\2\x0a", []), (b"", [("__value_schema_id", header)])])}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 2, 1)
    rows = topic.rows("id", "_error", "_raw")
    assert rows[0] == {"id": 5, "_error": None, "_raw": None}
    assert (rows[1]["_error"], rows[1]["_raw"]) == (reason, b"")


# fault F11
def test_keys_have_a_header_of_their_own(topic: TypedTopic, registry: EmbeddedSchemaRegistry) -> None:
    topic.format_ = {**topic.format_, "key_format": "avro"}
    key, of_key = serialized(registry, MessageField.KEY, id=3)
    value, of_value = serialized(registry, MessageField.VALUE, id=7)
    topic.fake.logs = {0: log_of([(value, [*of_key, *of_value])], key=key)}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert topic.rows("id", "_kafka_key_id") == [{"id": 7, "_kafka_key_id": 3}]


def test_a_header_of_that_name_means_nothing_to_formats_without_a_registry(topic: TypedTopic) -> None:
    topic.format_ = {"format": "text"}
    topic.fake.logs = {0: log_of([(b"a", [("__value_schema_id", b"\1")])])}
    assert (topic.load().bad_records, topic.rows("value")) == (0, [{"value": "a"}])


MESSAGES: Mapping[str, bytes] = {"first": b"\0", "second": b"\2\2"}


# fault F11
@pytest.mark.parametrize("message", MESSAGES)
def test_the_header_of_a_protobuf_value_has_the_path_of_its_message(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, message: str
) -> None:
    text = 'syntax = "proto3"; message A { int32 id = 1; } message B { int32 id = 1; }'
    number = registry.register("clicks-value", text, schema_type="PROTOBUF")
    topic.format_ = {"format": "protobuf", "message": {"first": "A", "second": "B"}[message]}
    header = guid_of(registry, number) + MESSAGES[message]
    topic.fake.logs = {0: log_of([(b"\x08\7", [("__value_schema_id", header)])])}
    load = topic.load()
    assert (load.error, load.bad_records, topic.rows("id")) == (None, 0, [{"id": 7}])


APICURIO = b"\0" + (2).to_bytes(8, "big") + b"\x0a"


# fault F14
def test_ids_of_8_bytes_are_decoded_by_a_setting_beside_those_of_4(topic: TypedTopic) -> None:
    records: list[tuple[bytes | None, Headers]] = [(APICURIO, []), (None, []), (b"\0\0\0\0\2\x0c", [])]
    topic.fake.logs = {0: log_of(records)}
    topic.format_ = {**topic.format_, "id_bytes": 8}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert [row["id"] for row in topic.rows("id")] == [5, None, 6]


# fault F14
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (APICURIO, "an id of 8 bytes, as Apicurio's serializers write it: set `id_bytes` = 8"),
        (b"\3\0" + bytes(16) + b"\x0a", "the frame of AWS Glue's schema registry: for Avro, set `avro_file` and"),
        (
            b"\0\0\0\0" + b"0123456789abcdef" * 2 + b"\x0a",
            "the frame of Azure's schema registry: for Avro, set `avro_file` and",
        ),
        (
            b"\xc3\1" + bytes(8) + b"\x0a",
            "a single object of Avro (C3 01, fingerprint): set `avro_file` and `avro_frame`",
        ),
        (b"\x0a", "the value has no frame with the id of a schema: its first byte is not 0"),
    ],
)
def test_the_frame_of_another_registry_is_named(topic: TypedTopic, value: bytes, reason: str) -> None:
    topic.fake.logs = {0: log_of([(value, []), (b"\0\0\0\0\2\x0c", [])])}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 1)
    assert reason in topic.rows("_error")[0]["_error"]
    assert topic.rows("id")[1] == {"id": 6}


# fault F14
def test_a_header_of_azure_is_named_before_the_registry_is_asked(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    azure: Headers = [("a", None), ("content-type", b"avro/binary+" + b"0123456789abcdef" * 2)]
    records: list[tuple[bytes | None, Headers]] = [
        (b"\0\0\0\x63\2\x0a", azure),
        (None, azure),
        (b"\0\0\0\0\2\x0c", [("content-type", b"application/avro")]),
        (b"\0\0\0\0\2\x0e", [("content-type", None)]),
        (b"\x10", azure),
    ]
    topic.fake.logs = {0: log_of(records)}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 2)
    rows = topic.rows("id", "_error", "_raw")
    assert [row["id"] for row in rows] == [None, None, 6, 7, None]
    reason = "the header content-type names a schema of Azure's registry: for Avro, set `avro_file` and `avro_frame`"
    assert [row["_error"] for row in rows] == [reason, None, None, None, reason]
    assert rows[0]["_raw"] == b"\0\0\0\x63\2\x0a"
    assert not any("/schemas/ids/99" in path for path in registry.requests)
