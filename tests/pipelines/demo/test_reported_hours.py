"""The hours that the sensor has reported, as the demo prints and checks them."""

import dagster as dg

from pipelines.demo.reported_hours import ReportedHour, ReportedHours, by_day


def reported(key: str, rows: int, late: int = 0) -> ReportedHour:
    """The hour of an event, as the sensor reports it."""
    metadata = {"dagster/partition_row_count": rows, "late_rows": late}
    return ReportedHour.of(dg.AssetMaterialization("hours", partition=key, metadata=metadata))


def test_a_later_report_of_an_hour_replaces_the_earlier_one() -> None:
    hours = ReportedHours()
    assert hours.add([reported("2026-01-30-07:00", 4), reported("2026-01-30-08:00", 2)]) == []
    late, same = reported("2026-01-30-07:00", 5, late=1), reported("2026-01-30-08:00", 2)
    assert hours.add([late, same, reported("2026-01-30-09:00", 1)]) == [late, same]
    assert hours.rows == 5 + 2 + 1


def test_the_hours_of_a_day_are_one_line() -> None:
    hours = [reported("2026-01-31-00:00", 0), reported("2026-01-30-23:00", 2, late=1), reported("2026-01-30-22:00", 4)]
    assert by_day(hours) == [
        {"day": "2026-01-30", "hours": 2, "first": "22:00", "last": "23:00", "flights": 6, "late": 1},
        {"day": "2026-01-31", "hours": 1, "first": "00:00", "last": "00:00", "flights": 0, "late": 0},
    ]
