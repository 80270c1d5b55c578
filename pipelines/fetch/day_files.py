"""The Parquet files of one slice in a table with folders of days: one for each open day, and one for all other rows."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.slice_file import ROW_GROUP_BYTES, SliceFile
from pipelines.layout.event_days import EventDays
from pipelines.layout.layout import NO_DAY
from pipelines.ledger.slice_facts import DataFile

_MAX_WAITING_BYTES = 2 * ROW_GROUP_BYTES
"""The rows of all open days that wait in memory. One day has as much, so this is little more than for one file."""


class DayFiles:
    """A context manager that writes the files of a slice. A day has a file from its first row on.

    Attributes:
        rows: the number of rows.
    """

    def __init__(self, task: FetchTask, unforced: set[Path] | None = None) -> None:
        self.rows = 0
        self._task = task
        self._unforced = unforced
        self._layout = task.layout
        self._days = EventDays(self._layout, task.loaded_at_us)
        self._by_day: dict[date | None, SliceFile] = {}
        self._open_files = ExitStack()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the order of their offsets."""
        self.rows += batch.num_rows
        for day, rows in self._days.split(batch):
            self._file(day).write(rows)
        # Many open days may not need more memory than one day. The day with the most rows is written, so that row
        # groups stay large.
        while sum(file.waiting_bytes for file in self._by_day.values()) > _MAX_WAITING_BYTES:
            max(self._by_day.values(), key=lambda file: file.waiting_bytes).flush()

    def _file(self, day: date | None) -> SliceFile:
        if day not in self._by_day:
            # All rows without an open day share one file, whatever times their producers claim (fault L19).
            folder = f"{self._layout.partition_column}={NO_DAY if day is None else day.isoformat()}"
            file = SliceFile(replace(self._task, folder=folder), self._unforced)
            self._by_day[day] = self._open_files.enter_context(file)
        return self._by_day[day]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files, the oldest day first, after they are complete. The file without a day is the last one."""
        days = sorted(self._by_day, key=lambda day: day or date.max)
        return tuple(file for day in days for file in self._by_day[day].files)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the files, as SliceFile does."""
        self._open_files.__exit__(kind, error, trace)
