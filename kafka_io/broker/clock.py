"""The broker's clock: wall time, because it is compared with the modification times of files."""

import time
from collections.abc import Callable

ClockMs = Callable[[], int]


def wall_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
