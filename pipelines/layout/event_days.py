"""The days of rows, for tables that are partitioned by event time, and the bounds that keep their files few.

A slice has at most 16 open days, one after the other. They are chosen around the median day of the first rows that
have a time, so a few wrong clocks do not move them. A row of any other day, or without a time, gets no day: its
partition column is null. So a slice never has more than 17 files, whatever its records claim.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout.layout import TableLayout

MAX_OPEN_DAYS = 16
"""The maximum number of days of a slice that have a file."""
_DAYS_AFTER_MEDIAN = 8
_DAYS_AHEAD = 1  # clocks of producers may be fast, and their zones wrong
_DAY_US = 24 * 60 * 60 * 1_000_000
_EPOCH = date(1970, 1, 1)
EARLIEST_DAY = (date(2001, 1, 1) - _EPOCH).days
"""Days before this one are never open: clocks that were never set show 1970, 1980 or 2000."""
_NO_DAY = -(2**26)  # in microseconds it still is an integer of 64 bits

DayNumbers = npt.NDArray[np.int64]
"""Days since 1970; `_NO_DAY` stands for null."""


class EventDays:
    """Gives the rows of one slice their days. The first batch with times chooses the open days, first and last."""

    def __init__(self, layout: TableLayout, loaded_at_us: int) -> None:
        self._column = layout.time_column
        self._newest = loaded_at_us // _DAY_US + _DAYS_AHEAD
        self._open: tuple[int, int] | None = None

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[date | None, pa.RecordBatch]]:
        """Each day of the batch with its rows, in their order; None is the day of rows without an open day."""
        times = self._times(rows)
        if len(times) > times.null_count == 0:
            bounds = pc.min_max(times)
            if len(set(_day_numbers(pa.array([bounds["min"], bounds["max"]], times.type)))) == 1:
                times = times.slice(0, 1)  # the usual case: one look finds that all rows have the same day
        days = self._days(times)
        numbers = np.unique(days)
        for number in numbers.tolist():
            day = None if number == _NO_DAY else _EPOCH + timedelta(days=number)
            yield day, rows if len(numbers) == 1 else rows.filter(pa.array(days == number))

    def column(self, rows: pa.RecordBatch) -> pa.Array:
        """The values of the partition column."""
        days = self._days(self._times(rows))
        is_null = days == _NO_DAY
        return pa.array(np.where(is_null, 0, days).astype(np.int32), mask=is_null).cast(pa.date32())

    def _times(self, rows: pa.RecordBatch) -> pa.Array:
        """The column with the times; no value has had the field yet if the rows lack it."""
        if self._column in rows.schema.names:
            return rows.column(self._column)
        return pa.nulls(rows.num_rows, pa.date32())

    def _days(self, times: pa.Array) -> DayNumbers:
        """The day of each time."""
        days = _day_numbers(times)
        if self._open is None:
            possible = np.sort(days[(days >= EARLIEST_DAY) & (days <= self._newest)])
            if not len(possible):
                return np.full(len(days), _NO_DAY, np.int64)
            last = min(int(possible[len(possible) // 2]) + _DAYS_AFTER_MEDIAN, self._newest)
            self._open = max(last - MAX_OPEN_DAYS + 1, EARLIEST_DAY), last
        first, last = self._open
        return np.where((days >= first) & (days <= last), days, _NO_DAY)


def files_of_other_days(adds: pa.Table, layout: TableLayout) -> Iterator[tuple[str, date]]:
    """Path and day of each file of a day that has rows of other days, according to the statistics in the log.

    `adds` are the files of a table. The log may have rounded times to milliseconds. A file without statistics, which
    another program wrote, is not judged.
    """
    paths, days = (adds.column(name).to_pylist() for name in ("path", f"partition.{layout.partition_column}"))
    bounds = [_bound(adds, f"{edge}.{layout.time_column}") for edge in ("min", "max")]
    nulls = _bound(adds, f"null_count.{layout.time_column}")
    for path, day, first, last, null_count in zip(paths, days, *bounds, nulls, strict=True):
        if day is None:
            continue
        start = (day - _EPOCH).days * _DAY_US
        is_before, is_after = first is not None and first < start, last is not None and last > start + _DAY_US
        if is_before or is_after or null_count:
            yield unquote(path), day


def _bound(adds: pa.Table, name: str) -> list[int | None]:
    """A number of each file: microseconds if it is a date or a time."""
    if name not in adds.column_names:
        return [None] * adds.num_rows
    values: pa.ChunkedArray = adds.column(name)
    if pa.types.is_date(values.type):
        values = pc.multiply(values.cast(pa.int32()).cast(pa.int64()), _DAY_US)
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
    numbers: list[int | None] = values.to_pylist()
    return numbers


def _day_numbers(times: pa.Array) -> DayNumbers:
    """The days of dates, or of times in microseconds."""
    if pa.types.is_date(times.type):
        days: DayNumbers = pc.fill_null(times.cast(pa.int32()).cast(pa.int64()), _NO_DAY).to_numpy()
        return days
    numbers: DayNumbers = pc.fill_null(times.cast(pa.int64()), _NO_DAY * _DAY_US).to_numpy()
    return numbers // _DAY_US
