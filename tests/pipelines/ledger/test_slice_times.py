"""Workers find the largest event time of a slice, ignore times of the future, and count late rows by hour."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from pipelines.ledger.event_time import MAX_LATE_HOURS, OLDER, late_rows
from pipelines.ledger.slice_times import EventTimeColumn, SliceTimes, TimesOfRows, is_time

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
HOUR_MS = 3_600_000
YEAR_9999_MS = 253_402_000_000_000


def times_of(column: pa.Array, *, late_before_ms: int | None = None, before_ms: int = NOON_MS) -> SliceTimes:
    collected = TimesOfRows(EventTimeColumn("at", late_before_ms), before_ms=before_ms)
    collected.add(pa.RecordBatch.from_pydict({"at": column}))
    return collected.result


def milliseconds(*numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int64())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_timestamp_of_each_unit_gives_the_same_time(unit: str, zone: str | None) -> None:
    one_hour_before = datetime(2026, 1, 2, 11, tzinfo=UTC)
    column = pa.array([one_hour_before, None], pa.timestamp("us", tz="UTC")).cast(pa.timestamp(unit, tz=zone))
    assert times_of(column) == SliceTimes(max_ms=NOON_MS - HOUR_MS)


def test_dates_and_numbers_are_times_and_texts_are_not() -> None:
    assert times_of(pa.array([date(2026, 1, 2)])).max_ms == NOON_MS - 12 * HOUR_MS
    assert times_of(milliseconds(NOON_MS - 7)).max_ms == NOON_MS - 7
    assert times_of(pa.array(["2026-01-02"])) == SliceTimes()
    assert [is_time(kind) for kind in (pa.date32(), pa.timestamp("us"), pa.int64(), pa.string())] == [True] * 3 + [
        False
    ]


def test_clocks_that_are_wrong_move_nothing() -> None:
    assert times_of(milliseconds(5, YEAR_9999_MS, -(2**62), NOON_MS, None)).max_ms == 5
    assert times_of(milliseconds(YEAR_9999_MS)).max_ms is None
    assert times_of(milliseconds(-1)).max_ms is None
    assert times_of(milliseconds(5, NOON_MS)).max_ms == 5
    assert times_of(milliseconds(0)).max_ms == 0
    assert times_of(milliseconds(None)) == times_of(milliseconds()) == SliceTimes()


def test_a_table_without_the_column_has_no_times() -> None:
    collected = TimesOfRows(EventTimeColumn("other"), before_ms=NOON_MS)
    collected.add(pa.RecordBatch.from_pydict({"at": milliseconds(1)}))
    assert collected.result == SliceTimes()


def test_late_rows_are_counted_by_hour() -> None:
    rows = milliseconds(NOON_MS - 1, NOON_MS - HOUR_MS - 1, NOON_MS - HOUR_MS - 2, 1, NOON_MS, None)
    times = times_of(rows, late_before_ms=NOON_MS, before_ms=NOON_MS + 1)
    assert times.late == {"1970-01-01T00": 1, "2026-01-02T10": 2, "2026-01-02T11": 1}
    assert times_of(rows, late_before_ms=None).late == {}


def test_the_number_of_hours_is_bounded() -> None:
    rows = milliseconds(*(NOON_MS - hour * HOUR_MS - 1 for hour in range(MAX_LATE_HOURS + 10)))
    late = times_of(rows, late_before_ms=NOON_MS).late
    assert (len(late), late[OLDER], late["2026-01-02T11"]) == (MAX_LATE_HOURS + 1, 10, 1)
    again = late_rows([late, late])
    assert (len(again), again[OLDER], sum(again.values())) == (MAX_LATE_HOURS + 1, 20, 2 * (MAX_LATE_HOURS + 10))
