"""Our client reads schemas from a real registry, and reads the same as Confluent's client."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from kafka_io.errors import SchemaNotFound, SchemaRegistryError
from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType, SubjectVersion
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from tests.brokers.apicurio import Apicurio

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
