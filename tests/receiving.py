"""Bytes that arrive in pieces, for what cuts a stream into frames."""

from collections.abc import Iterator
from typing import Protocol, TypeVar

Completed_co = TypeVar("Completed_co", covariant=True)


class Receiver(Protocol[Completed_co]):
    """One side of a conversation, or `Frames` itself: it gives space for the next bytes and takes their count."""

    def space(self) -> memoryview:
        """Where the next bytes of the stream belong."""
        ...

    def filled(self, count: int) -> Completed_co | None:
        """What `count` bytes written into `space()` complete, if anything."""
        ...


def receive(receiver: Receiver[Completed_co], data: bytes) -> Iterator[Completed_co]:
    """What `data` completes, each part as soon as it is whole; the rest of `data` waits in the receiver."""
    rest = memoryview(data)
    while rest:
        space = receiver.space()
        count = min(len(space), len(rest))
        space[:count] = rest[:count]
        rest = rest[count:]
        completed = receiver.filled(count)
        if completed is not None:
            yield completed
