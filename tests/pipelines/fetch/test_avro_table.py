"""Avro values become columns; their schemas come from a registry, and change while loads run."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.commit.commit import Change, CommitResult, commit
from pipelines.fetch import slice_fetcher
from pipelines.fetch.decoding import Decoding
from pipelines.layout.layout import TYPED
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.load import committed
from pipelines.rewrites.topic_schema import topic_schema
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster
from tests.fakes.registry_faults import not_found
from tests.fakes.typed import CountedFetches, TypedTopic, append, log_of, registered_topic

pytestmark = pytest.mark.slow  # each test fills a table and changes it

Fields = Sequence[dict[str, Any]]

V1: Fields = [{"name": "id", "type": "int", "doc": "the number"}, {"name": "price", "type": "long"}]
V2: Fields = [
    {"name": "id", "type": "int"},
    {"name": "price", "type": "string"},
    {"name": "note", "type": ["null", "string"]},
]
V4: Fields = [{"name": "id", "type": "int"}, {"name": "price", "type": "boolean"}]
LOCAL_TIME = {"type": "long", "logicalType": "local-timestamp-millis"}
V3: Fields = [
    {"name": "id", "type": "int"},
    {"name": "at", "type": LOCAL_TIME},
]
NESTED_TIMES: Fields = [
    {"name": "times", "type": {"type": "array", "items": LOCAL_TIME}},
    {"name": "by_name", "type": {"type": "map", "values": {"type": "array", "items": LOCAL_TIME}}},
]


def schema(fields: Fields) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def framed(schema_id: int, fields: Fields, **values: Any) -> bytes:
    """A value as Confluent's serializer writes it."""
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(schema(fields))), values)
    return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as running:
        yield running


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path, registry: EmbeddedSchemaRegistry) -> Iterator[TypedTopic]:
    first = registry.register("clicks-value", schema(V1))
    fake.logs = {0: log_of([framed(first, V1, id=1, price=5), None])}
    with registered_topic(fake, tmp_path, registry, format="avro", max_bad_share=1) as registered:
        yield registered


def test_the_fields_of_the_schemas_are_columns_and_a_comment_says_what_the_schema_documents(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.warnings) == (None, 2, ())
    assert topic.rows("id", "price", "_tombstone") == [
        {"id": 1, "price": 5, "_tombstone": False},
        {"id": None, "price": None, "_tombstone": True},
    ]
    fields = {field.name: field for field in DeltaTable(topic.table.uri).schema().fields}
    assert fields["id"].metadata == {"comment": "the number"}
    assert topic.deep().problems == ()


def test_schemas_that_alternate_fill_the_columns_of_their_types_without_another_file(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.load()
    second, third = registry.register("clicks-value", schema(V2)), registry.register("clicks-value", schema(V3))
    append(
        topic.fake.logs[0],
        [
            framed(second, V2, id=2, price="6 EUR", note="x"),
            framed(1, V1, id=3, price=7),
            framed(third, V3, id=4, at=1_700_000_000_000),
        ],
    )
    load = topic.load()
    assert (load.error, load.rows, load.files) == (None, 3, 1)
    assert load.warnings == (
        "the field 'price' had the type int64 before: the new column price_2 holds it, with the type string",
    )
    rows = topic.rows("id", "price", "price_2", "note", "at")
    assert [tuple(row.values())[:4] for row in rows] == [
        (1, 5, None, None),
        (None, None, None, None),
        (2, None, "6 EUR", "x"),
        (3, 7, None, None),
        (4, None, None, None),
    ]
    assert rows[-1]["at"].isoformat() == "2023-11-14T22:13:20+00:00"
    assert topic.deep().problems == ()
    assert (topic.replay().error, topic.replay().changed) == (None, False)


def test_times_without_a_zone_are_stored_as_utc_also_inside_of_lists_and_maps(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    at = datetime(2023, 11, 14, 22, 13, 20)  # noqa: DTZ001
    nested = registry.register("clicks-value", schema(NESTED_TIMES))
    topic.fake.logs = {0: log_of([framed(nested, NESTED_TIMES, times=[at], by_name={"a": [at]})])}
    load = topic.load()
    assert (load.error, load.rows) == (None, 1)
    in_utc = [at.replace(tzinfo=UTC)]
    assert topic.rows("times", "by_name") == [{"times": in_utc, "by_name": [("a", in_utc)]}]
    assert topic.deep().problems == ()


AT, IN_UTC = ({"name": "at", "type": {"type": "long", "logicalType": kind}} for kind in (
    "local-timestamp-millis", "timestamp-millis"))  # fmt: skip


def with_time(*fields: dict[str, Any]) -> Fields:
    """A schema with a record of these fields, as a field and in a list."""
    inner = {"type": "record", "name": "Inner", "fields": list(fields)}
    return [{"name": "in one", "type": inner}, {"name": "listed", "type": {"type": "array", "items": "Inner"}}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (with_time(AT), with_time(IN_UTC)),
        (with_time(IN_UTC), with_time(AT)),
        (with_time(AT, V4[0]), with_time(AT, V4[1])),
    ],
)
# fault A21
def test_a_time_without_a_zone_stays_in_its_column_if_what_is_around_it_changes(
    before: Fields, after: Fields, topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    ids = [registry.register("clicks-value", schema(fields)) for fields in (before, after)]
    inner = {"at": 1_700_000_000_000, "id": 1, "price": True}
    old, new = (
        framed(id_, fields, **{"in one": inner, "listed": [inner]})
        for id_, fields in zip(ids, (before, after), strict=True)
    )
    topic.fake.logs = {0: log_of([old])}
    topic.load()
    append(topic.fake.logs[0], [new, old])
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    at = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert [(row["in_one"]["at"], row["listed"][0]["at"]) for row in topic.rows("in_one", "listed")] == [(at, at)] * 3
    assert topic.deep().problems == ()


NAN = float("nan")
NUMBERS: Fields = [
    {"name": "id", "type": "long"},
    {"name": "plain", "type": "float"},
    {"name": "listed", "type": {"type": "array", "items": ["null", "double"]}},
    {"name": "named", "type": {"type": "map", "values": "float"}},
    {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "double"}]}},
    {"name": "either", "type": ["string", "double"]},
]


# fault E03
def test_a_number_that_is_none_equals_itself_in_a_deep_verify(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    numbers = registry.register("clicks-value", schema(NUMBERS))
    rows = [
        {"plain": NAN, "listed": [], "named": {}, "inner": {"x": 1.5}, "either": "a"},
        {"plain": 0.5, "listed": [None, NAN], "named": {"k": NAN}, "inner": {"x": NAN}, "either": NAN},
        {"plain": -0.0, "listed": [0.0], "named": {}, "inner": {"x": 0.0}, "either": float("inf")},
    ]
    values = [framed(numbers, NUMBERS, id=number, **row) for number, row in enumerate(rows)]
    topic.fake.logs = {0: log_of(values)}
    assert (topic.load().error, topic.deep().problems) == (None, ())
    assert not topic.replay().changed


def test_a_zero_with_another_sign_is_another_value(topic: TypedTopic, registry: EmbeddedSchemaRegistry) -> None:
    fields: Fields = [{"name": "id", "type": {"type": "array", "items": "double"}}]
    number = registry.register("clicks-value", schema(fields))
    topic.fake.logs = {0: log_of([framed(number, fields, id=[-0.0])])}
    topic.load()
    topic.fake.logs = {0: log_of([framed(number, fields, id=[0.0])])}
    [problem] = topic.deep().problems
    assert problem.endswith("1 row, at offsets 0")


def nested(levels: int) -> Any:
    """Records inside each other."""
    inner: Any = "int"
    for level in range(levels):
        inner = {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": inner}]}
    return inner


# fault E15
@pytest.mark.parametrize("inner", [nested(60), {"type": "array", "items": nested(60)}, ["string", nested(45)]])
def test_what_is_nested_deeper_than_readers_allow_is_json(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, inner: Any
) -> None:
    fields: Fields = [{"name": "x", "type": inner}]
    deep = registry.register("clicks-value", schema(fields))
    before = b"\0\0\0\0\2\2\x0e" if isinstance(inner, list) else b"\0\0\0\0\2\x0e"
    if isinstance(inner, dict) and inner["type"] == "array":
        before = b"\0\0\0\0\2\2\x0e\0"
    assert deep == 2
    topic.fake.logs = {0: log_of([before])}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 1, 0)
    assert (topic.deep().problems, topic.load().error) == ((), None)
    [row] = topic.rows("x")
    text = str(row)
    assert '{"a":' in text
    assert text.count("7") == 1


def event(schema_id: int, union: Sequence[Any], name: str, **values: Any) -> bytes:
    """A value of one of the records of a union, as Confluent's serializer writes it."""
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(list(union)), (name, values))
    return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()


def test_each_type_of_event_keeps_its_column_when_the_union_of_all_types_gets_one_more_in_its_middle(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    ordered, cancelled, paid = (
        {"type": "record", "name": name, "fields": [{"name": field, "type": "long"}]}
        for name, field in (("shop.Ordered", "id"), ("shop.Cancelled", "why"), ("shop.Paid", "id"))
    )
    unions = [ordered, paid], [ordered, cancelled, paid]
    ids = [registry.register("clicks-value", json.dumps(union)) for union in unions]
    topic.fake.logs = {0: log_of([event(ids[0], unions[0], "shop.Paid", id=1)])}
    assert topic.load().error is None
    append(
        topic.fake.logs[0],
        [event(ids[1], unions[1], "shop.Cancelled", why=2), event(ids[1], unions[1], "shop.Paid", id=3)],
    )
    load = topic.load()
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    assert topic.rows("member0", "member1", "member2") == [
        {"member0": None, "member1": {"id": 1}, "member2": None},
        {"member0": None, "member1": None, "member2": {"why": 2}},
        {"member0": None, "member1": {"id": 3}, "member2": None},
    ]
    assert topic.deep().problems == ()


def test_the_first_load_finds_ids_in_a_sample_and_fetches_large_slices_once(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([framed(1, V1, id=row, price=5) for row in range(1_001)])}
    fetches: list[int] = []
    load = topic.load(on_progress=lambda _topic: lambda done, _total: fetches.append(done))
    assert (load.error, load.rows, load.files, len(fetches)) == (None, 1_001, 1, 1)


# fault L18
def test_files_keep_their_columns_if_a_later_fetch_of_the_load_finds_an_older_schema(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample shows schema 2. The file of partition 0 is complete before partition 1 shows schema 1."""
    second = registry.register("clicks-value", schema(V2))
    new = [framed(second, V2, id=row, price="6 EUR", note="x") for row in range(3)]
    topic.fake.logs = {0: log_of(new[:2]), 1: log_of([new[2], framed(1, V1, id=3, price=7)])}
    monkeypatch.setattr(slice_fetcher, "MAX_VALUES", 1)
    load = topic.load()
    assert (load.error, load.rows, load.files) == (None, 4, 2)
    assert load.warnings == (
        "the field 'price' had the type string before: the new column price_2 holds it, with the type int64",
    )
    assert [tuple(row.values()) for row in topic.rows("id", "price", "price_2", "note")] == [
        (0, "6 EUR", None, "x"),
        (1, "6 EUR", None, "x"),
        (2, "6 EUR", None, "x"),
        (3, None, 7, None),
    ]
    assert topic.deep().problems == ()


# fault L18
def test_columns_of_files_and_earlier_warnings_stay_when_the_plan_grows(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    for fields in (V2, V4):
        registry.register("clicks-value", schema(fields))
    snapshot, offsets = TableSnapshot(version=0, entry=None, layout=TYPED), OffsetRange(BrokerPartition(None, 0), 0, 5)
    settings = topic.settings
    decoding = Decoding(settings.format_of("clicks"), snapshot, partial(open_schema_registry, settings))
    decoding.learn([2, 3])
    file = DataFile(path="a.parquet", size=1, rows=1)
    assert decoding.plan is not None
    columns, warnings = list(decoding.plan.stored), list(decoding.warnings)
    names = ["_kafka_schema_id", "id", "price", "note", "price_2"]
    assert ([column.name for column in columns], len(warnings)) == (names, 1)
    decoding.keep_columns([SliceFacts(range=CommittedRange(offsets=offsets), files=(file,))])
    decoding.learn([1])
    assert list(decoding.plan.stored)[:5] == columns
    assert (decoding.plan.stored.names[5:], list(decoding.warnings)[:1], len(decoding.warnings)) == (
        ["price_3"],
        warnings,
        2,
    )


def test_a_plan_without_files_follows_the_order_of_the_schemas(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    registry.register("clicks-value", schema(V2))
    snapshot, offsets = TableSnapshot(version=0, entry=None, layout=TYPED), OffsetRange(BrokerPartition(None, 0), 0, 5)
    settings = topic.settings
    decoding = Decoding(settings.format_of("clicks"), snapshot, partial(open_schema_registry, settings))
    decoding.learn([2])
    decoding.keep_columns([SliceFacts(range=CommittedRange(offsets=offsets))])
    decoding.learn([1])
    assert decoding.plan is not None
    assert [str(column.type) for column in decoding.plan.stored] == ["int64", "int64", "int64", "string", "string"]


def test_ids_that_the_table_has_seen_are_asked_for_before_the_fetch_and_each_is_asked_once(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.load()
    append(topic.fake.logs[0], [framed(1, V1, id=2, price=1)])
    before = len(registry.requests)
    fetches: list[int] = []
    load = topic.load(on_progress=lambda _topic: lambda done, _total: fetches.append(done))
    assert (load.error, load.rows, len(fetches)) == (None, 1, 1)
    assert registry.requests[before:] == ["GET /schemas/ids/1"]


def test_values_of_an_id_that_the_registry_does_not_know_are_kept_and_a_replay_decodes_them_later(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    late = framed(2, V2, id=2, price="6", note=None)
    append(topic.fake.logs[0], [late, framed(1, V1, id=3, price=1), b"", b"\0\0\0\0\1"])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 6, 3)
    errors = [row["_error"] for row in topic.rows("_error")]
    assert errors[:4] == [None, None, "the registry main has no schema with the id 2", None]
    assert topic.rows("_raw")[2] == {"_raw": late}
    assert all(errors[4:])
    assert registry.register("clicks-value", schema(V2)) == 2
    replayed = topic.replay()
    assert (replayed.error, replayed.changed) == (None, True)
    assert topic.rows("id", "price_2", "_error")[2] == {"id": 2, "price_2": "6", "_error": None}
    assert topic.deep().problems == ()


# fault E11
def test_a_load_waits_for_an_id_that_the_registry_gets_late(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.caps = {"registry_wait_s": 2}
    assert registry.register("clicks-value", schema(V2)) == 2
    registry.inject(not_found, path="/schemas/ids/2", times=1)
    append(topic.fake.logs[0], [framed(2, V2, id=2, price="6", note=None)])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 0)


# fault E11
def test_a_load_says_how_to_decode_records_whose_schema_the_registry_does_not_have(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], [framed(2, V2, id=2, price="6", note=None)])
    [warning] = topic.load().warnings
    assert "`penstock redecode clicks` decodes them" in warning
    assert warning.endswith("the registry main has no schema with the id 2")


def test_a_registry_that_does_not_answer_fails_the_load_and_nothing_is_called_undecodable(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.load()
    registry.close()
    append(topic.fake.logs[0], [framed(1, V1, id=2, price=1)])
    load = topic.load()
    assert (load.rows, load.retriable) == (0, True)
    assert load.failures[0].where["registry"] == "main"


def before_the_commit(monkeypatch: pytest.MonkeyPatch, rival: Callable[[], object]) -> None:
    """Call `rival` once between the fetch of the next load and its commit."""
    commit_change = commit

    def after_rival(table: TableStore, snapshot: TableSnapshot, change: Change) -> CommitResult:
        monkeypatch.setattr(committed, "commit", commit_change)
        rival()
        return commit_change(table, snapshot, change)

    monkeypatch.setattr(committed, "commit", after_rival)


def test_a_column_that_another_run_adds_meanwhile_is_seen_without_a_second_fetch(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.load()
    second = registry.register("clicks-value", schema(V2))
    append(topic.fake.logs[0], [framed(second, V2, id=2, price="q", note=None)])
    topic.fake.logs[1] = log_of([framed(second, V2, id=8, price="p", note=None)])
    rival = replace(topic, caps={"records_per_run": 1})
    before_the_commit(monkeypatch, rival.load)
    fetch = CountedFetches()
    load = topic.load(fetch=fetch)
    assert load.error is None
    assert fetch.sizes == [2, 2]  # the first fetch only meets an unknown schema; none follows the conflict
    assert [row["price_2"] for row in topic.rows("price_2")] == [None, None, "q", "p"]
    columns = [entry.columns for _, entry in topic.table.entries(topic.table.snapshot())]
    assert [[column["name"] for column in added] for added in columns][-2:] == [
        ["price_2", "note"],
        ["_kafka_schema_id", "id", "price"],
    ]
    assert not any(columns[:-2])
    assert topic.deep().problems == ()


def test_a_commit_whose_column_got_another_type_meanwhile_is_refused_and_the_next_load_goes_on(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.load()
    second, third = registry.register("clicks-value", schema(V2)), registry.register("clicks-value", schema(V4))
    append(topic.fake.logs[0], [framed(second, V2, id=2, price="q", note=None)])
    rival = replace(topic, caps={"records_per_run": 1})

    def act() -> None:
        topic.fake.logs[1] = log_of([framed(third, V4, id=8, price=True), framed(third, V4, id=9, price=True)])
        assert rival.load().rows == 1

    before_the_commit(monkeypatch, act)
    load = topic.load()
    assert load.error is not None
    assert "the table has a column price_2 of type bool, not string" in load.error
    assert load.retriable
    assert topic.load().error is None
    assert [row["price_3"] for row in topic.rows("price_3")] == [None, None, "q", None, None]
    assert topic.deep().problems == ()


def test_the_schema_command_knows_what_the_table_has(topic: TypedTopic) -> None:
    topic.load()
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert [(column.name, column.type, column.comment, column.is_new) for column in shown.columns] == [
        ("_kafka_schema_id", "long", "the id of the value's schema in the registry", False),
        ("id", "long", "the number", False),
        ("price", "long", "", False),
    ]
    snapshot = topic.table.existing()
    assert snapshot is not None
    assert isinstance(snapshot.entry, LedgerEntry)
    assert snapshot.entry.schemas.values == (1,)


def test_the_schema_shows_what_the_table_has_met_and_what_the_newest_version_would_change(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    settings = topic.settings
    show = partial(topic_schema, topic.table, settings.format_of("clicks"), partial(open_schema_registry, settings))
    assert [(schema.id, schema.is_met) for schema in show().schemas] == [(1, False)]
    assert [(column.name, column.is_new) for column in show().columns] == [
        ("_kafka_schema_id", True),
        ("id", True),
        ("price", True),
    ]
    topic.load()
    registry.register("clicks-value", schema(V2))
    shown = show()
    assert [(known.id, known.type, known.subjects, known.is_met) for known in shown.schemas] == [
        (1, "AVRO", ("clicks-value version 1",), True),
        (2, "AVRO", ("clicks-value version 2",), False),
    ]
    assert [(column.name, column.is_new) for column in shown.columns] == [
        ("_kafka_schema_id", False),
        ("id", False),
        ("price", False),
        ("price_2", True),
        ("note", True),
    ]
    assert shown.warnings[0].startswith("the field 'price' had the type int64 before: the new column price_2")


def test_the_columns_are_shown_with_a_warning_if_the_registry_does_not_answer(
    topic: TypedTopic, registry: EmbeddedSchemaRegistry
) -> None:
    topic.load()
    topic.registries = {"main": {"url": "http://127.0.0.1:1"}}
    settings = topic.settings
    shown = topic_schema(topic.table, settings.format_of("clicks"), partial(open_schema_registry, settings))
    assert ([column.name for column in shown.columns], shown.schemas) == (["_kafka_schema_id", "id", "price"], ())
    assert shown.warnings[0].startswith("the schemas are not shown, because the registry cannot be asked")


def test_a_tag_of_a_schema_makes_a_field_personal(topic: TypedTopic, registry: EmbeddedSchemaRegistry) -> None:
    # fault Y01
    tagged: Fields = [
        {"name": "id", "type": "int"},
        {"name": "mail", "type": "string", "confluent:tags": ["PII", 7, "a,b"]},
        {"name": "who", "type": {"type": "record", "name": "Who", "fields": [
            {"name": "name", "type": ["null", "string"], "confluent:tags": ["PII"]}]}},
        {"name": "note", "type": "string", "confluent:tags": ["PUBLIC"]},
    ]  # fmt: skip
    topic.load()
    id_ = registry.register("clicks-value", schema(tagged))
    row = {"id": 1, "mail": "zelda", "who": {"name": "zelda"}, "note": "hello"}
    append(topic.fake.logs[0], [framed(id_, tagged, **row)])
    topic.format_ = {**topic.format_, "personal_tags": ["PII"]}
    assert topic.load().error is None
    assert topic.rows("mail", "who", "note")[-1] == {"mail": "zelda", "who": {"name": "zelda"}, "note": "hello"}
    log = "".join(path.read_text() for path in Path(topic.table.uri, "_delta_log").glob("*.json"))
    assert "zelda" not in log
    assert "hello" in log
    assert topic.table.snapshot().layout.personal == {"mail", "who"}
    topic.format_ = {**topic.format_, "partition_by": "mail"}
    assert "which a tag of its schema makes personal" not in str(topic.load().error)  # its folders cannot change
