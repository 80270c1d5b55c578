"""A typed table has a column per field, keeps records that do not decode, and is as exact as a raw table."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.fetch.fetch_runner import fetch_here
from pipelines.layout.layout import TYPED
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.status.collect import statuses_of
from pipelines.table.open_table import TableSize
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.printed import printed
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

BAD = b"\xff\xfe"
STATE = ("value", "_error", "_raw", "_tombstone")


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([b"a", "\u00e9".encode(), None, b""])}
    with fake:
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "text", "max_bad_share": 1})


def entry_of(topic: TypedTopic, version: int) -> dict[str, list[Any]]:
    """The actions of a version of the Delta log, by kind."""
    actions: dict[str, list[Any]] = {}
    file = Path(topic.table.uri) / "_delta_log" / f"{version:020d}.json"
    for line in file.read_text().splitlines():
        [(kind, action)] = json.loads(line).items()
        actions.setdefault(kind, []).append(action)
    return actions


def test_a_text_is_a_row_with_the_columns_of_kafka_and_a_tombstone_is_marked(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.warnings) == (None, 4, 0, ())
    assert topic.rows(*STATE) == [
        {"value": text, "_error": None, "_raw": None, "_tombstone": text is None} for text in ("a", "\u00e9", None, "")
    ]
    [row, *_] = topic.rows("_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_key", "_kafka_broker")
    assert row == {
        "_kafka_topic": "clicks",
        "_kafka_partition": 0,
        "_kafka_offset": 0,
        "_kafka_key": b"0",
        "_kafka_broker": None,
    }
    proof = topic.deep()
    assert proof.proven, proof.problems


def test_a_new_column_lands_in_the_same_entry_as_its_first_rows_and_offsets_and_removes_nothing(
    topic: TypedTopic,
) -> None:
    topic.load()
    actions = entry_of(topic, 1)
    assert actions.keys() == {"commitInfo", "add", "metaData", "txn"}
    [metadata] = actions["metaData"]
    assert [field["name"] for field in json.loads(metadata["schemaString"])["fields"]] == [
        *TYPED.table_schema.names,
        "value",
    ]
    assert json.loads(actions["commitInfo"][0]["penstock"])["columns"][0]["name"] == "value"
    append(topic.fake.logs[0], [b"b"])
    topic.load()
    assert entry_of(topic, 2).keys() == {"commitInfo", "add", "txn"}


def test_a_record_that_does_not_decode_is_a_row_with_its_bytes_and_the_reason(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], [BAD, b"good"])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 6, 1)
    [warning] = load.warnings
    assert warning.startswith("1 records do not decode (partitions 0): their rows have `_error` and `_raw`")
    assert warning.endswith("the first one is at offset 4 of partition 0: the value is not valid UTF-8")
    assert topic.rows(*STATE)[4:] == [
        {"value": None, "_error": "the value is not valid UTF-8", "_raw": BAD, "_tombstone": False},
        {"value": "good", "_error": None, "_raw": None, "_tombstone": False},
    ]
    snapshot = topic.table.existing()
    assert snapshot is not None
    assert TableSize.of(snapshot.opened).bad_records == 1
    with open_cluster(topic.settings, "main") as cluster:
        [status] = statuses_of(cluster, topic.settings, {"clicks": cluster.topic("clicks")}, now_ms=0)
    assert printed(status.result(0))["bad_records"] == 1
    assert topic.deep().proven


@pytest.mark.parametrize(
    ("limits", "bad", "error"),
    [
        ({}, 0, None),
        ({}, 1, "1 of 99 records do not decode as text, and max_bad_share = 0.01 allows fewer"),
        ({"max_bad_share": 0.02}, 1, None),
        ({"max_bad_share": 1, "max_bad_records": 1}, 2, "max_bad_records = 1 allows fewer"),
        ({"max_bad_share": 1, "max_bad_records": 2}, 2, None),
        ({"max_bad_share": 1, "bad_records": "fail"}, 1, 'bad_records = "fail" allows none'),
    ],
)
def test_above_a_limit_the_load_fails_with_the_first_bad_record_and_commits_nothing(
    limits: dict[str, Any], bad: int, error: str | None, topic: TypedTopic
) -> None:
    topic.format_ = {"format": "text", **limits}
    topic.fake.logs = {0: log_of([*[b"x"] * (99 - bad), *[BAD] * bad])}
    load = topic.load()
    if error is None:
        assert (load.error, load.rows) == (None, 99)
    else:
        [failure] = load.failures
        assert failure.kind == "BadRecords"
        assert error in failure.reason
        assert (failure.where["partition"], failure.where["offset"]) == ("0", 99 - bad)
        assert DeltaTable(topic.table.uri).version() == 0


def test_the_limits_count_the_records_of_all_steps_of_a_run(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.load.planned._STEP_SLICES", 1)
    topic.format_, topic.caps = {"format": "text", "max_bad_records": 1, "max_bad_share": 1}, {"slice_records": 2}
    topic.fake.logs = {0: log_of([BAD, b"a", b"b", b"c", BAD, b"d"])}
    load = topic.load(fetch=fetch_here)
    assert load.error is not None
    assert load.error.startswith("BadRecords: 2 of 6 records do not decode")
    assert load.rows == 4


def test_a_table_keeps_its_kind(topic: TypedTopic) -> None:
    topic.load()
    topic.format_ = {}
    load = topic.load()
    assert load.error is not None
    assert load.error.startswith("FormatChanged: the table")
    assert 'is typed, but the format of the topic is "raw" now' in load.error
    assert topic.deep().problems[0].startswith("nothing was compared with the brokers: the table")


def test_verify_notices_a_lost_row_and_a_row_too_many(topic: TypedTopic) -> None:
    topic.load()
    assert verify(topic.table).proven
    DeltaTable(topic.table.uri).delete("_kafka_offset = 2")
    assert verify(topic.table).problems[1:] == ("partition 0 [0, 4) holds 3 rows, but its commit counted 4",)


def test_a_replay_fetches_again_and_changes_nothing_the_second_time(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], [BAD])
    topic.load()
    DeltaTable(topic.table.uri).delete("_kafka_offset = 2")
    first, second = topic.replay(), topic.replay()
    assert (first.error, first.changed, second.error, second.changed) == (None, True, None, False)
    assert [row["value"] for row in topic.rows("value")] == ["a", "\u00e9", None, "", None]
    assert topic.deep().proven


def test_a_deep_verify_finds_a_row_whose_value_differs(topic: TypedTopic) -> None:
    topic.load()
    topic.fake.logs = {0: log_of([b"a", b"other", None, b""])}
    assert topic.deep().problems == ("partition 0 differs from its broker: 1 row, at offsets 1",)


def test_a_rewind_takes_rows_and_columns_back_and_the_next_load_adds_both_again(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], [b"b"])
    topic.load()
    rewind(plan_rewind(topic.table, 1, run="rewind"))
    assert [row["value"] for row in topic.rows("value")] == ["a", "\u00e9", None, ""]
    assert topic.load().rows == 1
    assert topic.deep().proven


def test_housekeeping_merges_typed_files_and_deletes_those_that_no_commit_names(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], [BAD])
    topic.load()
    [folder] = Path(topic.table.uri).glob("_kafka_loaded_date=*")
    orphan = folder / "0-orphan.parquet"
    orphan.write_bytes(b"x")
    result = clean(topic.table, keep=timedelta(days=-1), target_bytes=2**20, dry_run=False)
    assert str(orphan.relative_to(topic.table.uri)) in result.collected
    assert (result.merged, result.larger) == (2, 1)
    assert topic.deep().proven
    snapshot = topic.table.existing()
    assert snapshot is not None
    assert TableSize.of(snapshot.opened).bad_records == 1


@pytest.mark.parametrize(
    ("column", "operator", "value", "count"),
    [
        ("value", "=", "'a'", 1),
        ("value", ">=", "'a'", 3),
        ("value", "=", f"'{'z' * 200}'", 1),
        ("value", ">", f"'{'z' * 199}'", 2),
        ("_error", "=", "'the value is not valid UTF-8'", 1),
        ("_kafka_offset", ">=", "4", 2),
        ("_tombstone", "=", "true", 1),
        ("_kafka_loaded_at", ">", "TIMESTAMPTZ '2020-01-01'", 6),
    ],
)
def test_readers_that_skip_files_by_statistics_find_every_row(
    column: str, operator: str, value: str, count: int, topic: TypedTopic
) -> None:
    append(topic.fake.logs[0], [("z" * 200).encode(), BAD])
    topic.load()
    rows: pads.Dataset = DeltaTable(topic.table.uri).to_pyarrow_dataset()
    with duckdb.connect() as database:
        database.register("rows", rows)
        query = f'SELECT count(*) FROM rows WHERE "{column}" {operator} {value}'
        assert database.execute(query).fetchall() == [(count,)]


def test_polars_reads_a_typed_table(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], [b"b"])
    topic.load()
    frame = pl.scan_delta(topic.table.uri).sort("_kafka_offset").select("value").collect()
    assert frame["value"].to_list() == ["a", "\u00e9", None, "", "b"]


def test_a_typed_file_has_its_rows_in_the_order_of_the_columns_of_the_table(topic: TypedTopic) -> None:
    topic.load()
    [file] = Path(topic.table.uri).glob("_kafka_loaded_date=*/*.parquet")
    assert pq.read_schema(file).names == [*TYPED.file_schema.names, "value"]
