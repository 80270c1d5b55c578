"""The only loop that retries: the policy is a value, and the error says whether another attempt can help."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kafka_io import stopping
from kafka_io.errors import KafkaIOError

T = TypeVar("T")

MIN_PAUSE_S = 0.1  # no error is retried more than ten times a second (decision D24)
_MAX_DOUBLINGS = 32  # 2.0 ** 1024 would overflow, after a thousand failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """At most `attempts` attempts. The pause between them doubles from `first_s` to `max_s`, with jitter down to half.

    By default the pauses are at least 18 s in sum, and 27 s on average. Brokers with default settings elect a successor
    of a killed leader after 9 s (KRaft) or 18 s (ZooKeeper), so the retries outlast the election (fault N13).

    Raises:
        ValueError: there is no attempt, or a pause is below MIN_PAUSE_S, which would flood a broker with requests.
    """

    attempts: int = 12
    first_s: float = 0.2
    max_s: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.first_s, self.max_s) < MIN_PAUSE_S:
            raise ValueError(f"a back-off needs at least 1 attempt and pauses of at least {MIN_PAUSE_S} s, not {self}")

    def pause_s(self, failures: int) -> float:
        """The seconds to wait after this many failures in a row."""
        longest = min(self.max_s, self.first_s * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
        return max(MIN_PAUSE_S, longest * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret


def retrying(act: Callable[[], T], backoff: Backoff, *, sleep: Callable[[float], None] = stopping.sleep) -> T:
    """Call `act` and return its result. After a retriable error call it again, until the attempts are used up.

    Raises:
        KafkaIOError: the error of the last attempt, or the first error that is not retriable.
    """
    failures = 0
    while True:
        try:
            return act()
        except KafkaIOError as error:
            failures += 1
            if not error.retriable or failures >= backoff.attempts:
                raise
            sleep(backoff.pause_s(failures))
