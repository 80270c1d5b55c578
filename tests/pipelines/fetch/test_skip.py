"""`skip` of `[topics.NAME.load]`: records without rows are gaps with an exact set, and everything else moves on."""

import json
import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record, record_batch
from pipelines.fetch.decoding import no_registry
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.incarnations import incarnations
from pipelines.maintenance.clean import clean
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rules.skip_condition import digest_of
from pipelines.tail.decoded import ValueDecoding
from pipelines.verify.verify import verify
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.taken_out import rows_of, take_out

BEAT, ORDER, ODD = b'{"type": "beat", "n": 1}', b'{"type": "order", "n": 2}', b'{"n": 3}'
BAD = b'{"type": "beat", '


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([ORDER, BEAT, ODD, None, BAD, BEAT])}
    (tmp_path / "people").write_bytes(b"0123456789abcdef")
    with fake:
        yield TypedTopic(
            fake=fake,
            folder=tmp_path / "lake",
            format_={"format": "json", "max_bad_share": 1, "load": {"skip": "type = 'beat'"}},
            secrets={"people": {"id": "k1", "key": f"file:{tmp_path}/people"}},
        )


def with_load(topic: TypedTopic, **rules: Any) -> None:
    topic.format_ = {**topic.format_, "load": rules}


def offsets_of(topic: TypedTopic) -> list[int]:
    return [row["_kafka_offset"] for row in topic.rows("_kafka_offset")]


def filtered_of(topic: TypedTopic) -> list[int]:
    """The offsets of the sets of all ranges that count."""
    numbers = np.arange(100_000)
    sets = (topic.table.exact_sets(part) for part in ranges_of(topic))
    masks = [own[ExactCause.FILTERED].contains(numbers, numbers * 0) for own in sets if ExactCause.FILTERED in own]
    return [int(offset) for mask in masks for offset in numbers[mask]]


def ranges_of(topic: TypedTopic) -> Sequence[CommittedRange]:
    [newest] = incarnations(topic.table.entries(topic.snapshot))
    return newest.ranges


def test_records_for_which_the_condition_is_true_are_gaps(topic: TypedTopic) -> None:
    """Not those for which it is unknown, tombstones, and records that do not decode (faults P19, P20)."""
    load = topic.load()
    assert (load.error, load.rows, load.skipped, load.bad_records) == (None, 4, 2, 1)
    assert offsets_of(topic) == [0, 2, 3, 4]
    [committed] = ranges_of(topic)
    assert (committed.gaps, committed.offsets.stop) == ({"filtered": 2}, 6)
    assert filtered_of(topic) == [1, 5]
    assert topic.entry.state.cursor(BrokerPartition(None, 0)) == 6
    assert topic.entry.state.last_messages[BrokerPartition(None, 0)].offset == 5
    proof = topic.deep()
    assert (proof.problems, proof.partitions[0].gaps) == ((), {"filtered": 2})
    assert topic.load().rows == 0


@pytest.mark.parametrize(
    ("skip", "left"),
    [
        ("type is null", [0, 1, 3, 4, 5]),  # not the tombstone and the record that does not decode
        ("not (type = 'beat')", [1, 2, 3, 4, 5]),
        ("type <> 'beat' or n = 3", [1, 3, 4, 5]),
        ("header('kind') = 'x'", [0, 1, 2, 3, 4, 5]),
        ("_tombstone = true", [0, 1, 2, 4, 5]),
        ("_kafka_key = '3' or _kafka_key = '0'", [1, 2, 4, 5]),
        ("n in (1, 3) and type is not null", [0, 2, 3, 4]),
        ("other = 'x' or n = 2", [1, 2, 3, 4, 5]),  # a column that no value has had is null
        ("other.field is null and n = 2", [1, 2, 3, 4, 5]),
        ("_kafka_timestamp < '2023-11-14 22:13:20.001Z'", [1, 2, 3, 4, 5]),
    ],
)
def test_a_condition_is_three_valued(topic: TypedTopic, skip: str, left: list[int]) -> None:  # fault P19
    with_load(topic, skip=skip)
    assert topic.load().error is None
    assert offsets_of(topic) == left
    assert filtered_of(topic) == sorted({*range(6)} - {*left})
    assert topic.deep().problems == ()


def test_a_field_that_no_value_has_had_is_named_in_a_warning(topic: TypedTopic) -> None:
    with_load(topic, skip="kind_of = 'beat'")
    load = topic.load()
    assert (load.rows, load.skipped) == (6, 0)
    assert [text for text in load.warnings if "the field kind_of of `skip`" in text]


@pytest.mark.parametrize(
    ("skip", "reason"),
    [
        ("type = 1", "at character 8: the column has the type string"),
        ("type.inner = 'x'", "at character 1: the table has no column type.inner"),
        ("type = ", "at character 8: a value is expected"),
        ("_kafka_loaded_at is null", "at character 1: no record has _kafka_loaded_at before it is a row"),
        ("_kafka_key_id = 1", "at character 1: no record has _kafka_key_id"),
        ("_error is null", "no record has _error"),
    ],
)
def test_a_condition_that_does_not_fit_stops_the_load_before_anything_is_committed(
    topic: TypedTopic, skip: str, reason: str
) -> None:
    with_load(topic, skip=skip)
    error = topic.load().error or ""
    assert reason in error
    assert "`skip` of [topics.NAME.load]" in error
    assert "'x'" not in error


def test_a_slice_without_rows_writes_no_file_and_its_cursor_moves(topic: TypedTopic) -> None:
    """Not to move on would be the end of the partition (fault P20)."""
    topic.fake.logs = {0: log_of([BEAT] * 5)}
    load = topic.load()
    assert (load.error, load.rows, load.skipped, load.files) == (None, 0, 5, 0)
    assert topic.entry.state.cursor(BrokerPartition(None, 0)) == 5
    assert list(topic.folder.rglob("*.parquet")) == []
    assert topic.deep().problems == ()
    append(topic.fake.logs[0], [ORDER])
    assert (topic.load().rows, offsets_of(topic)) == (1, [5])


def test_the_plain_value_is_compared_before_it_is_dropped_masked_or_hashed(topic: TypedTopic) -> None:
    columns = {"type": "string", "n": "long"}
    for rules in ({"drop": ["type"]}, {"mask": {"type": "***"}}, {"hash": {"type": "people"}}):
        topic.folder = topic.folder.with_name(next(iter(rules)))
        topic.format_ = {**topic.format_, "columns": columns, "load": {"skip": "type = 'beat'", **rules}}
        load = topic.load()
        assert (load.error, load.skipped, offsets_of(topic)) == (None, 2, [0, 2, 3, 4])
        assert b"order" not in b"".join(path.read_bytes() for path in topic.folder.rglob("*.json"))
        assert topic.deep().problems == ()


def test_a_field_with_a_rule_and_without_a_declared_type_is_refused(topic: TypedTopic) -> None:
    with_load(topic, skip="type = 'beat'", drop=["type"])
    assert "declare its type with `columns`" in (topic.load().error or "")


def test_a_raw_table_compares_keys_and_headers_only(topic: TypedTopic) -> None:
    headers: tuple[tuple[bytes, bytes | None], ...] = ((b"kind", b"beat"),)
    records = [
        Record(offset=number, timestamp=1_700_000_000_000, key=b"%d" % number, value=None, headers=own)
        for number, own in enumerate([(), headers, ()])
    ]
    topic.fake.logs = {0: Log(entries=[(2, record_batch(records))], end=3)}
    topic.format_ = {"load": {"skip": "header('kind') = 'beat' or key = '2'", "key": "drop"}}
    load = topic.load()
    assert (load.error, load.rows, load.skipped) == (None, 1, 2)
    assert filtered_of(topic) == [1, 2]
    assert topic.deep().problems == ()
    topic.format_ = {"load": {"skip": "value = 'x'"}}
    assert "a raw table has no columns for fields; compare `key` or header('NAME'), not value" in (
        topic.load().error or ""
    )


def test_event_times_of_skipped_records_count(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([ORDER, BEAT])}
    topic.format_ = {**topic.format_, "event_time": "timestamp"}
    assert topic.load().skipped == 1
    assert topic.entry.event_time is not None
    assert topic.entry.event_time.partitions[BrokerPartition(None, 0)].max_ms == 1_700_000_000_001


def test_an_hour_of_skipped_records_alone_is_as_complete_as_one_of_rows(topic: TypedTopic) -> None:  # fault P20
    topic.format_ = {**topic.format_, "event_time": "timestamp"}
    topic.fake.logs = {0: log_of([BEAT] * 3)}
    known = []
    for rules in ({"skip": "type = 'beat'"}, {}):
        topic.folder = topic.folder.with_name("skips" if rules else "keeps")
        with_load(topic, **rules)
        load = topic.load()
        assert (load.error, load.rows) == (None, 0 if rules else 3)
        assert topic.entry.event_time is not None
        known.append(topic.entry.event_time)
    [skips, keeps] = known
    assert [own.max_ms for own in skips.partitions.values()] == [own.max_ms for own in keeps.partitions.values()]
    assert skips.valid_through_ms is not None
    assert skips.valid_through_ms > 1_700_000_000_002


def test_a_value_that_got_another_type_is_not_skipped(topic: TypedTopic) -> None:  # fault P19
    """It is in another column, so nobody knows whether the condition is true."""
    with_load(topic, skip="n = 1")
    topic.fake.logs = {0: log_of([BEAT, ORDER])}
    assert topic.load().skipped == 1
    append(topic.fake.logs[0], [b'{"type": "beat", "n": "1"}', b'{"n": {"x": 1}}'])
    load = topic.load()
    assert (load.error, load.rows, load.skipped) == (None, 2, 0)
    assert [text for text in load.warnings if "the field 'n' had the type int64 before" in text]
    append(topic.fake.logs[0], [BEAT])
    assert topic.load().skipped == 1
    assert offsets_of(topic) == [1, 2, 3]
    assert topic.deep().problems == ()


def test_a_large_set_is_a_file_that_clean_keeps(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([ORDER, BEAT, BEAT, ODD, ORDER, BEAT, ORDER, ORDER] * 300)}
    load = topic.load()
    assert (load.error, load.rows, load.skipped) == (None, 1500, 900)
    [committed] = ranges_of(topic)
    stored = committed.exact[ExactCause.FILTERED]
    assert (Path(topic.table.uri) / stored.path).stat().st_size == stored.size
    assert len(filtered_of(topic)) == 900
    assert topic.deep().problems == ()


def test_too_many_skipped_records_stop_the_load(topic: TypedTopic) -> None:
    """A typing mistake must not empty a table (fault P19)."""
    topic.fake.logs = {0: log_of([ORDER, BEAT, BEAT] * 333 + [ORDER])}
    load = topic.load()
    assert load.rows == 0
    assert "leaves out 666 of 1,000 records (66.6%), and max_skipped_share = 0.5" in (load.error or "")
    assert load.failures[0].kind == "TooManySkipped"
    assert topic.snapshot.entry is None
    with_load(topic, skip="type = 'beat'", max_skipped_share=0.7)
    assert topic.load().rows == 334


def test_the_share_is_that_of_all_steps_of_a_run(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.load.planned._STEP_SLICES", 1)
    topic.fake.logs = {0: log_of([ORDER] * 600 + [BEAT] * 500 + [ORDER] * 900)}
    topic.caps = {"slice_records": 600}
    load = topic.load(fetch=fetch_here)
    assert (load.error, load.rows, load.skipped) == (None, 1500, 500)
    append(topic.fake.logs[0], [ORDER] * 400 + [BEAT] * 200 + [BEAT] * 600)
    load = topic.load(fetch=fetch_here)
    assert (load.rows, load.failures[0].kind) == (400, "TooManySkipped")
    assert "leaves out 800 of 1,200 records" in (load.error or "")


def test_the_ledger_says_since_when_a_condition_holds(topic: TypedTopic) -> None:
    """Offsets that are loaded stay as they are."""
    topic.load()
    first = topic.entry.state.rules
    assert (first.skip, first.skip_since) == (digest_of("type = 'beat'"), 0)
    with_load(topic, skip="type = 'order'")
    append(topic.fake.logs[0], [BEAT, ORDER])
    assert topic.load().skipped == 1
    rules = topic.entry.state.rules
    assert (rules.skip, rules.skip_since, rules.since) == (digest_of("type = 'order'"), topic.entry.sequence, 0)
    assert offsets_of(topic) == [0, 2, 3, 4, 6]
    assert topic.deep().problems == ()
    assert "order" not in json.dumps(topic.entry.state.rules.as_dict())


@pytest.mark.slow
def test_a_replay_loads_what_a_load_with_the_present_condition_would_load(topic: TypedTopic) -> None:
    topic.load()
    with_load(topic, skip="type = 'order'")
    assert topic.deep().problems == ()  # a record of a set, for which the condition is not true now, is no problem
    replay = topic.replay()
    assert (replay.error, replay.changed) == (None, True)
    assert offsets_of(topic) == [1, 2, 3, 4, 5]
    assert filtered_of(topic) == [0]
    assert topic.deep().problems == ()
    assert not topic.replay().changed
    with_load(topic)
    assert topic.replay().error is None
    assert (offsets_of(topic), filtered_of(topic)) == ([0, 1, 2, 3, 4, 5], [])


def test_a_replay_still_needs_a_choice_for_rows_that_were_compacted_away(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([ORDER, BEAT, ODD])}
    topic.load()
    with_load(topic, skip="type = 'order'")
    batch = [Record(offset=offset, timestamp=0, key=b"", value=value) for offset, value in ((0, ORDER), (1, BEAT))]
    topic.fake.logs[0].entries = [(2, record_batch(batch, span=(0, 2)))]
    error = topic.replay().error or ""
    assert "no longer have 1 row, at offsets 2" in error


def test_a_replay_stops_at_too_many_skipped_records(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([ORDER] * 1000)}
    topic.load()
    with_load(topic, skip="type <> 'beat'")
    replay = topic.replay()
    assert replay.failure is not None
    assert replay.failure.kind == "TooManySkipped"
    assert len(offsets_of(topic)) == 1000


def test_erased_rows_do_not_come_back_by_a_replay_with_another_condition(topic: TypedTopic) -> None:
    topic.load()
    take_out(topic.table, BrokerPartition(None, 0), rows_of(0))
    with_load(topic, skip="n = 3")
    assert topic.replay().error is None
    assert (offsets_of(topic), filtered_of(topic)) == ([1, 3, 4, 5], [2])
    assert ranges_of(topic)[0].gaps == {"erased": 1, "filtered": 1}
    assert topic.deep().problems == ()


@pytest.mark.slow
@given(
    values=st.lists(st.sampled_from([ORDER, BEAT, ODD, None, BAD]), min_size=1, max_size=30),
    conditions=st.lists(
        st.sampled_from(["type = 'beat'", "n <= 2", "type is null", "not (n = 3)", "_tombstone = true", None]),
        min_size=1,
        max_size=3,
    ),
)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_and_skipped_records_are_all_records(
    topic: TypedTopic, tmp_path_factory: pytest.TempPathFactory, values: Sequence[bytes | None], conditions: list[str]
) -> None:
    topic.folder, topic.fake.logs = tmp_path_factory.mktemp("lake"), {0: log_of([ORDER])}
    with_load(topic)
    topic.load()
    for number, skip in enumerate(conditions):
        with_load(topic, **({"skip": skip} if skip else {}))
        append(topic.fake.logs[0], values)
        load = topic.load()
        assert (load.error, load.rows + load.skipped) == (None, len(values))
        kept, skipped, size = offsets_of(topic), filtered_of(topic), 1 + len(values) * (number + 1)
        assert sorted([*kept, *skipped]) == list(range(size))
        assert topic.deep().problems == ()
    assert topic.replay().error is None
    replayed = offsets_of(topic)
    topic.folder = tmp_path_factory.mktemp("anew")
    topic.load()
    assert replayed == offsets_of(topic)


def test_a_row_that_is_lost_beside_skipped_ones_is_missing(topic: TypedTopic) -> None:
    """Nothing can hide under `filtered`, also if its number would be right."""
    topic.load()
    DeltaTable(topic.table.uri).delete("_kafka_offset = 2")
    assert "partition 0 [0, 6) holds 3 rows, but its commit counted 4" in verify(topic.table).problems[-1]


@pytest.mark.parametrize("killed_at", ["offsets written", "file closed"])
def test_a_set_that_no_commit_names_is_deleted_by_clean(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    topic.fake.logs = {0: log_of([ORDER, BEAT, BEAT, ODD, ORDER, BEAT, ORDER, ORDER] * 300)}

    def stop(name: str) -> None:
        if name == killed_at:
            raise KeyboardInterrupt

    for module in ("pipelines.table.exact_sets", "pipelines.fetch.slice_file"):
        monkeypatch.setattr(f"{module}.failpoint", stop)
    with pytest.raises(KeyboardInterrupt):
        topic.load(fetch=fetch_here)
    monkeypatch.undo()
    left = sets_of(topic)
    assert len(left) == (killed_at == "offsets written")
    load = topic.load()
    assert (load.error, load.rows, load.skipped) == (None, 1500, 900)
    [committed] = ranges_of(topic)
    for file in topic.folder.rglob("*"):
        os.utime(file, (0, 0))
    clean(topic.table, keep=timedelta(days=1), target_bytes=1, dry_run=False)
    assert sets_of(topic) == {Path(topic.table.uri) / committed.exact[ExactCause.FILTERED].path}
    assert topic.deep().problems == ()


def sets_of(topic: TypedTopic) -> set[Path]:
    return set(Path(topic.table.uri).glob("_offsets/*"))


def request_of(topic: TypedTopic) -> RedecodeRequest:
    format_, registry = topic.settings.format_of("clicks"), partial(open_schema_registry, topic.settings)
    return RedecodeRequest(table=topic.table, format=format_, open_registry=registry, run="again")


def test_a_conversion_removes_no_rows(topic: TypedTopic) -> None:
    typed, topic.format_ = topic.format_, {}
    topic.load()
    topic.format_ = typed
    assert convert_table(request_of(topic)).failure is None
    assert topic.entry.state.rules.skip == ""
    assert offsets_of(topic) == [0, 1, 2, 3, 4, 5]
    append(topic.fake.logs[0], [BEAT])
    assert topic.load().skipped == 1
    assert topic.entry.state.rules.skip_since == topic.entry.sequence
    assert (offsets_of(topic), filtered_of(topic)) == ([0, 1, 2, 3, 4, 5], [6])


def test_a_redecode_removes_no_rows(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([ORDER])}
    topic.format_ = {**topic.format_, "columns": {"n": "string"}, "load": {"skip": "n = 'x'"}}
    assert topic.load().bad_records == 1
    before = topic.entry.state.rules
    topic.format_ = {**topic.format_, "columns": {"n": "long"}, "load": {"skip": "n_2 = 2"}}
    assert redecode(request_of(topic)).decoded == 1
    assert (offsets_of(topic), topic.entry.state.rules) == ([0], before)
    assert topic.replay().error is None
    assert (offsets_of(topic), filtered_of(topic)) == ([], [0])


def test_tail_shows_records_that_a_load_leaves_out(topic: TypedTopic) -> None:
    topic.format_ = {**topic.format_, "key_format": "json", "load": {"skip": "_kafka_key_id = 1 or type = 'beat'"}}
    decoding = ValueDecoding(topic.settings.format_of("clicks"), no_registry)
    records = pa.RecordBatch.from_pydict({"key": [b"1"], "value": [BEAT], "headers": [None], "offset": [0]})
    assert [value.fields for value in decoding(records)] == [{"type": "beat", "n": 1}]


def test_a_log_that_was_written_again_from_a_skipped_record_on_is_noticed(topic: TypedTopic) -> None:
    """The last message of the log counts, also if it has no row (fault P20)."""
    topic.fake.logs = {0: log_of([ORDER, BEAT])}
    assert topic.load().rows == 1
    topic.fake.logs = {0: log_of([ORDER, b'{"type": "beat", "n": 9}', ORDER])}
    load = topic.load()
    assert (load.rows, load.failures[0].kind) == (0, "TopicRecreated")
