"""Deadlines: every wait in kafka_io has one."""

import time
from dataclasses import dataclass
from typing import Self

from kafka_io.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time on the monotonic clock, in seconds."""

    monotonic_s: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The deadline `seconds` from now."""
        return cls(time.monotonic() + seconds)

    def remaining_s(self) -> float:
        """The seconds until the deadline, always more than 0.

        Raises:
            DeadlineExceeded: the deadline has passed.
        """
        seconds = self.monotonic_s - time.monotonic()
        if seconds <= 0:
            raise DeadlineExceeded("the answer was not complete before its deadline")
        return seconds
