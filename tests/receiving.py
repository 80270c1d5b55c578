"""Passes bytes in pieces to a receiver that splits a stream into frames."""

from collections.abc import Iterator
from typing import Protocol, TypeVar

Completed_co = TypeVar("Completed_co", covariant=True)


class Receiver(Protocol[Completed_co]):
    """One side of a conversation, or `Frames` itself. It provides memory for the next bytes and takes their count."""

    def space(self) -> memoryview:
        """The memory for the next bytes of the stream."""
        ...

    def filled(self, count: int) -> Completed_co | None:
        """The frame or message that `count` bytes written into `space()` complete; None if they complete none."""
        ...


def receive(receiver: Receiver[Completed_co], data: bytes) -> Iterator[Completed_co]:
    """Pass `data` to the receiver; yield each frame or message that it completes. The receiver keeps the rest."""
    unsent = memoryview(data)
    while unsent:
        space = receiver.space()
        count = min(len(space), len(unsent))
        space[:count] = unsent[:count]
        unsent = unsent[count:]
        completed = receiver.filled(count)
        if completed is not None:
            yield completed
