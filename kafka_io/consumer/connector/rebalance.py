"""The thread of a member with streams: it joins the group, rebalances after changes, commits, and leaves.

Watches only wake the thread. It also checks at intervals, because a watch may fail to fire (fault Z02).
"""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_io.brokers.retry import MIN_PAUSE_S
from kafka_io.consumer.connector.fetcher import ConnectorFetcher
from kafka_io.consumer.connector.options import ConnectorOptions
from kafka_io.consumer.connector.ownership import PartitionOwnership
from kafka_io.errors import KafkaIOError, RegistryError

_LOG = logging.getLogger(__name__)

EVERY_TOPIC = ""
"""Stands for a topic's name where streams read all topics that a filter allows."""


@dataclass(eq=False)
class RebalanceLoop:
    """Runs from `start` to `stop`. `fetchers` are those of the streams, by topic or EVERY_TOPIC and stream number."""

    ownership: PartitionOwnership
    fetchers: Mapping[tuple[str, int], ConnectorFetcher]
    options: ConnectorOptions

    def __post_init__(self) -> None:
        self._wake = threading.Event()
        self._stopping = threading.Event()
        thread = threading.Thread(target=self._run, name="penstock-consumer", daemon=True)
        self._threads = [thread, *(fetcher.thread for fetcher in self.fetchers.values())]

    def start(self) -> None:
        """Take this member's share, then start the threads.

        Raises:
            RegistryError: ZooKeeper does not answer, or other members did not release their partitions in time.
        """
        attempts = self.options.rebalance_max_retries
        while not self._take_share():
            attempts -= 1
            if not attempts:
                raise RegistryError(
                    "other members still own partitions of this consumer's share after "
                    f"{self.options.rebalance_max_retries} attempts (rebalance_max_retries)"
                )
            self._wait_for_others()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all threads, and commit the delivered offsets unless auto-commit is off.

        Raises:
            RegistryUnavailable: the offsets could not be committed; everything else is done.
        """
        deadline_s = time.monotonic() + self.options.shutdown_timeout_ms / 1000
        self._stopping.set()
        self._wake.set()
        for fetcher in self.fetchers.values():
            fetcher.stop()
        for thread in self._threads:
            if thread.ident is not None:  # `start` may have failed before it started the threads
                thread.join(max(0.0, deadline_s - time.monotonic()))
        self.ownership.revoke_all()
        if self.options.auto_commit_interval_ms is not None:
            self.ownership.commit_delivered()

    def _run(self) -> None:
        checked_s = committed_s = time.monotonic()
        while not self._stopping.is_set():
            check_at_s = checked_s + self.options.look_interval_ms / 1000
            commit_at_s = committed_s + (self.options.auto_commit_interval_ms or float("inf")) / 1000
            self._wake.wait(max(0.0, min(check_at_s, commit_at_s) - time.monotonic()))
            if self._stopping.is_set():
                return
            if time.monotonic() >= commit_at_s:
                self.ownership.commit_processed()
                committed_s = time.monotonic()
            if self._wake.is_set() or time.monotonic() >= check_at_s:
                self._wake.clear()
                self._rebalance()
                checked_s = time.monotonic()
            self._stopping.wait(MIN_PAUSE_S)  # many changes in a row must not cause as many requests

    def _rebalance(self) -> None:
        """Rebalance; while a part of the share is missing, wait and have the loop try again."""
        try:
            if self._take_share():
                return
        except KafkaIOError as error:
            _LOG.warning("the group cannot be rebalanced now; owned partitions are read on: %s", error)
        self._wait_for_others()
        self._wake.set()

    def _take_share(self) -> bool:
        """Take this member's share, and give each stream its part; False while others still own some of the share."""
        complete = self.ownership.rebalance(self._wake.set)
        owned_partitions = self.ownership.owned_partitions
        for (topic, stream), fetcher in self.fetchers.items():
            fetcher.assign(
                owned
                for owned in owned_partitions
                if owned.stream == stream and topic in {owned.topic_partition.topic, EVERY_TOPIC}
            )
        return complete

    def _wait_for_others(self) -> None:
        self._stopping.wait(self.options.rebalance_backoff_ms / 1000)
