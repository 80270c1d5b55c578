"""How values are encoded: for each encoding, where the columns come from, and which decoder fills them.

Whoever adds an encoding adds a line to ENCODINGS, and its settings to `resources.settings.topic_formats`.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_io.errors import InvalidSchema
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.schema import AvroType, parse_avro
from kafka_io.values.columns import described
from kafka_io.values.debezium.columns import columns_of_debezium, fields_of_events, fields_of_keys
from kafka_io.values.decoding import ValueDecoder
from kafka_io.values.json.inference import fields_of_sample
from kafka_io.values.json.reading import JsonNumbers
from kafka_io.values.json.schema import columns_of_json_schema
from kafka_io.values.text import TEXT_FIELD, TextDecoder

if TYPE_CHECKING:  # pydantic and protobuf are slow to import; workers need no settings, and few topics need protobuf
    from kafka_io.values.protobuf.descriptors import ProtobufSchema
    from resources.settings.topic_formats import TopicFormat

KnownSchemas = Mapping[int, RegisteredSchema]
"""The schemas of a registry, by id."""
ALL_MESSAGES = "*"
"""Stands for the name of a message type in an encoding whose values may have any type."""
LOCAL_ID = -1
"""The id of a schema in a file of the settings. No registry has it."""


def _nothing_declared(_format: "TopicFormat") -> Sequence[pa.Field]:
    """The fields of formats whose settings declare none."""
    return ()


def _no_schema(schema: RegisteredSchema) -> Sequence[pa.Field]:
    """The fields of a schema for formats whose values have none."""
    raise InvalidSchema(f"the format has no schemas in a registry, and the value names the schema {schema.id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEncoding:
    """One way in which values are encoded.

    Args:
        decoder: makes the decoder that fills the given columns; it gets the schemas of the values that are known.
        declared: the fields that the settings declare. It raises InvalidSchema if they cannot be columns, and OSError
            if a file of the settings cannot be read.
        of_schema: the fields that a schema of a registry declares. It raises InvalidSchema if they cannot be columns.
        of_sample: the fields of a sample of values, if nothing declares the fields; None if something does.
        in_file: the schema in a file of the settings that the decoder needs, by LOCAL_ID; it raises as `declared` does.
        is_by_message: whether a schema declares only the fields of those message types that its values have.
    """

    decoder: Callable[[pa.Schema, KnownSchemas], ValueDecoder]
    declared: Callable[["TopicFormat"], Sequence[pa.Field]] = _nothing_declared
    of_schema: Callable[[RegisteredSchema], Sequence[pa.Field]] = _no_schema
    of_sample: Callable[[Sequence[bytes]], Sequence[pa.Field]] | None = None
    in_file: Callable[["TopicFormat"], KnownSchemas] | None = None
    is_by_message: bool = False

    @property
    def is_framed(self) -> bool:
        """Whether values name their schemas in a registry."""
        return self.of_schema is not _no_schema

    def fields_of(self, schema: RegisteredSchema) -> Iterator[Sequence[pa.Field]]:
        """The fields of a schema, or those of each of its message types. Fields of two types may have one column."""
        parts = [replace(schema, messages=(name,)) for name in schema.messages] if self.is_by_message else [schema]
        return map(self.of_schema, parts)


def avro_type(schema: RegisteredSchema) -> AvroType:
    """The Avro type that a schema declares, in which all times are in UTC, as in the columns of a table (fault A21).

    Raises:
        InvalidSchema: it declares none.
    """
    _check_type(schema, SchemaType.AVRO, "Avro")
    return parse_avro(schema.text, [reference.text for reference in schema.references], has_local_times=False)


def _check_type(schema: RegisteredSchema, type_: SchemaType, name: str) -> None:
    if schema.schema_type is not type_:
        raise InvalidSchema(f"the schema {schema.id} has the type {schema.schema_type}, but the format needs {name}")


# Decoders are imported when one is needed: numba is slow to import, and a load with nothing new decodes nothing.


def _avro_decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.avro.decoder import AvroDecoder  # noqa: PLC0415 - see above

    return AvroDecoder(columns, {id_: avro_type(schema) for id_, schema in schemas.items()})


def _avro_file(frame: str) -> ValueEncoding:
    """The encoding of Avro values whose schema is in a file of the settings, and which have this frame."""

    def schema(format_: "TopicFormat") -> RegisteredSchema:
        return RegisteredSchema(id=LOCAL_ID, schema_type=SchemaType.AVRO, text=format_.declared_avro())

    def decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
        from kafka_io.values.avro.decoder import AvroDecoder  # noqa: PLC0415 - see above

        return AvroDecoder(columns, avro_type(schemas[LOCAL_ID]), frame)

    return ValueEncoding(
        decoder=decoder,
        declared=lambda format_: list(columns_of_avro(avro_type(schema(format_)))),
        in_file=lambda format_: {LOCAL_ID: schema(format_)},
    )


def _json_decoder(columns: pa.Schema, _schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.json.decoder import JsonDecoder  # noqa: PLC0415 - see above

    return JsonDecoder(columns, numbers=JsonNumbers.DECLARED)


def _inferred_json_decoder(columns: pa.Schema, _schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.json.decoder import JsonDecoder  # noqa: PLC0415 - see above

    return JsonDecoder(columns, numbers=JsonNumbers.INFERRED)


def _framed_json_decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.json.decoder import FramedJsonDecoder  # noqa: PLC0415 - see above

    return FramedJsonDecoder(columns, schemas.keys())


def _fields_of_json_schema(schema: RegisteredSchema) -> Sequence[pa.Field]:
    _check_type(schema, SchemaType.JSON, "JSON")
    try:
        return list(
            columns_of_json_schema(schema.text, {reference.name: reference.text for reference in schema.references})
        )
    except ValueError as error:
        raise InvalidSchema(str(error)) from error


def _debezium_json_decoder(columns: pa.Schema, _schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.debezium.decoder import DebeziumDecoder  # noqa: PLC0415 - see above
    from kafka_io.values.json.decoder import JsonDecoder  # noqa: PLC0415

    # An envelope has other keys besides the row, which do not become columns.
    return DebeziumDecoder(
        columns, lambda envelope: JsonDecoder(envelope, ("", "payload"), numbers=JsonNumbers.INFERRED)
    )


def _fields_of_events(values: Sequence[bytes]) -> Sequence[pa.Field]:
    try:
        return fields_of_events(values)
    except ValueError:  # no value of the sample is an event
        return ()


def _debezium_avro_decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.debezium.decoder import DebeziumDecoder  # noqa: PLC0415 - see above

    return DebeziumDecoder(columns, lambda envelope: _avro_decoder(envelope, schemas))


def _debezium_key_decoder(columns: pa.Schema, _schemas: KnownSchemas) -> ValueDecoder:
    from kafka_io.values.debezium.decoder import DebeziumKeyDecoder  # noqa: PLC0415 - see above

    return DebeziumKeyDecoder(columns)


def _fields_of_envelope(schema: RegisteredSchema) -> Sequence[pa.Field]:
    try:
        return list(columns_of_debezium(columns_of_avro(avro_type(schema))))
    except ValueError as error:
        raise InvalidSchema(str(error)) from error


def _declared_json(format_: "TopicFormat") -> Sequence[pa.Field]:
    try:
        return list(format_.declared_columns())
    except ValueError as error:
        raise InvalidSchema(str(error)) from error


def _protobuf_schema(schema: RegisteredSchema) -> "ProtobufSchema":
    from kafka_io.values.protobuf.descriptors import parse_protobuf  # noqa: PLC0415 - see TYPE_CHECKING

    _check_type(schema, SchemaType.PROTOBUF, "Protobuf")
    return parse_protobuf(schema.text, {reference.name: reference.text for reference in schema.references})


def _protobuf_columns(schema: "ProtobufSchema", message: str | None) -> Sequence[pa.Field]:
    from kafka_io.values.protobuf.columns import columns_of_protobuf  # noqa: PLC0415 - see TYPE_CHECKING

    return list(columns_of_protobuf(schema, message))


def _protobuf(message: str | None) -> ValueEncoding:
    """The encoding of values of one message type, by default of the first one of each schema."""

    def decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
        from kafka_io.values.protobuf.decoder import FIRST_MESSAGE, ProtobufDecoder  # noqa: PLC0415 - see TYPE_CHECKING

        return ProtobufDecoder(
            columns, {id_: _protobuf_schema(schema) for id_, schema in schemas.items()}, message or FIRST_MESSAGE
        )

    return ValueEncoding(
        decoder=decoder,
        of_schema=lambda schema: _protobuf_columns(_protobuf_schema(schema), message),
    )


def _protobuf_of_all_messages() -> ValueEncoding:
    """The encoding of values of all message types: the fields of those that values have are columns side by side."""

    def decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
        from kafka_io.values.protobuf.decoder import ProtobufDecoder  # noqa: PLC0415 - see TYPE_CHECKING

        return ProtobufDecoder(
            columns,
            {id_: _protobuf_schema(schema) for id_, schema in schemas.items()},
            planned={id_: schema.messages for id_, schema in schemas.items()},
        )

    def of_schema(schema: RegisteredSchema) -> Iterator[pa.Field]:
        declared = _protobuf_schema(schema)
        for message in schema.messages:
            with suppress(InvalidSchema):  # the decoder has the reason for each of its values
                yield from _protobuf_columns(declared, message)

    return ValueEncoding(decoder=decoder, of_schema=lambda schema: list(of_schema(schema)), is_by_message=True)


def _protobuf_file(message: str | None) -> ValueEncoding:
    """The encoding of values without a frame, which have one message type of a file of the settings."""

    def in_file(format_: "TopicFormat") -> KnownSchemas:
        # Workers do not have the file, so they get what it contains.
        text = base64.b64encode(format_.declared_messages().descriptor_set()).decode()
        return {LOCAL_ID: RegisteredSchema(id=LOCAL_ID, schema_type=SchemaType.PROTOBUF, text=text)}

    def decoder(columns: pa.Schema, schemas: KnownSchemas) -> ValueDecoder:
        from kafka_io.values.protobuf.decoder import ProtobufDecoder  # noqa: PLC0415 - see TYPE_CHECKING
        from kafka_io.values.protobuf.descriptors import parse_descriptor_set  # noqa: PLC0415

        return ProtobufDecoder(columns, parse_descriptor_set(base64.b64decode(schemas[LOCAL_ID].text)), message)

    return ValueEncoding(
        decoder=decoder,
        declared=lambda format_: _protobuf_columns(format_.declared_messages(), message),
        in_file=in_file,
    )


ENCODINGS: Mapping[str, ValueEncoding] = {
    "text": ValueEncoding(
        decoder=lambda columns, _: TextDecoder(columns),
        declared=lambda _: [described(TEXT_FIELD, pa.string())],
    ),
    "json": ValueEncoding(
        decoder=_json_decoder,
        declared=_declared_json,
    ),
    "inferred json": ValueEncoding(
        decoder=_inferred_json_decoder,
        of_sample=fields_of_sample,
    ),
    "framed json": ValueEncoding(
        decoder=_framed_json_decoder,
        of_schema=_fields_of_json_schema,
    ),
    "debezium": ValueEncoding(decoder=_debezium_json_decoder, of_sample=_fields_of_events),
    "debezium avro": ValueEncoding(decoder=_debezium_avro_decoder, of_schema=_fields_of_envelope),
    "debezium key": ValueEncoding(decoder=_debezium_key_decoder, of_sample=fields_of_keys),
    "protobuf": _protobuf(None),
    f"protobuf {ALL_MESSAGES}": _protobuf_of_all_messages(),
    "local protobuf": _protobuf_file(None),
    "local avro": _avro_file(""),
    "avro": ValueEncoding(decoder=_avro_decoder, of_schema=lambda schema: list(columns_of_avro(avro_type(schema)))),
}
"""The encodings by their names."""


_WITH_PARAMETER: Mapping[str, Callable[[str], ValueEncoding]] = {
    "local avro ": _avro_file,
    "local protobuf ": _protobuf_file,
    "protobuf ": _protobuf,
}
"""The encodings whose names end with a message type, or with the frame of values, by the first part of the name."""


def encoding_of(name: str) -> ValueEncoding:
    """The encoding that `TopicFormat.encoding` names; a message type of Protobuf or a frame of Avro may follow."""
    if name in ENCODINGS:
        return ENCODINGS[name]
    prefix, make = next(item for item in _WITH_PARAMETER.items() if name.startswith(item[0]))
    return make(name.removeprefix(prefix))
