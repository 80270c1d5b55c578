"""Our client reads schemas from a real registry, and reads the same as Confluent's client."""

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from kafka_io.errors import SchemaNotFound, SchemaRegistryError
from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType, SubjectVersion
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from pipelines.verify.topic_tables import verify_topic
from tests.brokers.apicurio import Apicurio
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, log_of

pytestmark = pytest.mark.brokers

PLACE = {"type": "record", "name": "Place", "namespace": "l2", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "l2",
    "fields": [{"name": "id", "type": "long"}, {"name": "place", "type": "l2.Place"}],
}
JSON_PLACE = {"$id": "place.json", "type": "object", "properties": {"city": {"type": "string"}}}
JSON_ORDER = {"type": "object", "properties": {"id": {"type": "integer"}, "place": {"$ref": "place.json"}}}
PROTO_PLACE = 'syntax = "proto3";\npackage l2;\n\nmessage Place {\n  string city = 1;\n}\n'
PROTO_ORDER = (
    'syntax = "proto3";\npackage l2;\n\nimport "l2/place.proto";\n\n'
    "message Order {\n  int64 id = 1;\n  Place place = 2;\n}\n"
)
CASES: dict[SchemaType, tuple[str, str, str]] = {
    SchemaType.AVRO: ("l2.Place", json.dumps(PLACE), json.dumps(ORDER)),
    SchemaType.JSON: ("place.json", json.dumps(JSON_PLACE), json.dumps(JSON_ORDER)),
    SchemaType.PROTOBUF: ("l2/place.proto", PROTO_PLACE, PROTO_ORDER),
}


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """One registry for all tests of this file: its start costs 13 s of CPU."""
    with Apicurio(tmp_path_factory.mktemp("apicurio")) as registry:
        yield registry


@pytest.fixture
def ours(apicurio: Apicurio) -> SchemaRegistry:
    return SchemaRegistry("real", SchemaRegistrySettings(url=apicurio.url))


def ask(apicurio: Apicurio, method: str, path: str, body: Any = None) -> Any:
    """The JSON of an answer with status 200."""
    parts = urlsplit(apicurio.url)
    connection = HTTPConnection(parts.netloc, timeout=120)
    try:
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        connection.request(method, parts.path + path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert response.status == 200, answer
        return answer
    finally:
        connection.close()


def register(apicurio: Apicurio, subject: str, kind: SchemaType, text: str, *references: tuple[str, str, int]) -> int:
    """Register a schema, and return its id."""
    named = [dict(zip(("name", "subject", "version"), reference, strict=True)) for reference in references]
    body = {"schema": text, "schemaType": kind, "references": named}
    return int(ask(apicurio, "POST", f"/subjects/{quote(subject, safe='')}/versions", body)["id"])


@pytest.mark.parametrize("kind", SchemaType)
def test_a_schema_and_its_reference_are_read(kind: SchemaType, apicurio: Apicurio, ours: SchemaRegistry) -> None:
    name, place, order = CASES[kind]
    places, orders = f"{kind}/places", f"{kind}/orders"
    place_id = register(apicurio, places, kind, place)
    order_id = register(apicurio, orders, kind, order, (name, places, 1))
    assert register(apicurio, orders, kind, order, (name, places, 1)) == order_id
    schema = ours.schema(order_id)
    assert (schema.schema_type, [reference.name for reference in schema.references]) == (kind, [name])
    assert same(kind, schema.text, order)
    assert same(kind, schema.references[0].text, place)
    assert same(kind, ours.schema(place_id).text, place)
    assert ours.newest(orders).schema == schema
    assert ours.versions(order_id) == [SubjectVersion(subject=orders, version=1)]
    assert orders in ours.subjects()


def same(kind: SchemaType, text: str, other: str) -> bool:
    """Whether two texts are the same schema."""
    return text.split() == other.split() if kind is SchemaType.PROTOBUF else json.loads(text) == json.loads(other)


BODIES: Mapping[SchemaType, bytes] = {
    SchemaType.AVRO: b"\x0e\6Ulm",
    SchemaType.JSON: b'{"id": 7, "place": {"city": "Ulm"}}',
    SchemaType.PROTOBUF: b"\0" + b"\x08\7\x12\5\x0a\3Ulm",
}
"""The same order in each language: its number is 7, its place is Ulm. Protobuf's begins with the index of its type."""


@pytest.mark.parametrize("kind", SchemaType)
def test_values_whose_schema_is_in_the_registry_become_columns(
    kind: SchemaType, apicurio: Apicurio, tmp_path: Path
) -> None:
    name, place, order = CASES[kind]
    register(apicurio, f"{kind}-places", kind, place)
    schema_id = register(apicurio, f"{kind}-value", kind, order, (name, f"{kind}-places", 1))
    fake = FakeCluster(logs={0: log_of([b"\0" + schema_id.to_bytes(4, "big") + BODIES[kind], None])})
    topic = TypedTopic(
        fake=fake,
        folder=tmp_path / "lake",
        format_={"format": kind.lower(), "registry": "main"},
        registries={"main": {"url": apicurio.url}},
    )
    with fake:
        load = topic.load()
        assert (load.error, load.rows, load.bad_records) == (None, 2, 0)
        assert topic.rows("id", "place") == [{"id": 7, "place": {"city": "Ulm"}}, {"id": None, "place": None}]
        assert topic.deep().problems == ()


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.PROTOBUF])
def test_the_name_of_a_schema_in_the_registry_chooses_the_table(
    kind: SchemaType, apicurio: Apicurio, tmp_path: Path
) -> None:
    name, place, order = CASES[kind]
    place_id = register(apicurio, f"{kind}-names-place", kind, place)
    order_id = register(apicurio, f"{kind}-names-order", kind, order, (name, f"{kind}-names-place", 1))
    bodies = {SchemaType.AVRO: b"\6Ulm", SchemaType.PROTOBUF: b"\0" + b"\x0a\3Ulm"}
    values = [b"\0" + id_.to_bytes(4, "big") for id_ in (order_id, place_id)]
    fake = FakeCluster(logs={0: log_of([values[0] + BODIES[kind], values[1] + bodies[kind], None])})
    topic = TypedTopic(
        fake=fake,
        folder=tmp_path / "lake",
        format_={"format": kind.lower(), "tables": {"by": "schema", "names": {"l2.Order": "orders"}}},
        registries={"main": {"url": apicurio.url}},
    )
    with fake:
        load = topic.load()
        assert (load.error, [own.rows for own in load.of_tables]) == (None, [2, 1])
        assert topic.rows("city") == [{"city": "Ulm"}, {"city": None}]
        assert verify_topic(topic.table).problems == ()


def test_what_the_registry_does_not_know_is_not_found(ours: SchemaRegistry, apicurio: Apicurio) -> None:
    for ask_for in (lambda: ours.schema(2**31 - 1), lambda: ours.newest("nothing"), lambda: ours.schema(0)):
        with pytest.raises(SchemaNotFound):
            ask_for()
    wrong = SchemaRegistry("wrong", SchemaRegistrySettings(url=apicurio.url.removesuffix("/v7")))
    with pytest.raises(SchemaRegistryError) as raised:
        wrong.schema(1)
    assert not isinstance(raised.value, SchemaNotFound)


def test_a_deleted_version_is_still_read(apicurio: Apicurio, ours: SchemaRegistry) -> None:
    register(apicurio, "gone-place", SchemaType.AVRO, CASES[SchemaType.AVRO][1])
    order = json.dumps({**ORDER, "name": "Gone"})
    schema_id = register(apicurio, "gone", SchemaType.AVRO, order, ("l2.Place", "gone-place", 1))
    assert ask(apicurio, "DELETE", "/subjects/gone") == [1]
    assert [reference.name for reference in ours.schema(schema_id).references] == ["l2.Place"]
    with pytest.raises(SchemaNotFound):
        ours.newest("gone")


def test_the_registry_changes_no_id(apicurio: Apicurio, ours: SchemaRegistry) -> None:
    first = register(apicurio, "versions", SchemaType.AVRO, json.dumps({**PLACE, "name": "V1"}))
    second = register(apicurio, "versions", SchemaType.AVRO, json.dumps({**PLACE, "name": "V2"}))
    names = {schema_id: json.loads(ours.schema(schema_id).text)["name"] for schema_id in (first, second)}
    assert names == {first: "V1", second: "V2"}
    newest = ours.newest("versions")
    assert (newest.version, newest.schema.id) == (2, second)
    assert isinstance(newest.schema, RegisteredSchema)
