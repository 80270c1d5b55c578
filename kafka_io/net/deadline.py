"""A point in time by which something must be done; every wait in kafka_io has one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kafka_io.errors import DeadlineExceeded

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """Seconds on a monotonic clock."""

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> Self:
        """The deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Seconds left, always more than 0.

        Raises:
            DeadlineExceeded: none are.
        """
        left = self.at - self.clock()
        if left <= 0:
            raise DeadlineExceeded("no whole answer before its deadline")
        return left
