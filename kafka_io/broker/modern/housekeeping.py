"""The broker's one background thread: the timed flush, transactions that nobody ends, and retention."""

import logging
import threading

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.topics import Topics
from kafka_io.broker.modern.transactions import Transactions

logger = logging.getLogger(__name__)


class Housekeeping:
    """Flushes all logs and ends transactions each flush interval; retention looks at the logs each check interval."""

    def __init__(
        self, topics: Topics, transactions: Transactions, config: ModernBrokerConfig, *, clock: ClockMs
    ) -> None:
        self._topics = topics
        self._transactions = transactions
        self._config = config
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
        self._topics.flush()
        self._transactions.expire()
        now_ms = self._clock()
        if now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + self._config.retention_check_ms
            self._topics.clean()

    def _run(self) -> None:
        while not self._stopping.wait(self._config.flush_interval_ms / 1000):
            try:
                self.tick()
            except OSError:
                logger.exception("the logs could not be kept; the next tick tries again")
