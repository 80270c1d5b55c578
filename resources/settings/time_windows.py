"""The hours or the days of a time zone, as intervals of ms since 1970, with the partition keys that Dagster gives them.

Hours are those of UTC, so the zone only gives them their names: it must differ from UTC by whole hours. Days follow the
zone, and have 23 or 25 hours when its clocks change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Literal, Self
from zoneinfo import ZoneInfo

WindowLength = Literal["hourly", "daily"]
FIRST_YEAR = 2001
"""No window begins before this year: clocks that were never set show 1970, 1980 or 2000."""
_LAST_YEAR = 2100
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindows:
    """All hours or all days of a time zone."""

    length: WindowLength
    time_zone: str = "UTC"

    @classmethod
    def of(cls, length: WindowLength, time_zone: str) -> Self:
        """The windows of this length.

        Raises:
            ValueError: there is no such time zone, or its hours are not those of UTC.
        """
        zone = _zone(time_zone)
        offsets = [
            datetime(year, month, 1, tzinfo=zone).utcoffset() for year in range(FIRST_YEAR, 2040) for month in (1, 7)
        ]
        if length == "hourly" and any(offset and offset % timedelta(hours=1) for offset in offsets):
            raise ValueError(
                f'time_zone: {time_zone} does not differ from UTC by whole hours; write "UTC", or complete = "daily"'
            )
        return cls(length=length, time_zone=time_zone)

    def start_of(self, time_ms: int) -> int:
        """The start of the window that contains a time."""
        if self.length == "hourly":
            return time_ms - time_ms % _HOUR_MS
        return self._midnight(self._local(time_ms).date())

    def end_of(self, start_ms: int) -> int:
        """The end of the window that begins at a time: where the next one begins."""
        if self.length == "hourly":
            return start_ms + _HOUR_MS
        return self._midnight(self._local(start_ms).date() + timedelta(days=1))

    def key(self, start_ms: int) -> str:
        """The partition key that Dagster gives the window. The second of two hours with one name gets its offset."""
        start = self._local(start_ms)
        if self.length == "daily":
            return f"{start:%Y-%m-%d}"
        return f"{start:%Y-%m-%d-%H:%M}" + (f"{start:%z}" if start.fold else "")

    def first(self, since: str) -> int:
        """The start of the first window that begins at a date or at a full hour, such as `2026-01-31T07:00`.

        Raises:
            ValueError: the text is no such time.
        """
        try:
            time = datetime.fromisoformat(since)
        except ValueError:
            time = None
        if time is None or time.tzinfo is not None or (time.minute, time.second, time.microsecond) != (0, 0, 0):
            raise ValueError('complete_since: write a date, or a full hour without a zone, such as "2026-01-31T07:00"')
        if self.length == "daily" and time.hour:
            raise ValueError('complete_since: complete = "daily" begins with a date')
        if not FIRST_YEAR <= time.year <= _LAST_YEAR:
            raise ValueError(f"complete_since: write a year from {FIRST_YEAR} to {_LAST_YEAR}")
        return self.start_of(int(time.replace(tzinfo=_zone(self.time_zone)).timestamp()) * 1000)

    def _local(self, time_ms: int) -> datetime:
        return datetime.fromtimestamp(time_ms // 1000, _zone(self.time_zone))

    def _midnight(self, day: date) -> int:
        # A day without a midnight begins when its clocks change. A day with two midnights begins at the first one.
        return int(datetime(day.year, day.month, day.day, tzinfo=_zone(self.time_zone)).timestamp()) * 1000


FIRST_MS = int(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()) * 1000


def edges_of(windows: TimeWindows, starts: Sequence[int]) -> list[int]:
    """The bounds of the windows with these starts, ascending."""
    return sorted({*starts, *(windows.end_of(start) for start in starts)})


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(f'time_zone: {name!r} is no time zone; write one such as "Europe/Berlin"') from error
