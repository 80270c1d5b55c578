"""A broker's one background thread: the timed flush, and retention."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from kafka_io.broker.clock import ClockMs

logger = logging.getLogger(__name__)


class Intervals(Protocol):
    """What a broker's settings tell."""

    @property
    def broker_id(self) -> int:
        """Whose thread it is."""
        ...

    @property
    def flush_interval_ms(self) -> int:
        """From one flush to the next."""
        ...

    @property
    def retention_check_ms(self) -> int:
        """From one look of retention to the next."""
        ...


class Housekeeping:
    """Calls `flush` each flush interval, and `clean`, which is retention's look at the logs, each check interval.

    The first look comes one interval after the start, as a genuine broker's does (facts, 8).
    """

    def __init__(
        self, config: Intervals, *, flush: Callable[[], None], clean: Callable[[], None], clock: ClockMs
    ) -> None:
        self._config = config
        self._flush = flush
        self._clean = clean
        self._clock = clock
        self._next_check_ms = clock() + config.retention_check_ms
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{config.broker_id}-housekeeping")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        self._thread.join()

    def tick(self) -> None:
        """Do what is due now."""
        self._flush()
        now_ms = self._clock()
        if now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + self._config.retention_check_ms
            self._clean()

    def _run(self) -> None:
        while not self._stopping.wait(self._config.flush_interval_ms / 1000):
            try:
                self.tick()
            except OSError:
                # Not flushed means not seen: readers never get what the disk did not take. The next tick tries again.
                logger.exception("the logs could not be kept")
