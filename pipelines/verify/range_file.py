"""The committed ranges of a table in a temporary file, from which they are read by windows of their loading time.

A history can have many millions of ranges. Only those of one window are in memory. Rows belong to the range that was
committed with them, which has the same loading time; so the rows of a window's ranges are the rows with such a time,
and they are in few files.
"""

from array import array
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kafka_io.closing import Closing

Numbers = npt.NDArray[np.int64]
_RANGES_AT_ONCE = 65_536
_NUMBER_BYTES = 8


class RangeColumns(NamedTuple):
    """Ranges, one per element of the arrays.

    Args:
        loaded_us: their loading times.
        slots: numbers that stand for their partitions.
        starts, stops: their offsets `[start, stop)`.
        rows: how many rows their commits counted.
        files: in how many files their commits wrote the rows.
        exact_first, exact_count: where their exact sets are (see ExactPlace).
    """

    loaded_us: Numbers
    slots: Numbers
    starts: Numbers
    stops: Numbers
    rows: Numbers
    files: Numbers
    exact_first: Numbers
    exact_count: Numbers

    def take(self, chosen: npt.NDArray[np.int64] | slice) -> Self:
        """The chosen ranges."""
        return type(self)(*(column[chosen] for column in self))


EARLIEST, LATEST = (int(bound) for bound in (np.iinfo(np.int64).min, np.iinfo(np.int64).max))
"""The bounds of all loading times."""


class Window(NamedTuple):
    """The loading times `[start, stop)`, in microseconds since 1970; by default all of them."""

    start: int = EARLIEST
    stop: int = LATEST


class _Chunk(NamedTuple):
    """A part of the file: where it begins, its number of ranges, and their first, middle and last loading time."""

    position: int
    size: int
    first_us: int
    middle_us: int
    last_us: int


class RangeFile(Closing):
    """Ranges in a temporary file. Use it in a `with` block."""

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="penstock-ranges-")  # noqa: SIM115 - `close` closes it
        self._waiting = array("q")
        self._chunks: list[_Chunk] = []

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def add(self, *numbers: int) -> None:
        """Add a range: its number for each of RangeColumns, in their order."""
        self._waiting.extend(numbers)
        if len(self._waiting) == _RANGES_AT_ONCE * len(RangeColumns._fields):
            self._store()

    def windows(self) -> Iterator[tuple[Window, RangeColumns]]:
        """All ranges, window by window; together the windows contain every possible time, each once.

        Commits are almost in order of their loading times, so a window has about as many ranges as a chunk.
        """
        if self._waiting:
            self._store()
        middles = sorted({chunk.middle_us for chunk in self._chunks})
        edges = [EARLIEST, *middles[1:], LATEST]
        for window in map(Window, edges, edges[1:]):
            parts = [self._read(chunk, window) for chunk in self._chunks]
            yield window, RangeColumns(*map(np.concatenate, zip(*parts, strict=True))) if parts else _columns(b"")

    def _store(self) -> None:
        """Write the waiting ranges into a chunk of the file, in order of their loading times."""
        ranges = _columns(self._waiting.tobytes())
        self._waiting = array("q")
        ranges = ranges.take(np.argsort(ranges.loaded_us, kind="stable"))
        size, times = len(ranges.loaded_us), ranges.loaded_us
        chunk = _Chunk(self._file.tell(), size, int(times[0]), int(times[size // 2]), int(times[-1]))
        self._chunks.append(chunk)
        self._file.write(np.column_stack(ranges).tobytes())

    def _read(self, chunk: _Chunk, window: Window) -> RangeColumns:
        """The ranges of the chunk that are in the window."""
        if chunk.first_us >= window.stop or chunk.last_us < window.start:
            return _columns(b"")
        self._file.seek(chunk.position)
        ranges = _columns(self._file.read(chunk.size * len(RangeColumns._fields) * _NUMBER_BYTES))
        return ranges.take(slice(*np.searchsorted(ranges.loaded_us, window)))


def _columns(data: bytes) -> RangeColumns:
    return RangeColumns(*np.frombuffer(data, np.int64).reshape(-1, len(RangeColumns._fields)).T)


def last_not_above(values: Numbers, wanted: Numbers, first: Numbers, last: Numbers) -> Numbers:
    """For each wanted value the last index in `[first, last)` whose value is not above it; `first - 1` without one.

    `values` are ascending from each `first` to its `last`. This halves all intervals together until they are empty.
    """
    low, high = first, last
    while (low < high).any():
        middle = np.minimum((low + high) // 2, len(values) - 1)
        not_above, searching = values[middle] <= wanted, low < high
        low = np.where(searching & not_above, middle + 1, low)
        high = np.where(searching & ~not_above, middle, high)
    result: Numbers = low - 1
    return result
