"""A bounded queue between the threads that send messages and the one thread that delivers them in batches."""

import threading
import time
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """Holds at most `size` waiting items. One thread takes them; taken items are in flight until it calls `done`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[T] = deque()
        self._in_flight: list[T] = []
        self._joining = 0  # threads inside `join`: while there is one, `take` does not linger
        self._closed = False
        self._changed = threading.Condition()

    @property
    def closed(self) -> bool:
        """Whether the queue accepts no more items."""
        return self._closed

    def put(self, item: T, *, timeout_s: float | None) -> bool:
        """Add an item, and wait up to `timeout_s` (None: without limit) for room.

        Returns False if there was no room in time, or if the queue is closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._waiting) < self._size, timeout_s)
            if self._closed or len(self._waiting) >= self._size:
                return False
            self._waiting.append(item)
            self._changed.notify_all()
            return True

    def take(self, max_items: int, linger_s: float) -> list[T]:
        """Take the first items, at most `max_items`.

        It waits for one item, then up to `linger_s` for `max_items` of them, unless a thread joins or closes the queue.
        An empty list means that the queue is closed and empty.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._changed.wait_for(lambda: self._joining or self._closed or len(self._waiting) >= max_items, linger_s)
            batch = [self._waiting.popleft() for _ in range(min(max_items, len(self._waiting)))]
            # In the same critical section as the popleft: otherwise `join` could see neither waiting nor taken items.
            self._in_flight = batch
            self._changed.notify_all()
            return batch

    def done(self) -> None:
        """Mark the taken items as delivered."""
        with self._changed:
            self._in_flight = []
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing waits or is in flight; `take` does not linger meanwhile. Returns False on a timeout."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            self._joining += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(
                    lambda: not self._waiting and not self._in_flight, max(0.0, deadline_s - time.monotonic())
                )
            finally:
                self._joining -= 1

    def close(self) -> None:
        """Accept no more items, and wake every thread that waits for room or for items."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drain(self) -> tuple[list[T], list[T]]:
        """Return the items in flight, and remove and return the waiting ones."""
        with self._changed:
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return self._in_flight, waiting
