"""Records load whatever their timestamps say, and the table keeps the number that the producer sent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from pipelines.comparison.deep_verify import DeepProof, deep_verify
from pipelines.delta import delta_table as table_module
from pipelines.delta import writes as table_writes
from pipelines.delta.open_version import DeltaVersion
from pipelines.layout import layout as layout_module
from pipelines.layout import rows as rows_module
from pipelines.layout.rows import PARTITION_COLUMN, RAW_TIME_COLUMN, TABLE_SCHEMA
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.load import Loader
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from pipelines.table.table_store import TableSnapshot
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.records import holding, table

pytestmark = pytest.mark.slow  # each test fills a table and changes it

USUAL_MS = 1_700_000_000_123
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
ODD = {
    "microseconds": 1_700_000_000_123_456,
    "nanoseconds": 1_700_000_000_123_456_789,
    "the year 10000": LAST_MS + 1,
    "before the year 1": FIRST_MS - 1,
    "the smallest number": -(2**63),
    "the largest number": 2**63 - 1,
}


def timed(times: list[int], first: int = 0) -> Log:
    """A log with one batch, whose records have these timestamps."""
    records = [Record(offset=first + number, timestamp=ms, value=b"v") for number, ms in enumerate(times)]
    return Log(entries=[(records[-1].offset, record_batch(records))], start=first, end=records[-1].offset + 1)


def settings(fake: FakeCluster, folder: Path) -> Settings:
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    main = ClusterSettings(bootstrap=bootstrap)
    return Settings(lake=str(folder), clusters={"main": main}, caps=Caps(attempts=1, request_timeout_s=5))


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def load(fake: FakeCluster, folder: Path) -> TopicLoad:
    with open_cluster(settings(fake, folder), "main") as cluster:
        return Loader.of(settings(fake, folder), cluster, no_spark).load("clicks")


def deep(fake: FakeCluster, folder: Path) -> DeepProof:
    with open_cluster(settings(fake, folder), "main") as cluster:
        return deep_verify(table(folder), cluster)


def rows(folder: Path, partition: int = 0) -> list[dict[str, Any]]:
    """Offset, time in microseconds and raw number of the partition's rows, in order of offset."""
    whole = DeltaTable(table(folder).uri).to_pyarrow_table().sort_by("offset")
    whole = whole.set_column(
        whole.schema.get_field_index("timestamp"), "timestamp", whole["timestamp"].cast(pa.int64())
    )
    return [
        {name: row[name] for name in ("offset", "timestamp", RAW_TIME_COLUMN)}
        for row in whole.to_pylist()
        if row["partition"] == partition
    ]


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_time_that_a_table_cannot_hold_is_null_and_its_number_is_kept(
    odd: int, fake: FakeCluster, tmp_path: Path
) -> None:  # fault N01
    fake.logs = {0: timed([USUAL_MS, odd, -1, USUAL_MS]), 1: holding(0, 5)}
    with fake:
        result = load(fake, tmp_path)
        assert (result.error, result.rows) == (None, 9)
        assert rows(tmp_path) == [
            {"offset": 0, "timestamp": USUAL_MS * 1000, RAW_TIME_COLUMN: None},
            {"offset": 1, "timestamp": None, RAW_TIME_COLUMN: odd},
            {"offset": 2, "timestamp": None, RAW_TIME_COLUMN: None},
            {"offset": 3, "timestamp": USUAL_MS * 1000, RAW_TIME_COLUMN: None},
        ]
        assert [partition.odd_times for partition in result.partitions] == [1, 0]
        [warning] = result.warnings
        assert warning.startswith("1 records have a timestamp before the year 1 or after 9999 (partitions 0)")
        proof = deep(fake, tmp_path)
        assert proof.proven, proof.problems


def test_the_first_and_the_last_time_that_a_table_can_hold_are_times(fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs = {0: timed([FIRST_MS, LAST_MS, -2])}
    with fake:
        assert (load(fake, tmp_path).error, load(fake, tmp_path).warnings) == (None, ())
    assert rows(tmp_path) == [
        {"offset": number, "timestamp": ms * 1000, RAW_TIME_COLUMN: None}
        for number, ms in enumerate([FIRST_MS, LAST_MS, -2])
    ]
    [added] = pa.table(DeltaTable(table(tmp_path).uri).get_add_actions(flatten=True)).to_pylist()
    assert (added["min.timestamp"].year, added["max.timestamp"].year) == (1, 9999)


# fault N02
def test_a_deep_verify_compares_the_numbers_of_times_that_a_table_cannot_hold(
    fake: FakeCluster, tmp_path: Path
) -> None:
    fake.logs = {0: timed([USUAL_MS, ODD["nanoseconds"]])}
    with fake:
        load(fake, tmp_path)
        fake.logs = {0: timed([USUAL_MS, ODD["nanoseconds"] + 1])}
        [problem] = deep(fake, tmp_path).problems
    assert problem == "partition 0 differs from its broker: 1 row, at offsets 1"


@contextmanager
def older_version() -> Iterator[None]:
    """In this block tables are written as by Penstock 0.6, which did not keep the numbers."""
    columns = pa.schema([column for column in TABLE_SCHEMA if column.name != RAW_TIME_COLUMN])
    with (
        patch.object(layout_module, "TABLE_SCHEMA", columns),
        patch.object(table_module, "can_append", lambda _: False),
        patch.object(table_module, "append", _appended),
        patch.object(rows_module, "_table_times", _times_alone),
    ):
        yield


def _times_alone(times: pa.Array) -> tuple[pa.Array, pa.Array]:
    is_usual = pc.equal(times.cast(pa.int64()), USUAL_MS)
    usual_times = pc.if_else(is_usual, times, pa.scalar(None, times.type))
    return usual_times.cast(TABLE_SCHEMA.field("timestamp").type), pa.nulls(len(times), pa.int64())


def _appended(snapshot: TableSnapshot, entry: LedgerEntry, files: Sequence[SliceFacts]) -> None:
    """Append files as Penstock 0.6 did."""
    writer = DeltaVersion.of(snapshot).writer
    writer.create_write_transaction(
        [table_writes.add_action(file, layout_module.RAW) for facts in files for file in facts.files],
        mode="append",
        schema=writer.schema(),
        partition_by=[PARTITION_COLUMN],
        commit_properties=table_writes.properties(snapshot, entry),
    )


def test_a_table_of_an_older_version_gets_the_column_with_its_next_load(fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs = {0: timed([USUAL_MS] * 3)}
    with fake:
        with older_version():
            load(fake, tmp_path)
        table_columns = [column.name for column in DeltaTable(table(tmp_path).uri).schema().fields]
        assert RAW_TIME_COLUMN not in table_columns
        assert deep(fake, tmp_path).proven
        older = DeltaTable(table(tmp_path).uri)
        fake.logs[0].entries += timed([ODD["nanoseconds"], USUAL_MS], first=3).entries
        fake.logs[0].end = 5
        result = load(fake, tmp_path)
        newer = DeltaTable(table(tmp_path).uri)
        assert (result.error, newer.version()) == (None, older.version() + 1)
        assert newer.metadata().configuration == older.metadata().configuration
        assert set(older.file_uris()) < set(newer.file_uris())
        assert [row[RAW_TIME_COLUMN] for row in rows(tmp_path)] == [None, None, None, ODD["nanoseconds"], None]
        assert deep(fake, tmp_path).proven
        clean(table(tmp_path), keep=timedelta(days=1), target_bytes=2**20, dry_run=False)
        assert len(DeltaTable(table(tmp_path).uri).file_uris()) == 1
        assert deep(fake, tmp_path).proven
        rewind(plan_rewind(table(tmp_path), older.version(), run="rewind"))
        assert load(fake, tmp_path).rows == 2
        assert [row[RAW_TIME_COLUMN] for row in rows(tmp_path)] == [None, None, None, ODD["nanoseconds"], None]
        assert deep(fake, tmp_path).proven


# fault N02
def test_a_replay_repairs_the_rows_of_an_older_version_that_lack_the_number(fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs = {0: timed([USUAL_MS, ODD["nanoseconds"], USUAL_MS])}
    with fake:
        with older_version():
            load(fake, tmp_path)
        assert deep(fake, tmp_path).problems == ("partition 0 differs from its broker: 1 row, at offsets 1",)
        request = ReplayRequest.parse("clicks", "earliest", "latest", now=datetime(2026, 1, 1, tzinfo=UTC))
        with open_cluster(settings(fake, tmp_path), "main") as cluster:
            loader = Loader.of(settings(fake, tmp_path), cluster, no_spark)
            result = replay(loader.run, table(tmp_path), request)
        assert (result.error, result.changed) == (None, True)
        assert [row[RAW_TIME_COLUMN] for row in rows(tmp_path)] == [None, ODD["nanoseconds"], None]
        assert deep(fake, tmp_path).proven
