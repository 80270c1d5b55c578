"""Notices that a registry gives another schema for an id than the one that decoded rows of a table (fault A11).

The same bytes mean something else under another schema, and often decode without an error: fields of one type in
another order exchange their values.
"""

import hashlib
import json

from kafka_io.errors import InvalidSchema, KafkaIOError, Where
from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.protobuf.tokens import tokens
from pipelines.ledger.event_time import utc_text
from pipelines.ledger.schema_ids import SchemaText, SchemaTexts
from resources.errors import SchemaChanged

_DIGITS = 32


def digest_of(schema: RegisteredSchema) -> str:
    """The digest of a schema and of all schemas that it refers to, as hexadecimal digits.

    White space, the order of keys in JSON and the comments of a `.proto` text do not count: another registry with the
    same schemas may print them in another way.

    >>> digest_of(RegisteredSchema(id=1, schema_type=SchemaType.AVRO, text='"string"'))
    'a6a326b8ad523ab840453e47577d4272'
    """
    kind = schema.schema_type
    parts = [kind, _meaning(kind, schema.text)]
    parts += (part for each in schema.references for part in (each.name, _meaning(kind, each.text)))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _meaning(kind: SchemaType, text: str) -> str:
    """The text without white space, comments and the order of keys; an invalid text is returned unchanged."""
    try:
        if kind is SchemaType.PROTOBUF:
            return "\n".join(token.text for token in tokens(text))
        return json.dumps(json.loads(text), sort_keys=True)
    except (InvalidSchema, ValueError, RecursionError):
        return text


class KnownTexts:
    """The texts of the ids that a table has met, and of those that a run meets.

    Attributes:
        texts: the texts, the newest last.
        warnings: sentences about texts that changed.

    Args:
        texts: those of the table.
        adopts: whether the user chose to continue with a text that has changed.
    """

    def __init__(self, texts: SchemaTexts, *, adopts: bool) -> None:
        self.texts = texts
        self.warnings: list[str] = []
        self._adopts = adopts

    def check(self, schema: RegisteredSchema, registry: SchemaRegistry) -> None:
        """Compare the text that the registry has for an id now with the newest one that is known.

        Raises:
            SchemaChanged: they differ, and the user did not choose to continue.
        """
        before, digest = self._newest(schema.id), digest_of(schema)
        if before is None or before.digest == digest:
            return
        changed = _sentence(before, digest, registry, _subjects(registry, schema.id))
        if not self._adopts:
            raise SchemaChanged(
                f"{changed}. Values may decode with both and mean something else, so nothing was read. Restore the "
                "schema in the registry, or correct `registry`. If the new schema is right, "
                'on_schema_changed = "adopt" continues with it',
                Where(registry=registry.name, schema_id=schema.id),
            )
        self.warnings.append(changed)

    def keep(self, schema: RegisteredSchema, registry: SchemaRegistry) -> None:
        """Keep the text of an id with which values are decoded from now on."""
        before, digest = self._newest(schema.id), digest_of(schema)
        if before is None or before.digest != digest:
            self.texts = (*self.texts, SchemaText(id=schema.id, digest=digest, registry=registry.name))

    def _newest(self, id_: int) -> SchemaText | None:
        return next((text for text in reversed(self.texts) if text.id == id_), None)


def _sentence(before: SchemaText, digest: str, registry: SchemaRegistry, subjects: str) -> str:
    return (
        f"the registry {registry.name} has another schema with the id {before.id}{subjects} than the one that has "
        f"decoded rows of the table since {utc_text(before.met_ms)} (from the registry {before.registry}; digest "
        f"{before.digest[:8]}, now {digest[:8]})"
    )


def _subjects(registry: SchemaRegistry, id_: int) -> str:
    """The versions of subjects that have the id now; empty if the registry does not say it."""
    try:
        names = [f"{version.subject} version {version.version}" for version in registry.versions(id_)]
    except KafkaIOError:  # some registries do not have this request, and the error must name the id in any case
        return ""
    return f" ({', '.join(names)})" if names else ""
