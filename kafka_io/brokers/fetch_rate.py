"""The rate at which a process fetches records: in all, and from each broker.

A fetch is not slowed down. The next one waits until the bytes of the answers so far have taken their time, so a process
exceeds its rate by at most one answer of each connection. Time without fetches is not saved for later.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

from kafka_io.model import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRate:
    """The most bytes of records per second that a process fetches; None means without a limit.

    >>> FetchRate(bytes_per_s=1000).share_of(4).bytes_per_s
    250.0
    """

    bytes_per_s: float | None = None
    broker_bytes_per_s: float | None = None

    def share_of(self, processes: int) -> Self:
        """The rate of each of so many processes."""
        total, of_broker = self.bytes_per_s, self.broker_bytes_per_s
        return replace(
            self,
            bytes_per_s=None if total is None else total / processes,
            broker_bytes_per_s=None if of_broker is None else of_broker / processes,
        )

    def pace(self, broker: Broker) -> "FetchPace":
        """The pace of a connection to a broker. All connections of this process with the same limits share them."""
        limits = (("", self.bytes_per_s), (broker.address, self.broker_bytes_per_s))
        return FetchPace(tuple(_bucket(place, rate) for place, rate in limits if rate is not None))


UNLIMITED = FetchRate()


class RateBucket:
    """The time that the bytes so far take at a rate. Several threads use it.

    Args:
        bytes_per_s: the rate.
        clock: the time in seconds.
    """

    def __init__(self, bytes_per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = bytes_per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._full_until = 0.0

    def add(self, size: int) -> None:
        """Count bytes that were received."""
        with self._lock:
            self._full_until = max(self._full_until, self._clock()) + size / self._rate

    def wait_s(self) -> float:
        """The seconds until more bytes may be requested; 0 if they may be requested now."""
        return max(0.0, self._full_until - self._clock())


@dataclass(frozen=True, slots=True)
class FetchPace:
    """The limits that a connection keeps."""

    buckets: tuple[RateBucket, ...] = ()

    def add(self, size: int) -> None:
        """Count the bytes of records in an answer."""
        for bucket in self.buckets:
            bucket.add(size)

    def wait_s(self) -> float:
        """The seconds until the next fetch may be sent."""
        return max((bucket.wait_s() for bucket in self.buckets), default=0.0)


@cache
def _bucket(place: str, bytes_per_s: float) -> RateBucket:
    """The bucket of this process for a broker, or for all brokers."""
    del place
    return RateBucket(bytes_per_s)
