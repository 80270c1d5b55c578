"""Finds out from the entries of a table which hours or days are to be reported as complete.

All windows from the first one to `reported_ms` were reported. The entries that were written since then say three
things:

- the valid-through rose: the windows that end before it are to be reported;
- it moved back: the windows after it are reported again, when they are complete again;
- rows arrived late: the windows that they belong to are reported again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from pipelines.ledger.event_time import OLDER, EventTime
from pipelines.ledger.ledger import LedgerEntry
from resources.settings.time_windows import TimeWindows

_HOUR_MS = 3_600_000
MAX_AGAIN = 100
"""The maximum number of windows with late rows that are remembered one by one."""
_OTHER_ROWS = {"recreation", "setting", "backfill"}
"""Reasons for which a valid-through moves back, and after which every window may have other rows."""

OlderRows = Callable[[LedgerEntry], Mapping[int, int]]
"""Counts the rows that a commit added by window, because its entry does not count all of its late rows by hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProgress:
    """How far the windows of one table were reported.

    Args:
        identity: the settings of the windows. With other settings, everything is reported again.
        table: the id of the table. Another table is reported from its first window on.
        version: the version of the table up to which entries were read.
        written_ns: when the entry of this version was written, in ns since 1970; None if it was not the newest.
        first_ms: the start of the first window.
        reported_ms: the end of the last window that was reported; `first_ms` before the first report.
        complete_ms: the end of the last complete window; None if no time is proven.
        again: windows before `reported_ms` that are to be reported again, by their start, with their late rows.
    """

    identity: str
    table: str
    version: int
    written_ns: int | None = None
    first_ms: int
    reported_ms: int
    complete_ms: int | None = None
    again: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def begin(cls, identity: str, table: str, version: int, first_ms: int) -> Self:
        """The progress before the first report. The entries after this version are read later."""
        return cls(identity=identity, table=table, version=version, first_ms=first_ms, reported_ms=first_ms)

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be reported until the table has another version."""
        return not self.again and (self.complete_ms is None or self.complete_ms <= self.reported_ms)

    def at(self, times: EventTime | None, windows: TimeWindows) -> Self:
        """The progress when the newest entry has this event time."""
        complete_ms = None
        if times is not None and times.valid_through_ms is not None:
            complete_ms = windows.start_of(times.valid_through_ms)
        return replace(self, complete_ms=complete_ms)

    def after(self, version: int, entry: LedgerEntry, windows: TimeWindows, older_rows: OlderRows) -> "WindowProgress":
        """The progress after one more entry of the table."""
        times = entry.event_time
        after: WindowProgress = replace(self.at(times, windows), version=version)
        if times is None or times.moved_back_by in _OTHER_ROWS or after.complete_ms is None:
            return _back_to(after, self.first_ms)
        after = _back_to(after, after.complete_ms)
        late = _late_rows(times, windows, self.first_ms)
        if times.late.get(OLDER):
            late = {**older_rows(entry), **late}
        again = Counter(after.again)
        again.update(late)
        return _with_again(after, again)

    def due(self, windows: TimeWindows, limit: int) -> Sequence[int]:
        """The starts of at most so many windows that are to be reported, in order; new ones come before late rows."""
        starts: list[int] = []
        start = self.reported_ms
        while len(starts) < limit and self.complete_ms is not None and windows.end_of(start) <= self.complete_ms:
            starts.append(start)
            start = windows.end_of(start)
        return sorted([*starts, *sorted(self.again)[: limit - len(starts)]])

    def with_reported(self, starts: Sequence[int], windows: TimeWindows) -> Self:
        """The progress after these of the due windows were reported."""
        ends = [windows.end_of(start) for start in starts]
        again = {start: rows for start, rows in self.again.items() if start not in starts}
        return replace(self, reported_ms=max([self.reported_ms, *ends]), again=again)


def _back_to(progress: WindowProgress, time_ms: int) -> WindowProgress:
    """The progress when all windows from a time on are to be reported again."""
    reported_ms = max(progress.first_ms, min(progress.reported_ms, time_ms))
    return _with_again(replace(progress, reported_ms=reported_ms), progress.again)


def _with_again(progress: WindowProgress, again: Mapping[int, int]) -> WindowProgress:
    """The progress with these windows to report again, as far as they were reported.

    If they are many, all windows from the first of them on are reported again.
    """
    again = {start: rows for start, rows in again.items() if progress.first_ms <= start < progress.reported_ms}
    if len(again) <= MAX_AGAIN:
        return replace(progress, again=again)
    return replace(progress, again={}, reported_ms=min(again))


def _late_rows(times: EventTime, windows: TimeWindows, first_ms: int) -> Mapping[int, int]:
    """The late rows by window. An hour can be in two days of a zone whose midnight is not at a full hour of UTC."""
    late: Counter[int] = Counter()
    for hour, rows in times.late.items():
        hour_ms = 0 if hour == OLDER else int(np.datetime64(hour, "h").astype(np.int64)) * _HOUR_MS
        if hour != OLDER and hour_ms > first_ms - _HOUR_MS:
            for start in {windows.start_of(hour_ms), windows.start_of(hour_ms + _HOUR_MS - 1)}:
                late[start] += rows
    return late
