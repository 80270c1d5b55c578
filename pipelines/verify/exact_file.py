"""Checks exact sets, and keeps those of committed ranges in a temporary file.

The file has the runs, or the rows, of all sets one after the other. The rows of many ranges are looked up in it
together. Memory holds only what a search reads of it, so a table can have any number of sets.
"""

from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_io.closing import Closing
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.verify.range_file import Numbers, last_not_above

NO_INNER = np.iinfo(np.int64).min
"""The inner position of rows that have none: from 0.8 on."""


class ExactPlace(NamedTuple):
    """Where the set of a range is: the number of its first element in the file, and the number of its elements."""

    first: int = 0
    size: int = 0


class ExactFile(Closing):
    """Exact sets in a temporary file. Use it in a `with` block. All sets are added before one is read."""

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="penstock-offsets-")  # noqa: SIM115 - `close` closes it
        self._size = 0

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def add(self, offsets: ExactOffsets) -> ExactPlace:
        """Add the set of a range."""
        place = ExactPlace(self._size, len(offsets.firsts))
        self._file.write(np.column_stack((offsets.firsts, offsets.seconds)).tobytes())
        self._size += place.size
        return place

    def contains(self, first: Numbers, count: Numbers, offsets: Numbers, inner: Numbers) -> npt.NDArray[np.bool_]:
        """The mask of the rows that are in the sets of their ranges.

        Args:
            first: for each row, where the set of its range begins.
            count: for each row, the number of elements of this set.
            offsets: the offsets of the rows.
            inner: their inner positions; NO_INNER from 0.8 on, where sets have runs.
        """
        if not self._size:
            return np.zeros(len(offsets), np.bool_)
        self._file.flush()
        pairs = np.memmap(self._file, np.int64, "r", shape=(self._size, 2))
        firsts, seconds = pairs[:, 0], pairs[:, 1]
        last = last_not_above(firsts, offsets, first, first + count)
        in_run = (last >= first) & (offsets < seconds[np.maximum(last, 0)])
        same_offset = last_not_above(firsts, offsets - 1, first, first + count) + 1
        row = last_not_above(seconds, inner, same_offset, last + 1)
        in_rows = (row >= same_offset) & (seconds[np.maximum(row, 0)] == inner)
        result: npt.NDArray[np.bool_] = np.where(inner == NO_INNER, in_run, in_rows)
        return result


def exact_problems(committed: CommittedRange, sets: Mapping[ExactCause, ExactOffsets]) -> Sequence[str]:
    """Why the exact sets of a range do not fit the numbers in its gaps."""
    problems = []
    for cause in ExactCause:
        offsets = sets.get(cause, NO_OFFSETS)
        if offsets.count != committed.gaps.get(cause, 0):
            counted = committed.gaps.get(cause, 0)
            problems.append(f"it counts {counted} {cause}, but the set of these has {offsets.count} within the range")
        if offsets.count and offsets.by_row == (committed.partition.broker is None):
            problems.append(f"the set of {cause} is one of another version of Kafka")
    if not problems and ExactOffsets.union(sets.values()).count != sum(offsets.count for offsets in sets.values()):
        problems.append(f"the sets of {', '.join(sets)} share offsets")
    return problems
