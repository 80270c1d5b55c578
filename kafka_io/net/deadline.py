"""Deadlines: every wait in kafka_io has one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kafka_io.errors import DeadlineExceeded

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time on a monotonic clock, in seconds."""

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> Self:
        """The deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """The seconds until the deadline, always more than 0.

        Raises:
            DeadlineExceeded: the deadline has passed.
        """
        left = self.at - self.clock()
        if left <= 0:
            raise DeadlineExceeded("the answer was not complete before its deadline")
        return left
