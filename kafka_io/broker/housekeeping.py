"""The broker's one background thread: the timed flush, and retention."""

import logging
import threading

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.logs import Logs

logger = logging.getLogger(__name__)


class Housekeeping:
    """Flushes all logs each flush interval, and lets retention look at them each check interval.

    The first look comes one interval after the start, as a genuine broker's does (facts, 8).
    """

    def __init__(self, logs: Logs, *, clock: ClockMs) -> None:
        self._logs = logs
        self._clock = clock
        self._next_check_ms = clock() + logs.config.retention_check_ms
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{logs.config.broker_id}-housekeeping")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        self._thread.join()

    def tick(self) -> None:
        """Do what is due now."""
        self._logs.flush()
        now_ms = self._clock()
        if now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + self._logs.config.retention_check_ms
            self._logs.clean()

    def _run(self) -> None:
        while not self._stopping.wait(self._logs.config.flush_interval_ms / 1000):
            try:
                self.tick()
            except OSError:
                # Not flushed means not seen: readers never get what the disk did not take. The next tick tries again.
                logger.exception("the logs could not be kept")
