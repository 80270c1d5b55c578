"""The queue between who sends and the thread that does it: bounded, emptied in batches, watched until all is done."""

import threading
import time
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """At most `size` items wait; one thread takes them, and those that it took are under way until they are `done`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[T] = deque()
        self._under_way: list[T] = []
        self._hurrying = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def closed(self) -> bool:
        """Whether nothing more is taken in."""
        return self._closed

    def put(self, item: T, *, timeout_s: float | None) -> bool:
        """Whether there was room for `item`, or came to be within `timeout_s` (None: however long), before the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._waiting) < self._size, timeout_s)
            if self._closed or len(self._waiting) >= self._size:
                return False
            self._waiting.append(item)
            self._changed.notify_all()
            return True

    def take(self, most: int, linger_s: float) -> list[T]:
        """The first items: as soon as there are `most`, or the first has waited for `linger_s`, or there is a hurry.

        Nothing when the queue is closed and empty.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._changed.wait_for(lambda: self._hurrying or self._closed or len(self._waiting) >= most, linger_s)
            batch = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._under_way = batch
            self._changed.notify_all()
            return batch

    def done(self) -> None:
        """What was taken is no longer under way."""
        with self._changed:
            self._under_way = []
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Whether all that was put in was done before the time was up; nothing lingers meanwhile."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            self._hurrying += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(
                    lambda: not self._waiting and not self._under_way, max(0.0, deadline_s - time.monotonic())
                )
            finally:
                self._hurrying -= 1

    def close(self) -> None:
        """Take nothing more in; who waits for room or for items is woken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drain(self) -> tuple[list[T], list[T]]:
        """What is under way, and all that still waits; nobody else gets that."""
        with self._changed:
            rest = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return self._under_way, rest
