"""Waits for a condition."""

import time
from collections.abc import Callable

_TIMEOUT_S = 900.0
"""Long, because the machine may be busy."""


def until(holds: Callable[[], object], event: str, *, timeout_s: float = _TIMEOUT_S) -> None:
    """Wait until the condition holds. `event` describes it in the error message."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"this did not happen within {timeout_s} s: {event}"
        time.sleep(0.3)
