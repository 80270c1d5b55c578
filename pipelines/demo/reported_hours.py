"""The hours that the sensor has reported as complete, by day, as the demo prints and checks them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, Self

import dagster as dg


class ReportedHour(NamedTuple):
    """A complete hour: the key of its partition, such as `2026-01-31-07:00`, and its numbers of rows."""

    key: str
    rows: int
    late: int

    @classmethod
    def of(cls, event: dg.AssetMaterialization) -> Self:
        """The hour of an event of the sensor."""
        rows, late = (event.metadata[name].value for name in ("dagster/partition_row_count", "late_rows"))
        assert isinstance(rows, int)
        assert isinstance(late, int)
        return cls(key=str(event.partition), rows=rows, late=late)


@dataclass(slots=True)
class ReportedHours:
    """The newest report of each hour."""

    hours: dict[str, ReportedHour] = field(default_factory=dict)

    def add(self, reports: Sequence[ReportedHour]) -> Sequence[ReportedHour]:
        """Take what a tick has reported, and return those of the hours that were reported before."""
        again = [report for report in reports if report.key in self.hours]
        self.hours |= {report.key: report for report in reports}
        return again

    @property
    def rows(self) -> int:
        """The rows of all complete hours."""
        return sum(hour.rows for hour in self.hours.values())


def by_day(hours: Sequence[ReportedHour]) -> list[dict[str, Any]]:
    """A line for each day: how many hours, the first and the last of them, and their rows."""
    days = {day: list(own) for day, own in groupby(sorted(hours), key=lambda hour: hour.key[:10])}
    return [
        {
            "day": day,
            "hours": len(own),
            "first": own[0].key[11:],
            "last": own[-1].key[11:],
            "flights": sum(hour.rows for hour in own),
            "late": sum(hour.late for hour in own),
        }
        for day, own in days.items()
    ]
