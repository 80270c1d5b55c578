"""Compare a table's rows with what the brokers have, row by row: key, value, time and headers.

Both sides are read in batches, so memory is bounded however much there is. What is equal costs no Python object per
row: rows are found by where they stand, and whole columns are compared.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.loading.pieces import Interval
from pipelines.loading.rows import FILE_SCHEMA
from pipelines.mending.rows import LiveRows, Numbers, numbers

COMPARED = ("key", "value", "timestamp", "timestampType", "headers")
_PIECE_BYTES = 32 * 1024 * 1024
_PIECE_ROWS = 1_000_000
_FIRST = 5
_NONE = pa.RecordBatch.from_pylist([], schema=FILE_SCHEMA)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """How many rows, and the offsets of the first few of them."""

    count: int = 0
    first: tuple[int, ...] = ()

    @classmethod
    def of(cls, offsets: Numbers) -> Self:
        """Of all of `offsets`."""
        return cls(count=len(offsets), first=tuple(np.unique(offsets)[:_FIRST].tolist()))

    def __add__(self, other: Self) -> Self:
        first = sorted({*self.first, *other.first})[:_FIRST]
        return type(self)(count=self.count + other.count, first=tuple(first))

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.first) == _FIRST else ""
        rows = "row" if self.count == 1 else "rows"
        return f"{self.count} {rows}, at offsets {', '.join(map(str, self.first))}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of comparing: rows that are equal, that differ, that only the table has, or only the broker.

    `copies` are rows that the table has more than once: all but one of each.
    """

    equal: int = 0
    differing: Offsets = Offsets()
    only_in_table: Offsets = Offsets()
    only_on_broker: Offsets = Offsets()
    copies: Offsets = Offsets()

    @property
    def unlike(self) -> dict[str, Offsets]:
        """What is not equal, by kind."""
        return {name: getattr(self, name) for name in ("differing", "only_in_table", "only_on_broker", "copies")}

    @property
    def same(self) -> bool:
        """Whether both have the same rows."""
        return not any(found.count for found in self.unlike.values())

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it; `offsets` are the first few of each kind."""
        return {
            "equal": self.equal,
            **{name: found.count for name, found in self.unlike.items()},
            "offsets": {name: list(found.first) for name, found in self.unlike.items() if found.count},
        }

    def __add__(self, other: Self) -> Self:
        unlike = {name: found + other.unlike[name] for name, found in self.unlike.items()}
        return type(self)(equal=self.equal + other.equal, **unlike)


def compare(batches: Iterable[pa.RecordBatch], rows: LiveRows, interval: Interval) -> Iterator[tuple[int, Comparison]]:
    """Compare piece by piece: the offset up to which it is done, and what came of that piece.

    Args:
        batches: all that the broker has in the interval, with the columns of a file, in order of offset and inner.
        rows: the table's.
        interval: what to compare.
    """
    for piece in _pieces(batches, interval):
        yield piece.stop, piece.compared(rows)


class _Piece:
    """The broker's rows of offsets `[start, stop)`."""

    def __init__(self, start: int, stop: int, rows: pa.RecordBatch) -> None:
        self.stop = stop
        self._start = start
        self._rows = rows.select(COMPARED)
        self._offsets, self._inner = numbers(rows.column("offset")), numbers(rows.column("inner"))
        self._seen = np.zeros(rows.num_rows, np.bool_)

    def compared(self, rows: LiveRows) -> Comparison:
        done = Comparison()
        for batch in rows.between(self._start, self.stop, COMPARED):
            done += self._with(batch)
        return done + Comparison(only_on_broker=Offsets.of(self._offsets[~self._seen]))

    def _with(self, batch: pa.RecordBatch) -> Comparison:
        offsets = numbers(batch.column("offset"))
        at, copies = self._places(offsets, numbers(batch.column("inner")))
        known = (at >= 0) & ~copies
        ours = batch.select(COMPARED)
        if not known.all():
            ours = ours.filter(pa.array(known))
        differ = _differences(ours, self._taken(at[known]))
        return Comparison(
            equal=int(np.count_nonzero(~differ)),
            differing=Offsets.of(offsets[known][differ]),
            only_in_table=Offsets.of(offsets[at < 0]),
            copies=Offsets.of(offsets[copies]),
        )

    def _places(self, offsets: Numbers, inner: Numbers) -> tuple[Numbers, Mask]:
        """Which of the broker's rows each is, -1 for none; and whether that row was there before.

        Rows of one compressed message of 0.7 share their offset and are counted up by `inner`.
        """
        at: Numbers = np.searchsorted(self._offsets, offsets) + inner
        good = (at >= 0) & (at < len(self._seen))
        there = at[good]
        good[good] = (self._offsets[there] == offsets[good]) & (self._inner[there] == inner[good])
        at[~good] = -1
        copies = np.ones(len(at), np.bool_)
        copies[np.unique(at, return_index=True)[1]] = False
        copies[good] |= self._seen[at[good]]
        copies &= good
        self._seen[at[good]] = True
        return at, copies

    def _taken(self, at: Numbers) -> pa.RecordBatch:
        if len(at) and (np.diff(at) == 1).all():
            return self._rows.slice(int(at[0]), len(at))  # the usual case, and without a copy
        return self._rows.take(pa.array(at))


def _pieces(batches: Iterable[pa.RecordBatch], interval: Interval) -> Iterator[_Piece]:
    """Pieces that follow each other from the interval's start to its stop; rows of one offset are in one piece."""
    at = interval.start
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        full = sum(one.nbytes for one in waiting) >= _PIECE_BYTES or sum(map(len, waiting)) >= _PIECE_ROWS
        if not full:
            continue
        rows = pa.concat_batches(waiting)
        offsets = numbers(rows.column("offset"))
        last = int(offsets[-1])
        cut = int(np.searchsorted(offsets, last))
        if cut:
            yield _Piece(at, last, rows.slice(0, cut))
            at = last
        waiting = [rows.slice(cut)]
    yield _Piece(at, interval.stop, pa.concat_batches(waiting or [_NONE]))


def _differences(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> Mask:
    differ = np.zeros(ours.num_rows, np.bool_)
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        if not mine.equals(other):
            differ |= _differ(mine, other)
    return differ


def _differ(mine: pa.Array, other: pa.Array) -> Mask:
    """Where two columns differ; that both have nothing there is no difference."""
    if pa.types.is_nested(mine.type):
        return np.isin(np.arange(len(mine)), list(_parts_that_differ(mine, other)))
    unlike = pc.or_(
        pc.fill_null(pc.not_equal(mine, other), fill_value=False), pc.not_equal(mine.is_null(), other.is_null())
    )
    found: Mask = unlike.to_numpy(zero_copy_only=False)
    return found


def _parts_that_differ(mine: pa.Array, other: pa.Array) -> Iterator[int]:
    """By halving, as lists have no other comparison: quick where few differ."""
    spans = [(0, len(mine))]
    while spans:
        start, size = spans.pop()
        if mine.slice(start, size).equals(other.slice(start, size)):
            continue
        if size == 1:
            yield start
        else:
            spans += [(start, size // 2), (start + size // 2, size - size // 2)]
