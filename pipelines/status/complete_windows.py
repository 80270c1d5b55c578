"""The complete hours or days of a table: reads what is new in its log, and counts the rows of the windows to report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow.fs as pafs

from pipelines.ledger.ledger import LedgerEntry
from pipelines.status.hour_counts import counts_in_files, first_time_ms, hour_counts
from pipelines.status.window_progress import WindowProgress
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.settings.time_windows import FIRST_MS, TimeWindows, edges_of
from resources.stores.lake import filesystem, lake_errors

_MAX_ENTRIES = 1000
"""The maximum number of entries of a log that one look reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowReport:
    """One complete hour or day.

    Args:
        start_ms: its start.
        rows: its rows at the version.
        late_rows: how many of them arrived since it was reported before.
        version: the version of the table.
        valid_through_ms: the valid-through of this version.
    """

    start_ms: int
    rows: int
    late_rows: int
    version: int
    valid_through_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteWindows:
    """The windows of a table, at its newest version.

    Args:
        table: the table.
        windows: its hours or days.
        progress: how far they were reported.
        snapshot: the newest version.
    """

    table: LakeTable
    windows: TimeWindows
    progress: WindowProgress
    snapshot: TableSnapshot

    @classmethod
    def look(
        cls, table: LakeTable, windows: TimeWindows, first_ms: int, progress: WindowProgress | None
    ) -> Self | None:
        """The windows to report now; None if there is no table, or if nothing has changed.

        Only the newest entry is read before the first report, and later the entries that are new.

        Raises:
            LoadError: the table cannot be read, or its rows do not agree with its cursors.
        """
        identity = f"{windows.length} {windows.time_zone} {first_ms}"
        if progress and progress.identity != identity:
            progress = None
        # The time of the entry shows whether another table with as many versions is there now.
        written_ns = table.written_ns(progress.version) if progress and progress.is_done else None
        if progress and written_ns is not None and written_ns == progress.written_ns:
            return None
        snapshot = table.existing()
        if snapshot is None or snapshot.entry is None:
            return None
        if progress is None or progress.table != snapshot.table_id or progress.version > snapshot.version:
            begin = WindowProgress.begin(identity, snapshot.table_id, snapshot.version, first_ms)
            progress = begin.at(snapshot.entry.event_time, windows)
        look = cls(table=table, windows=windows, progress=progress, snapshot=snapshot)
        return replace(look, progress=look._after_new_entries())

    def _after_new_entries(self) -> WindowProgress:
        """The progress after the entries that were not read yet, the oldest first."""
        progress = self.progress
        newest = min(self.snapshot.version, progress.version + _MAX_ENTRIES)
        for commit in reversed(list(self.table.commits(newest, after=progress.version))):
            if commit.entry is not None:
                progress = progress.after(commit.version, commit.entry, self.windows, self._rows_of(progress))
        return replace(progress, version=newest, written_ns=self.table.written_ns(newest))

    def _rows_of(self, progress: WindowProgress) -> Callable[[LedgerEntry], Mapping[int, int]]:
        """Counts the rows that a commit added to windows which were reported."""

        def count(entry: LedgerEntry) -> Mapping[int, int]:
            starts = list(self._starts(progress.first_ms, progress.reported_ms))
            if not starts or entry.event_time is None:
                return {}
            paths = [path for committed in entry.ranges for path in committed.paths]
            with lake_errors(self.table.uri):
                infos = filesystem(self.table.uri, self.table.lake.options).get_file_info(paths)
            if any(info.type == pafs.FileType.NotFound for info in infos):
                return dict.fromkeys(starts, 0)  # they were compacted and deleted, so each window can have such rows
            edges = [*starts, progress.reported_ms]
            counts = counts_in_files(self.table, self.snapshot.layout, entry.event_time.column, edges, paths)
            return {start: rows for start, rows in counts.items() if rows}

        return count

    def _starts(self, start_ms: int, stop_ms: int) -> Iterator[int]:
        while start_ms < stop_ms:
            yield start_ms
            start_ms = self.windows.end_of(start_ms)

    def due(self, limit: int) -> Sequence[int]:
        """The starts of at most so many windows that are to be reported; none before all entries were read."""
        return self.progress.due(self.windows, limit) if self.progress.version == self.snapshot.version else ()

    def reports(self, starts: Sequence[int]) -> Sequence[WindowReport]:
        """The reports of these windows.

        Raises:
            LoadError: a file of the table cannot be read.
        """
        times = self.snapshot.entry.event_time if self.snapshot.entry else None
        if times is None or times.valid_through_ms is None:
            return ()
        edges = edges_of(self.windows, starts)
        counts = hour_counts(self.table, self.snapshot, times.column, edges, only=starts)
        return [
            WindowReport(
                start_ms=start,
                rows=counts[start],
                late_rows=self.progress.again.get(start, 0),
                version=self.snapshot.version,
                valid_through_ms=times.valid_through_ms,
            )
            for start in starts
        ]

    def reported(self, starts: Sequence[int]) -> Self:
        """The same after these windows were reported."""
        return replace(self, progress=self.progress.with_reported(starts, self.windows))


def first_window(table: LakeTable, windows: TimeWindows) -> int | None:
    """The start of the first window from which a table has rows; None if it has none, or proves no time yet.

    Raises:
        LoadError: the table cannot be read.
    """
    snapshot = table.existing()
    times = snapshot.entry.event_time if snapshot and snapshot.entry else None
    if snapshot is None or times is None or times.valid_through_ms is None:
        return None
    first_ms = first_time_ms(table, snapshot, times.column, FIRST_MS)
    return None if first_ms is None else windows.start_of(first_ms)
