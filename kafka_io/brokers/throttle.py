"""Obeys a broker or server that asks to wait before the next request, up to a limit (faults W18, N15)."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka_io.errors import Throttled

MAX_THROTTLE_S = 300.0
"""The maximum time for which the other side may ask to wait before it makes any progress."""


@dataclass(eq=False)
class Throttle:
    """The waits that one broker or server asks for.

    Args:
        subject: who asks, for errors.
        sleep: waits for a number of seconds.
        advice: what to do if it asks for too long.
    """

    subject: str
    sleep: Callable[[float], None]
    advice: str = ""
    until: float = 0.0
    """The time on the monotonic clock from which it accepts the next request."""

    without_progress_s: float = 0.0
    """The sum of the waits since it last made progress."""

    def note(self, wait_s: float, *, progress: bool) -> None:
        """An answer asks for this wait, and makes progress or not."""
        self.until = time.monotonic() + wait_s
        self.without_progress_s = wait_s + (0.0 if progress else self.without_progress_s)

    def obey(self) -> None:
        """Wait as long as the last answer asks for.

        Raises:
            Throttled: all its waits since it last made progress are longer than MAX_THROTTLE_S.
        """
        remaining_s = self.until - time.monotonic()
        if remaining_s <= 0:
            return
        if self.without_progress_s > MAX_THROTTLE_S:
            raise Throttled(
                f"{self.subject} asks to wait for {self.without_progress_s:,.0f} s, more than the "
                f"{MAX_THROTTLE_S:.0f} s that this client accepts{self.advice}"
            )
        self.sleep(remaining_s)
