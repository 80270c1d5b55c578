"""Compare a table's rows with the brokers' records, row by row: key, value, time and headers.

Both sides are read in batches, so the memory is bounded. Equal rows cost no Python objects: rows are matched by their
offsets, and whole columns are compared.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.model import OffsetRange
from kafka_io.values.column_types import content_type, with_content_type
from pipelines.comparison.empty_values import differs_in_values
from pipelines.comparison.table_rows import LiveRows, OffsetArray, numbers
from pipelines.layout.columns import TOMBSTONE_COLUMN
from pipelines.layout.layout import TableLayout
from pipelines.layout.rows import RAW_TIME_COLUMN
from resources.printed import printed_property

_COMPARED = ("key", "value", "timestamp", RAW_TIME_COLUMN, "timestampType", "headers")
_PIECE_BYTES = 32 * 1024 * 1024
_PIECE_ROWS = 1_000_000
_MAX_LISTED = 5

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOffsets:
    """A number of rows, and the offsets of the first few of them."""

    count: int = 0
    first: tuple[int, ...] = ()

    @classmethod
    def of(cls, offsets: OffsetArray) -> Self:
        """The number of `offsets`, and the first few of them."""
        return cls(count=len(offsets), first=tuple(np.unique(offsets)[:_MAX_LISTED].tolist()))

    def __add__(self, other: Self) -> Self:
        first = sorted({*self.first, *other.first})[:_MAX_LISTED]
        return type(self)(count=self.count + other.count, first=tuple(first))

    def printed(self) -> int:
        """The number. `Comparison` prints the offsets of all kinds together."""
        return self.count

    def __str__(self) -> str:
        and_more = ", ..." if self.count > len(self.first) == _MAX_LISTED else ""
        rows = "row" if self.count == 1 else "rows"
        return f"{self.count} {rows}, at offsets {', '.join(map(str, self.first))}{and_more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences between the rows of a table and the records of the brokers.

    Args:
        equal: the number of equal rows.
        differing: rows that both have, with different contents.
        only_in_table: rows that the broker does not have.
        only_on_broker: rows that the table does not have.
        copies: rows that the table has again.
    """

    equal: int = 0
    differing: ComparedOffsets = ComparedOffsets()
    only_in_table: ComparedOffsets = ComparedOffsets()
    only_on_broker: ComparedOffsets = ComparedOffsets()
    copies: ComparedOffsets = ComparedOffsets()

    @property
    def unlike(self) -> dict[str, ComparedOffsets]:
        """The rows that are not equal, by kind."""
        return {name: getattr(self, name) for name in ("differing", "only_in_table", "only_on_broker", "copies")}

    @property
    def same(self) -> bool:
        """Whether the table and the broker have the same rows."""
        return not any(rows.count for rows in self.unlike.values())

    @printed_property
    def offsets(self) -> dict[str, tuple[int, ...]]:
        """The first offsets of each kind of difference."""
        return {name: rows.first for name, rows in self.unlike.items() if rows.count}

    def __add__(self, other: Self) -> Self:
        unlike = {name: rows + other.unlike[name] for name, rows in self.unlike.items()}
        return type(self)(equal=self.equal + other.equal, **unlike)


def compare(
    batches: Iterable[pa.RecordBatch],
    rows: LiveRows,
    compared: OffsetRange,
    *,
    inferred: Iterable[pa.Field] = (),
    without: Collection[str] = (),
) -> Iterator[tuple[int, Comparison]]:
    """Compare piece by piece; gives the offset at which each piece ends, and the result of the piece.

    Args:
        batches: the broker's rows in the compared range, with the columns of a file, in order of offset and inner.
        rows: the table's rows.
        compared: the offsets to compare.
        inferred: columns in which null also stands for {} and [] (see `empty_values`).
        without: columns that are not compared.
    """
    fields = {column.name: column for column in inferred}
    columns = [name for name in compared_columns(rows.layout) if name not in without]
    for piece in _pieces(batches, compared, rows.layout, columns):
        yield piece.stop, piece.compared(rows, fields)


def compared_columns(layout: TableLayout) -> list[str]:
    """The columns that are compared. The reason in `_error` is not: another version may give another one."""
    typed = [TOMBSTONE_COLUMN, *layout.values.names] if layout.is_typed else []
    return [*map(layout.name, _COMPARED), *typed]


class _Piece:
    """The broker's rows of offsets `[start, stop)`."""

    def __init__(
        self, start: int, stop: int, rows: pa.RecordBatch, layout: TableLayout, columns: Sequence[str]
    ) -> None:
        self.stop = stop
        self._start = start
        self._columns = columns
        self._names = layout.name("offset"), layout.name("inner")
        self._rows = rows.select(self._columns)
        self._offsets, self._inner = (numbers(rows.column(name)) for name in self._names)
        self._seen = np.zeros(rows.num_rows, np.bool_)

    def compared(self, rows: LiveRows, inferred: Mapping[str, pa.Field]) -> Comparison:
        comparison = Comparison()
        for batch in rows.between(self._start, self.stop, self._columns):
            comparison += self._compare_batch(batch, inferred)
        return comparison + Comparison(only_on_broker=ComparedOffsets.of(self._offsets[~self._seen]))

    def _compare_batch(self, batch: pa.RecordBatch, inferred: Mapping[str, pa.Field]) -> Comparison:
        offsets, inner = (numbers(batch.column(name)) for name in self._names)
        indexes, copies = self._match(offsets, inner)
        matched = (indexes >= 0) & ~copies
        rows = batch.select(self._columns)
        if not matched.all():
            rows = rows.filter(pa.array(matched))
        differ = _differences(rows, self._take(indexes[matched]), inferred)
        return Comparison(
            equal=int(np.count_nonzero(~differ)),
            differing=ComparedOffsets.of(offsets[matched][differ]),
            only_in_table=ComparedOffsets.of(offsets[indexes < 0]),
            copies=ComparedOffsets.of(offsets[copies]),
        )

    def _match(self, offsets: OffsetArray, inner: OffsetArray) -> tuple[OffsetArray, Mask]:
        """For each row of the table: the index of the broker's row, or -1; and whether that row was matched before.

        In 0.7 the rows of one compressed message share their offset, and `inner` counts them from 0.
        """
        # The broker's rows are in order, so the first row of an offset plus `inner` is the only candidate.
        indexes: OffsetArray = np.searchsorted(self._offsets, offsets) + inner
        matched = (indexes >= 0) & (indexes < len(self._seen))
        candidates = indexes[matched]
        matched[matched] = (self._offsets[candidates] == offsets[matched]) & (self._inner[candidates] == inner[matched])
        indexes[~matched] = -1
        # A copy is any row but the first with its index in this batch, and every row matched in an earlier batch.
        copies = np.ones(len(indexes), np.bool_)
        copies[np.unique(indexes, return_index=True)[1]] = False
        copies[matched] |= self._seen[indexes[matched]]
        copies &= matched
        self._seen[indexes[matched]] = True
        return indexes, copies

    def _take(self, indexes: OffsetArray) -> pa.RecordBatch:
        if len(indexes) and (np.diff(indexes) == 1).all():
            return self._rows.slice(int(indexes[0]), len(indexes))  # the usual case: a slice copies nothing
        return self._rows.take(pa.array(indexes))


def _pieces(
    batches: Iterable[pa.RecordBatch], compared: OffsetRange, layout: TableLayout, columns: Sequence[str]
) -> Iterator[_Piece]:
    """Adjacent pieces from the range's start to its stop. All rows of one offset are in one piece."""
    start = compared.start
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        full = sum(rows.nbytes for rows in waiting) >= _PIECE_BYTES or sum(map(len, waiting)) >= _PIECE_ROWS
        if not full:
            continue
        rows = pa.concat_batches(waiting)
        offsets = numbers(rows.column(layout.name("offset")))
        last = int(offsets[-1])  # the next batch may have more rows of this offset
        cut = int(np.searchsorted(offsets, last))
        if cut:
            yield _Piece(start, last, rows.slice(0, cut), layout, columns)
            start = last
        waiting = [rows.slice(cut)]
    no_rows = pa.RecordBatch.from_pylist([], schema=layout.file_schema)
    yield _Piece(start, compared.stop, pa.concat_batches(waiting or [no_rows]), layout, columns)


def _differences(of_table: pa.RecordBatch, of_broker: pa.RecordBatch, inferred: Mapping[str, pa.Field]) -> Mask:
    differ = np.zeros(of_table.num_rows, np.bool_)
    for name in of_table.schema.names:
        table_column, broker_column = (_with_bits(rows.column(name)) for rows in (of_table, of_broker))
        if table_column.equals(broker_column):
            continue
        mask = _column_differences(table_column, broker_column)
        differ |= differs_in_values(table_column, broker_column, mask, inferred[name]) if name in inferred else mask
    return differ


def _with_bits(column: pa.Array) -> pa.Array:
    """The column with the bits of its floating-point numbers.

    NaN is not equal to itself (fault E03), and 0.0 is equal to -0.0.
    """
    kind = _bits_type(column.type)
    return column if kind == column.type else column.view(kind)


def _bits_type(kind: pa.DataType) -> pa.DataType:
    """The type with whole numbers of the same size in the place of floating-point numbers."""
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(_bits_type(member.type)) for member in kind])
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return with_content_type(kind, _bits_type(content_type(kind)))
    return {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(kind, kind)


def _column_differences(of_table: pa.Array, of_broker: pa.Array) -> Mask:
    """The rows in which two columns differ; two nulls are equal."""
    if pa.types.is_nested(of_table.type):
        return np.isin(np.arange(len(of_table)), list(_differing_rows(of_table, of_broker)))
    differ = pc.or_(
        pc.fill_null(pc.not_equal(of_table, of_broker), fill_value=False),
        pc.not_equal(of_table.is_null(), of_broker.is_null()),
    )
    mask: Mask = differ.to_numpy(zero_copy_only=False)
    return mask


def _differing_rows(of_table: pa.Array, of_broker: pa.Array) -> Iterator[int]:
    """Indexes at which two arrays of lists differ.

    Arrow cannot compare list arrays element by element, so this bisects: O(d log n) for d differences.
    """
    spans = [(0, len(of_table))]
    while spans:
        start, size = spans.pop()
        if of_table.slice(start, size).equals(of_broker.slice(start, size)):
            continue
        if size == 1:
            yield start
        else:
            spans += [(start, size // 2), (start + size // 2, size - size // 2)]
