"""Schemas as values: what decoders get, and what the driver sends to workers as JSON."""

from dataclasses import dataclass, field
from enum import StrEnum


class SchemaType(StrEnum):
    """The language of a schema, under its name in the REST API."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedSchema:
    """A schema that another one refers to.

    Args:
        name: how the other schema refers to it: the full name of an Avro type, the path of a `.proto` file, the URL of
            a JSON schema.
        subject: the subject under which it is registered.
        version: the version of the subject.
        text: the schema.
    """

    name: str
    subject: str
    version: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema with its id, and with everything that it refers to, directly or not.

    Args:
        id: the number in the frame of a value. It should never get another schema.
        schema_type: the language of the schema and of its references.
        text: the schema as the registry returns it.
        references: the schemas that it needs, each after those that it needs itself. A name appears once; if two
            schemas have the same name, the first that is found counts, as for Confluent's serializers.
        guid: its GUID, which is the same in all registries; empty if the registry gives none.
        messages: the message types of Protobuf that values are known to have, if a reader asks for several of them.

    >>> RegisteredSchema(id=1, schema_type="AVRO", text='"string"').references
    ()
    """

    id: int
    schema_type: SchemaType
    text: str
    references: tuple[ReferencedSchema, ...] = ()
    guid: str = field(default="", compare=False)
    messages: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersion:
    """One version of a subject."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSchema:
    """The schema of one version of a subject."""

    subject: str
    version: int
    schema: RegisteredSchema
