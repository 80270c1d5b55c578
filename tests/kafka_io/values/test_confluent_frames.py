"""Values that Confluent's serializers framed, with the schemas that they registered (tests/golden/confluent)."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from kafka_io.values.arrays import bytes_of
from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.columns import grow
from kafka_io.values.framing import read_frames, read_message_paths
from kafka_io.values.json.decoder import FramedJsonDecoder
from kafka_io.values.json.schema import columns_of_json_schema
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.decoder import ProtobufDecoder
from kafka_io.values.protobuf.descriptors import parse_protobuf

GOLDEN = Path(__file__).parents[2] / "golden" / "confluent"
FRAMES = json.loads((GOLDEN / "frames.json").read_text())["frames"]
TYPES: dict[str, Callable[[str], Any]] = {"price": Decimal, "day": date.fromisoformat, "at": datetime.fromisoformat}
Schemas = Mapping[int, RegisteredSchema]


def written(language: str) -> tuple[pa.BinaryArray, list[dict[str, Any]]]:
    """The frames of a language, and their values."""
    chosen = [frame for frame in FRAMES if frame["language"] == language]
    return pa.array([bytes.fromhex(frame["frame"]) for frame in chosen], pa.binary()), [
        frame["value"] for frame in chosen
    ]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """A client of a registry with the schemas under their ids."""
    folder = tmp_path_factory.mktemp("registry")
    shutil.copy(GOLDEN / "schemas.json", folder)
    with EmbeddedSchemaRegistry(data_dir=folder) as embedded:
        yield SchemaRegistry("main", SchemaRegistrySettings(url=embedded.url))


def schemas_of(values: pa.BinaryArray, registry: SchemaRegistry) -> Schemas:
    """The schemas that the frames name, by id."""
    frames = read_frames(values)
    assert frames.failures == []
    return registry.known_schemas(sorted(set(frames.ids.tolist())))


def typed(name: str, field: Any) -> Any:
    """The value of a field; JSON has it as text if its type has an entry in TYPES."""
    return TYPES[name](field) if name in TYPES else field


def bodies_of(values: pa.BinaryArray) -> list[bytes]:
    data, ends = bytes_of(values)
    return [bytes(data[start:end]) for start, end in zip(read_frames(values).starts, ends[1:], strict=True)]


def test_avro_values_of_two_versions_with_a_reference_are_decoded(registry: SchemaRegistry) -> None:
    values, expected = written("avro")
    schemas = {
        schema_id: parse_avro(schema.text, [reference.text for reference in schema.references])
        for schema_id, schema in schemas_of(values, registry).items()
    }
    assert len(schemas) == 2
    columns = pa.schema([])
    for schema in schemas.values():
        columns = grow(columns, columns_of_avro(schema))
    decoded = AvroDecoder(columns, schemas).decode(values)
    assert (decoded.failures, decoded.unknown_schemas) == ([], frozenset())
    rows = [{"tags": None, **{name: typed(name, field) for name, field in row.items()}} for row in expected]
    assert decoded.rows.to_pylist() == rows


def test_json_values_follow_their_frames(registry: SchemaRegistry) -> None:
    values, expected = written("json_schema")
    (schema,) = schemas_of(values, registry).values()
    assert schema.schema_type is SchemaType.JSON
    assert [json.loads(body) for body in bodies_of(values)] == expected


def test_json_values_are_decoded_into_the_columns_of_their_schema(registry: SchemaRegistry) -> None:
    values, expected = written("json_schema")
    ((schema_id, schema),) = schemas_of(values, registry).items()
    columns = columns_of_json_schema(schema.text)
    assert columns.equals(pa.schema({"id": pa.int64(), "note": pa.string(), "price": pa.float64()}))
    decoded = FramedJsonDecoder(columns, {schema_id}).decode(values)
    assert (decoded.failures, decoded.unknown_schemas) == ([], frozenset())
    assert decoded.rows.to_pylist() == [dict.fromkeys(columns.names) | row for row in expected]
    assert FramedJsonDecoder(columns, {schema_id + 1}).decode(values).unknown_schemas == {schema_id}


def test_protobuf_frames_name_the_message(registry: SchemaRegistry) -> None:
    values, expected = written("protobuf")
    (schema,) = schemas_of(values, registry).values()
    assert [reference.name for reference in schema.references] == ["shop/place.proto"]
    paths = read_message_paths(values, read_frames(values))
    names = {(0,): "shop.Order", (1,): "shop.Refund", (0, 0): "shop.Order.Line"}
    assert paths.failures == []
    assert [names[paths.paths[number]] for number in paths.numbers] == [value["message"] for value in expected]


def test_protobuf_values_of_a_file_with_a_reference_are_decoded(registry: SchemaRegistry) -> None:
    """Python's serializer registers descriptors in Base64."""
    values, expected = written("protobuf")
    schemas = {
        schema_id: parse_protobuf(schema.text, {reference.name: reference.text for reference in schema.references})
        for schema_id, schema in schemas_of(values, registry).items()
    }
    (schema,) = schemas.values()
    columns = pa.schema([])
    for name in ("shop.Order", "shop.Refund", "shop.Order.Line"):
        columns = grow(columns, columns_of_protobuf(schema, name))
    decoded = ProtobufDecoder(columns, schemas).decode(values)
    assert (decoded.failures, decoded.unknown_schemas) == ([], frozenset())
    nothing = dict.fromkeys(columns.names)
    rows = [nothing | {key: field for key, field in value.items() if key != "message"} for value in expected]
    rows[0]["id"], rows[3]["id"] = 7, 0
    assert decoded.rows.to_pylist() == rows
