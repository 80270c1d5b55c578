"""Hours and days have the bounds and the partition keys that Dagster gives them, also when clocks change."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from resources.settings.time_windows import TimeWindows, WindowLength, edges_of

HOUR_MS = 3_600_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("length", "zone", "first", "count"),
    [
        ("hourly", "UTC", "2026-03-28T22:00", 5),
        ("hourly", "Europe/Berlin", "2026-03-28T22:00", 5),  # from two o'clock to three
        ("hourly", "Europe/Berlin", "2026-10-24T22:00", 6),  # three o'clock comes after two hours called two
        ("daily", "UTC", "2026-03-28T00:00", 3),
        ("daily", "Europe/Berlin", "2026-03-27T23:00", 4),
        ("daily", "America/New_York", "2026-10-30T04:00", 4),
        ("daily", "America/Havana", "2026-10-30T04:00", 4),  # has two midnights on 1 November
        ("daily", "Africa/Cairo", "2026-04-22T22:00", 4),  # has no midnight on 24 April
        ("daily", "Asia/Kolkata", "2026-01-01T18:30", 3),
    ],
)
def test_windows_and_keys_are_those_of_dagster(length: WindowLength, zone: str, first: str, count: int) -> None:
    windows = TimeWindows.of(length, zone)
    starts = [ms(first)]
    while len(starts) < count:
        starts.append(windows.end_of(starts[-1]))
    begin = windows.key(starts[0])
    make = dg.HourlyPartitionsDefinition if length == "hourly" else dg.DailyPartitionsDefinition
    partitions = make(begin, timezone=zone)
    theirs = partitions.get_partition_keys(datetime(2027, 1, 1, tzinfo=UTC))[:count]
    assert list(map(windows.key, starts)) == theirs
    for start, key in zip(starts, theirs, strict=True):
        bounds = partitions.time_window_for_partition_key(key)
        assert (start, windows.end_of(start)) == tuple(int(time.timestamp()) * 1000 for time in bounds)
        assert windows.start_of(start) == windows.start_of(windows.end_of(start) - 1) == start


def test_a_day_has_as_many_hours_as_its_zone_gives_it() -> None:
    berlin = TimeWindows.of("daily", "Europe/Berlin")
    days = ["2026-03-28T23:00", "2026-10-24T22:00", "2026-01-01T23:00"]
    assert [(berlin.end_of(ms(day)) - ms(day)) // HOUR_MS for day in days] == [23, 25, 24]


def test_the_first_window_is_read_in_its_zone() -> None:
    assert TimeWindows.of("hourly", "Europe/Berlin").first("2026-01-31T07:00") == ms("2026-01-31T06:00")
    assert TimeWindows.of("daily", "Europe/Berlin").first("2026-01-31") == ms("2026-01-30T23:00")


def test_the_edges_of_windows_are_their_starts_and_ends() -> None:
    hours = TimeWindows.of("hourly", "UTC")
    assert edges_of(hours, [0, HOUR_MS, 5 * HOUR_MS]) == [time * HOUR_MS for time in (0, 1, 2, 5, 6)]
    assert timedelta(milliseconds=hours.end_of(0)) == timedelta(hours=1)
