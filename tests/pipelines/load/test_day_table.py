"""Tables with folders of event days hold the same rows as others, in few files, through all that happens to them."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipelines.layout.event_days import EventDays
from pipelines.layout.layout import TableLayout
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify import row_counts
from pipelines.verify.verify import verify
from resources.errors import LayoutChanged
from tests.fakes.cluster import FakeCluster
from tests.fakes.days import DAY_MS, FIRST_DAY, FIRST_MS, HOUR_MS, DayTopic, append_at, day_topic, log_at

pytestmark = pytest.mark.slow  # many tables

FORMATS: dict[str, dict[str, Any]] = {"raw": {}, "typed": {"format": "json"}}
THREE_DAYS = [FIRST_MS + number * HOUR_MS for number in range(50)]
LATE = [FIRST_MS + 2 * DAY_MS + number * (HOUR_MS if number % 3 else -HOUR_MS) for number in range(50)]
WRONG = [0, 1_700_000_000, FIRST_MS, 2**62, -1, FIRST_MS + 40 * DAY_MS, FIRST_MS - 1, FIRST_MS + DAY_MS]
"""Times in 1970, in seconds instead of milliseconds, beyond the year 9999, none, and in the far future."""


def expected(times_ms: list[int]) -> dict[int, date | None]:
    """The days of rows with these times, of which all are open."""
    days = [datetime.fromtimestamp(time_ms / 1000, UTC).date() for time_ms in times_ms]
    return dict(enumerate(days))


@pytest.fixture(params=FORMATS)
def topic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DayTopic]:
    with FakeCluster(logs={0: log_at(THREE_DAYS), 1: log_at(LATE, leader=1)}) as fake:
        yield day_topic(fake, tmp_path / "lake", FORMATS[request.param])


def test_each_row_is_in_the_folder_of_its_day(topic: DayTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows) == (None, 100)
    assert topic.days() == expected(THREE_DAYS)
    assert load.files == len(topic.files)
    assert len(set(topic.files)) < len(topic.files) <= 10
    assert topic.problems() == ()
    prefix = f"{topic.layout.partition_column}="
    assert {path.parent.name for path in Path(topic.table.uri).glob("*/*.parquet")} == {
        f"{prefix}{day}" for day in topic.files
    }


def test_wrong_clocks_share_one_file_and_no_row_is_lost(topic: DayTopic) -> None:  # fault L19
    topic.fake.logs = {0: log_at([FIRST_MS] * 9 + WRONG * 5)}
    load = topic.load()
    assert (load.error, load.rows) == (None, 49)
    assert topic.files == [FIRST_DAY - timedelta(days=1), FIRST_DAY, FIRST_DAY + timedelta(days=1), None]
    assert [day for _, day in sorted(topic.days().items())][9:17] == [
        *[None, None, FIRST_DAY, None, None, None],
        *[FIRST_DAY - timedelta(days=1), FIRST_DAY + timedelta(days=1)],
    ]
    assert topic.problems() == ()


# fault L19
def test_a_slice_has_at_most_17_files_which_verify_reads_once(topic: DayTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_counts, "_add_copies", None)  # the second pass
    topic.fake.logs = {0: log_at([FIRST_MS + number * DAY_MS for number in range(50)])}
    load = topic.load()
    assert (load.error, load.rows, load.files) == (None, 50, len(topic.files))
    assert len(topic.files) == 17
    assert topic.files[-1] is None
    assert topic.problems() == ()


def test_later_loads_add_to_the_folders_and_rewind_takes_back_exactly_their_rows(topic: DayTopic) -> None:
    version = topic.load().version
    assert version is not None
    before = topic.days()
    append_at(topic.fake.logs[0], LATE)
    topic.load()
    assert topic.days() == expected(THREE_DAYS + LATE)
    assert topic.problems() == ()
    rewind(plan_rewind(topic.table, version, run="rewind"))
    assert topic.days() == before
    assert topic.problems() == ()
    topic.load()
    assert topic.days() == expected(THREE_DAYS + LATE)
    assert topic.problems() == ()


def test_a_new_field_is_added_to_a_table_with_rows_without_a_day(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_at([FIRST_MS, 0])}) as fake:
        topic = day_topic(fake, tmp_path / "lake", {"format": "json"})
        topic.load()
        append_at(fake.logs[0], [FIRST_MS, 0], [b'{"name": "x"}', b'{"name": "y"}'])
        topic.load()
        assert topic.rows("id", "name", "_kafka_event_day") == [
            {"id": 0, "name": None, "_kafka_event_day": FIRST_DAY},
            {"id": 1, "name": None, "_kafka_event_day": None},
            {"id": None, "name": "x", "_kafka_event_day": FIRST_DAY},
            {"id": None, "name": "y", "_kafka_event_day": None},
        ]
        assert topic.problems() == ()


def test_replay_repairs_one_lost_file_of_several(topic: DayTopic) -> None:  # fault L20
    topic.load()
    before, files = topic.days(), sorted(topic.handle.file_uris())
    for lost in files[:2]:
        Path(lost).unlink()
    assert any("is missing" in problem for problem in verify(topic.table).problems)
    replayed = topic.replay()
    assert (replayed.failure, replayed.changed) == (None, True)
    assert topic.days() == before
    assert topic.problems() == ()
    assert topic.layout == TableLayout.of_delta(DeltaTable(topic.table.uri, version=1).schema().to_json())
    again = topic.replay()
    assert (again.failure, again.changed) == (None, False)


def test_verify_names_the_range_of_each_lost_file(topic: DayTopic) -> None:
    topic.load()
    names = {path.name for path in Path(topic.table.uri).glob("*/*.parquet")}
    for path in Path(topic.table.uri).glob("*/*.parquet"):
        path.unlink()
    problems = [problem for problem in verify(topic.table).problems if "is missing" in problem]
    assert len(problems) == len(names)
    assert not any("compacted rows" in problem for problem in problems)


@pytest.mark.parametrize("part", ["10", "49"])
def test_a_replay_of_a_part_keeps_all_other_rows_and_their_days(part: str, topic: DayTopic) -> None:
    topic.load()
    before = topic.days()
    offset = topic.layout.name("offset")
    topic.handle.delete(f'"{offset}" = {part}')
    replayed = topic.replay()
    assert (replayed.failure, replayed.changed) == (None, True)
    assert topic.days() == before
    assert topic.problems() == ()


def test_clean_merges_the_files_of_closed_days_only(topic: DayTopic) -> None:
    now = datetime.now(UTC)
    today = int(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
    times = [today - 2 * DAY_MS, today - DAY_MS, today, today]
    topic.fake.logs = {0: log_at(times), 1: log_at(times, leader=1)}
    topic.load()
    for _ in range(2):
        append_at(topic.fake.logs[0], times)
        topic.load()
    before = topic.days()
    cleaned = clean(topic.table, keep=timedelta(days=7), target_bytes=2**20, dry_run=False)
    assert (cleaned.merged, cleaned.larger, cleaned.collected) == (8, 2, ())
    assert topic.days() == before
    assert len(topic.files) == 2 + 4
    assert topic.problems() == ()
    again = clean(topic.table, keep=timedelta(days=7), target_bytes=2**20, dry_run=False)
    assert (again.merged, again.larger) == (0, 0)


def test_clean_merges_rows_without_a_day_and_collects_orphans(topic: DayTopic) -> None:
    topic.fake.logs = {0: log_at([0, 0]), 1: log_at([0, 0], leader=1)}
    topic.load()
    orphan = Path(topic.handle.file_uris()[0]).with_name("orphan.parquet")
    orphan.write_bytes(b"")
    with patch("pipelines.maintenance.clean.datetime") as clock:
        clock.now.return_value = datetime.now(UTC) + timedelta(days=8)
        cleaned = clean(topic.table, keep=timedelta(days=7), target_bytes=2**20, dry_run=False)
    assert (cleaned.merged, cleaned.larger) == (2, 1)
    assert [Path(path).name for path in cleaned.collected] == ["orphan.parquet"]
    assert topic.files == [None]
    assert topic.problems() == ()


@pytest.mark.parametrize(("before", "after"), [("event_day", "loaded"), ("loaded", "event_day"), ("event_day", "id")])
def test_other_folders_in_the_settings_are_refused_with_a_way_on(
    before: str, after: str, tmp_path: Path
) -> None:  # fault L21
    with FakeCluster(logs={0: log_at(THREE_DAYS)}) as fake:
        topic = day_topic(fake, tmp_path / "lake", {"format": "json", "partition_by": before})
        topic.load()
        version = topic.handle.version()
        topic.format_ = {**topic.format_, "partition_by": after}
        load = topic.load()
        assert load.failures[0].kind == LayoutChanged.__name__
        assert f'set partition_by = "{before}" again' in str(load.error)
        assert topic.replay().failure is not None
        assert topic.handle.version() == version
        topic.format_ = {**topic.format_, "partition_by": before}
        assert topic.load().error is None


def test_a_table_of_load_dates_is_as_before(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_at(THREE_DAYS)}) as fake:
        topic = day_topic(fake, tmp_path / "lake", {"format": "json", "partition_by": "loaded"})
        topic.load()
        assert topic.handle.metadata().partition_columns == ["_kafka_loaded_date"]
        entry = topic.table.snapshot().entry
        assert entry is not None
        [stored] = [json.loads(entry.to_json())["ranges"][0]]
        assert "more_paths" not in stored
        assert len(topic.files) == 1


def test_the_folder_is_the_day_of_a_field(tmp_path: Path) -> None:
    times = ["2024-03-01T10:00:00Z", "2024-03-02T23:30:00-01:00", None, "1970-01-01T00:00:00Z"]
    values = [json.dumps({"at": time} if time else {}).encode() for time in times]
    with FakeCluster(logs={0: log_at([FIRST_MS] * 5, [*values, b"no JSON"])}) as fake:
        topic = day_topic(
            fake,
            tmp_path / "lake",
            {"format": "json", "columns": {"at": "timestamp"}, "partition_by": "at", "max_bad_share": 1},
        )
        assert topic.load().error is None
        assert topic.days() == dict(enumerate([FIRST_DAY, FIRST_DAY + timedelta(days=2), None, None, None]))
        assert topic.layout.partition_by == "at"
        assert topic.problems() == ()
        Path(topic.handle.file_uris()[0]).unlink()
        assert topic.replay().changed
        assert topic.days() == dict(enumerate([FIRST_DAY, FIRST_DAY + timedelta(days=2), None, None, None]))
        assert topic.problems() == ()


def test_a_field_without_a_day_is_refused_and_one_that_never_occurs_is_a_warning(tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_at(THREE_DAYS)}) as fake:
        topic = day_topic(fake, tmp_path / "lake", {"format": "json", "partition_by": "id"})
        error = str(topic.load().error)
        assert ("only a date or a timestamp has a day" in error, "LayoutRefused" in error) == (True, True)
        topic = day_topic(fake, tmp_path / "other", {"format": "json", "partition_by": "created"})
        load = topic.load()
        assert load.error is None
        assert any("no record has had the field created" in warning for warning in load.warnings)
        assert topic.files == [None]
        assert topic.problems() == ()


def test_verify_finds_a_row_in_the_folder_of_another_day(topic: DayTopic) -> None:
    topic.load()
    column = topic.layout.partition_column
    rows = topic.handle.to_pyarrow_table()
    moved = pa.array([FIRST_DAY] * rows.num_rows, pa.date32())
    wrong = rows.set_column(rows.schema.get_field_index(column), column, moved)
    write_deltalake(topic.handle, wrong, mode="overwrite")
    assert any(f"is in the folder of {FIRST_DAY}" in problem for problem in verify(topic.table).problems)


def test_verify_finds_rows_that_a_broken_load_puts_into_the_folder_of_another_day(topic: DayTopic) -> None:
    split = EventDays.split

    def into_one_folder(days: EventDays, rows: pa.RecordBatch) -> Iterator[tuple[date | None, pa.RecordBatch]]:
        yield next(split(days, rows))[0], rows

    with patch.object(EventDays, "split", into_one_folder):
        topic.load()
    assert any("is in the folder of" in problem for problem in verify(topic.table).problems)
