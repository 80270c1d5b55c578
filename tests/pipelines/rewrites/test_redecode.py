"""Bad records are decoded again from the bytes that the table keeps; nothing else changes."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.layout.columns import NO_COLUMNS
from pipelines.ledger.committed_range import LoadedRange
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.clean import clean
from pipelines.maintenance.history import history
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites import bad_rows
from pipelines.rewrites.redecode import RedecodeChange, RedecodeRequest, redecode
from pipelines.rewrites.redecode_result import TopicRedecode
from pipelines.verify.verify import verify
from resources.errors import CommitRefused
from resources.failpoints import KILL_AT
from resources.kafka import open_schema_registry
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.fetch.test_avro_table import V1, V2, framed, schema
from tests.pipelines.loaded import call_compaction
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

STRICT = {"format": "json", "columns": {"id": "long"}, "max_bad_share": 1}
IDS = [None, "1", None, None, "4", None]
"""The ids of the six records of a partition that are texts."""


def value(number: int, **fields: Any) -> bytes:
    return json.dumps({"id": number, **fields}).encode()


def again(topic: TypedTopic, **options: Any) -> TopicRedecode:
    """Decode the bad records of the table again, with the present settings."""
    settings = topic.settings
    request = RedecodeRequest(
        table=topic.table,
        format=settings.format_of("clicks"),
        open_registry=partial(open_schema_registry, settings),
        run="redecode",
        **options,
    )
    return redecode(request)


def staged(topic: TypedTopic) -> list[Path]:
    return [path for path in (Path(topic.table.uri) / "_replays").rglob("*") if path.is_file()]


def entry(topic: TypedTopic, version: int) -> dict[str, list[Any]]:
    """The actions of a version of the Delta log, by kind."""
    actions: dict[str, list[Any]] = {}
    for line in (Path(topic.table.uri) / "_delta_log" / f"{version:020d}.json").read_text().splitlines():
        [(kind, action)] = json.loads(line).items()
        actions.setdefault(kind, []).append(action)
    return actions


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[TypedTopic]:
    """Records 0 to 5 of two partitions, loaded by two runs: the ids of 1 and 4 are texts, and 3 is not JSON."""
    logs = {number: log_of([value(0), b'{"id": "1"}', value(2)]) for number in (0, 1)}
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    with FakeCluster(logs=logs, offered=offered, topic_id=UUID(int=7)) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=STRICT)
        assert topic.load().bad_records == 2
        for log in logs.values():
            append(log, [b"{", b'{"id": "4"}', value(5, name="x")])
        assert topic.load().bad_records == 4
        topic.format_ = {**STRICT, "columns": {"id": "string", "name": "string"}}
        yield topic


def test_records_are_decoded_again_and_what_remains_is_counted_by_reason(topic: TypedTopic) -> None:
    before = topic.rows("_kafka_partition", "_kafka_offset", "_kafka_key", "_kafka_loaded_at", "id")
    result = again(topic)
    assert (result.failure, result.decoded, result.bad_records) == (None, 4, 2)
    assert list(result.bad.values()) == [2]
    assert result.columns == ("id_2", "name")
    assert result.version == 3
    rows = topic.rows("_kafka_partition", "_kafka_offset", "_kafka_key", "_kafka_loaded_at", "id")
    assert rows == before
    assert [row["id_2"] for row in topic.rows("id_2")] == IDS * 2
    assert [row["_raw"] for row in topic.rows("_raw")] == [None, None, None, b"{", None, None] * 2
    assert staged(topic) == []
    proof = topic.deep()
    assert proof.partitions[0].rows == 6
    assert verify(topic.table).proven


def test_the_new_columns_the_rows_and_the_number_of_the_commit_are_in_one_entry(topic: TypedTopic) -> None:
    cursors = topic.table.snapshot().entry
    assert cursors is not None
    again(topic)
    actions = entry(topic, 3)
    assert actions.keys() == {"commitInfo", "add", "remove", "metaData", "txn"}
    ledger = json.loads(actions["commitInfo"][0]["penstock"])
    assert (ledger["kind"], ledger["ranges"], ledger["sequence"]) == ("redecode", [], cursors.sequence + 1)
    assert [column["name"] for column in ledger["columns"]] == ["id_2", "name"]
    after = topic.table.snapshot().entry
    assert after is not None
    assert (after.kind, after.covered) == (CommitKind.REDECODE, cursors.covered)
    assert [commit.what for commit in history(topic.table)] == ["redecode", "load", "load", "CREATE TABLE"]


def test_a_second_run_commits_nothing_and_a_rewind_takes_the_first_one_back(topic: TypedTopic) -> None:
    first, second = again(topic), again(topic)
    assert (second.failure, second.decoded, second.bad_records, second.columns) == (None, 0, 2, ())
    assert second.version == first.version
    rewind(plan_rewind(topic.table, 2, run="rewind"))
    assert sum(row["_error"] is not None for row in topic.rows("_error")) == 6
    assert verify(topic.table).proven
    assert again(topic).decoded == 4


def test_a_dry_run_counts_the_same_and_writes_nothing(topic: TypedTopic) -> None:
    files = sorted(Path(topic.table.uri).rglob("*"))
    planned = again(topic, dry_run=True)
    assert (planned.decoded, planned.bad_records, planned.columns, planned.version) == (4, 2, ("id_2", "name"), 2)
    assert sorted(Path(topic.table.uri).rglob("*")) == files


@pytest.mark.slow
@pytest.mark.parametrize(("ranges", "rows"), [(1, 1), (1, 2), (2, 3), (64, 1000)])
def test_steps_and_batches_of_any_size_give_the_same_rows(
    ranges: int, rows: int, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_rows, "_MAX_RANGES", ranges)
    monkeypatch.setattr(bad_rows, "_BATCH_ROWS", rows)
    steps: list[tuple[int, int]] = []
    result = again(topic, on_progress=lambda done, total: steps.append((done, total)))
    assert (result.decoded, result.bad_records) == (4, 2)
    assert steps == [(done, len(steps)) for done in range(1, len(steps) + 1)]
    assert len(steps) == max(1, 4 // ranges)
    assert [row["id_2"] for row in topic.rows("id_2")] == IDS * 2
    assert verify(topic.table).proven


def test_merged_files_of_several_loads_are_decoded_again(topic: TypedTopic) -> None:
    assert clean(topic.table, keep=timedelta(days=1), target_bytes=2**20, dry_run=False).larger == 1
    assert again(topic).decoded == 4
    assert [row["id_2"] for row in topic.rows("id_2")] == IDS * 2
    assert verify(topic.table).proven


def test_values_that_others_have_put_into_columns_of_their_own_stay(topic: TypedTopic) -> None:
    table = DeltaTable(topic.table.uri)
    table.alter.add_columns([Field("team", PrimitiveType("integer"))])
    table.update(updates={"team": "cast(_kafka_offset as int)"})
    call_compaction(topic.table.uri)
    assert again(topic).decoded == 4
    assert [row["team"] for row in topic.rows("team")] == list(range(6)) * 2


def test_loads_continue_after_the_last_offset_with_the_new_columns(topic: TypedTopic) -> None:
    again(topic)
    append(topic.fake.logs[0], [b'{"id": "6"}'])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 1, 0)
    assert topic.rows("id_2")[6] == {"id_2": "6"}


def at_failpoint(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Run `act` once, when the redecode passes a failpoint."""
    waiting = [act]

    def passed(failpoint: str) -> None:
        if failpoint == name and waiting:
            waiting.pop()()

    for module in ("pipelines.rewrites.redecode", "pipelines.commit.commit"):
        monkeypatch.setattr(f"{module}.failpoint", passed)


@pytest.mark.parametrize("step", ["redecode planned", "redecode staged", "before redecode entry"])
def test_a_load_and_a_compaction_at_the_same_time_lose_and_repeat_nothing(
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> None:
        append(topic.fake.logs[0], [b'{"id": "6"}', b"["])
        assert topic.load().rows == 2
        DeltaTable(topic.table.uri).optimize.compact()

    at_failpoint(monkeypatch, step, load)
    result = again(topic)
    assert (result.failure, result.decoded) == (None, 4)
    assert [row["id_2"] for row in topic.rows("id_2")] == [*IDS, "6", None, *IDS]
    assert verify(topic.table).proven


def lose_a_row(topic: TypedTopic) -> None:
    DeltaTable(topic.table.uri).delete("_kafka_partition = 1 AND _kafka_offset = 4")


def take_back(topic: TypedTopic) -> None:
    rewind(plan_rewind(topic.table, 1, run="rewind"))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["redecode staged", "before redecode entry"])
@pytest.mark.parametrize("other", [lose_a_row, take_back, again])
def test_rows_that_somebody_else_changes_meanwhile_are_not_written_again(
    other: Callable[[TypedTopic], object], step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_failpoint(monkeypatch, step, lambda: other(topic))
    result = again(topic)
    assert result.failure is not None
    assert result.failure.kind == "CommitRefused"
    assert "version 3 of the table changed rows meanwhile; run again" in result.failure.reason
    version = topic.table.snapshot().version
    assert version == 3
    if other is lose_a_row:  # fault A04
        assert (refused := again(topic).failure) is not None
        assert refused.kind == "TableNotProven"
        rewind(plan_rewind(topic.table, 2, run="rewind"))
    assert again(topic).failure is None
    assert not any("twice" in problem or "outside" in problem for problem in verify(topic.table).problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", ["redecode planned", "redecode staged", "before redecode entry", "after redecode entry"]
)
def test_a_run_that_ends_at_any_point_is_continued_by_the_next_one(
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_rows, "_MAX_RANGES", 1)
    monkeypatch.setenv(KILL_AT, f"raise:{step}:{1 if step == 'redecode planned' else 2}")
    monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
    with pytest.raises(MemoryError):
        again(topic)
    monkeypatch.delenv(KILL_AT)
    assert verify(topic.table).proven
    done = {"redecode planned": 0, "after redecode entry": 2}.get(step, 1)
    assert topic.table.snapshot().version == 2 + done
    assert again(topic).bad_records == 2
    assert [row["id_2"] for row in topic.rows("id_2")] == IDS * 2
    assert verify(topic.table).proven


def test_a_raw_table_has_no_records_that_did_not_decode(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_of([b"a"])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={})
        assert (missing := again(topic).failure) is not None
        assert missing.kind == "TableMissing"
        topic.load()
        assert (raw := again(topic).failure) is not None
        assert raw.kind == "RedecodeRefused"


def test_values_whose_schema_the_registry_gets_later_are_decoded_with_its_columns(tmp_path: Path) -> None:
    with EmbeddedSchemaRegistry() as registry, FakeCluster(logs={0: log_of([])}) as fake:
        first = registry.register("clicks-value", schema(V1))
        late = framed(2, V2, id=2, price="6 EUR", note="x")
        fake.logs = {0: log_of([framed(first, V1, id=1, price=5), late, b"x", None])}
        topic = TypedTopic(
            fake=fake,
            folder=tmp_path / "lake",
            format_={"format": "avro", "max_bad_share": 1},
            registries={"main": {"url": registry.url}},
        )
        assert topic.load().bad_records == 2
        assert registry.register("clicks-value", schema(V2)) == 2
        result = again(topic)
        assert (result.failure, result.decoded, result.bad_records) == (None, 1, 1)
        assert result.columns == ("price_2", "note")
        assert result.warnings[0].startswith("the field 'price' had the type int64 before")
        rows = topic.rows("id", "price", "price_2", "note", "_tombstone")
        assert list(rows[1].values()) == [2, None, "6 EUR", "x", False]
        assert topic.deep().proven
        entry = topic.table.snapshot().entry
        assert entry is not None
        assert entry.schemas.values == (1, 2)


def test_rows_that_are_gone_are_noticed_before_the_rows_that_were_decoded_again_are_committed(
    small: SmallTable,
) -> None:  # fault P04
    facts = small.write(0, 50)
    small.commit(facts)
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    state = snapshot.entry.state
    change = RedecodeChange(
        state=state, facts=(facts,), run="run", columns=NO_COLUMNS, table=small.table, staged_from=snapshot
    )
    entry, _ = change.complete(snapshot.entry, small.table, snapshot)
    assert entry.written == (LoadedRange.of(facts.range),)
    small.handle().delete('"offset" = 10')
    call_compaction(small.uri)
    with pytest.raises(CommitRefused, match=r"\[0, 50\) has 4 rows now, and 5 were decoded again; run again"):
        change.complete(snapshot.entry, small.table, small.table.snapshot())
