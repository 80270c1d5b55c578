"""New records, as those see it who wait for them: fetches are held until there are enough (KIP-74, long polling)."""

import threading
import time


class Arrivals:
    """Counts what changed in any log; who waits sleeps until the count moves."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._closed = False

    @property
    def count(self) -> int:
        """To be read before the logs are: what comes after that ends the wait."""
        return self._count

    def tell(self) -> None:
        """Something can be read that could not be before."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_past(self, count: int, deadline_s: float) -> bool:
        """Whether there was more than `count` before `deadline_s` of the monotonic clock."""
        with self._changed:
            return (
                self._changed.wait_for(
                    lambda: self._closed or self._count > count, max(0.0, deadline_s - time.monotonic())
                )
                and not self._closed
            )

    def close(self) -> None:
        """End all waits, also those to come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
