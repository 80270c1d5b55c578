"""The only loop that retries: the policy is a value, and the error says whether another attempt can help."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from kafka_io import stopping
from kafka_io.errors import KafkaIOError

T = TypeVar("T")
_LOGGER = logging.getLogger(__name__)

MIN_PAUSE_S = 0.1  # no error is retried more than ten times a second (decision D24)
FIRST_CONTACT_S = 60.0
"""No attempt begins so long after the first one while the other side has never answered."""
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


@dataclass(eq=False, slots=True)
class FirstContact:
    """The time until the other side answers for the first time. It is limited, and its first failure is a warning.

    Later the other side is known to exist, and only the number of attempts counts. `address` names the other side where
    the location of an error does not (fault F02).
    """

    address: str = ""
    is_made: bool = False
    _ends_at: float = field(default=inf, init=False)
    _warned: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Begin to count the time, unless an earlier call did."""
        self._ends_at = min(self._ends_at, time.monotonic() + FIRST_CONTACT_S)

    def is_over(self) -> bool:
        """Whether the time is used up without an answer."""
        return not self.is_made and time.monotonic() >= self._ends_at

    def warn(self, error: KafkaIOError, backoff: Backoff) -> None:
        """Write into the log of Python that an attempt failed and is repeated, once: more would say the same."""
        if self.is_made or self._warned:
            return
        self._warned = True
        address = (error.where.broker or self.address).partition("@")[2] or self.address
        again = f"trying again (2 of {backoff.attempts}, up to {FIRST_CONTACT_S:g} s)"
        _LOGGER.warning("cannot reach %s (%s), %s", address, error.reason, again)


def retrying(
    act: Callable[[], T],
    backoff: Backoff,
    *,
    sleep: Callable[[float], None] = stopping.sleep,
    contact: FirstContact | None = None,
) -> T:
    """Call `act` and return its result. After a retriable error call it again, until the attempts are used up.

    `contact` limits the time of a first contact.

    Raises:
        KafkaIOError: the error of the last attempt, or the first error that is not retriable.
    """
    failures, contact = 0, contact or FirstContact(is_made=True)
    contact.begin()
    while True:
        try:
            return act()
        except KafkaIOError as error:
            failures += 1
            if not error.retriable or failures >= backoff.attempts or contact.is_over():
                raise
            contact.warn(error, backoff)
            sleep(backoff.pause_s(failures))
