"""Memory for columns that Arrow borrows and that is reused after Arrow has released it.

New memory costs more than decoding into it, because the operating system clears every page. So released memory is
reused, in sizes that are powers of two, and the amount that is kept is bounded.

A column reserves as much memory as it could need, and mostly uses less. numpy asks for huge pages, and then the system
clears 2 MiB when the first byte is written. So large blocks are mapped directly, in pages of the usual size.
"""

import mmap
from collections import deque

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MIN_BITS, _MAX_BITS = 12, 26
_KEPT = 8
_MAPPED = 1 << 20
# Free memory by the logarithm of its size, each with its address, because numpy is slow to compute that. A full deque
# drops its oldest item, and its methods need no lock.
_SPARE: dict[int, deque[tuple[npt.NDArray[np.uint8], int]]] = {
    bits: deque(maxlen=_KEPT) for bits in range(_MIN_BITS, _MAX_BITS + 1)
}


class PooledMemory:
    """At least `size` bytes, returned to the pool when this object and all its Arrow buffers are gone.

    Pages that are never written cost nothing.
    """

    __slots__ = ("__weakref__", "_address", "_bits", "bytes")

    def __init__(self, size: int) -> None:
        self._bits = max((size - 1).bit_length(), _MIN_BITS)
        try:
            self.bytes, self._address = _SPARE[self._bits].pop()
        except (KeyError, IndexError):
            size = 1 << self._bits
            self.bytes = np.empty(size, np.uint8) if size < _MAPPED else np.frombuffer(mmap.mmap(-1, size), np.uint8)
            self._address = self.bytes.ctypes.data

    def buffer(self, size: int) -> pa.Buffer:
        """The first `size` bytes, without a copy."""
        return pa.foreign_buffer(self._address, size, base=self)

    def __del__(self) -> None:
        spare = _SPARE.get(self._bits)
        if spare is not None:
            spare.append((self.bytes, self._address))
