"""JSON objects become the columns of a JSON Schema: of a file, of a text in the settings, or of a registry."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.rewrites.topic_schema import topic_schema
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of


def schema(**properties: Any) -> str:
    return json.dumps({"type": "object", "properties": properties})


ID, NUMBER, TEXT = {"type": "integer", "description": "the number"}, {"type": "number"}, {"type": "string"}
DAY = {"type": "string", "format": "date"}
ANY_LIST = {"type": "array", "items": {}}
"""A list of values of any type: its items are JSON texts, which Delta's schema alone does not say."""


def framed(schema_id: int, value: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + value


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([b'{"id": 1, "day": "2026-01-31", "tags": [1, "a"], "other": 2}', None, b'{"id": "1"}'])}
    with fake:
        file = tmp_path / "clicks.schema.json"
        file.write_text(schema(id=ID, day=DAY, tags=ANY_LIST))
        format_ = {"format": "json", "json_schema": str(file), "max_bad_share": 1}
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)


def test_the_properties_of_a_schema_in_a_file_are_columns_and_later_loads_read_them_alike(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 1)
    append(topic.fake.logs[0], [b'{"id": 2, "tags": [{"x": 1}]}'])
    assert topic.load().bad_records == 0
    rows = topic.rows("id", "day", "tags", "_tombstone", "_raw")
    assert [(row["id"], str(row["day"]), row["tags"]) for row in rows] == [
        (1, "2026-01-31", ["1", '"a"']),
        (None, "None", None),
        (None, "None", None),
        (2, "None", ['{"x": 1}']),
    ]
    assert (rows[1]["_tombstone"], rows[2]["_raw"]) == (True, b'{"id": "1"}')
    assert topic.deep().problems == ()


def test_a_schema_can_be_a_text_of_the_settings_and_grow_and_change_there(topic: TypedTopic) -> None:
    topic.load()
    topic.format_ = {**topic.format_, "json_schema": schema(id=TEXT, day=DAY, other=NUMBER)}
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert [(column.name, column.comment) for column in shown.columns if column.is_new] == [("id_2", ""), ("other", "")]
    append(topic.fake.logs[0], [b'{"id": "x", "other": 2.5}'])
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert load.warnings == (
        "the field 'id' had the type int64 before: the new column id_2 holds it, with the type string",
    )
    assert topic.rows("id", "id_2", "other")[-1] == {"id": None, "id_2": "x", "other": 2.5}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "clicks.schema.json: no such file or directory"),
        ("{", "the JSON Schema is not valid JSON"),
        ('{"type": "string"}', "the JSON Schema describes no object with properties"),
    ],
)
def test_a_file_that_is_no_schema_of_objects_fails_the_load(topic: TypedTopic, text: str | None, error: str) -> None:
    file = Path(topic.format_["json_schema"])
    file.unlink()
    if text is not None:
        file.write_text(text)
    load = topic.load()
    assert load.error is not None
    assert error in load.error
    assert load.rows == 0


def test_schemas_of_a_registry_are_columns_and_a_new_one_lands_with_its_first_rows(topic: TypedTopic) -> None:
    with EmbeddedSchemaRegistry() as registry:
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {"format": "json", "registry": "main", "max_bad_share": 1}
        first = registry.register("clicks-value", schema(id=ID), schema_type="JSON")
        topic.fake.logs = {0: log_of([framed(first, b'{"id": 1}'), None, b'{"id": 1}', framed(7, b'{"id": 2}')])}
        load = topic.load()
        assert (load.error, load.rows, load.bad_records) == (None, 4, 2)
        second = registry.register("clicks-value", schema(id=ID, note=TEXT), schema_type="JSON")
        avro = registry.register("clicks-avro", '"string"')
        append(
            topic.fake.logs[0],
            [framed(second, b'{"id": 3, "note": "x"}'), framed(first, b'{"id": 4}'), framed(avro, b"\2a")],
        )
        load = topic.load()
        assert (load.error, load.rows, load.bad_records, load.files) == (None, 3, 1, 1)
        rows = topic.rows("id", "note", "_error")
        assert [(row["id"], row["note"]) for row in rows] == [
            (1, None), (None, None), (None, None), (None, None), (3, "x"), (4, None), (None, None),
        ]  # fmt: skip
        assert rows[3]["_error"] == "the registry main has no schema with the id 7"
        assert rows[6]["_error"] == (
            f"the schema {avro} cannot be used: the schema {avro} has the type AVRO, but the format needs JSON"
        )
        assert topic.deep().problems == ()
