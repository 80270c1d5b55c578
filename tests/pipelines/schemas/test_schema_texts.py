"""A registry gives another schema for an id that has decoded rows of a table (fault A11)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest

from kafka_io.schema_registry.schemas import ReferencedSchema, RegisteredSchema, SchemaType
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.schema_ids import NO_SCHEMAS, SchemaIds, SchemaText
from pipelines.rewrites.topic_schema import topic_schema
from pipelines.schemas.schema_texts import digest_of
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster
from tests.fakes.registry_faults import sends
from tests.fakes.typed import TypedTopic, append, log_of, registered_topic
from tests.pipelines.fetch.test_avro_table import before_the_commit

FIELDS = [{"name": name, "type": "string"} for name in ("city", "street")]
EXCHANGED = FIELDS[::-1]
OF_ID = "/schemas/ids/1"


def schema(fields: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"type": "record", "name": "Address", "fields": fields})


def framed(fields: Sequence[dict[str, Any]], **values: Any) -> bytes:
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(schema(fields))), values)
    return b"\0\0\0\0\1" + body.getvalue()


BONN = framed(FIELDS, city="Bonn", street="Markt")


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as running:
        running.register("clicks-value", schema(FIELDS))
        yield running


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path, registry: EmbeddedSchemaRegistry) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([BONN])}
    with registered_topic(fake, tmp_path, registry, format="avro", key_format="raw") as registered:
        yield registered


def exchange(registry: EmbeddedSchemaRegistry, times: int | None = None) -> None:
    """Let the id 1 have the fields in another order."""
    registry.inject(sends(json.dumps({"schema": schema(EXCHANGED)}).encode()), path=OF_ID, times=times)


def adopting(topic: TypedTopic, **caps: int) -> TypedTopic:
    return replace(topic, choices={"on_schema_changed": "adopt"}, caps=caps)


def met(topic: TypedTopic) -> Sequence[SchemaText]:
    snapshot = topic.table.existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    return snapshot.entry.schemas.value_texts


# fault A11
def test_another_schema_under_a_known_id_stops_the_load_and_names_the_id_and_the_subject(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    assert topic.load().error is None
    [text] = met(topic)
    assert (text.id, text.registry, len(text.digest), text.met_ms > 0) == (1, "main", 32, True)
    append(topic.fake.logs[0], [BONN])
    exchange(registry)
    load = topic.load()
    [failure] = load.failures
    assert (load.rows, failure.code, failure.where["schema_id"]) == (0, "PS-506", 1)
    assert "another schema with the id 1 (clicks-value version 1) than the one that has decoded rows" in str(load.error)
    assert 'on_schema_changed = "adopt"' in str(load.error)


# fault A11
def test_a_deep_verify_reads_nothing_with_another_schema(topic: TypedTopic, registry: EmbeddedSchemaRegistry) -> None:
    topic.load()
    assert topic.deep().problems == ()
    exchange(registry)
    [problem] = topic.deep().problems
    assert "another schema with the id 1" in problem


def test_by_choice_the_new_schema_decodes_from_now_on_and_the_table_knows_both(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.load()
    append(topic.fake.logs[0], [framed(EXCHANGED, city="Rom", street="Corso")])
    exchange(registry)
    load = adopting(topic).load()
    assert (load.error, load.rows) == (None, 1)
    assert any("another schema with the id 1" in warning for warning in load.warnings)
    assert topic.rows("city") == [{"city": "Bonn"}, {"city": "Rom"}]
    assert len({text.digest for text in met(topic)}) == len(met(topic)) == 2
    append(topic.fake.logs[0], [framed(EXCHANGED, city="Ulm", street="Ring")])
    assert (topic.load().rows, topic.load().error, len(met(topic))) == (1, None, 2)


def test_a_table_of_an_earlier_version_learns_the_digests_with_its_next_rows(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("pipelines.schemas.schema_texts.KnownTexts.keep", lambda *_: None)
        topic.load()
    assert met(topic) == ()
    append(topic.fake.logs[0], [BONN])
    assert topic.load().error is None
    assert [text.id for text in met(topic)] == [1]


def test_the_history_of_schemas_is_shown_also_if_a_load_would_stop(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.load()
    settings = topic.settings
    exchange(registry)
    shown = topic_schema(topic.table, settings.format_of("clicks"), partial(open_schema_registry, settings))
    [text] = shown.texts
    assert (text.part, text.id, text.registry, text.since[:2]) == ("value", 1, "main", "20")
    assert "a load stops" in shown.warnings[-1]
    assert [column.name for column in shown.columns] == ["_kafka_schema_id", "city", "street"]


TEXTS = {"indented": '{ "type": "string" }', "plain": '{"type":"string"}', "other": '{"type":"bytes"}'}


def test_a_digest_does_not_depend_on_what_means_nothing() -> None:
    def avro(text: str, *references: ReferencedSchema) -> str:
        return digest_of(RegisteredSchema(id=1, schema_type=SchemaType.AVRO, text=text, references=references))

    def proto(text: str) -> str:
        return digest_of(RegisteredSchema(id=2, schema_type=SchemaType.PROTOBUF, text=text))

    assert avro(TEXTS["indented"]) == avro(TEXTS["plain"]) != avro(TEXTS["other"])
    assert avro('{"type": "long", "logicalType": "x"}') == avro('{"logicalType": "x", "type": "long"}')
    assert avro(schema(FIELDS)) != avro(schema(EXCHANGED))
    reference = ReferencedSchema(name="a", subject="a", version=1, text='"string"')
    assert avro('"a"', reference) != avro('"a"', replace(reference, text='"bytes"'))
    assert avro("{") != avro("{{")
    of_message = "message A { string a = 1; }"
    assert proto(of_message) == proto(f"// a comment\n{of_message}\n") != proto("message A { string a = 2; }")


def test_an_entry_without_schemas_has_no_field_for_them_and_texts_come_last(topic: TypedTopic) -> None:
    topic.load()
    snapshot = topic.table.existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    stored = msgspec.json.decode(snapshot.entry.to_json())
    assert list(stored)[-1] == "schema_texts"
    assert LedgerEntry.from_json(snapshot.entry.to_json()) == snapshot.entry
    without = msgspec.json.decode(replace(snapshot.entry, schemas=NO_SCHEMAS).to_json())
    assert not [name for name in without if "schema" in name]


OLD, NEW = (SchemaText(id=7, digest=digest, registry="main") for digest in ("a", "b"))


@pytest.mark.parametrize(
    ("here", "planned", "conflict"),
    [
        ((), (OLD,), None),
        ((OLD,), (OLD,), None),
        ((OLD,), (OLD, NEW), None),
        ((OLD, NEW), (), None),
        ((NEW,), (OLD,), 7),
        ((OLD, NEW), (OLD,), 7),
        ((NEW, OLD), (NEW, NEW), 7),
    ],
)
def test_a_commit_fits_only_on_texts_that_it_was_planned_with(
    here: tuple[SchemaText, ...], planned: tuple[SchemaText, ...], conflict: int | None
) -> None:
    assert SchemaIds(value_texts=here).conflict(SchemaIds(value_texts=planned)) == conflict
    assert SchemaIds(key_texts=here).conflict(SchemaIds(key_texts=planned)) == conflict


# fault A11
def test_a_commit_is_refused_if_another_run_has_met_another_schema_under_the_id(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rival() -> None:
        exchange(registry, times=1)
        topic.fake.logs[1] = log_of([framed(EXCHANGED, city="Rom", street="Corso")] * 2)
        assert adopting(topic, records_per_run=1).load().rows == 1

    topic.load()
    append(topic.fake.logs[0], [BONN])
    before_the_commit(monkeypatch, rival)
    load = topic.load()
    assert (load.rows, load.failures[-1].code) == (0, "PS-405")
    assert "with another schema under the id 1" in str(load.error)
    assert topic.rows("city") == [{"city": "Bonn"}, {"city": "Rom"}]
