"""Erased rows are gone for ever, and no others are: whatever runs at the same time, and wherever the run ends."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.delta import compaction
from pipelines.delta.delta_log_segment import commit_file
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment, increments
from pipelines.layout.columns import NO_COLUMNS
from pipelines.layout.conditions import one_of, parse_condition
from pipelines.maintenance import erase as erasing
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erase_result import TopicErase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.redecode import RedecodeChange
from pipelines.state_tables.update import update_state
from pipelines.verify.verify import verify
from resources.errors import CommitRefused, ErasedSince
from resources.failpoints import KILL_AT
from tests.failpoints import ERASE_FAILPOINTS
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

A, ONE = BrokerPartition(0, 0), BrokerPartition(None, 0)
SECRET = "zelda@private.example"
FORMAT = {"format": "json", "columns": {"id": "long", "email": "string"}}


def person(number: int, email: str | None = None) -> bytes:
    return json.dumps({"id": number, "email": email or f"p{number}@shop.example"}).encode()


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[TypedTopic]:
    """Three loads of ten records each. Record 3, record 14 and record 15 are of one person."""
    emails = {3: SECRET, 14: SECRET, 15: SECRET}
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    values = [person(number, emails.get(number)) for number in range(30)]
    with FakeCluster(logs={0: log_of(values[:10])}, offered=offered, topic_id=UUID(int=7)) as fake:
        loaded = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        loaded.load()
        for start in (10, 20):
            append(fake.logs[0], values[start : start + 10])
            loaded.load()
        yield loaded


def erased(topic: TypedTopic, where: str = f"email = '{SECRET}'", **options: Any) -> TopicErase:
    return erase(EraseRequest(table=topic.table, condition=parse_condition(where), run="erasure", **options))


def ids(topic: TypedTopic) -> list[int]:
    return sorted(DeltaTable(topic.table.uri).to_pyarrow_table().column("id").to_pylist())


def paths(topic: TypedTopic) -> set[str]:
    return set(topic.table.snapshot().opened.files().column("path").to_pylist())


WITHOUT = [number for number in range(30) if number not in {3, 14, 15}]


def test_rows_are_erased_and_the_table_is_proven(topic: TypedTopic) -> None:
    before, rows = paths(topic), DeltaTable(topic.table.uri).to_pyarrow_table().sort_by("id")
    result = erased(topic)
    assert (result.failure, result.version, result.rows, result.files, result.searched) == (None, 4, 3, 2, 3)
    assert [(part.partition, part.rows) for part in result.partitions] == [(0, 3)]
    kept = DeltaTable(topic.table.uri).to_pyarrow_table().sort_by("id")
    assert kept.equals(rows.take(WITHOUT))
    proof = verify(topic.table)
    assert (proof.problems, proof.partitions[0].gaps, proof.partitions[0].rows) == ((), {"erased": 3}, 27)
    assert len(before & paths(topic)) == 1
    assert len(paths(topic)) == 3
    assert erased(topic).version == 4
    assert topic.load().rows == 0


def test_the_new_entry_has_no_value(topic: TypedTopic) -> None:
    erased(topic)
    text = (Path(topic.table.uri) / commit_file(4)).read_text()
    assert json.loads(json.loads(text.splitlines()[0])["commitInfo"]["penstock"])["kind"] == "erase"
    assert SECRET not in text
    assert "zelda" not in text


def test_a_dry_run_changes_nothing(topic: TypedTopic) -> None:
    files = sorted(Path(topic.table.uri).rglob("*"))
    result = erased(topic, dry_run=True)
    assert (result.rows, result.files, result.version, result.dry_run) == (3, 2, 3, True)
    assert sorted(Path(topic.table.uri).rglob("*")) == files


def test_a_file_whose_rows_are_all_erased_has_no_successor(topic: TypedTopic) -> None:
    assert erased(topic, "id < 10").rows == 10
    assert (len(paths(topic)), verify(topic.table).problems) == (2, ())


def test_rows_are_erased_again_and_again(topic: TypedTopic) -> None:
    for number in (3, 4, 29, 14):
        assert erased(topic, f"id = {number}").rows == 1
    proof = verify(topic.table)
    assert (proof.problems, proof.partitions[0].gaps) == ((), {"erased": 4})


def test_files_without_hits_between_those_with_hits_stay(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many rows wait for a hit here that the file is searched after all."""
    monkeypatch.setattr(erasing, "_MAX_WAITING_BYTES", 0)
    before = paths(topic)
    result = erased(topic, "id in (1, 25)")
    assert (result.rows, result.files, result.searched) == (2, 2, 3)
    assert len(before & paths(topic)) == 1
    assert ids(topic) == [number for number in range(30) if number not in {1, 25}]


def test_values_of_a_file_are_erased(topic: TypedTopic) -> None:
    condition = one_of("id", ["3", "29", "77"])
    result = erase(EraseRequest(table=topic.table, condition=condition, run="erasure"))
    assert (result.failure, result.rows) == (None, 2)


def test_neither_a_replay_nor_a_redecode_brings_rows_back(topic: TypedTopic) -> None:  # fault P16
    erased(topic)
    assert topic.deep().problems == ()
    assert topic.replay().changed is False
    DeltaTable(topic.table.uri).update(updates={"email": "'spoilt'"}, predicate="id = 5")
    result = topic.replay()
    assert (result.failure, result.changed, ids(topic)) == (None, True, WITHOUT)
    assert topic.deep().problems == ()


def test_a_set_of_a_deleted_topic_takes_no_row_of_its_successor_out(  # fault P25
    topic: TypedTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another topic of the same name has other records at the offsets that were erased."""
    monkeypatch.setattr("pipelines.table.exact_sets._MAX_INLINE_BYTES", 0)
    output = DeltaOutput(uri=str(tmp_path / "out"))
    follow = partial(apply_increment, topic.table, copy, consumer="c", into=output, on_replaced="ignore")
    follow()
    erased(topic, name="T-1")
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    topic.fake.topic_id, topic.fake.logs = UUID(int=8), {0: log_of([person(100 + number) for number in range(30)])}
    topic.choices = {"on_recreated": "restart"}
    assert topic.load().rows == 30
    both = [*WITHOUT, *range(100, 130)]
    follow()
    assert (ids(topic), ids_of(output)) == (both, both)
    DeltaTable(topic.table.uri).update(updates={"email": "'spoilt'"}, predicate="id = 114")
    replay = topic.replay()
    assert (replay.error, replay.changed, ids(topic)) == (None, True, both)
    follow()
    assert ids_of(output) == both
    # Files that the replay has replaced have rows with these offsets too, and they are not those of the request.
    assert certify(CertificateRequest(table=topic.table, request="T-1", erase_days=7)).complete
    proof = topic.deep()
    assert (proof.problems, proof.partitions[0].gaps) == ((), {})
    assert erased(topic, "id = 103", name="T-1").rows == 1
    assert topic.replay().changed is False
    follow()
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    both.remove(103)
    assert (ids(topic), ids_of(output), topic.deep().problems) == (both, both, ())
    certificate = certify(CertificateRequest(table=topic.table, request="T-1", erase_days=7))
    assert ([own.rows for own in certificate.erasures], certificate.complete) == ([3, 1], True), certificate.tasks


def ids_of(output: DeltaOutput) -> list[int]:
    return sorted(DeltaTable(output.uri).to_pyarrow_table().column("id").to_pylist())


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_rewind_below_an_erasure_is_refused(cleaned: bool, topic: TypedTopic) -> None:  # fault P16
    erased(topic)
    append(topic.fake.logs[0], [person(30)])
    topic.load()
    if cleaned:
        clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
    with pytest.raises(ErasedSince, match="version 4 erased rows, which a rewind to version 3 would bring back"):
        plan_rewind(topic.table, 3, run="rewind")
    rewind(plan_rewind(topic.table, 4, run="rewind"))
    assert (ids(topic), verify(topic.table).problems) == (WITHOUT, ())
    assert topic.load().rows == 1


def test_a_rewind_that_was_planned_before_an_erasure_is_refused(topic: TypedTopic) -> None:  # fault P16
    plan = plan_rewind(topic.table, 2, run="rewind")
    erased(topic)
    with pytest.raises(Exception, match=r"committed meanwhile|would bring back"):
        rewind(plan)
    assert ids(topic) == WITHOUT


def at_failpoint(monkeypatch: pytest.MonkeyPatch, name: str, happen: Callable[[], object]) -> None:
    """Let something happen when the failpoint is passed for the first time."""
    waiting = [happen]

    def passed(failpoint: str) -> None:
        if failpoint == name and waiting:
            waiting.pop()()

    for module in ("pipelines.maintenance.erase", "pipelines.commit.commit"):
        monkeypatch.setattr(f"{module}.failpoint", passed)


@pytest.mark.parametrize("step", ["erasure staged", "before erase entry"])
def test_rows_that_a_load_adds_meanwhile_are_erased_too(  # fault P18
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> None:
        append(topic.fake.logs[0], [person(30), person(31, SECRET)])
        assert topic.load().rows == 2

    at_failpoint(monkeypatch, step, load)
    result = erased(topic)
    assert (result.failure, result.rows, ids(topic)) == (None, 4, [*WITHOUT, 30])
    assert verify(topic.table).problems == ()


@pytest.mark.parametrize("step", ["erasure staged", "before erase entry"])
def test_files_that_are_merged_meanwhile_are_searched_again(  # fault P18
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_failpoint(monkeypatch, step, DeltaTable(topic.table.uri).optimize.compact)
    result = erased(topic)
    assert (result.failure, result.rows, ids(topic)) == (None, 3, WITHOUT)
    assert verify(topic.table).problems == ()


def test_a_compaction_that_began_before_an_erasure_does_not_bring_rows_back(  # fault P18
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Callable[[], object]] = [lambda: erased(topic)]

    def passed(failpoint: str) -> None:
        if failpoint == "compaction announced" and waiting:
            waiting.pop()()

    monkeypatch.setattr(compaction, "failpoint", passed)
    assert clean(topic.table, keep=timedelta(days=1), target_bytes=10**9, dry_run=False).busy
    assert not waiting
    assert (ids(topic), verify(topic.table).problems) == (WITHOUT, ())


def test_a_redecode_that_was_staged_before_an_erasure_is_refused(topic: TypedTopic) -> None:  # fault P18
    before = topic.table.snapshot()
    assert before.entry is not None
    redecode = RedecodeChange(
        state=before.entry.state, run="again", columns=NO_COLUMNS, table=topic.table, staged_from=before
    )
    erased(topic)
    with pytest.raises(CommitRefused, match="version 4 of the table changed rows meanwhile; run again"):
        redecode.rebased(topic.table.snapshot())


@pytest.mark.parametrize("step", ERASE_FAILPOINTS)
def test_an_erasure_that_ends_at_any_point_is_done_by_the_next_one(
    step: str, topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.table.exact_sets._MAX_INLINE_BYTES", 0)
    monkeypatch.setenv(KILL_AT, f"raise:{step}:1")
    monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
    with pytest.raises(MemoryError):
        erased(topic)
    monkeypatch.delenv(KILL_AT)
    assert verify(topic.table).problems == ()
    assert ids(topic) == (WITHOUT if step == "after erase entry" else list(range(30)))
    assert erased(topic).failure is None
    assert (ids(topic), verify(topic.table).problems) == (WITHOUT, ())
    clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
    assert verify(topic.table).problems == ()


def test_a_busy_table_ends_with_an_error_after_some_attempts(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.commit.erasure._MAX_TRIES", 2)
    numbers = iter(range(30, 40))

    def load(step: str) -> None:
        if step == "erasure staged":
            append(topic.fake.logs[0], [person(next(numbers))])
            topic.load()

    monkeypatch.setattr(erasing, "failpoint", load)
    failure = erased(topic).failure
    assert failure is not None
    assert "other runs change the table all the time; run again" in failure.reason


# Undecoded bytes, keys and headers.


def test_bytes_keys_and_headers_are_searched_too(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], [f'{{"broken": "{SECRET}"'.encode(), b"broken"])
    topic.format_ = {**FORMAT, "max_bad_share": 1}
    topic.load()
    assert erased(topic, dry_run=True).rows == 3
    result = erased(topic, also_raw=True)
    assert (result.failure, result.rows, result.found_in_bytes) == (None, 4, 1)
    assert verify(topic.table).problems == ()
    assert SECRET.encode() not in b"".join(
        value or b"" for value in DeltaTable(topic.table.uri).to_pyarrow_table().column("_raw").to_pylist()
    )


NESTED: dict[str, str] = {
    "id": "long",
    "email": "string",
    "mails": "array<string>",
    "people": "array<struct<mail: string, also: array<string>>>",
    "by": "map<string, string>",
    "ids": "array<long>",
    "inside": "struct<mails: array<string>>",
    "text": "string",
}
HIDDEN: dict[str, dict[str, Any]] = {
    "an item of a list": {"mails": ["adam@a.org", SECRET]},
    "a field of an item": {"people": [{"mail": "adam@a.org"}, {"mail": SECRET}]},
    "a list in a list": {"people": [{"also": []}, {"also": [SECRET]}]},
    "a key of a map": {"by": {"a": "b", SECRET: "c"}},
    "a value of a map": {"by": {"a": SECRET}},
    "a list in an object": {"inside": {"mails": [SECRET]}},
    "a text of JSON": {"text": json.dumps({"by": {SECRET: 1}})},
}
INNOCENT: dict[str, Any] = {
    "mails": [f"x{SECRET}", f"{SECRET}.org", "zelda"],
    "by": {f"x{SECRET}": f"{SECRET}.org"},
    "ids": [9_876_543],
    "text": f"not {SECRET}, who",
}


@pytest.mark.parametrize("place", HIDDEN)
def test_lists_maps_and_texts_of_json_are_searched_for_whole_values(
    place: str, fake: FakeCluster, tmp_path: Path
) -> None:
    values: list[dict[str, Any]] = [
        {"id": 0, **INNOCENT},
        {"id": 1, **HIDDEN[place]},
        {"id": 2, "mails": None},
        {"id": 3, **INNOCENT},
    ]
    fake.logs = {0: log_of([json.dumps(value).encode() for value in values])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "columns": NESTED})
        assert topic.load().error is None
        assert erased(topic).rows == 0
        result = erased(topic, also_raw=True)
        assert (result.failure, result.rows, result.found_in_bytes) == (None, 1, 1)
        assert ids(topic) == [0, 2, 3]
        assert verify(topic.table).problems == ()


def test_numbers_are_items_of_lists_too(fake: FakeCluster, tmp_path: Path) -> None:
    values: list[dict[str, Any]] = [
        {"id": 7_654_321},
        {"id": 1, "ids": [1, 7_654_321]},
        {"id": 2, "ids": [17_654_321, 76_543_210]},
    ]
    fake.logs = {0: log_of([json.dumps(value).encode() for value in values])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "columns": NESTED})
        assert topic.load().error is None
        assert erased(topic, "id = 7654321", also_raw=True).rows == 2
        assert ids(topic) == [2]


@pytest.mark.parametrize("where", ["id = 7", "email is null", "email in ('abc')"])
def test_short_texts_are_not_searched_in_bytes(where: str, topic: TypedTopic) -> None:
    failure = erased(topic, where, also_raw=True).failure
    assert failure is not None
    assert failure.kind == "EraseRefused"


def test_messages_of_a_raw_table_of_0_7_are_erased_one_by_one(small: SmallTable) -> None:
    columns = {
        "offset": pa.array([0, 10, 10, 20], pa.int64()),
        "inner": pa.array([0, 0, 1, 0], pa.int32()),
        "value": pa.array([b"a", b"b", b"secret", b"d"]),
    }
    small.commit(small.write_columns(OffsetRange(A, 0, 30), columns))
    request = EraseRequest(table=small.table, condition=parse_condition("value = 'secret'"), run="erasure")
    result = erase(request)
    assert (result.failure, result.rows, small.rows()) == (None, 1, 3)
    assert verify(small.table).problems == ()


def test_rows_that_no_range_has_are_refused(small: SmallTable, monkeypatch: pytest.MonkeyPatch) -> None:
    small.commit(small.write(0, 50))
    monkeypatch.setattr("pipelines.commit.erasure.incarnations", lambda *_: ())
    request = EraseRequest(table=small.table, condition=parse_condition("value = 'x'"), run="erasure")
    failure = erase(request).failure
    assert failure is not None
    assert "some of the rows belong to no committed range" in failure.reason
    assert small.rows() == 5


@pytest.mark.parametrize(
    ("where", "kind"), [("town = 'Delft'", "ConditionInvalid"), (f"id = '{SECRET}'", "ConditionInvalid")]
)
def test_a_condition_that_does_not_fit_the_table_is_refused_without_its_value(
    where: str, kind: str, topic: TypedTopic
) -> None:
    failure = erased(topic, where).failure
    assert failure is not None
    assert (failure.kind, SECRET in str(failure)) == (kind, False)


# Consumers.


def copy(increment: Increment) -> pa.RecordBatchReader:
    return increment.arrow(["id"])


@pytest.mark.parametrize("on_replaced", ["apply", "ignore", "fail"])
@pytest.mark.parametrize("replayed", [False, True])
def test_outputs_lose_erased_rows_whatever_they_chose(
    on_replaced: str, replayed: bool, topic: TypedTopic, tmp_path: Path
) -> None:
    output = DeltaOutput(uri=str(tmp_path / "out"))
    apply_increment(topic.table, copy, consumer="c", into=output, on_replaced=on_replaced)
    erased(topic)
    if replayed and on_replaced != "fail":
        DeltaTable(topic.table.uri).update(updates={"email": "'spoilt'"}, predicate="id = 5")
        assert topic.replay().changed
    append(topic.fake.logs[0], [person(30)])
    topic.load()
    facts = apply_increment(topic.table, copy, consumer="c", into=output, on_replaced=on_replaced)
    assert facts is not None
    assert facts["erased"] == 3
    rows = sorted(DeltaTable(output.uri).to_pyarrow_table().column("id").to_pylist())
    assert rows == [*WITHOUT, 30]
    assert apply_increment(topic.table, copy, consumer="c", into=output, on_replaced=on_replaced) is None


def test_results_of_an_earlier_load_of_erased_rows_go_too(topic: TypedTopic, tmp_path: Path) -> None:  # fault P21
    """The output ignores that a replay replaced the rows, so it has them with their first loading time."""
    output = DeltaOutput(uri=str(tmp_path / "out"))
    apply_increment(topic.table, copy, consumer="c", into=output, on_replaced="ignore")
    DeltaTable(topic.table.uri).update(updates={"email": "'spoilt'"}, predicate="id = 2")
    assert topic.replay().changed
    append(topic.fake.logs[0], [person(30)])
    topic.load()
    apply_increment(topic.table, copy, consumer="c", into=output, on_replaced="ignore")
    erased(topic)
    apply_increment(topic.table, copy, consumer="c", into=output, on_replaced="ignore")
    assert sorted(DeltaTable(output.uri).to_pyarrow_table().column("id").to_pylist()) == [*WITHOUT, 30]


def test_a_consumer_that_comes_after_the_files_are_deleted_loses_the_rows_too(
    topic: TypedTopic, tmp_path: Path
) -> None:
    output = DeltaOutput(uri=str(tmp_path / "out"))
    apply_increment(topic.table, copy, consumer="c", into=output)
    erased(topic)
    clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
    apply_increment(topic.table, copy, consumer="c", into=output)
    assert sorted(DeltaTable(output.uri).to_pyarrow_table().column("id").to_pylist()) == WITHOUT


def test_an_output_that_cannot_name_its_rows_is_refused(topic: TypedTopic, tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "out"))

    def counts(_: Increment) -> pa.Table:
        return pa.table({"n": [1]})

    apply_increment(topic.table, counts, consumer="c", into=output, on_replaced="ignore")
    erased(topic)
    with (
        increments(topic.table, consumer="c", into=output, on_replaced="ignore") as increment,
        pytest.raises(Exception, match="the rows have no column _source"),
    ):
        increment.commit(counts(increment))


def test_very_many_erased_rows_are_named_by_one_range(
    topic: TypedTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.commit.erasure.MAX_WRITTEN", 1)
    output = DeltaOutput(uri=str(tmp_path / "out"))
    apply_increment(topic.table, copy, consumer="c", into=output, on_replaced="ignore")
    erased(topic, "id in (1, 8, 14)")
    apply_increment(topic.table, copy, consumer="c", into=output, on_replaced="ignore")
    expected = [number for number in range(30) if number not in {1, 8, 14}]
    assert sorted(DeltaTable(output.uri).to_pyarrow_table().column("id").to_pylist()) == expected


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_state_table_follows(cleaned: bool, tmp_path: Path) -> None:
    history = KeyedHistory(tmp_path / "lake", Random(1))
    history.load(("a", "1"), ("b", "1"), ("a", "2"), ("c", "9"))
    update_state(history.table, BY_KEY)
    condition = parse_condition("key = 'c' or value = '2'")
    assert erase(EraseRequest(table=history.table, condition=condition, run="erasure")).rows == 2
    if cleaned:
        clean(history.table, keep=timedelta(), target_bytes=1, dry_run=False)
    update_state(history.table, BY_KEY)
    assert history.state() == history.expected()
    assert {row["key"]: row["value"] for row in history.state()} == {b"a": b"1", b"b": b"1"}
