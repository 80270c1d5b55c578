"""Writes the files of tests/golden/confluent: values as Confluent's serializers for Python frame them.

The serializers need packages that nothing else here needs, so run this in an environment of its own:

    python3.11 -m venv .cache/confluent
    .cache/confluent/bin/pip install 'confluent-kafka[avro,json,protobuf]' msgspec
    .cache/confluent/bin/python -m tests.golden.write_confluent

The serializers register their schemas in our embedded registry. `schemas.json` is its file: put it into the folder of
an embedded registry to serve the schemas under the same ids. `frames.json` has for each frame its language, its bytes
in hexadecimal, and the value. The Protobuf serializer registers a descriptor in Base64 where others register the text
of the `.proto` file.
"""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import ParseDict

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry

FOLDER = Path(__file__).parent / "confluent"
CONTEXT = SerializationContext("orders", MessageField.VALUE)
PLACE = {"type": "record", "name": "Place", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "place", "type": "shop.Place"},
]
ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": FIELDS}
ORDER_2 = {**ORDER, "fields": [*FIELDS, {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}]}
JSON_ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}, "price": {"type": "number"}},
}
VALUES: list[dict[str, Any]] = [
    {
        "id": number,
        "note": note,
        "price": Decimal(number) / 4,
        "day": date(2013, 1, 1 + number),
        "at": datetime(2013, 1, 1, number, 17, 0, 123000, UTC),
        "place": {"city": "M\u00fcnchen"},
    }
    for number, note in enumerate([None, "", "\u2708 late"])
]


def avro(client: Any) -> Iterator[tuple[bytes, Any]]:
    """Values of two versions in turn; both refer to a schema of another subject."""
    client.register_schema("places", Schema(json.dumps(PLACE), "AVRO"))
    references = [SchemaReference("shop.Place", "places", 1)]
    serializers = [
        AvroSerializer(client, Schema(json.dumps(schema), "AVRO", references)) for schema in (ORDER, ORDER_2)
    ]
    for number, value in enumerate(VALUES):
        written = value if number % 2 == 0 else {**value, "tags": ["a", "b"]}
        yield serializers[number % 2](written, CONTEXT), written


def json_schema(client: Any) -> Iterator[tuple[bytes, Any]]:
    """Values of a JSON schema."""
    serialize = JSONSerializer(json.dumps(JSON_ORDER), client)
    for value in ({"id": 1, "note": "a\u00fc\n"}, {"id": 2**40, "price": 1.5}, {}):
        yield serialize(value, CONTEXT), value


def protobuf(client: Any) -> Iterator[tuple[bytes, Any]]:
    """Values of the first, the second and a nested message of a file that imports another file."""
    messages = message_types()
    for name, value in (
        ("shop.Order", {"id": "7", "place": {"city": "M\u00fcnchen"}}),
        ("shop.Refund", {"reason": "broken"}),
        ("shop.Order.Line", {"item": "tea", "count": 3}),
        ("shop.Order", {}),
    ):
        serialize = ProtobufSerializer(messages[name], client, {"use.deprecated.format": False})
        message = ParseDict(value, messages[name]())
        yield serialize(message, CONTEXT), {"message": name, **value}


def message_types() -> dict[str, Any]:
    """The classes of the messages."""
    text, number = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_INT64
    place = descriptor_pb2.FileDescriptorProto(name="shop/place.proto", package="shop", syntax="proto3")
    _add(place.message_type.add(name="Place"), city=text)
    order = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    order.dependency.append("shop/place.proto")
    message = order.message_type.add(name="Order")
    _add(message, id=number, place=".shop.Place")
    _add(message.nested_type.add(name="Line"), item=text, count=number)
    _add(order.message_type.add(name="Refund"), reason=text)
    pool = descriptor_pool.DescriptorPool()
    for file in (place, order):
        pool.Add(file)
    names = ("shop.Order", "shop.Refund", "shop.Order.Line")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def _add(message: Any, **fields: int | str) -> None:
    for number, (name, kind) in enumerate(fields.items(), start=1):
        field = message.field.add(name=name, number=number, label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL)
        if isinstance(kind, str):
            field.type, field.type_name = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, kind
        else:
            field.type = kind


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    frames = []
    with TemporaryDirectory() as folder:
        with EmbeddedSchemaRegistry(data_dir=Path(folder)) as registry:
            client = SchemaRegistryClient({"url": registry.url})
            for language in (avro, json_schema, protobuf):
                frames += [
                    {"language": language.__name__, "frame": frame.hex(), "value": value}
                    for frame, value in language(client)
                ]
        stored = json.loads((Path(folder) / "schemas.json").read_text())
    packages = {name: version(name) for name in ("confluent-kafka", "fastavro", "jsonschema", "protobuf")}
    written = {"written_by": packages, "frames": frames}
    (FOLDER / "schemas.json").write_text(json.dumps(stored, indent=1) + "\n")
    (FOLDER / "frames.json").write_text(json.dumps(written, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
