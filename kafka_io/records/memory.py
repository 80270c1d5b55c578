"""Memory for columns, lent to Arrow and taken back when nothing points to it any more.

Fresh memory costs more than decoding into it: the machine hands it out page by page, and clears each. So what Arrow has
let go of serves again, in sizes that are powers of two. What is kept for that is bounded.

Columns are made for the most that they could hold, and hold less: numpy would ask for huge pages and have 2 MiB cleared
wherever one byte is touched. So large memory is mapped by hand, in pages of the usual size.
"""

import math
import mmap
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_LEAST_BITS, _MOST_BITS = 12, 26
_KEPT = 8
_MAPPED = 1 << 20
# By the logarithm of their size; a deque that is full lets the oldest go, and needs no lock.
_SPARE: dict[int, deque[npt.NDArray[np.uint8]]] = {
    bits: deque(maxlen=_KEPT) for bits in range(_LEAST_BITS, _MOST_BITS + 1)
}


class Loan:
    """At least `size` bytes, which go back when the loan and its buffers are gone; untouched pages cost nothing."""

    __slots__ = ("__weakref__", "_bits", "bytes")

    def __init__(self, size: int) -> None:
        self._bits = max(math.ceil(math.log2(max(size, 1))), _LEAST_BITS)
        try:
            self.bytes = _SPARE[self._bits].pop()
        except (KeyError, IndexError):
            self.bytes = _fresh(1 << self._bits)

    def buffer(self, size: int) -> pa.Buffer:
        """The first `size` bytes, without a copy."""
        return pa.foreign_buffer(self.bytes.ctypes.data, size, base=self)

    def __del__(self) -> None:
        spare = _SPARE.get(self._bits)
        if spare is not None:
            spare.append(self.bytes)


def _fresh(size: int) -> npt.NDArray[np.uint8]:
    return np.empty(size, np.uint8) if size < _MAPPED else np.frombuffer(mmap.mmap(-1, size), np.uint8)


class Growing:
    """An array that grows; `array` is all of it, also what is not filled yet."""

    __slots__ = ("_loan", "array")

    def __init__(self, dtype: type[np.generic]) -> None:
        self._loan: Loan | None = None
        self.array: npt.NDArray[Any] = np.empty(0, dtype)

    def grow(self, filled: int, items: int) -> bool:
        """Make room for `items`, keeping those that are filled; whether there was none. No items have a place too."""
        if self._loan is not None and items <= len(self.array):
            return False
        loan = Loan(items * self.array.itemsize)
        array = loan.bytes.view(self.array.dtype)
        array[:filled] = self.array[:filled]
        self._loan, self.array = loan, array
        return True

    def buffer(self, items: int) -> pa.Buffer:
        """The first `items` of an array that has grown, without a copy."""
        assert self._loan is not None
        return self._loan.buffer(items * self.array.itemsize)
