"""Frames: an int32 size, then that many bytes. Both sides of every generation use them.

The caller writes what arrives straight into the memory of the frame it belongs to (`space`, `filled`), so a large
fetch answer is never copied. A size is checked against the cap before a byte of memory is given (W06, W07).

The memory of large frames serves again once nothing refers to it: fresh memory costs more than to fill it.
"""

import sys
from collections.abc import Callable, Iterator

from kafka_io.errors import Corrupt, TooLarge

_HEADER = 4
_LARGE, _LARGEST = 256 * 1024, 32 * 1024 * 1024  # of frames whose memory is kept
_STEP = 1024 * 1024  # memory is given in multiples, so that frames of about the same size share it
_KEPT = 3  # one being read, one being filled, and one to spare
_UNUSED = 3  # who refers to memory of ours that nobody uses: the list, the loop, and the question itself


class Frames:
    """Cuts a byte stream into frames.

    Args:
        smallest: the least size a frame can have.
        largest: asked once per frame, when its size is known: the most bytes it may have.
    """

    def __init__(self, *, smallest: int, largest: Callable[[], int]) -> None:
        self._smallest = smallest
        self._largest = largest
        self._header = bytearray(_HEADER)
        self._body: memoryview | None = None
        self._have = 0
        self._kept: list[bytearray] = []

    @property
    def partial(self) -> bool:
        """Whether a frame has begun and is not whole."""
        return self._body is not None or self._have > 0

    def space(self) -> memoryview:
        """Where the next bytes of the stream belong; never empty."""
        target = memoryview(self._header) if self._body is None else self._body
        return target[self._have :]

    def filled(self, count: int) -> memoryview | None:
        """Take note of `count` bytes written into `space()`; the frame's body if that made it whole.

        Raises:
            Corrupt: the size is below the smallest.
            TooLarge: the size is above the largest.
        """
        self._have += count
        if self._body is None:
            if self._have < _HEADER:
                return None
            self._body = self._memory(self._checked(int.from_bytes(self._header, "big", signed=True)))
            self._have = 0
        if self._have < len(self._body):
            return None
        body, self._body, self._have = self._body, None, 0
        return body

    def _memory(self, size: int) -> memoryview:
        """`size` bytes that nobody else reads: a view, and what is made from it, refers to the memory it is in."""
        if not _LARGE <= size <= _LARGEST:
            return memoryview(bytearray(size))
        for kept in self._kept:
            if len(kept) >= size and sys.getrefcount(kept) == _UNUSED:
                return memoryview(kept)[:size]
        fresh = bytearray(-(-size // _STEP) * _STEP)
        self._kept = [*self._kept, fresh][-_KEPT:]
        return memoryview(fresh)[:size]

    def _checked(self, size: int) -> int:
        if size < self._smallest:
            raise Corrupt(f"a frame of {size} bytes, the least is {self._smallest}")
        if size > (most := self._largest()):
            raise TooLarge(f"a frame of {size} bytes where at most {most} were expected")
        return size

    def split(self, data: bytes) -> Iterator[memoryview]:
        """Frames completed by `data`, each as soon as it is whole; the rest waits."""
        rest = memoryview(data)
        while rest:
            space = self.space()
            count = min(len(space), len(rest))
            space[:count] = rest[:count]
            rest = rest[count:]
            frame = self.filled(count)
            if frame is not None:
                yield frame


def framed(*parts: bytes | bytearray | memoryview) -> bytes:
    """One frame holding `parts`, one after the other."""
    size = sum(len(part) for part in parts)
    return b"".join((size.to_bytes(_HEADER, "big"), *parts))
