"""The background thread of an embedded broker: the timed flush, and retention."""

import logging
import threading
from collections.abc import Callable

from kafka_io.testing.config import BrokerConfig

logger = logging.getLogger(__name__)

ClockMs = Callable[[], int]
"""A clock: the wall time in ms since 1970, because it is compared with the modification times of files."""


class BrokerHousekeeping:
    """Calls `flush` at each flush interval, and `clean` at each check interval to delete expired segments.

    The first check comes one interval after the start, as in a genuine broker [kafka-0.7: Retention].
    """

    def __init__(
        self, config: BrokerConfig, *, flush: Callable[[], None], clean: Callable[[], None], clock: ClockMs
    ) -> None:
        self._config = config
        self._flush = flush
        self._clean = clean
        self._clock = clock
        self._next_check_ms = clock() + config.retention_check_ms
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"broker-{config.broker_id}-housekeeping")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for its end."""
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
                # Records that are not on disk are not visible to readers, so nothing is wrong yet. The next tick tries
                # again.
                logger.exception("flushing or cleaning the logs failed")
