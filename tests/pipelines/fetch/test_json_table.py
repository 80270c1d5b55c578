"""JSON objects become the columns that the settings list, strictly; columns change with the settings."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.rewrites.topic_schema import topic_schema
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

GOOD = (
    b'{"id": 1, "amount": 2.50, "at": "2026-01-31T12:00:00+01:00", "place": {"city": "Ulm"}, "tags": ["a"], "other": 9}'
)
COLUMNS = {
    "id": "long",
    "amount": "decimal(38, 2)",
    "at": "timestamp",
    "place": "struct<city: string>",
    "tags": "array<string>",
}


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([GOOD, None, b"{}"])}
    with fake:
        format_ = {"format": "json", "columns": COLUMNS, "max_bad_share": 1}
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)


def test_the_keys_that_the_settings_list_are_columns_of_their_types(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 0)
    first, tombstone, empty = topic.rows(*COLUMNS, "_tombstone")
    assert (first["id"], str(first["amount"]), first["place"], first["tags"]) == (1, "2.50", {"city": "Ulm"}, ["a"])
    assert first["at"].isoformat() == "2026-01-31T11:00:00+00:00"
    assert [tombstone[name] for name in COLUMNS] == [empty[name] for name in COLUMNS] == [None] * len(COLUMNS)
    assert (tombstone["_tombstone"], empty["_tombstone"]) == (True, False)
    assert topic.deep().problems == ()


def test_a_value_that_is_not_exactly_one_fitting_object_is_kept_as_it_is(topic: TypedTopic) -> None:
    bad = [b"", b"{}{}", b'{"id": "1"}', b'{"id": 1.5}', b'{"id": 1, "id": 2}', b'{"amount": 1.005}', b"\xff"]
    append(topic.fake.logs[0], [*bad, b'{"id": 7}'])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 11, len(bad))
    rows = topic.rows("id", "_raw", "_error")[3:]
    assert [row["_raw"] for row in rows] == [*bad, None]
    assert all(row["_error"] for row in rows[:-1])
    assert rows[-1]["id"] == 7
    assert topic.deep().problems == ()


@pytest.mark.slow
def test_a_column_that_the_settings_add_is_filled_from_then_on_and_by_a_replay_before(topic: TypedTopic) -> None:
    topic.load()
    topic.format_ = {**topic.format_, "columns": {**COLUMNS, "id": "string", "other": "long"}}
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert [column.name for column in shown.columns if column.is_new] == ["id_2", "other"]
    append(topic.fake.logs[0], [b'{"id": "x", "other": 4}'])
    load = topic.load()
    assert load.error is None
    assert load.warnings == (
        "the field 'id' had the type int64 before: the new column id_2 holds it, with the type string",
    )
    assert [tuple(row.values()) for row in topic.rows("id", "id_2", "other")] == [
        (1, None, None),
        (None, None, None),
        (None, None, None),
        (None, "x", 4),
    ]
    topic.format_ = {**topic.format_, "columns": {**COLUMNS, "other": "long"}}
    assert topic.replay("earliest", "latest").error is None
    assert [row["other"] for row in topic.rows("other")] == [9, None, None, 4]
    assert replace(topic).deep().problems == ()


# fault A21
def test_a_time_without_a_zone_is_read_as_before_if_the_struct_around_it_changes(topic: TypedTopic) -> None:
    kinds = ("struct<at: timestamp_ntz, a: long>", "struct<at: timestamp_ntz, b: long>")
    value = b'{"one": {"at": "2024-01-01T00:00:00"}, "many": [{"at": "2024-01-01T00:00:00"}]}'
    topic.fake.logs = {0: log_of([])}
    for kind in kinds:
        topic.format_ = {**topic.format_, "columns": {"one": kind, "many": f"array<{kind}>"}}
        append(topic.fake.logs[0], [value])
        load = topic.load()
        assert (load.error, load.bad_records) == (None, 0)
    midnight = datetime(2024, 1, 1, tzinfo=UTC)
    rows = topic.rows("one", "many", "_error")
    assert [(row["one"]["at"], row["many"][0]["at"], row["_error"]) for row in rows] == [(midnight, midnight, None)] * 2
    assert topic.deep().problems == ()
