"""What was retired stays out of the table: replays, deep verifies, redecodes and conversions leave its offsets out."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from deltalake import DeltaTable

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.records.build import Record, record_batch
from pipelines.ledger.incarnations import incarnations
from pipelines.maintenance.retire import retire
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.verify import verify
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.fakes.typed import TypedTopic, append, log_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

DAY_MS = 24 * 60 * 60 * 1000
FIRST_MS = 1_700_000_000_000 // DAY_MS * DAY_MS
FIRST_DAY = date(2023, 11, 14)
JSON = {"format": "json", "columns": {"id": "long"}}


def by_days(start: int, days: list[int]) -> list[tuple[int, bytes]]:
    """A batch with a record of each of these days, which have numbers."""
    records = [
        Record(
            offset=start + number,
            timestamp=FIRST_MS + day * DAY_MS + number,
            key=b"k",
            value=json.dumps({"id": start + number}).encode(),
        )
        for number, day in enumerate(days)
    ]
    return [(records[-1].offset, record_batch(records))]


def opened(log: Log) -> FakeCluster:
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    return FakeCluster(logs={0: log}, offered=offered, topic_id=UUID(int=7))


@pytest.fixture(params=[{}, JSON], ids=["raw", "typed"])
def by_day(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TypedTopic]:
    """Two slices of six records whose days alternate, in files of their days."""
    with opened(Log(entries=by_days(0, [0, 1, 0, 2, 1, 0]), start=0, end=6)) as fake:
        loaded = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={**request.param, "partition_by": "event_day"})
        loaded.load()
        fake.logs[0].entries += by_days(6, [1, 2, 2, 1, 2, 3])
        fake.logs[0].end = 12
        loaded.load()
        yield loaded


def request_of(topic: TypedTopic) -> RedecodeRequest:
    format_ = topic.settings.format_of("clicks")
    return RedecodeRequest(table=topic.table, format=format_, open_registry=lambda _: pytest.fail("no"), run="again")


def offsets_of(topic: TypedTopic) -> list[int]:
    rows = DeltaTable(topic.table.uri).to_pyarrow_table()
    name = "offset" if "offset" in rows.column_names else "_kafka_offset"
    return sorted(rows.column(name).to_pylist())


def gaps_of(topic: TypedTopic) -> list[tuple[str, int, Any]]:
    [newest, *_] = incarnations(topic.table.entries(topic.table.snapshot()))
    return [(str(part.offsets), part.rows, part.gaps) for part in newest.ranges]


def test_a_range_keeps_the_rows_of_its_other_days(by_day: TypedTopic) -> None:
    for days, retired, left in ((1, 3, [1, 3, 4, 6, 7, 8, 9, 10, 11]), (2, 4, [3, 7, 8, 10, 11])):
        result = retire(by_day.table, FIRST_DAY + timedelta(days=days), dry_run=False)
        assert (result.rows, result.kept, offsets_of(by_day)) == (retired, 0, left)
        assert verify(by_day.table).problems == ()
    assert gaps_of(by_day) == [
        ("partition 0 [0, 6)", 1, {"retired": 5}),
        ("partition 0 [6, 12)", 4, {"retired": 2}),
    ]


def test_a_replay_brings_no_retired_row_back(by_day: TypedTopic) -> None:  # fault P16
    retire(by_day.table, FIRST_DAY + timedelta(days=2), dry_run=False)
    assert by_day.replay().changed is False
    DeltaTable(by_day.table.uri).delete(f"{by_day.table.snapshot().layout.name('offset')} = 3")
    result = by_day.replay()
    assert (result.failure, result.changed, offsets_of(by_day)) == (None, True, [3, 7, 8, 10, 11])
    entry = by_day.table.snapshot().entry
    assert entry is not None
    assert [str(part.offsets) for part in entry.written] == [
        "partition 0 [3, 4)",
        "partition 0 [7, 9)",
        "partition 0 [10, 12)",
    ]
    assert by_day.deep().problems == ()
    assert by_day.load().rows == 0


def test_a_row_that_was_deleted_is_not_taken_for_a_retired_one(by_day: TypedTopic) -> None:
    """The set is read from the file, and not from what is missing."""
    offset = by_day.table.snapshot().layout.name("offset")
    DeltaTable(by_day.table.uri).delete(f"{offset} = 0")
    with patch.object(TableSnapshot, "check_unchanged"):
        retire(by_day.table, FIRST_DAY + timedelta(days=1), dry_run=False)
    problems = verify(by_day.table).problems
    assert "partition 0 [0, 6) holds 3 rows, but its commit counted 4" in problems


@pytest.fixture
def by_load(tmp_path: Path) -> Iterator[TypedTopic]:
    """Three loads of four records, the second one with values that do not decode."""
    with opened(log_of([b'{"id": %d}' % number for number in range(4)])) as fake:
        loaded = TypedTopic(
            fake=fake, folder=tmp_path / "lake", format_={**JSON, "max_bad_share": 1.0, "max_bad_records": 100}
        )
        loaded.load()
        for values in ([b"?"] * 4, [b'{"id": 9}'] * 4):
            append(fake.logs[0], values)
            loaded.load()
        yield loaded


def test_a_retirement_of_all_rows_is_proven_and_the_next_load_goes_on(by_load: TypedTopic) -> None:
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert retire(by_load.table, tomorrow, dry_run=False).rows == 12
    assert (gaps_of(by_load), by_load.deep().problems) == ([("partition 0 [0, 12)", 0, {"retired": 12})], ())
    assert by_load.replay().changed is False
    append(by_load.fake.logs[0], [b'{"id": 12}'])
    assert by_load.load().rows == 1
    assert (offsets_of(by_load), by_load.deep().problems) == ([12], ())
    assert by_load.replay().changed is False


def test_records_that_are_decoded_again_are_not_those_that_were_retired(by_load: TypedTopic) -> None:
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    retire(by_load.table, tomorrow, dry_run=False)
    append(by_load.fake.logs[0], [b"?"])
    by_load.load()
    result = redecode(request_of(by_load))
    assert (result.failure, result.bad_records) == (None, 1)
    assert (offsets_of(by_load), verify(by_load.table).problems) == ([12], ())


def test_a_conversion_keeps_the_gaps(tmp_path: Path) -> None:
    with opened(Log(entries=by_days(0, [0, 1, 0, 2, 1, 0]), start=0, end=6)) as fake:
        raw = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"partition_by": "event_day"})
        raw.load()
        retire(raw.table, FIRST_DAY + timedelta(days=1), dry_run=False)
        typed = replace(raw, format_={**JSON, "partition_by": "event_day"})
        assert convert_table(request_of(typed)).failure is None
        assert (offsets_of(typed), gaps_of(typed)) == ([1, 3, 4], [("partition 0 [0, 6)", 3, {"retired": 3})])
        assert (typed.deep().problems, typed.replay().changed) == ((), False)
