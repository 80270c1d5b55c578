"""A raw table becomes a typed one from its own rows, in one entry of its log; offsets stay as they are."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.redecode_result import TopicRedecode
from pipelines.verify.verify import verify
from resources.failpoints import KILL_AT
from resources.kafka import open_schema_registry
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.fetch.test_avro_table import V1, V2, framed, schema

pytestmark = pytest.mark.slow  # each test fills a table and changes it

TEXT = {"format": "text", "max_bad_share": 1}
BAD = b"\xff"


def convert(topic: TypedTopic, **options: Any) -> TopicRedecode:
    """Make the table typed, with the present settings."""
    return convert_table(request_of(topic, **options))


def request_of(topic: TypedTopic, **options: Any) -> RedecodeRequest:
    settings = topic.settings
    registry = partial(open_schema_registry, settings)
    format_ = settings.format_of("clicks")
    return RedecodeRequest(table=topic.table, format=format_, open_registry=registry, run="convert", **options)


def entry(topic: TypedTopic, version: int) -> dict[str, list[Any]]:
    """The actions of a version of the Delta log, by kind."""
    actions: dict[str, list[Any]] = {}
    for line in (Path(topic.table.uri) / "_delta_log" / f"{version:020d}.json").read_text().splitlines():
        [(kind, action)] = json.loads(line).items()
        actions.setdefault(kind, []).append(action)
    return actions


def files_of(topic: TypedTopic) -> set[Path]:
    return {path for path in Path(topic.table.uri).rglob("*") if path.is_file()}


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[TypedTopic]:
    """A raw table with three files: of two partitions, and of a second load; offset 3 of partition 0 is not text."""
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    logs = {0: log_of([b"a", None]), 1: log_of([b"p"])}
    with FakeCluster(logs=logs, offered=offered, topic_id=UUID(int=7)) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={})
        assert topic.load().rows == 3
        append(logs[0], [b"c", BAD])
        assert topic.load().rows == 2
        topic.format_ = TEXT
        yield topic


def check_typed(topic: TypedTopic, more: int = 0) -> None:
    """Check that the table is typed and proven and has the rows of the fixture, and `more` of partition 0."""
    assert verify(topic.table).problems == ()
    rows = [tuple(row.values()) for row in topic.rows("_kafka_partition", "value", "_raw", "_tombstone")]
    assert rows == [
        (0, "a", None, False),
        (0, None, None, True),
        (0, "c", None, False),
        (0, None, BAD, False),
        *[(0, "more", None, False)] * more,
        (1, "p", None, False),
    ]


def test_a_raw_table_becomes_typed_in_one_entry_with_the_same_offsets_and_loads_continue(topic: TypedTopic) -> None:
    raw = DeltaTable(topic.table.uri).to_pyarrow_table().sort_by([("partition", "ascending"), ("offset", "ascending")])
    before = topic.table.snapshot()
    assert before.entry is not None
    result = convert(topic)
    assert (result.failure, result.decoded, result.bad_records, result.version) == (None, 4, 1, 3)
    assert (dict(result.bad), result.columns) == ({"the value is not valid UTF-8": 1}, ("value",))
    check_typed(topic)
    for column in ("key", "timestamp", "loaded_at", "topic"):
        assert [row[f"_kafka_{column}"] for row in topic.rows(f"_kafka_{column}")] == raw.column(column).to_pylist()
    actions = entry(topic, 3)
    assert {kind: len(of_kind) for kind, of_kind in actions.items()} == {
        "commitInfo": 1, "add": 3, "remove": 3, "metaData": 1, "txn": 1
    }  # fmt: skip
    ledger = json.loads(actions["commitInfo"][0]["penstock"])
    assert (ledger["kind"], ledger["ranges"], ledger["sequence"]) == ("convert", [], before.entry.sequence + 1)
    after = topic.table.snapshot().entry
    assert after is not None
    assert after.covered == before.entry.covered
    append(topic.fake.logs[0], [b"more"])
    assert (topic.load().error, topic.load().rows) == (None, 0)
    check_typed(topic, more=1)
    assert topic.deep().problems == ()


def test_what_does_not_decode_is_decoded_again_later(topic: TypedTopic) -> None:
    convert(topic)
    topic.format_ = {"format": "json", "columns": {"id": "long"}, "max_bad_share": 1}
    again = redecode(request_of(topic))
    assert (again.failure, again.decoded, again.bad_records) == (None, 0, 1)
    check_typed(topic)


def test_a_field_with_the_name_of_the_partition_column_gets_another_name(topic: TypedTopic) -> None:
    topic.format_ = {"format": "json", "columns": {"date": "string"}, "max_bad_share": 1}
    assert convert(topic).columns == ("date_2",)
    append(topic.fake.logs[0], [b'{"date": "monday"}'])
    assert topic.load().rows == 1
    assert topic.rows("date_2")[4] == {"date_2": "monday"}
    assert verify(topic.table).proven


def test_a_rewind_brings_the_raw_table_back_and_it_can_be_converted_again(topic: TypedTopic) -> None:
    convert(topic)
    rewind(plan_rewind(topic.table, 2, run="rewind"))
    assert verify(topic.table).proven
    assert "value" in DeltaTable(topic.table.uri).to_pyarrow_table().column_names
    load = topic.load()
    assert load.error is not None
    assert "run `penstock redecode TOPIC --all` to make the table typed" in load.error
    assert convert(topic).version == 5
    check_typed(topic)


def test_above_the_limits_nothing_is_changed(topic: TypedTopic) -> None:
    topic.format_ = {"format": "text", "max_bad_share": 0.1}
    refused = convert(topic)
    assert refused.failure is not None
    assert (refused.failure.kind, refused.failure.where["offset"]) == ("BadRecords", 3)
    assert topic.table.snapshot().version == 2
    topic.format_ = TEXT
    assert convert(topic).failure is None


def test_a_dry_run_counts_the_same_and_writes_nothing(topic: TypedTopic) -> None:
    before = files_of(topic)
    planned = convert(topic, dry_run=True)
    assert (planned.decoded, planned.bad_records, planned.version, planned.columns) == (4, 1, 2, ("value",))
    assert files_of(topic) == before


def test_only_a_raw_table_with_a_format_is_converted(topic: TypedTopic) -> None:
    topic.format_ = {}
    assert (raw := convert(topic).failure) is not None
    assert 'the format of the topic is "raw"' in raw.reason
    topic.format_ = TEXT
    convert(topic)
    append(topic.fake.logs[0], [b"more"])
    topic.load()
    assert (typed := convert(topic).failure) is not None
    assert typed.kind == "RedecodeRefused"
    assert "is typed already, and keeps the bytes only of records that did not decode" in typed.reason


def test_a_column_of_somebody_else_is_not_lost(topic: TypedTopic) -> None:
    DeltaTable(topic.table.uri).alter.add_columns([Field("team", PrimitiveType("integer"))])
    assert (refused := convert(topic).failure) is not None
    assert "has the column team, which Penstock did not add" in refused.reason


def test_a_field_gets_its_column_in_whichever_file_its_schema_comes_first(tmp_path: Path) -> None:
    with EmbeddedSchemaRegistry() as registry, FakeCluster(logs={0: log_of([])}) as fake:
        first, second = registry.register("clicks-value", schema(V1)), registry.register("clicks-value", schema(V2))
        log = log_of([framed(second, V2, id=1, price="6 EUR", note="x"), None])
        fake.logs = {0: log}
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={}, registries={"main": {"url": registry.url}})
        assert topic.load().rows == 2
        append(log, [framed(first, V1, id=2, price=5)])
        assert topic.load().rows == 1
        topic.format_ = {"format": "avro"}
        result = convert(topic)
        assert (result.failure, result.decoded) == (None, 3)
        assert sorted(result.columns) == ["_kafka_schema_id", "id", "note", "price", "price_2"]
        [new, _, old] = topic.rows("id", "price", "price_2", "note")
        assert {new["price"], new["price_2"]} == {"6 EUR", None}
        assert {old["price"], old["price_2"]} == {5, None}
        append(log, [framed(second, V2, id=3, price="7 EUR", note=None)])
        assert topic.load().error is None
        assert topic.deep().problems == ()


def at_failpoint(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Run `act` once, when the conversion passes a failpoint."""
    waiting = [act]

    def passed(failpoint: str) -> None:
        if failpoint == name and waiting:
            waiting.pop()()

    for module in ("commit.commit", "delta.writes", "rewrites.convert", "rewrites.converted_files"):
        monkeypatch.setattr(f"pipelines.{module}.failpoint", passed)


def load_raw(topic: TypedTopic) -> None:
    """Load a record, as a process does that has read the settings of before."""
    topic.format_ = {}
    append(topic.fake.logs[0], [b"more"])
    assert topic.load().error is None
    topic.format_ = TEXT


STEPS = ("conversion planned", "file converted", "table converted", "before convert entry", "columns changed")


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_load_at_the_same_time_is_converted_too(
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_failpoint(monkeypatch, step, lambda: load_raw(topic))
    result = convert(topic)
    assert (result.failure, result.decoded, result.bad_records) == (None, 5, 1)
    check_typed(topic, more=1)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_compaction_by_others_at_the_same_time_duplicates_no_row(
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compact() -> None:
        DeltaTable(topic.table.uri).optimize.compact()

    at_failpoint(monkeypatch, step, compact)
    assert convert(topic).failure is None
    check_typed(topic)


def test_a_load_that_has_fetched_raw_rows_is_refused_by_the_typed_table(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converted() -> None:
        topic.format_ = TEXT
        assert convert(topic).failure is None

    topic.format_ = {}
    append(topic.fake.logs[0], [b"more"])
    at_failpoint(monkeypatch, "before load entry", converted)
    load = topic.load()
    assert load.error is not None
    assert load.error.startswith("CommitRefused: the table became typed meanwhile; run again")
    check_typed(topic)
    assert topic.load().rows == 1
    check_typed(topic, more=1)


def test_a_load_is_refused_if_the_table_became_typed_between_its_steps(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converted() -> None:
        topic.format_ = TEXT
        assert convert(topic).failure is None

    topic.format_ = {}
    topic.caps = {"slice_records": 1}
    append(topic.fake.logs[0], [b"more", b"more"])
    monkeypatch.setattr("pipelines.load.planned._STEP_SLICES", 1)
    at_failpoint(monkeypatch, "after load entry", converted)
    load = topic.load()
    assert load.error is not None
    assert load.error.startswith("CommitRefused: the table became typed meanwhile; run again")
    assert load.rows == 1
    assert topic.load().rows == 1
    check_typed(topic, more=2)


@pytest.mark.slow
@pytest.mark.parametrize("step", [*STEPS, "log entry written", "after convert entry"])
def test_a_run_that_ends_at_any_point_leaves_a_raw_or_a_typed_table_and_the_next_one_converts_no_file_twice(
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KILL_AT, f"raise:{step}")
    monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
    with pytest.raises(MemoryError):
        convert(topic)
    monkeypatch.delenv(KILL_AT)
    assert verify(topic.table).proven
    landed = step in {"log entry written", "after convert entry"}
    assert topic.table.snapshot().version == (3 if landed else 2)
    before = files_of(topic)
    result = convert(topic)
    assert (result.failure, result.version) == (None, 3)
    done = {"conversion planned": 0, "file converted": 1}.get(step, 3)
    assert len([path for path in files_of(topic) - before if path.suffix == ".parquet"]) == 3 - done
    check_typed(topic)


def test_a_note_or_a_file_that_is_lost_or_damaged_is_made_again(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KILL_AT, "raise:table converted")
    monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
    with pytest.raises(MemoryError):
        convert(topic)
    monkeypatch.delenv(KILL_AT)
    first, second, _ = sorted((Path(topic.table.uri) / "_replays").rglob("*.json"))
    first.write_text("{")
    Path(topic.table.uri, json.loads(second.read_text())["facts"]["files"][0]["path"]).unlink()
    assert convert(topic).failure is None
    check_typed(topic)
    assert not list((Path(topic.table.uri) / "_replays").rglob("*.json"))


def test_json_that_nothing_describes_gets_columns_from_its_values_in_whichever_file_they_come(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_of([b'{"id": 1}', None])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={})
        assert topic.load().rows == 2
        append(fake.logs[0], [b'{"id": "x", "name": "y"}'])
        assert topic.load().rows == 1
        topic.format_ = {"format": "json"}
        assert (convert(topic).failure, verify(topic.table).problems) == (None, ())
        rows = topic.rows("id", "name")
        assert {str(row["id"]) for row in rows} & {"1", "x"}
        assert [row["name"] for row in rows] == [None, None, "y"]
        assert redecode(request_of(topic)).bad_records == 0


def test_a_run_that_continues_knows_the_message_types_of_the_files_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'syntax = "proto3"; message Order { int64 id = 1; } message Refund { string reason = 1; }'
    with EmbeddedSchemaRegistry() as registry, FakeCluster(logs={0: log_of([])}) as fake:
        id_ = registry.register("clicks-value", text, schema_type="PROTOBUF")
        frame = b"\0" + id_.to_bytes(4, "big")
        registries = {"main": {"url": registry.url}}
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={}, registries=registries)
        for value in (frame + b"\0\x08\1", frame + b"\2\2\x0a\1x"):
            append(fake.logs[0], [value])
            assert topic.load().rows == 1
        topic.format_ = {"format": "protobuf", "message": "*"}
        monkeypatch.setenv(KILL_AT, "raise:table converted")
        monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
        with pytest.raises(MemoryError):
            convert(topic)
        monkeypatch.delenv(KILL_AT)
        assert convert(topic).failure is None
        assert topic.rows("id", "reason") == [{"id": 1, "reason": None}, {"id": None, "reason": "x"}]
        assert topic.entry.schemas.messages == (f"{id_} Order", f"{id_} Refund")
