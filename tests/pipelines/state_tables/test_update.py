"""The newest row of each key: by offset, by event time, by the position in a database; and what a change costs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.build import Record, record_batch
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.identity.identity import table_state
from pipelines.increments.rows import SpanRows
from pipelines.maintenance.clean import clean
from pipelines.state_tables import changes as state_changes
from pipelines.state_tables import files as state_files
from pipelines.state_tables.files import StateFileWriter
from pipelines.state_tables.proof import StateProof, prove_state
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import StateUpdate, update_state
from resources.errors import OutputRefused, SourceChanged, TableMissing
from resources.settings.settings import Settings, SettingsError
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_state import StateSettings
from resources.stores.lake import Lake
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory

pytestmark = pytest.mark.slow  # large state tables


@pytest.fixture
def history(tmp_path: Path) -> KeyedHistory:
    return KeyedHistory(tmp_path / "lake", Random(1))


def update(history: KeyedHistory, **options: Any) -> StateUpdate:
    done = update_state(history.table, BY_KEY, **options)
    assert history.state() == history.expected()
    return done


def values(history: KeyedHistory) -> dict[str, str | None]:
    """The value of each key that is not deleted."""
    return {row["key"].decode(): row["value"].decode() for row in history.state() if not row["_deleted"]}


def test_the_newest_offset_of_a_key_is_its_state(history: KeyedHistory) -> None:
    history.load(("a", "1"), ("b", "1"), ("a", "2"), (None, "x"))
    done = update(history)
    assert values(history) == {"a": "2", "b": "1"}
    assert (done.since, done.version, done.rebuilt, done.changed, done.added) == (-1, 1, True, 2, 2)
    history.load(("b", "2"), ("c", "1"))
    done = update(history)
    assert values(history) == {"a": "2", "b": "2", "c": "1"}
    assert (done.since, done.version, done.rebuilt, done.recomputed) == (1, 2, False, False)
    assert (done.changed, done.added, done.removed) == (2, 1, 0)


def test_a_tombstone_deletes_and_stays_as_a_row(history: KeyedHistory) -> None:
    history.load(("a", "1"), ("b", "1"), ("a", None))
    update(history)
    assert values(history) == {"b": "1"}
    assert [row["_deleted"] for row in history.state()] == [True, False]
    history.load(("a", "2"))
    update(history)
    assert values(history) == {"a": "2", "b": "1"}


# fault N51
def test_an_old_row_that_comes_back_does_not_revive_a_deleted_key(history: KeyedHistory) -> None:
    """The tombstone is a row, so a backfill of older rows loses against it."""
    tombstone = {100: {"key": b"a", "value": None, "timestamp": 5}}
    older = {50: {"key": b"a", "value": b"1", "timestamp": 1}}
    history.commit(history.write_records(100, 110, 0, tombstone))
    update(history)
    history.commit(history.write_records(50, 100, 0, older))
    assert update(history).recomputed
    assert values(history) == {}


# fault N52
def test_a_key_that_moved_is_where_its_event_time_is_largest(history: KeyedHistory) -> None:
    history.load(("a", "1"), partition=0, time_ms=1000)
    update(history)
    history.load(("a", "2"), partition=1, time_ms=2000)
    update(history)
    assert values(history) == {"a": "2"}
    history.load(("a", "late"), partition=0, time_ms=1500)
    update(history)
    assert values(history) == {"a": "2"}
    history.load(("a", "3"), partition=1, time_ms=1)  # in its own partition the offset decides
    update(history)
    assert values(history) == {"a": "3"}


# fault N52
def test_rows_of_a_recreated_topic_are_newer(history: KeyedHistory) -> None:
    history.load(*[("a", f"{number}") for number in range(9)], time_ms=9000)
    update(history)
    [before] = history.state()
    history.happen("restart")
    update(history)
    assert [row["loaded_at"] for row in history.state() if row["key"] == b"a"] == [before["loaded_at"]]
    history.load(("a", "new"), time_ms=1)
    update(history)
    assert values(history)["a"] == "new"


# fault A06
@pytest.mark.parametrize("again_every_time", [False, True])
def test_the_ledger_orders_incarnations_and_loading_times_do_not(
    again_every_time: bool, history: KeyedHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader of the deleted topic had a clock that is 90 s ahead of the one of the loaders after it."""
    times = iter([90_000_000, 1, 91_000_000, 2])
    monkeypatch.setattr(history, "next_loading_time", lambda: next(times))
    keys = [(f"k{number}", "old") for number in range(12)]
    history.load(*keys, time_ms=9000)
    update(history, rebuild=again_every_time)
    history.happen("restart")
    update(history, rebuild=again_every_time)
    for value in ("new", "newest"):
        history.load(*[(key, value) for key, _ in keys], time_ms=1)
        update(history, rebuild=again_every_time)
        assert set(values(history).values()) == {value}
    assert proof_after(history).proven


# fault A06
def test_a_topic_without_rows_that_was_created_again_twice_has_newer_rows(
    history: KeyedHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The increment does not call them restarted, because the version before it had no rows (fault N43)."""
    times = iter([1, 90_000_000, 2])
    monkeypatch.setattr(history, "next_loading_time", lambda: next(times))
    history.load(("a", "1"))
    whole, snapshot = OffsetRange(BrokerPartition(0, 0), 0, 10), history.table.snapshot()
    commit(history.table, snapshot, CutChange(state=table_state(snapshot, history.topic), ranges=(whole,), run="cut"))
    update(history)
    for value, time_ms in (("older", 9000), ("newer", 1)):
        record = {"key": b"a", "value": value.encode(), "timestamp": time_ms}
        monkeypatch.setattr(history, "_record", lambda _, record=record: record)
        history.happen("restart")
    update(history)
    assert values(history) == {"a": "newer"}


def test_only_files_with_changed_keys_are_written_again(history: KeyedHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "_MAX_SMALL_FILES", 100)
    history.load(("a", "1"))
    update(history)
    history.load(("b", "1"))
    update(history)
    handle = state_output(history.table).open()
    assert handle is not None
    before = set(handle.file_uris())
    history.load(("b", "2"))
    update(history)
    handle = state_output(history.table).open()
    assert handle is not None
    assert len(before & set(handle.file_uris())) == 1


def test_many_small_files_are_merged(history: KeyedHistory) -> None:
    for number in range(12):
        history.load((f"k{number}", "1"))
        update(history)
    handle = state_output(history.table).open()
    assert handle is not None
    assert len(handle.file_uris()) <= state_files._MAX_SMALL_FILES + 1


# fault N50
def test_a_compaction_of_the_state_table_meanwhile_is_noticed(
    history: KeyedHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise files would be removed that are not there any more, and both rows of a key would be."""
    for number in range(3):
        history.load((f"k{number}", "1"))
        update(history)
    uri, close, compacted = state_output(history.table).uri, StateFileWriter.close, list[object]()

    def close_late(writer: StateFileWriter) -> None:
        close(writer)
        if not compacted:
            compacted.append(DeltaTable(uri).optimize.compact())

    monkeypatch.setattr(StateFileWriter, "close", close_late)
    history.load(("k0", "2"))
    update(history, sleep=lambda _: None)
    assert DeltaTable(uri).version() == 5


# fault E04
def test_the_progress_moves_over_a_compaction_and_a_second_update_changes_nothing(history: KeyedHistory) -> None:
    for value in ("1", "2", "3"):
        history.load(("a", value))
    update(history)
    before = state_output(history.table).open()
    assert before is not None
    history.happen("compaction")
    for _ in range(2):
        done = update(history)
        newest = history.table.snapshot().version
        assert (done.since, done.version, done.changed) == (newest, newest, 0)
        after = state_output(history.table).open()
        assert after is not None
        assert (after.version(), after.file_uris()) == (before.version() + 1, before.file_uris())


# fault E04
@pytest.mark.parametrize("updates", [False, True])
def test_a_state_table_is_proven_after_housekeeping_without_new_rows(updates: bool, history: KeyedHistory) -> None:
    for value in ("1", "2", "3"):
        history.load(("a", value))
    update(history)
    for _ in range(2):  # the first one merges files, and the second one deletes those that were merged
        clean(history.table, keep=timedelta(0), target_bytes=1_000_000, dry_run=False)
    if updates:
        update(history)
    assert proof_after(history).problems == ()


# fault E04
def test_a_state_table_without_the_files_of_its_version_has_to_be_updated_before_it_is_proven(
    history: KeyedHistory,
) -> None:
    for value in ("1", "2", "3"):
        history.load(("a", value))
    update(history)
    clean(history.table, keep=timedelta(0), target_bytes=1_000_000, dry_run=False)
    history.load(("a", "4"))
    clean(history.table, keep=timedelta(0), target_bytes=1, dry_run=False)
    [problem] = proof_after(history).problems
    assert "has lost files to housekeeping, so the state table of this version cannot be compared" in problem
    assert "run `penstock state clicks`" in problem
    update(history)
    assert proof_after(history).problems == ()


def test_rows_without_a_key_move_the_progress_only(history: KeyedHistory) -> None:
    history.load(("a", "1"))
    update(history)
    history.load((None, "x"))
    done = update(history)
    assert (done.version, done.changed) == (2, 0)
    assert update(history).since == 2


# fault N51
def test_keys_of_removed_rows_lose_their_row_or_get_an_older_one(history: KeyedHistory) -> None:
    history.load(("a", "1"))
    history.load(("a", "2"), ("b", "1"))
    update(history)
    history.random.choice = lambda options: options[0]  # type: ignore[assignment,method-assign]
    history.random.randint = lambda low, _: low  # type: ignore[assignment,method-assign]
    history.happen("rewind")
    done = update(history)
    assert (done.recomputed, done.changed, done.removed) == (True, 1, 1)
    assert values(history) == {"a": "1"}


# fault N46
def test_if_housekeeping_deleted_the_removed_rows_all_keys_are_computed_again(history: KeyedHistory) -> None:
    history.load(("a", "1"))
    history.load(("a", "2"), ("b", "1"))
    update(history)
    history.random.randint = lambda low, _: low  # type: ignore[assignment,method-assign]
    history.happen("rewind")
    clean(history.table, keep=timedelta(0), target_bytes=1, dry_run=False)
    with pytest.raises(ValueError, match="attempts must be positive"):
        update(history, attempts=0)
    done = update(history, attempts=1)
    assert (done.rebuilt, done.since, values(history)) == (True, 2, {"a": "1"})


def test_a_topic_without_a_load_has_no_state_yet(history: KeyedHistory) -> None:
    done = update_state(history.table, BY_KEY)
    assert (done.since, done.version, history.state()) == (-1, -1, [])
    with pytest.raises(TableMissing):
        update_state(DeltaLakeTable.of(history.lake, "main", "other"), BY_KEY)


# fault N44
def test_a_table_that_was_loaded_again_needs_a_rebuild(history: KeyedHistory, tmp_path: Path) -> None:
    history.load(("a", "1"))
    update(history)
    Path(history.uri).rename(tmp_path / "away")
    again = KeyedHistory(tmp_path / "lake", Random(2))
    again.load(("b", "1"))
    with pytest.raises(SourceChanged):
        update_state(again.table, BY_KEY)
    assert update_state(again.table, BY_KEY, rebuild=True).rebuilt
    assert again.state() == again.expected()


# fault N55
def test_the_memory_is_bounded(history: KeyedHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand keys of one kilobyte are compared with 128 MiB; the settings allow no less."""
    used: list[str] = []
    original = state_changes.KeyComparison.counts

    def counts(comparison: state_changes.KeyComparison) -> dict[str, int]:
        used.extend(row[0] for row in comparison.values("select current_setting('memory_limit')"))
        return original(comparison)

    monkeypatch.setattr(state_changes.KeyComparison, "counts", counts)
    history.load(*[(f"{number:0>1000}", "1") for number in range(100_000)])
    small = TopicOptions(state=StateSettings(key=("key",), memory_mib=128))
    assert update_state(history.table, small).changed == 100_000
    assert used == ["128.0 MiB"]


# ---- verify


def proof_after(history: KeyedHistory) -> StateProof:
    return prove_state(history.table, BY_KEY)


@pytest.fixture
def loaded(history: KeyedHistory) -> KeyedHistory:
    history.load(("a", "1"), ("b", "1"), ("c", "1"))
    update(history)
    assert proof_after(history).proven
    return history


# fault N54
def test_verify_finds_a_missing_key(loaded: KeyedHistory) -> None:
    DeltaTable(state_output(loaded.table).uri).delete("offset = 10")
    proof = proof_after(loaded)
    assert (proof.missing, proof.extra, proof.wrong) == (1, 0, 0)
    assert "the first is that of broker 0, partition 0, offset 10" in proof.problems[0]


@pytest.mark.parametrize("change", [{"value": "arrow_cast('2', 'Binary')"}, {"_deleted": "true"}, {"inner": "7"}])
def test_verify_finds_a_wrong_row(loaded: KeyedHistory, change: dict[str, str]) -> None:
    DeltaTable(state_output(loaded.table).uri).update(change, predicate="offset = 10")
    proof = proof_after(loaded)
    assert (proof.missing, proof.extra, proof.wrong) == (0, 0, 1)


# fault N54
@pytest.mark.parametrize(("key", "extra"), [(b"z", 1), (b"a", 1)])
def test_verify_finds_an_extra_key_and_a_second_row(loaded: KeyedHistory, key: bytes, extra: int) -> None:
    uri = state_output(loaded.table).uri
    row = DeltaTable(uri).to_pyarrow_table().slice(0, 1)
    row = row.set_column(row.schema.get_field_index("key"), row.schema.field("key"), pa.array([key], pa.binary()))
    write_deltalake(uri, row, mode="append")
    proof = proof_after(loaded)
    assert proof.extra == extra
    assert proof.problems


def test_verify_compares_with_the_version_that_the_state_has(loaded: KeyedHistory) -> None:
    loaded.load(("a", "2"), ("d", "1"))
    proof = proof_after(loaded)
    assert (proof.proven, proof.version, proof.keys) == (True, 1, 3)


def test_verify_says_that_there_is_no_state_table(history: KeyedHistory) -> None:
    history.load(("a", "1"))
    assert "there is no state table yet" in proof_after(history).problems[0]


# ---- typed tables

CHANGES = {"format": "debezium", "key_format": "json", "state": {"key": ["_kafka_key_id"]}}


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    with FakeCluster(logs={0: log_of([])}, offered=offered, topic_id=UUID(int=7)) as fake:
        yield fake


def event(op: str, number: int, name: str, lsn: int) -> bytes:
    row = {"id": number, "name": name}
    return json.dumps(
        {
            "before": row if op == "d" else None,
            "after": None if op == "d" else row,
            "source": {"connector": "postgresql", "lsn": lsn, "table": "t"},
            "op": op,
            "ts_ms": lsn,
        }
    ).encode()


def typed_state(topic: TypedTopic) -> dict[Any, Any]:
    """The name of each row of the state that is not deleted."""
    settings = topic.settings.options_of("clicks")
    update_state(topic.table, settings)
    proof = prove_state(topic.table, settings)
    assert proof.problems == ()
    rows = DeltaTable(state_output(topic.table).uri).to_pyarrow_table().to_pylist()
    return {row["id"]: row["name"] for row in rows if not row["_deleted"]}


def test_events_of_debezium_are_ordered_by_their_position(fake: FakeCluster, tmp_path: Path) -> None:
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "debezium", "state": {"key": ["id"]}})
    log = fake.logs[0]
    append(log, [event("c", 1, "a", 10), event("c", 2, "b", 20), event("u", 1, "a2", 30)])
    assert topic.load().error is None
    assert typed_state(topic) == {1: "a2", 2: "b"}
    append(log, [event("c", 1, "a", 10), event("d", 2, "b", 40)])  # the connector repeats an old event
    assert topic.load().error is None
    assert typed_state(topic) == {1: "a2"}
    append(log, [event("c", 2, "b3", 50)])
    assert topic.load().error is None
    assert typed_state(topic) == {1: "a2", 2: "b3"}


def test_a_new_column_gets_into_the_state_table(fake: FakeCluster, tmp_path: Path) -> None:
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "state": {"key": ["id"]}})
    append(fake.logs[0], [b'{"id": 1, "name": "a"}', b'{"id": 2, "name": "b", "place": {"x": 1}}'])
    assert topic.load().error is None
    assert typed_state(topic) == {1: "a", 2: "b"}
    append(fake.logs[0], [b'{"id": 1, "name": "c", "more": [1], "place": {"x": 2, "y": 3}}'])
    assert topic.load().error is None
    assert typed_state(topic) == {1: "c", 2: "b"}
    rows = DeltaTable(state_output(topic.table).uri).to_pyarrow_table().sort_by("id").to_pylist()
    assert [row["more"] for row in rows] == [[1], None]
    assert [row["place"] for row in rows] == [{"x": 2, "y": 3}, {"x": 1, "y": None}]


# fault A07
@pytest.mark.parametrize("key", ["id", "id_2"])
def test_a_key_is_a_field_and_not_one_of_its_columns(key: str, fake: FakeCluster, tmp_path: Path) -> None:
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "state": {"key": "id"}})
    append(fake.logs[0], [b'{"id": 1, "name": "a"}', b'{"id": 2, "name": "b"}'])
    assert topic.load().error is None
    assert typed_state(topic) == {1: "a", 2: "b"}
    append(fake.logs[0], [b'{"id": "x", "name": "c"}', b'{"id": "y", "name": "d"}', b'{"id": 2, "name": "e"}'])
    assert topic.load().error is None
    topic = replace(topic, format_={"format": "json", "state": {"key": key}})
    settings = topic.settings.options_of("clicks")
    update_state(topic.table, settings)
    rows = DeltaTable(state_output(topic.table).uri).to_pyarrow_table().to_pylist()
    assert {(row["id"], row["id_2"]): row["name"] for row in rows} == {
        (1, None): "a",
        (2, None): "e",
        (None, "x"): "c",
        (None, "y"): "d",
    }
    append(fake.logs[0], [b'{"id": "y", "name": "f"}', b'{"name": "no key"}'])
    assert topic.load().error is None
    done = update_state(topic.table, settings)
    assert (done.changed, done.added, done.rebuilt) == (1, 0, False)
    assert prove_state(topic.table, settings).problems == ()
    append(fake.logs[0], [b'{"id": {"part": 1}, "name": "g"}'])
    assert topic.load().error is None
    with pytest.raises(OutputRefused, match="has no single value in id_3"):
        update_state(topic.table, settings)


# fault A07
def test_a_key_of_the_record_with_two_types_counts_too(fake: FakeCluster, tmp_path: Path) -> None:
    topic = TypedTopic(
        fake=fake,
        folder=tmp_path / "lake",
        format_={"format": "json", "key_format": "json", "state": {"key": "_kafka_key_id"}},
    )
    for keys in ([b'{"id": 1}', b'{"id": 2}'], [b'{"id": "x"}']):
        records = [
            Record(offset=fake.logs[0].end + number, key=key, value=b'{"name": "a"}') for number, key in enumerate(keys)
        ]
        fake.logs[0].entries.append((records[-1].offset, record_batch(records)))
        fake.logs[0].end += len(keys)
        assert topic.load().error is None
        update_state(topic.table, topic.settings.options_of("clicks"))
    proof = prove_state(topic.table, topic.settings.options_of("clicks"))
    assert (proof.problems, proof.keys) == ((), 3)


# fault A07
@pytest.mark.parametrize("order", ["revision", "place.revision"])
def test_an_order_with_two_types_cannot_be_compared(order: str, fake: FakeCluster, tmp_path: Path) -> None:
    state = {"key": "id", "order": order}
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "state": state})
    append(fake.logs[0], [b'{"id": 1, "revision": 9, "place": {"revision": 9}}'])
    assert topic.load().error is None
    update_state(topic.table, topic.settings.options_of("clicks"))
    append(fake.logs[0], [b'{"id": 1, "revision": "10", "place": {"revision": "10"}}'])
    assert topic.load().error is None
    with pytest.raises(OutputRefused, match="with several types, in revision and revision_2, so it cannot order rows"):
        update_state(topic.table, topic.settings.options_of("clicks"))


# fault A07
def test_verify_reads_rows_that_an_update_has_not_read(history: KeyedHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    history.load(("a", "1"), ("b", "1"))
    files = SpanRows.files
    monkeypatch.setattr(SpanRows, "files", lambda rows: files(rows)[1:])
    update_state(history.table, BY_KEY)
    assert "2 keys have no row in the state table" in proof_after(history).problems[0]


# fault N53
def test_another_key_builds_the_table_again(fake: FakeCluster, tmp_path: Path) -> None:
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "state": {"key": ["id"]}})
    append(fake.logs[0], [b'{"id": 1, "name": "a"}', b'{"id": 1, "name": "b"}'])
    assert topic.load().error is None
    assert typed_state(topic) == {1: "b"}
    topic = replace(topic, format_={"format": "json", "state": {"key": ["id", "name"]}})
    proof = prove_state(topic.table, topic.settings.options_of("clicks"))
    assert "was made with other settings" in proof.problems[0]
    done = update_state(topic.table, topic.settings.options_of("clicks"))
    assert (done.rebuilt, done.changed) == (True, 2)
    topic = replace(topic, format_={"format": "json", "state": {"key": "key"}})
    assert update_state(topic.table, topic.settings.options_of("clicks")).changed == 2


# fault N53
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"key": ["nothing"]}, "has no column nothing"),
        ({"key": ["place"]}, "has no single value in place"),
        ({"key": ["id"], "order": ["place.z"]}, "has no member place.z"),
    ],
)
def test_a_column_that_the_table_lacks_is_refused(
    state: dict[str, Any], reason: str, fake: FakeCluster, tmp_path: Path
) -> None:
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "state": state})
    append(fake.logs[0], [b'{"id": 1, "place": {"x": 1}}'])
    assert topic.load().error is None
    with pytest.raises(OutputRefused, match=reason):
        update_state(topic.table, topic.settings.options_of("clicks"))


def test_a_column_with_a_name_of_the_state_table_is_refused(fake: FakeCluster, tmp_path: Path) -> None:
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "state": {"key": ["id"]}})
    append(fake.logs[0], [b'{"id": 1, "_deleted": true}'])
    assert topic.load().error is None
    with pytest.raises(OutputRefused, match="has a column _deleted of its own"):
        update_state(topic.table, topic.settings.options_of("clicks"))


# ---- settings


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ({"state": {}}, r"topics\.t\.state\.key is missing"),
        ({"state": {"key": []}}, r"topics\.t\.state\.key must not be empty"),
        ({"state": {"key": ["id"]}}, "a raw table has no field 'id'"),
        ({"state": {"key": "key", "order": ["lsn"]}}, "a raw table has no field 'lsn'"),
        ({"format": "json", "state": {"key": ["id", "id"]}}, "a field is named twice"),
        ({"format": "json", "state": {"key": "_kafka_key_id"}}, "needs a `key_format`"),
        (
            {"format": "json", "header_columns": ["b"], "state": {"key": "_kafka_header_a"}},
            "state.key: the column _kafka_header_a needs its header in `header_columns`",
        ),
        ({"format": "text", "state": {"key": "id"}}, "has no column 'id'"),
        ({"format": "json", "columns": {"id": "long"}, "state": {"key": "name"}}, "has no column 'name'"),
        ({"state": {"key": "key", "memory_mib": 1}}, "must be at least 128"),
        ({"state": {"key": "key", "unavailable_value": "?"}}, "a raw table has no columns for fields"),
        ({"format": "json", "state": {"key": "id", "unavailable_value": "hex:f"}}, "an even number of hexadecimal"),
    ],
)
def test_impossible_settings_are_refused(section: dict[str, Any], reason: str) -> None:
    data = {"lake": "lake", "clusters": {"main": {"bootstrap": "b:1"}}, "topics": {"t": section}}
    with pytest.raises(SettingsError, match=reason):
        Settings.of(data, folder=Path("/"))


@pytest.mark.parametrize(
    "section",
    [
        {"state": {"key": "key"}},
        {"format": "json", "columns": {"id": "long"}, "state": {"key": "id", "order": "_kafka_timestamp"}},
        {"format": "json", "key_format": "json", "state": {"key": ["_kafka_key_id", "id"]}},
        {"format": "json", "header_columns": ["ce_id"], "state": {"key": "_kafka_header_ce_id"}},
        {"format": "debezium", "state": {"key": "id", "order": ["__source.lsn"]}},
        {"format": "debezium", "state": {"key": "id", "unavailable_value": "hex:00fF"}},
        {"state": {"key": "key", "unavailable_value": ""}},
    ],
)
def test_possible_settings_are_not(section: dict[str, Any]) -> None:
    data = {"lake": "lake", "clusters": {"main": {"bootstrap": "b:1"}}, "topics": {"t": section}}
    assert Settings.of(data, folder=Path("/")).options_of("t").state is not None


def test_the_folder_of_state_tables_is_no_cluster_and_no_topic(history: KeyedHistory) -> None:
    history.load(("a", "1"))
    update(history)
    lake = Lake(root=history.lake.root)
    assert (lake.clusters(), lake.topics("main")) == (["main"], ["clicks"])
