"""Frames: an int32 size, then that many bytes. Both sides of every generation use them.

The caller receives bytes directly into the memory of their frame (`space`, `filled`), so a large fetch answer is never
copied. A size is checked against the limit before memory is allocated (faults W06, W07).

The memory of large frames is used again when nothing refers to it any more, because touching fresh memory costs more
than filling it.
"""

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from kafka_io.errors import Corrupt, TooLarge, Unsupported
from kafka_io.wire.primitives import no_deadline

SentT = TypeVar("SentT")
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

_HEADER = 4
_HTTP = b"HTTP"  # read as the size of a frame it would mean 1.2 GB
_MIN_KEPT_BYTES, _MAX_KEPT_BYTES = 256 * 1024, 32 * 1024 * 1024  # memory of frames of these sizes is kept
_STEP = 1024 * 1024  # memory is allocated in multiples of it, so that frames of similar size can use it again
_MAX_KEPT = 3  # one frame is being read, one is being filled, one is spare
_UNUSED_REFERENCES = 3  # references to unused memory: the list, the loop variable, and the argument of getrefcount


class Frames:
    """Cuts a byte stream into frames.

    Args:
        min_size: the minimum size of a frame in bytes.
        max_size: returns the maximum size; called once per frame, when its size is known.
    """

    def __init__(self, *, min_size: int, max_size: Callable[[], int]) -> None:
        self._min_size = min_size
        self._max_size = max_size
        self._header = bytearray(_HEADER)
        self._body: memoryview | None = None
        self._received_bytes = 0
        self._kept: list[bytearray] = []

    def space(self) -> memoryview:
        """The buffer for the next bytes of the stream; never empty."""
        target = memoryview(self._header) if self._body is None else self._body
        return target[self._received_bytes :]

    def filled(self, count: int) -> memoryview | None:
        """Process `count` bytes that were written into `space()`. Returns the body of the frame if it is complete now.

        Raises:
            Corrupt: the frame is smaller than the minimum.
            TooLarge: the frame is larger than the maximum.
            Unsupported: the first bytes are those of an answer of HTTP (fault F03).
        """
        self._received_bytes += count
        if self._body is None:
            if self._received_bytes < _HEADER:
                return None
            self._body = self._memory(self._checked(int.from_bytes(self._header, "big", signed=True)))
            self._received_bytes = 0
        if self._received_bytes < len(self._body):
            return None
        body, self._body, self._received_bytes = self._body, None, 0
        return body

    def release(self) -> None:
        """Forget the kept memory. A conversation and its frames refer to each other, so it could live on for long."""
        self._kept = []

    def _memory(self, size: int) -> memoryview:
        """`size` bytes that nothing else uses. A view, and everything made from it, keeps a reference to its memory."""
        if not _MIN_KEPT_BYTES <= size <= _MAX_KEPT_BYTES:
            return memoryview(bytearray(size))
        for memory in self._kept:
            if len(memory) >= size and sys.getrefcount(memory) == _UNUSED_REFERENCES:
                return memoryview(memory)[:size]
        fresh = bytearray(-(-size // _STEP) * _STEP)
        self._kept = [*self._kept, fresh][-_MAX_KEPT:]
        return memoryview(fresh)[:size]

    def _checked(self, size: int) -> int:
        if size < self._min_size:
            raise Corrupt(f"a frame of {size} bytes is below the minimum of {self._min_size}")
        max_size = self._max_size()
        if size > max_size:
            if self._header == _HTTP:
                raise Unsupported("an HTTP server answers at this address: give the address of a Kafka broker")
            raise TooLarge(f"a frame of {size} bytes is above the maximum of {max_size}")
        return size


class Conversation(ABC, Generic[RequestT_contra, AnswerT_co, SentT]):
    """The client's end of a connection, without a socket: it encodes requests, and decodes their answers in order.

    Requests without an answer are kept as `SentT`, oldest first.
    """

    def __init__(self, *, min_size: int) -> None:
        self._unanswered: deque[SentT] = deque()
        self._frames = Frames(min_size=min_size, max_size=self._max_size)

    @property
    def waiting(self) -> int:
        """The number of requests without an answer."""
        return len(self._unanswered)

    def space(self) -> memoryview:
        """The buffer for the next bytes from the broker."""
        return self._frames.space()

    @abstractmethod
    def send(self, request: RequestT_contra) -> bytes:
        """The bytes of a request, which must be sent next.

        Raises:
            Unsupported: a value does not fit its field.
        """

    def filled(self, count: int, check_time: Callable[[], object] = no_deadline) -> AnswerT_co | None:
        """Process `count` received bytes in `space()`. Returns the answer that they complete, if any.

        `check_time` is called while the answer is decoded, and raises an error when no time is left.

        Raises:
            WireError: the bytes are not the expected answer; the connection must be closed.
        """
        frame = self._frames.filled(count)
        return None if frame is None else self._decoded(self._unanswered.popleft(), frame, check_time)

    def release(self) -> None:
        """Release the memory of answers: no answer is expected soon."""
        self._frames.release()

    def _max_size(self) -> int:
        if not self._unanswered:
            raise Corrupt("the broker sent bytes without a request")
        return self._largest_answer(self._unanswered[0])

    @abstractmethod
    def _largest_answer(self, sent: SentT) -> int:
        """The maximum size of the answer to a request."""

    @abstractmethod
    def _decoded(self, sent: SentT, frame: memoryview, check_time: Callable[[], object]) -> AnswerT_co:
        """The answer to a request in a frame."""


def framed(*parts: bytes | bytearray | memoryview) -> bytes:
    """One frame that contains `parts`, one after the other."""
    size = sum(len(part) for part in parts)
    return b"".join((size.to_bytes(_HEADER, "big"), *parts))
