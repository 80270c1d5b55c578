"""Schemas have the names by which Confluent's strategies register them."""

import json
from collections.abc import Mapping

import pytest

from kafka_io.errors import InvalidSchema
from kafka_io.schema_registry.schemas import ReferencedSchema, RegisteredSchema, SchemaType
from pipelines.schemas.schema_names import names_of

ORDER = '{"type": "record", "name": "Order", "namespace": "shop", "fields": []}'
PROTO = "package shop; message A { message B { message C {} } } message D {}"


def of(type_: SchemaType, text: str, *references: ReferencedSchema) -> RegisteredSchema:
    return RegisteredSchema(id=1, schema_type=type_, text=text, references=references)


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (of(SchemaType.AVRO, ORDER), {"": "shop.Order"}),
        (of(SchemaType.AVRO, ORDER.replace("Order", "a.b.Order")), {"": "a.b.Order"}),
        (of(SchemaType.AVRO, '{"type": "enum", "name": "Color", "symbols": ["red"]}'), {"": "Color"}),
        (
            of(
                SchemaType.AVRO, '"shop.Order"', ReferencedSchema(name="shop.Order", subject="o", version=1, text=ORDER)
            ),
            {"": "shop.Order"},
        ),
        (of(SchemaType.AVRO, '"string"'), {}),
        (of(SchemaType.AVRO, json.dumps(["null", json.loads(ORDER)])), {}),
        (of(SchemaType.JSON, '{"title": "Order", "type": "object"}'), {"": "Order"}),
        (of(SchemaType.JSON, '{"title": ""}'), {}),
        (of(SchemaType.JSON, '{"title": 7}'), {}),
        (of(SchemaType.JSON, "true"), {}),
        (
            of(SchemaType.PROTOBUF, PROTO),
            {"0": "shop.A", "0.0": "shop.A.B", "0.0.0": "shop.A.B.C", "1": "shop.D"},
        ),
        (of(SchemaType.PROTOBUF, "message A {}"), {"0": "A"}),
    ],
)
def test_names(schema: RegisteredSchema, names: Mapping[str, str]) -> None:
    assert names_of(schema) == names


@pytest.mark.parametrize("type_", SchemaType)
def test_a_schema_that_is_not_valid_has_no_name(type_: SchemaType) -> None:
    with pytest.raises(InvalidSchema):
        names_of(of(type_, "{"))
