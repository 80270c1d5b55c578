"""The commits of loads, rewinds, replays and cuts of a real table record up to which event time it is complete."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record, record_batch
from pipelines.fetch.decode_plan import layout_of
from pipelines.ledger.event_time import EventTime
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.plan import valid_through
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.settings.choices import Choices
from resources.settings.topic_formats import TopicFormat
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import FixedSettings, OneTable
from tests.fakes.records import holding, table
from tests.pipelines.load.test_run_target import load as load_once

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
HOUR_MS = 3_600_000
FORMAT = TopicFormat(event_time="timestamp", allowed_lateness_minutes=10)
LATENESS_MS = 600_000


def at(*times_ms: int) -> Log:
    """A log with one record for each time."""
    records = [Record(offset=offset, value=b"v", timestamp=time_ms) for offset, time_ms in enumerate(times_ms)]
    entries = [(record.offset, record_batch([record])) for record in records]
    return Log(entries=entries, end=len(entries))


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., TopicLoad]:
    """Loads the topic of a fake cluster, by default at noon."""

    def run(fake: FakeCluster, *, now: datetime = NOON, format_: TopicFormat = FORMAT, **options: Any) -> TopicLoad:
        new_table = replace(table(tmp_path), new_layout=layout_of(format_))
        options |= {"now": lambda: now, "topics": FixedSettings(format=format_), "tables": OneTable(new_table)}
        return load_once(fake, tmp_path, **options)

    return run


def newest(folder: Path) -> EventTime:
    entry = table(folder).snapshot().entry
    assert entry is not None
    assert entry.event_time is not None
    return entry.event_time


def test_a_table_at_the_end_of_its_logs_is_complete_up_to_the_time_of_the_answer(
    fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    with fake:
        assert load(fake).error is None
    assert newest(tmp_path).valid_through_ms == NOON_MS - LATENESS_MS
    assert verify(table(tmp_path)).proven


def test_an_idle_topic_advances_with_a_commit_without_files(
    fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    with fake:
        first = load(fake)
        for seconds, commits in ((59, 0), (60, 1), (61, 1)):
            result = load(fake, now=NOON + timedelta(seconds=seconds))
            assert (result.error, result.rows, result.warnings) == (None, 0, ())
            assert (result.version or 0) - (first.version or 0) == commits
    assert newest(tmp_path).valid_through_ms == NOON_MS + 60_000 - LATENESS_MS
    entries = [entry for _, entry in table(tmp_path).entries(table(tmp_path).snapshot())]
    assert [bool(entry.ranges) for entry in entries[:2]] == [False, True]
    assert verify(table(tmp_path)).proven


def test_a_topic_that_does_not_ask_gets_no_record_and_no_commit(
    fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    with fake:
        first = load(fake, format_=TopicFormat())
        assert load(fake, format_=TopicFormat(), now=NOON + timedelta(days=1)).version == first.version
    entry = table(tmp_path).snapshot().entry
    assert entry is not None
    assert "event_time" not in entry.to_json()


def test_a_partition_without_a_leader_holds_the_time(
    fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    with fake:
        load(fake)
        fake.logs[1] = replace(fake.logs[1], leader=7)
        assert load(fake, now=NOON + timedelta(hours=1)).error is not None
        assert newest(tmp_path).valid_through_ms == NOON_MS - LATENESS_MS
        fake.logs[1] = replace(fake.logs[1], leader=0)
        assert load(fake, now=NOON + timedelta(hours=2)).error is None
    assert newest(tmp_path).valid_through_ms == NOON_MS + 2 * HOUR_MS - LATENESS_MS


def test_a_backlog_is_complete_up_to_its_largest_plausible_event_time(
    tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    year_9999_ms, hour = 253_402_000_000_000, NOON_MS - 5 * HOUR_MS
    with FakeCluster(logs={0: at(1, year_9999_ms, hour, hour - 1, NOON_MS - HOUR_MS, NOON_MS - 7)}) as fake:
        load(fake, run=4)
    times = newest(tmp_path)
    assert times.valid_through_ms == hour - LATENESS_MS
    [partition] = times.partitions.values()
    assert (partition.end, partition.at_end, partition.max_ms) == (6, False, hour)


def test_late_rows_are_counted_by_hour(tmp_path: Path, load: Callable[..., TopicLoad]) -> None:
    with FakeCluster(logs={0: at(NOON_MS - HOUR_MS)}) as fake:
        load(fake)
        fake.logs[0] = at(NOON_MS - HOUR_MS, NOON_MS - 2 * HOUR_MS, NOON_MS + 1)
        load(fake, now=NOON + timedelta(hours=1))
    assert newest(tmp_path).late == {"2026-01-02T10": 1}


@pytest.fixture
def _rewound(fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]) -> Iterator[None]:
    """A table that was loaded twice, an hour apart, and taken back to the first load."""
    with fake:
        first = load(fake)
        fake.logs[0] = holding(0, 30)
        load(fake, now=NOON + timedelta(hours=1))
        rewind(plan_rewind(table(tmp_path), int(first.version or 0), run="rewind"))
        yield


@pytest.mark.usefixtures("_rewound")
def test_a_rewind_takes_the_time_back_and_says_so(
    fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    times = newest(tmp_path)
    assert (times.valid_through_ms, times.moved_back_by) == (NOON_MS - LATENESS_MS, "rewind")
    load(fake, now=NOON + timedelta(hours=2))
    times = newest(tmp_path)
    assert (times.valid_through_ms, times.moved_back_by) == (NOON_MS + 2 * HOUR_MS - LATENESS_MS, "")


@pytest.mark.usefixtures("_rewound")
def test_a_rewind_to_before_the_first_load_proves_nothing(tmp_path: Path) -> None:
    rewind(plan_rewind(table(tmp_path), 0, run="rewind"))
    times = newest(tmp_path)
    assert (times.valid_through_ms, dict(times.partitions), times.moved_back_by) == (None, {}, "rewind")


@pytest.mark.parametrize(
    ("end", "valid_through_ms"),
    [(25, NOON_MS - LATENESS_MS), (20, None)],
    ids=["in the second load", "where the first load ended, perhaps at another leader"],
)
def test_a_cut_takes_the_time_back_to_before_the_lost_rows(
    end: int, valid_through_ms: int | None, fake: FakeCluster, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    with fake:
        load(fake)
        fake.logs[0] = holding(0, 30)
        load(fake, now=NOON + timedelta(hours=1))
        fake.logs[0] = holding(0, end)
        load(fake, now=NOON + timedelta(hours=2), choices=Choices(on_truncated="rewind"))
    entries = {entry.kind: entry.event_time for _, entry in table(tmp_path).entries(table(tmp_path).snapshot())}
    cut = entries["cut"]  # type: ignore[index]
    assert cut is not None
    assert (cut.valid_through_ms, cut.moved_back_by) == (valid_through_ms, "cut")
    assert newest(tmp_path).valid_through_ms == NOON_MS + 2 * HOUR_MS - LATENESS_MS


def of_values(*texts: str) -> Log:
    """A log with one record for each value; its own time says nothing."""
    records = [Record(offset=offset, value=text.encode(), timestamp=1) for offset, text in enumerate(texts)]
    return Log(entries=[(record.offset, record_batch([record])) for record in records], end=len(records))


CREATED = (
    '{"created_at": "2026-01-02T07:00:00Z"}',
    '{"created_at": "2026-01-02T06:00:00Z"}',
    "{}",
    '{"created_at": null}',
)


@pytest.mark.parametrize(
    ("column", "valid_through_ms", "warning"),
    [
        ("timestamp", NOON_MS - 5 * HOUR_MS - LATENESS_MS, None),
        ("string", None, "event_time: the column 'created_at' has the type string; it must be timestamp, date or long"),
    ],
)
def test_the_event_time_can_be_a_field_of_a_typed_table(
    column: str, valid_through_ms: int | None, warning: str | None, tmp_path: Path, load: Callable[..., TopicLoad]
) -> None:
    fields = {"format": "json", "event_time": "created_at", "columns": {"created_at": column}}
    typed = TopicFormat.model_validate({**fields, "allowed_lateness_minutes": 10})
    with FakeCluster(logs={0: of_values(*CREATED, "{}")}) as fake:
        result = load(fake, format_=typed, run=4)
    assert (result.error, result.rows) == (None, 4)
    assert newest(tmp_path).valid_through_ms == valid_through_ms
    assert warning is None or warning in result.warnings


def test_a_field_that_the_table_does_not_have_is_named(tmp_path: Path, load: Callable[..., TopicLoad]) -> None:
    typed = TopicFormat.model_validate({"format": "json", "event_time": "at"})
    with FakeCluster(logs={0: of_values(*CREATED)}) as fake:
        result = load(fake, format_=typed)
    assert "event_time: the table has no column 'at' yet, so no row has an event time" in result.warnings
    assert newest(tmp_path).valid_through_ms == NOON_MS - LATENESS_MS  # all that is there is in the table


@pytest.mark.parametrize(("start", "proves"), [(19, False), (20, False), (21, True)])
def test_an_entry_that_ends_where_rows_are_lost_proves_nothing_of_the_time_before(start: int, proves: bool) -> None:
    """The log may have been led by two brokers when it ended there."""
    topic, partition = TopicIdentity(cluster="main", name="clicks", incarnation="7"), BrokerPartition(None, 0)
    state = TableState(topic=topic, covered={partition: (0, 20)})
    entry = LedgerEntry(commit="c", run="r", kind=CommitKind.LOAD, sequence=1, ranges=(), state=state)
    found = valid_through._entry_before(state, [(1, entry)], {partition: start})
    assert found == (entry if proves else None)
