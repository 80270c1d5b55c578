"""Count the rows of committed ranges, and find rows that are there more than once, in bounded memory.

Offset and, inside one compressed message of 0.7, `inner` identify a row of a range. From 0.8 on, where no row has a
broker, the offset alone identifies it: a position `inner` above 0 has no meaning there, and is counted (fault A05).
Files have the rows of a range in this order. So one pass over the rows counts them, and shows for each range whether
every row comes after the one before it; if so, no row is there twice. Ranges with several files, one for each day, do
not have this order. From 0.8 on the pass sets a bit for each of their offsets, which shows duplicate rows, as far as
these bits fit into memory. The rows of all other ranges without the order are sorted, in a second pass.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.verify.exact_file import NO_INNER, ExactFile
from pipelines.verify.range_file import Numbers, RangeColumns, Window, last_not_above

IDENTIFYING = ("broker", "partition", "offset", "inner", "loaded_at")
"""The columns that identify a row."""
_MAX_SORTED_ROWS = 1_000_000
_MAX_BITS_BYTES = 32 * 1024 * 1024
_ABSENT = NO_INNER

ReadRows = Callable[[Window], Iterable[pa.RecordBatch]]
"""Reads the columns IDENTIFYING of the rows with a loading time of the window, in any order of files."""


def partition_code(broker: int | None, partition: int) -> int:
    """A number that stands for a partition."""
    return ((-1 if broker is None else broker) << 32) + partition


class RangeCounts(NamedTuple):
    """The number of rows, of duplicate rows and of rows of its exact set of each range, and of further rows.

    `outside` counts the rows that belong to no range, and `misplaced` those with an `inner` that only 0.7 has.
    """

    rows: Numbers
    copies: Numbers
    in_set: Numbers
    outside: int
    misplaced: int


def count_rows(ranges: RangeColumns, codes: Numbers, window: Window, read: ReadRows, exact: ExactFile) -> RangeCounts:
    """Count the rows of the ranges.

    Args:
        ranges: all ranges of the window, which do not overlap.
        codes: the code of the partition of each range.
        window: their loading times.
        read: reads rows.
        exact: the exact sets of the ranges.
    """
    index, outside, misplaced = _RangeIndex(ranges, codes), 0, 0
    first_pass = _FirstPass(ranges, exact)
    for batch in read(window):
        rows = _Rows.of(batch)
        misplaced += _misplaced(batch)
        numbers = index.find(rows)
        outside += int(np.count_nonzero(numbers < 0))
        first_pass.add(numbers[numbers >= 0], rows.take(numbers >= 0))
    copies = first_pass.copies()
    for members, low, high in _sortable(ranges, first_pass):
        times = ranges.loaded_us[members]
        part = Window(int(times.min()), int(times.max()) + 1)
        _add_copies(copies, index, members, (low, high), map(_Rows.of, read(part)))
    return RangeCounts(first_pass.counts - copies, copies, first_pass.in_set, outside, misplaced)


def row_sets(ranges: RangeColumns, codes: Numbers, batches: Iterable[pa.RecordBatch]) -> list[ExactOffsets]:
    """The offsets of the rows of each range. The ranges do not overlap; the batches have the columns IDENTIFYING."""
    index, parts = _RangeIndex(ranges, codes), defaultdict[int, list[ExactOffsets]](list)
    for rows in map(_Rows.of, batches):
        numbers = index.find(rows)
        order = np.argsort(numbers, kind="stable")
        order = order[numbers[order] >= 0]
        numbers, offsets = numbers[order], rows.offsets[order]
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(bounds if len(numbers) else ()):
            parts[int(numbers[start])].append(ExactOffsets.of(offsets[start:stop]))
    return [ExactOffsets.union(parts[number]) for number in range(len(ranges.starts))]


def _misplaced(batch: pa.RecordBatch) -> int:
    """The number of rows that have a position inside a message of 0.7, and no broker of 0.7."""
    broker, inner = batch.column(0), batch.column(3)
    return int(pc.sum(pc.and_(pc.is_null(broker), pc.fill_null(pc.not_equal(inner, 0), False))).as_py() or 0)


class _Rows(NamedTuple):
    """The values that identify rows. Null is a number that no range has."""

    codes: Numbers
    offsets: Numbers
    inner: Numbers
    loaded_us: Numbers

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Self:
        """The rows of a batch with the columns IDENTIFYING, in this order."""
        broker, partition, offset, inner, loaded_at = (column.cast(pa.int64()) for column in batch.columns)
        inner = pc.if_else(pc.is_null(broker), None, inner)
        codes = pc.add(pc.multiply(pc.fill_null(broker, -1), 2**32), partition)
        return cls(*(_numbers(column) for column in (codes, offset, inner, loaded_at)))

    def take(self, chosen: npt.NDArray[np.bool_] | Numbers) -> Self:
        """The chosen rows."""
        return type(self)(*(column[chosen] for column in self))


def _numbers(column: pa.Array) -> Numbers:
    array: Numbers = pc.fill_null(column, _ABSENT).to_numpy()
    return array


class _RangeIndex:
    """Finds the range of a row: the one with its loading time and partition that contains its offset."""

    def __init__(self, ranges: RangeColumns, codes: Numbers) -> None:
        self._numbers = np.lexsort((ranges.starts, codes, ranges.loaded_us))
        ordered, codes = ranges.take(self._numbers), codes[self._numbers]
        self._starts, self._stops = ordered.starts, ordered.stops
        self._times, self._codes = np.unique(ordered.loaded_us), np.unique(codes)
        self._pairs, self._first = np.unique(self._pair(ordered.loaded_us, codes), return_index=True)
        self._last = np.append(self._first[1:], len(codes))

    def _pair(self, loaded_us: Numbers, codes: Numbers) -> Numbers:
        """A number for each pair of a time and a partition, in their order."""
        pairs: Numbers = np.searchsorted(self._times, loaded_us) * len(self._codes)
        pairs += np.searchsorted(self._codes, codes)
        return pairs

    def find(self, rows: _Rows) -> Numbers:
        """The number of each row's range; -1 for rows that are in none."""
        result: Numbers = np.full(len(rows.codes), -1, np.int64)
        known = np.flatnonzero(np.isin(rows.loaded_us, self._times) & np.isin(rows.codes, self._codes))
        pairs = self._pair(rows.loaded_us[known], rows.codes[known])
        exists = np.isin(pairs, self._pairs)
        known, groups = known[exists], np.searchsorted(self._pairs, pairs[exists])
        offsets = rows.offsets[known]
        places = last_not_above(self._starts, offsets, self._first[groups], self._last[groups])
        inside = (places >= self._first[groups]) & (offsets < self._stops[places])
        result[known[inside]] = self._numbers[places[inside]]
        return result


class _FirstPass:
    """The result of one pass over the rows, for each range.

    Attributes:
        counts: the number of rows.
        in_set: the number of rows that are in the exact set of the range, where none may be.
    """

    def __init__(self, ranges: RangeColumns, exact: ExactFile) -> None:
        size = len(ranges.starts)
        self._bits = _OffsetBits(ranges)
        self._exact, self._exact_first, self._exact_count = exact, ranges.exact_first, ranges.exact_count
        self.counts = np.zeros(size, np.int64)
        self.in_set = np.zeros(size, np.int64)
        self._unordered = np.zeros(size, np.bool_)
        self._offsets = np.full(size, _ABSENT, np.int64)
        self._inner = np.full(size, _ABSENT, np.int64)

    def add(self, numbers: Numbers, rows: _Rows) -> None:
        """Add rows of the ranges with these numbers."""
        if not len(numbers):
            return
        order = np.argsort(numbers, kind="stable")
        numbers, rows = numbers[order], rows.take(order)
        begins = np.append(True, numbers[1:] != numbers[:-1])
        ends = np.append(begins[1:], True)
        offsets_before = np.where(begins, self._offsets[numbers], np.roll(rows.offsets, 1))
        inner_before = np.where(begins, self._inner[numbers], np.roll(rows.inner, 1))
        same_offset = rows.offsets == offsets_before
        ascends = (rows.offsets > offsets_before) | (same_offset & (rows.inner > inner_before))
        self.counts += np.bincount(numbers, minlength=len(self.counts))
        self._unordered[numbers[~ascends]] = True
        self._offsets[numbers[ends]], self._inner[numbers[ends]] = rows.offsets[ends], rows.inner[ends]
        self._bits.add(numbers, rows)
        self._add_in_set(numbers, rows)

    def _add_in_set(self, numbers: Numbers, rows: _Rows) -> None:
        """Count the rows that are in the exact sets of their ranges."""
        has_set = self._exact_count[numbers] > 0
        if has_set.any():
            numbers, rows = numbers[has_set], rows.take(has_set)
            first, count = self._exact_first[numbers], self._exact_count[numbers]
            in_set = self._exact.contains(first, count, rows.offsets, rows.inner)
            self.in_set += np.bincount(numbers[in_set], minlength=len(self.in_set))

    @property
    def unordered(self) -> npt.NDArray[np.bool_]:
        """Whether a row did not come after all rows before it, in ranges whose offsets have no bits."""
        return self._unordered & ~self._bits.has_bits

    def copies(self) -> Numbers:
        """The number of duplicate rows of each range with bits; 0 for the others."""
        return self._bits.copies(self.counts)


class _OffsetBits:
    """A bit for each offset of the ranges with several files, as far as the bits fit into memory.

    Attributes:
        has_bits: whether a range has bits. It loses them with its first row with `inner`, because then an offset can
            have several rows.
    """

    def __init__(self, ranges: RangeColumns) -> None:
        sizes = np.where(ranges.files > 1, (ranges.stops - ranges.starts + 7) // 8, 0)
        sizes[sizes > _MAX_BITS_BYTES] = 0
        sizes[np.cumsum(sizes) > _MAX_BITS_BYTES] = 0
        self.has_bits = sizes > 0
        self._first: Numbers = np.cumsum(sizes) - sizes
        self._members = np.flatnonzero(sizes)
        self._starts = ranges.starts
        self._bits = np.zeros(int(sizes.sum()), np.uint8)

    def add(self, numbers: Numbers, rows: _Rows) -> None:
        """Set the bits of the offsets of rows of the ranges with these numbers."""
        self.has_bits[numbers[rows.inner != _ABSENT]] = False
        chosen = self.has_bits[numbers]
        if not chosen.any():
            return
        numbers, offsets = numbers[chosen], rows.offsets[chosen]
        places = np.sort(8 * self._first[numbers] + offsets - self._starts[numbers])
        indexes, bits = places // 8, (1 << places % 8).astype(np.uint8)
        begins = np.flatnonzero(np.append(True, indexes[1:] != indexes[:-1]))
        self._bits[indexes[begins]] |= np.bitwise_or.reduceat(bits, begins)

    def copies(self, counts: Numbers) -> Numbers:
        """How many of these numbers of rows are more than the offsets with a bit; 0 for ranges without bits."""
        copies = np.zeros(len(counts), np.int64)
        if len(self._members):
            different = np.add.reduceat(np.bitwise_count(self._bits), self._first[self._members], dtype=np.int64)
            copies[self._members] = counts[self._members] - different
        return np.where(self.has_bits, copies, 0)


def _sortable(ranges: RangeColumns, first_pass: _FirstPass) -> Iterator[tuple[Numbers, int, int]]:
    """The unordered ranges, in groups whose rows with the offsets `[low, high)` fit into memory."""
    members: list[int] = []
    rows = 0
    for number in np.flatnonzero(first_pass.unordered).tolist():
        count, start, stop = (int(column[number]) for column in (first_pass.counts, ranges.starts, ranges.stops))
        if count > _MAX_SORTED_ROWS:
            pieces = -(-count // _MAX_SORTED_ROWS)
            edges = [start + (stop - start) * piece // pieces for piece in range(pieces + 1)]
            yield from ((np.array([number]), low, high) for low, high in pairwise(edges))
            continue
        if rows + count > _MAX_SORTED_ROWS:
            yield _whole(ranges, members)
            members, rows = [], 0
        members.append(number)
        rows += count
    if members:
        yield _whole(ranges, members)


def _whole(ranges: RangeColumns, members: list[int]) -> tuple[Numbers, int, int]:
    numbers = np.array(members)
    return numbers, int(ranges.starts[numbers].min()), int(ranges.stops[numbers].max())


def _add_copies(
    copies: Numbers, index: _RangeIndex, members: Numbers, offsets: tuple[int, int], batches: Iterable[_Rows]
) -> None:
    """Add to `copies` the number of duplicate rows with these offsets in the member ranges."""
    low, high = offsets
    parts = []
    for rows in batches:
        numbers = index.find(rows)
        chosen = np.isin(numbers, members) & (rows.offsets >= low) & (rows.offsets < high)
        parts.append(np.stack((numbers[chosen], rows.offsets[chosen], rows.inner[chosen])))
    numbers, row_offsets, inner = np.concatenate(parts, axis=1)
    order = np.lexsort((inner, row_offsets, numbers))
    key = np.stack((numbers, row_offsets, inner))[:, order]
    is_copy = (key[:, 1:] == key[:, :-1]).all(axis=0)
    np.add.at(copies, key[0, 1:][is_copy], 1)
