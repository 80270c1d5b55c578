"""Memory for columns that Arrow borrows and that is reused after Arrow has released it.

New memory costs more than decoding into it, because the operating system clears every page. So released memory is
reused, in sizes that are powers of two, and the amount that is kept is bounded.

A column reserves as much memory as it could need, and mostly uses less. numpy asks for huge pages, and then the system
clears 2 MiB when the first byte is written. So large blocks are mapped directly, in pages of the usual size. Memory is
reused for the same purpose: the values of records write to more pages than their keys, and if both took turns with the
same memory, all of it would be written to in the end.
"""

import mmap
from collections import defaultdict, deque
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MIN_BITS, _MAX_BITS = 12, 26
_KEPT = 4
_MAPPED = 1 << 20
# Free memory by its purpose and the logarithm of its size, each with its address, because numpy is slow to compute
# that. A full deque drops its oldest item, and its methods need no lock.
_SPARE: defaultdict[tuple[str, int], deque[tuple[npt.NDArray[np.uint8], int]]] = defaultdict(
    partial(deque, maxlen=_KEPT)
)


class PooledMemory:
    """At least `size` bytes, returned to the pool when this object and all its Arrow buffers are gone.

    Pages that are never written cost nothing.

    Args:
        size: the number of bytes.
        purpose: the column or other use. Memory is reused for the same purpose only.
    """

    __slots__ = ("__weakref__", "_address", "_key", "bytes")

    def __init__(self, size: int, purpose: str = "") -> None:
        bits = max((size - 1).bit_length(), _MIN_BITS)
        self._key = purpose, bits
        try:
            self.bytes, self._address = _SPARE[self._key].pop()
        except IndexError:
            size = 1 << bits
            self.bytes = np.empty(size, np.uint8) if size < _MAPPED else np.frombuffer(mmap.mmap(-1, size), np.uint8)
            self._address = self.bytes.ctypes.data

    def buffer(self, size: int) -> pa.Buffer:
        """The first `size` bytes, without a copy."""
        return pa.foreign_buffer(self._address, size, base=self)

    def __del__(self) -> None:
        if self._key[1] <= _MAX_BITS:
            _SPARE[self._key].append((self.bytes, self._address))
