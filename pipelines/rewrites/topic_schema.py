"""The columns of a topic's table, the fields that fill them, and what the next load would change."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from kafka_io.errors import KafkaIOError, SchemaNotFound
from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.values.columns import COMMENT, field_name
from pipelines.fetch.decode_plan import check_format, layout_of, plan_decoding
from pipelines.fetch.decoding import Decoding, OpenRegistry
from pipelines.layout.columns import missing_columns, with_columns
from pipelines.layout.delta_schema import delta_fields, type_text
from pipelines.ledger.schema_ids import NO_SCHEMAS
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import SchemaChanged
from resources.settings.topic_formats import TopicFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownColumn:
    """A column for a field of the values; `is_new` if the next load with rows adds it or a member of it.

    Args:
        name: the column.
        type: its type, as in Delta's schema.
        field: the field that fills it.
        comment: what the schema says about the field.
        is_new: whether the table lacks the column, or a member of it.
    """

    name: str
    type: str
    field: str
    comment: str
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSchema:
    """A schema in the registry; `is_met` if the table has records with it. `type` is empty if the id is not known.

    Args:
        id: the number in the frame of a value.
        type: the language of the schema.
        subjects: the versions of subjects that have the schema, such as `orders-value version 3`.
        is_met: whether the table has records with it. Otherwise it is the newest one of the topic's subject.
    """

    id: int
    type: str
    subjects: tuple[str, ...]
    is_met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetText:
    """A schema that has decoded rows of the table, as the ledger keeps it.

    Args:
        part: "value" or "key".
        id: the id that it had in its registry.
        digest: the digest of its text and of all that it refers to.
        registry: the name of the registry.
        since: when the ledger got the digest, as ISO 8601.
    """

    part: str
    id: int
    digest: str
    registry: str
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchema:
    """The result of `penstock schema`; `version` is None if the topic has no table yet.

    A raw table has no columns for fields. `schemas` are in the order of their ids; there are none if the values have no
    schemas in a registry. `texts` are all texts of schemas that the table has met, in this order. They are in the
    ledger, so they need no registry.
    """

    topic: str
    table: str
    format: str
    version: int | None
    schemas: tuple[WriterSchema, ...] = ()
    texts: tuple[MetText, ...] = ()
    columns: tuple[ShownColumn, ...]
    warnings: tuple[str, ...]


def topic_schema(table: LakeTable, format_: TopicFormat, open_registry: OpenRegistry | None = None) -> TopicSchema:
    """The columns of the table, with those that the next load adds. Nothing is changed.

    Without `open_registry` no registry is asked. If it does not answer, a warning says so.

    Raises:
        FormatChanged: the settings name another kind of format than the table has.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    snapshot = table.newest()
    if snapshot is not None:
        check_format(format_, snapshot, table.uri)
    table_snapshot = snapshot or TableSnapshot(version=0, entry=None, layout=layout_of(format_))
    plan, warnings = plan_decoding(format_, table_snapshot.layout)
    schemas: tuple[WriterSchema, ...] = ()
    if open_registry and format_.has_schemas:
        try:
            schemas, decoding = _with_registry(table.where.topic or "", format_, table_snapshot, open_registry)
            plan, warnings = decoding.plan, decoding.warnings
        except KafkaIOError as error:
            warnings = [*warnings, f"the schemas are not shown, because the registry cannot be asked: {error}"]
        except SchemaChanged as error:
            warnings = [*warnings, f"the schemas are not shown, and a load stops: {error}"]
    present = table_snapshot.layout.values
    after = with_columns(present, plan.stored) if plan else present
    return TopicSchema(
        topic=table.where.topic or "",
        table=table.uri,
        format=format_.format,
        version=snapshot.version if snapshot else None,
        schemas=schemas,
        texts=tuple(_met_texts(table_snapshot)),
        columns=tuple(_shown(after, missing_columns(present, after).names)),
        warnings=tuple(warnings),
    )


def _with_registry(
    topic: str, format_: TopicFormat, snapshot: TableSnapshot, open_registry: OpenRegistry
) -> tuple[tuple[WriterSchema, ...], Decoding]:
    """The schemas that the table has met, with the newest one of the subject, and the plan for all of them."""
    decoding = Decoding(format_, snapshot, open_registry)
    registry = open_registry(str(format_.registry))
    met = frozenset(snapshot.entry.schemas.values if snapshot.entry else ())
    ids = met
    # Only the default naming strategy is tried. If the topic has several tables, any of them may get the newest schema.
    if not (snapshot.entry and snapshot.entry.state.routes.by):
        with suppress(SchemaNotFound):
            ids |= {registry.newest(f"{topic}-value").schema.id}
    decoding.learn(ids)
    known = registry.known_schemas(sorted(ids))
    schemas = [
        WriterSchema(
            id=id_,
            type=str(known[id_].schema_type) if id_ in known else "",
            subjects=tuple(_subjects(registry, id_)) if id_ in known else (),
            is_met=id_ in met,
        )
        for id_ in sorted(ids)
    ]
    return tuple(schemas), decoding


def _met_texts(snapshot: TableSnapshot) -> Iterator[MetText]:
    seen = snapshot.entry.schemas if snapshot.entry else NO_SCHEMAS
    for part, texts in (("value", seen.value_texts), ("key", seen.key_texts)):
        for text in texts:
            since = datetime.fromtimestamp(text.met_ms / 1000, UTC).isoformat(timespec="seconds")
            yield MetText(part=part, id=text.id, digest=text.digest, registry=text.registry, since=since)


def _subjects(registry: SchemaRegistry, schema_id: int) -> Iterator[str]:
    with suppress(SchemaNotFound):  # Apicurio and others may not have this request
        for item in registry.versions(schema_id):
            yield f"{item.subject} version {item.version}"


def _shown(columns: pa.Schema, new: Sequence[str]) -> list[ShownColumn]:
    return [
        ShownColumn(
            name=column.name,
            type=type_text(field["type"]),
            field=field_name(column),
            comment=(column.metadata or {}).get(COMMENT, b"").decode(),
            is_new=column.name in new,
        )
        for column, field in zip(columns, delta_fields(columns), strict=True)
    ]
