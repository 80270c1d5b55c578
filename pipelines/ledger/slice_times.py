"""The event times of the rows of one slice: the largest one, and how many rows are late.

A worker looks at the event times of each batch. A time after the load began belongs to a wrong clock, and does not
count: no such record can prove that later ones will follow.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.ledger.event_time import LateRows, late_rows, latest

RECORD_TIME = "timestamp"
"""The setting that stands for the record's own time."""
_HOUR_MS = 3_600_000
_PER_MS: Mapping[str, int] = {"ms": 1, "us": 1_000, "ns": 1_000_000}


class EventTimeColumn(NamedTuple):
    """The column from which workers read event times.

    Args:
        name: the column of the table.
        late_before_ms: rows with an earlier time are late; None if no valid-through was announced.
    """

    name: str
    late_before_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTimes:
    """The largest event time of a slice, in ms since 1970, and its late rows."""

    max_ms: int | None = None
    late: LateRows = field(default_factory=dict)


class TimesOfRows:
    """Collects the event times of a slice, batch by batch. Times from `before_ms` on are those of wrong clocks."""

    def __init__(self, column: EventTimeColumn, *, before_ms: int) -> None:
        self._column, self._before_ms = column, before_ms
        self._max_ms: int | None = None
        self._late: Counter[str] = Counter()

    @property
    def result(self) -> SliceTimes:
        """The event times of all batches so far."""
        return SliceTimes(max_ms=self._max_ms, late=late_rows([self._late]))

    def add(self, rows: pa.RecordBatch) -> None:
        """Look at the rows of a batch. A column whose type holds no times is left out."""
        index = rows.schema.get_field_index(self._column.name)
        times = times_as_integers(rows.column(index)) if index >= 0 else None
        if times is None:
            return
        numbers, per_ms = times
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] is None:
            return
        self._max_ms = latest(self._max_ms, _largest(numbers, bounds["max"], self._before_ms * per_ms, per_ms))
        late_before_ms = self._column.late_before_ms
        if late_before_ms is not None and bounds["min"] < late_before_ms * per_ms:
            late = numbers.filter(pc.less(numbers, late_before_ms * per_ms)).to_numpy()
            self._late.update(_by_hour(late // (per_ms * _HOUR_MS)))


def times_as_integers(column: pa.Array) -> tuple[pa.Array, int] | None:
    """The times as integers, and how many of their units a millisecond has; None if the column holds no times."""
    kind = column.type
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.unit == "s"):
        column = column.cast(pa.timestamp("ms"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        return column.view(pa.int64()), _PER_MS[kind.unit]
    return (column, 1) if kind == pa.int64() else None


def is_time(kind: pa.DataType) -> bool:
    """Whether a column of this type holds event times. A `long` counts as ms since 1970."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or kind == pa.int64())


def _largest(numbers: pa.Array, largest: int, before: int, per_ms: int) -> int | None:
    """The largest number below `before`, in ms; None if all numbers are larger, or before 1970."""
    if largest >= before:
        largest = pc.max(numbers.filter(pc.less(numbers, before))).as_py()
    return None if largest is None or largest < 0 else largest // per_ms


def _by_hour(hours: npt.NDArray[np.int64]) -> Mapping[str, int]:
    numbers, counts = np.unique(hours, return_counts=True)
    return dict(zip(np.datetime_as_string(numbers.astype("datetime64[h]")).tolist(), counts.tolist(), strict=True))
