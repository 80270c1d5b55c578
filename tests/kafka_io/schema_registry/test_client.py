"""The client reads schemas, versions and references; ids that are known are asked for once."""

import pickle

import msgspec
import pytest

from kafka_io.errors import SchemaNotFound, SchemaRegistryError, Unsupported, Where
from kafka_io.schema_registry.schemas import (
    ReferencedSchema,
    RegisteredSchema,
    SchemaType,
    SubjectSchema,
    SubjectVersion,
)
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.registry_faults import not_found, sends
from tests.kafka_io.schema_registry.conftest import MakeClient

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
TEXTS = {
    SchemaType.AVRO: AVRO,
    SchemaType.JSON: '{"type": "object", "properties": {"id": {"type": "integer"}}}',
    SchemaType.PROTOBUF: 'syntax = "proto3";\nmessage Order { int64 id = 1; }\n',
}


@pytest.mark.parametrize("kind", SchemaType)
def test_a_schema_is_read_by_its_id(kind: SchemaType, embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    embedded.register("other", '"string"')
    schema_id = embedded.register("orders-value", TEXTS[kind], schema_type=kind)
    schema = client_of(embedded.url).registry.schema(schema_id)
    assert schema == RegisteredSchema(id=2, schema_type=kind, text=TEXTS[kind])


def test_the_newest_version_of_a_subject_is_read_each_time(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    registry = client_of(embedded.url).registry
    for version, text in enumerate(['"int"', '"long"'], start=1):
        schema_id = embedded.register("a/b c-value", text)
        schema = RegisteredSchema(id=schema_id, schema_type=SchemaType.AVRO, text=text)
        assert registry.newest("a/b c-value") == SubjectSchema(subject="a/b c-value", version=version, schema=schema)


def test_the_versions_and_subjects_of_a_registry_are_listed(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    registry = client_of(embedded.url).registry
    embedded.register("b", '"int"')
    for subject in ("a", "b"):
        embedded.register(subject, AVRO)
    assert registry.versions(2) == [SubjectVersion(subject="a", version=1), SubjectVersion(subject="b", version=2)]
    assert registry.subjects() == ["a", "b"]


def test_references_come_after_those_that_they_need_and_each_name_once(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.register("unit", '"int"')
    embedded.register("place", '"string"', references=[("Unit", "unit", 1)])
    embedded.register("person", '"bytes"', references=[("Unit", "unit", 1), ("Place", "place", 1)])
    embedded.register("order", AVRO, references=[("Person", "person", 1), ("Place", "place", 1)])
    client = client_of(embedded.url).registry
    schema = client.newest("order").schema
    assert schema.references == (
        ReferencedSchema(name="Unit", subject="unit", version=1, text='"int"'),
        ReferencedSchema(name="Place", subject="place", version=1, text='"string"'),
        ReferencedSchema(name="Person", subject="person", version=1, text='"bytes"'),
    )
    assert client.schema(schema.id) == schema


def test_what_never_changes_is_asked_for_once(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    embedded.register("unit", '"int"')
    schema_id = embedded.register("order", AVRO, references=[("Unit", "unit", 1)])
    registry = client_of(embedded.url).registry
    assert registry.schema(schema_id) == registry.schema(schema_id)
    assert embedded.requests == [f"GET /schemas/ids/{schema_id}", "GET /subjects/unit/versions/1?deleted=true"]


def test_the_oldest_answers_are_forgotten_when_there_are_too_many_bytes(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_io.schema_registry.client._MAX_CACHED_BYTES", 150)
    ids = [embedded.register("s", text) for text in ('"int"', '"long"', '"double"')]  # answers of about 67 bytes
    registry = client_of(embedded.url).registry
    for schema_id in (*ids, ids[2], ids[0]):
        registry.schema(schema_id)
    assert embedded.requests == [f"GET /schemas/ids/{schema_id}" for schema_id in (*ids, ids[0])]


def test_an_id_that_appears_late_is_found_later(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    """A registry copies an id from another with a delay. The client does not retry; the caller decides (fault N31)."""
    schema_id = embedded.register("orders-value", AVRO)
    embedded.inject(not_found, path=f"/schemas/ids/{schema_id}", times=2)
    client = client_of(embedded.url)
    with pytest.raises(SchemaNotFound) as raised:
        client.registry.schema(schema_id)
    assert (raised.value.where, raised.value.retriable) == (Where(registry="main", schema_id=schema_id), False)
    assert client.registry.known_schemas([schema_id]) == {}
    assert client.registry.known_schemas([schema_id, 99, -1]).keys() == {schema_id}
    assert client.pauses == []
    assert client.registry.schema(schema_id).text == AVRO
    assert embedded.requests == [f"GET /schemas/ids/{number}" for number in (1, 1, 1, 99)]


def test_a_missing_reference_or_subject_is_not_found(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    embedded.register("unit", '"int"')
    schema_id = embedded.register("order", AVRO, references=[("Unit", "unit", 1)])
    embedded.inject(not_found, path="/subjects/unit/.*")
    registry = client_of(embedded.url).registry
    with pytest.raises(SchemaNotFound, match="refers to version 1 of a subject") as raised:
        registry.schema(schema_id)
    assert raised.value.where == Where(registry="main", subject="unit", schema_id=schema_id)
    with pytest.raises(SchemaNotFound, match="40401") as raised:
        registry.newest("nothing")
    assert raised.value.where == Where(registry="main", subject="nothing")


def test_a_wrong_path_is_an_error_and_no_unknown_id(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    """A wrong URL would otherwise make every id look unknown (fault N32)."""
    schema_id = embedded.register("orders-value", AVRO)
    with pytest.raises(SchemaRegistryError, match=r"404 Not Found; is `url` right\?") as raised:
        client_of(f"{embedded.url}/apis/ccompat/v7/").registry.schema(schema_id)
    assert not isinstance(raised.value, SchemaNotFound)


def test_a_schema_in_another_language_is_refused_by_name(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.inject(sends(b'{"schema": "x", "schemaType": "THRIFT"}'))
    with pytest.raises(Unsupported, match="the language THRIFT; known are AVRO, JSON, PROTOBUF"):
        client_of(embedded.url).registry.schema(1)


def test_the_newest_version_can_be_referenced(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    for text in ('"int"', '"long"'):
        embedded.register("unit", text)
    embedded.inject(sends(b'{"schema": "x", "references": [{"name": "Unit", "subject": "unit", "version": -1}]}'))
    schema = client_of(embedded.url).registry.schema(9)
    assert schema.references == (ReferencedSchema(name="Unit", subject="unit", version=2, text='"long"'),)


def test_a_schema_survives_pickling_and_json() -> None:
    reference = ReferencedSchema(name="Unit", subject="unit", version=1, text='"int"')
    schema = RegisteredSchema(id=7, schema_type=SchemaType.AVRO, text=AVRO, references=(reference,))
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert msgspec.json.decode(msgspec.json.encode(schema), type=RegisteredSchema) == schema


# faults E11, N31
def test_ids_that_appear_late_are_awaited_for_a_limited_time(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    late = embedded.register("orders-value", AVRO)
    embedded.inject(not_found, path=f"/schemas/ids/{late}", times=2)
    client = client_of(embedded.url, wait_s=3.5)
    assert client.registry.known_schemas([late]).keys() == {late}
    assert client.pauses == [1.0, 1.0]
    assert client.registry.known_schemas([late, 77]).keys() == {late}
    assert client.pauses == [1.0, 1.0, 1.0, 0.5]  # in all
    assert client.registry.known_schemas([78]) == {}
    assert len(client.pauses) == 4


def test_many_unknown_ids_are_not_awaited_because_values_without_a_frame_look_like_them(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    client = client_of(embedded.url, wait_s=60)
    assert client.registry.known_schemas(range(1, 50)) == {}
    assert client.pauses == []


def test_without_a_wait_an_unknown_id_is_asked_for_once(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    client = client_of(embedded.url)
    assert client.registry.known_schemas([7]) == {}
    assert (client.pauses, embedded.requests) == ([], ["GET /schemas/ids/7"])


# fault F11
def test_a_schema_is_read_by_its_guid_under_the_id_of_the_default_context(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    number = embedded.register("orders-value", AVRO)
    registry = client_of(embedded.url).registry
    guid = registry.schema(number).guid
    assert registry.known_schemas([guid]) == {guid: registry.schema(number)}
    embedded.inject(sends(b'[{"context": ".other", "id": 1}]'), path="/schemas/guids/.*")
    with pytest.raises(SchemaNotFound, match="no schema of the default context has the GUID"):
        registry.schema_of_guid(guid)
