"""Fetch requests that wait for new records (KIP-74, long polling)."""

import threading
import time


class FetchPurgatory:
    """Counts the changes of all logs in `change_count`. A waiting fetch sleeps until the count grows.

    A fetch reads `change_count` first, then looks at the logs, and then waits for a higher count. A record that is
    written between the look and the wait has increased the count already, so that wait ends at once. One counter serves
    all logs: a change of another partition wakes a fetch too early, and the fetch looks and waits again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.change_count = 0
        self._closed = False

    def notify(self) -> None:
        """Wake the waiting fetches: something became readable."""
        with self._changed:
            self.change_count += 1
            self._changed.notify_all()

    def wait_after(self, count: int, deadline_s: float) -> bool:
        """Wait until there are more than `count` changes. Returns False if the deadline comes first.

        Args:
            count: the `change_count` that was read before the logs.
            deadline_s: a time of the monotonic clock.
        """
        with self._changed:
            timeout_s = max(0.0, deadline_s - time.monotonic())
            was_woken = self._changed.wait_for(lambda: self._closed or self.change_count > count, timeout_s)
            return was_woken and not self._closed

    def close(self) -> None:
        """End all waits, present and future ones."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
