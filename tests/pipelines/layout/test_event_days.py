"""The days of rows: each open day has its rows, at most 16 days are open, and wrong clocks open none."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.layout.event_days import MAX_OPEN_DAYS, EventDays, files_of_other_days
from pipelines.layout.layout import EVENT_DAY, RAW, TYPED, TableLayout
from pipelines.layout.rows import FILE_SCHEMA

LOADED = datetime(2026, 11, 25, 12, tzinfo=UTC)
LOADED_US = int(LOADED.timestamp()) * 1_000_000
DAY_US = 86_400_000_000
TODAY = LOADED_US // DAY_US
TIME = FILE_SCHEMA.field("timestamp").type
BY_DAY = RAW.partitioned_by(EVENT_DAY)


def batch(times: list[int | None], kind: pa.DataType = TIME) -> pa.RecordBatch:
    """Rows with these times in microseconds, which are numbered in the order of the slice."""
    columns = {"offset": pa.array(range(len(times)), pa.int64()), "timestamp": pa.array(times, pa.int64()).cast(kind)}
    return pa.RecordBatch.from_pydict(columns)


def days_of(*times: int | None, days: EventDays | None = None) -> list[date | None]:
    """The day of each of these times."""
    days = days or EventDays(BY_DAY, LOADED_US)
    result: list[date | None] = days.column(batch(list(times))).to_pylist()
    return result


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def test_a_row_has_the_day_of_its_time_in_utc() -> None:
    first, last = at("2026-11-24"), at("2026-11-24T23:59:59.999999")
    yesterday, today = date(2026, 11, 24), date(2026, 11, 25)
    assert days_of(first - 1, first, last, last + 1) == [date(2026, 11, 23), yesterday, yesterday, today]


@pytest.mark.parametrize(
    "wrong",
    [None, 0, at("1970-01-20"), at("1980-01-06"), at("2000-01-01"), at("2026-11-27"), at("9999-12-31"), -(2**62)],
)
def test_a_wrong_clock_has_no_day_and_moves_no_other_row(wrong: int | None) -> None:
    now = LOADED_US
    assert days_of(wrong, now, wrong, now - DAY_US) == [None, date(2026, 11, 25), None, date(2026, 11, 24)]


def test_clocks_may_be_fast_by_a_day() -> None:
    assert days_of(LOADED_US + DAY_US, LOADED_US + 2 * DAY_US) == [date(2026, 11, 26), None]


def test_a_load_of_new_records_has_open_days_up_to_tomorrow() -> None:
    days = EventDays(BY_DAY, LOADED_US)
    days_of(LOADED_US, days=days)
    found = days_of(*((TODAY + number) * DAY_US for number in range(-20, 5)), days=days)
    is_open = [date(2026, 11, 25) + timedelta(days=number) for number in range(-14, 2)]
    assert found == [*[None] * 6, *is_open, *[None] * 3]
    assert len(is_open) == MAX_OPEN_DAYS


def test_a_backlog_has_open_days_around_its_first_records() -> None:
    days = EventDays(BY_DAY, LOADED_US)
    days_of(at("2013-01-10"), days=days)
    found = days_of(*(at("2013-01-01") + number * DAY_US for number in range(31)), days=days)
    assert [day for day in found if day] == [date(2013, 1, 3) + timedelta(days=number) for number in range(16)]


def test_a_slice_whose_first_rows_have_no_time_opens_days_later() -> None:
    days = EventDays(BY_DAY, LOADED_US)
    assert days_of(None, 0, days=days) == [None, None]
    assert days_of(LOADED_US, None, days=days) == [date(2026, 11, 25), None]


def test_a_date_is_its_own_day() -> None:
    days = EventDays(TYPED.partitioned_by("born"), LOADED_US)
    rows = pa.RecordBatch.from_pydict({"born": pa.array([date(2026, 11, 24), None, date(1984, 1, 1)], pa.date32())})
    assert days.column(rows).to_pylist() == [date(2026, 11, 24), None, None]


def test_rows_without_the_column_have_no_day() -> None:
    days = EventDays(TYPED.partitioned_by("created_at"), LOADED_US)
    assert [(day, rows.num_rows) for day, rows in days.split(batch([LOADED_US, 0]))] == [(None, 2)]
    assert days.column(batch([LOADED_US])).to_pylist() == [None]


def test_an_empty_batch_has_no_files() -> None:
    assert list(EventDays(BY_DAY, LOADED_US).split(batch([]))) == []


times = st.one_of(
    st.none(),
    st.integers(-20, 20).map(lambda day: LOADED_US + day * DAY_US),
    st.integers(-(2**62), 2**62),
    st.integers(0, 2 * DAY_US).map(lambda late: LOADED_US - late),
)


@given(st.lists(st.lists(times, max_size=20), max_size=8))
@example([[LOADED_US, LOADED_US]])
@example([[number * DAY_US for number in range(20_000, 20_400)]])
def test_no_row_is_lost_and_each_file_has_rows_of_one_day_in_their_order(batches: list[list[int | None]]) -> None:
    split, whole = EventDays(BY_DAY, LOADED_US), EventDays(BY_DAY, LOADED_US)
    seen: set[date | None] = set()
    for of_batch in batches:
        rows = batch(of_batch)
        expected = whole.column(rows).to_pylist()
        parts = list(split.split(rows))
        assert Counter(offset for _, part in parts for offset in part.column("offset").to_pylist()) == Counter(
            range(len(of_batch))
        )
        for day, part in parts:
            offsets = part.column("offset").to_pylist()
            assert offsets == sorted(offsets)
            assert {expected[offset] for offset in offsets} == {day}
            assert day is None or {of_batch[offset] // DAY_US for offset in offsets} == {(day - date(1970, 1, 1)).days}
            seen.add(day)
    assert len(seen) <= MAX_OPEN_DAYS + 1
    assert all(date(2001, 1, 1) <= day <= date(2026, 11, 26) for day in seen if day)


@pytest.mark.parametrize(
    ("first", "last", "nulls", "is_wrong"),
    [
        ("2026-11-24T00:00:00", "2026-11-24T23:59:59.999999", 0, False),
        ("2026-11-24T00:00:00", "2026-11-25T00:00:00", 0, False),  # rounded up to a millisecond
        ("2026-11-23T23:59:59.999", "2026-11-24T01:00:00", 0, True),
        ("2026-11-24T00:00:00", "2026-11-25T00:00:00.001", 0, True),
        ("2026-11-24T00:00:00", "2026-11-24T01:00:00", 1, True),
        (None, None, None, False),
    ],
)
def test_the_log_shows_a_file_in_the_folder_of_another_day(
    first: str | None, last: str | None, nulls: int | None, is_wrong: bool
) -> None:
    layout: TableLayout = RAW.partitioned_by(EVENT_DAY)
    bounds: dict[str, Any] = {
        "min.timestamp": pa.array([first and at(first)] * 2, pa.int64()).cast(TIME),
        "max.timestamp": pa.array([last and at(last)] * 2, pa.int64()).cast(TIME),
        "null_count.timestamp": pa.array([nulls] * 2, pa.int64()),
    }
    day = date(2026, 11, 24)
    adds = pa.table({"path": ["a%20b", "c"], "partition.event_day": pa.array([day, None], pa.date32()), **bounds})
    assert list(files_of_other_days(adds, layout)) == ([("a b", day)] if is_wrong else [])
    assert list(files_of_other_days(adds.select(adds.column_names[:2]), layout)) == []
