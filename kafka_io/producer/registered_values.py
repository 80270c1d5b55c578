"""Encodes JSON documents with a schema of a registry, with the frame of Confluent's serializers."""

import json
from collections.abc import Callable, Mapping

from kafka_io.errors import InvalidValue, Unsupported, printable
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.avro.writer import avro_from_json

_Encode = Callable[[bytes], bytes]


def registered_encoder(schema: RegisteredSchema) -> _Encode:
    """A function from a JSON document to a value: a zero byte, the id of the schema in four bytes, and the body.

    The body of an Avro schema is Avro (see kafka_io/values/avro/writer.py), that of a JSON schema is the document
    itself, which is not compared with the schema. The function raises InvalidValue.

    Raises:
        InvalidSchema: the schema is not valid.
        Unsupported: it is a Protobuf schema.
    """
    if schema.schema_type not in _ENCODERS:
        raise Unsupported(f"values of {schema.schema_type} schemas cannot be encoded from JSON, only AVRO and JSON")
    encode, frame = _ENCODERS[schema.schema_type](schema), b"\0" + schema.id.to_bytes(4, "big")
    return lambda document: frame + encode(document)


def _avro(schema: RegisteredSchema) -> _Encode:
    avro = parse_avro(schema.text, [reference.text for reference in schema.references])
    return lambda document: avro_from_json(avro, document)


def _json(_schema: RegisteredSchema) -> _Encode:
    def encode(document: bytes) -> bytes:
        try:
            json.loads(document)
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"the value is not JSON: {printable(error)}") from error
        return document

    return encode


_ENCODERS: Mapping[SchemaType, Callable[[RegisteredSchema], _Encode]] = {
    SchemaType.AVRO: _avro,
    SchemaType.JSON: _json,
}
