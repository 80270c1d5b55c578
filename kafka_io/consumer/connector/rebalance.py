"""The thread of a member with streams: it joins the group, rebalances after changes, commits, and leaves.

Watches only wake the thread. It also checks at intervals, because a watch may fail to fire (fault Z02).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka_io.brokers.retry import MIN_PAUSE_S
from kafka_io.consumer.connector.chunk_queue import ChunkQueue
from kafka_io.consumer.connector.claim import PartitionClaim
from kafka_io.consumer.connector.fetcher import ConnectorFetcher
from kafka_io.consumer.connector.options import ConnectorOptions
from kafka_io.consumer.connector.ownership import PartitionOwnership
from kafka_io.consumer.simple import SimpleConsumer
from kafka_io.errors import KafkaIOError, RegistryError
from kafka_io.registry.dialect import RegistryFormat
from kafka_io.registry.members import ConsumerSubscription
from kafka_io.registry.membership import ConsumerRegistration

_LOG = logging.getLogger(__name__)


class RebalanceLoop:
    """Runs from `start` to `stop`. `queues` are those of the streams, by topic or for EVERY_TOPIC."""

    def __init__(
        self,
        registration: ConsumerRegistration,
        *,
        subscription: ConsumerSubscription,
        registry_format: RegistryFormat,
        open_consumer: Callable[[], SimpleConsumer],
        queues: Mapping[str, Sequence[ChunkQueue]],
        options: ConnectorOptions,
    ) -> None:
        self._options = options
        self._wake = threading.Event()
        self._stopping = threading.Event()
        streams = {
            topic: [
                ConnectorFetcher(open_consumer, queue, options, on_reset=self._commit_claim) for queue in topic_queues
            ]
            for topic, topic_queues in queues.items()
        }
        self._fetchers = [fetcher for fetchers in streams.values() for fetcher in fetchers]
        self.ownership = PartitionOwnership(
            registration,
            subscription=subscription,
            registry_format=registry_format,
            streams=streams,
            options=options,
            on_change=self._wake.set,
        )
        self._thread = threading.Thread(target=self._run, name="penstock-consumer", daemon=True)

    def start(self) -> None:
        """Take this member's share, then start the threads.

        Raises:
            RegistryError: ZooKeeper does not answer, or other members did not release their partitions in time.
        """
        attempts = self._options.rebalance_max_retries
        while not self.ownership.rebalance():
            attempts -= 1
            if not attempts:
                raise RegistryError(
                    "other members still own partitions of this consumer's share after "
                    f"{self._options.rebalance_max_retries} attempts (rebalance_max_retries)"
                )
            self._wait_for_others()
        for fetcher in self._fetchers:
            fetcher.start()
        self._thread.start()

    def stop(self) -> None:
        """End all threads, and commit the delivered offsets unless auto-commit is off.

        Raises:
            RegistryUnavailable: the offsets could not be committed; everything else is done.
        """
        deadline_s = time.monotonic() + self._options.shutdown_timeout_ms / 1000
        self._stopping.set()
        self._wake.set()
        for fetcher in self._fetchers:
            fetcher.stop()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline_s - time.monotonic()))
        for fetcher in self._fetchers:
            fetcher.join(max(0.0, deadline_s - time.monotonic()))
        self.ownership.revoke_all()
        if self._options.auto_commit_interval_ms is not None:
            self.ownership.commit(lambda claim: claim.delivered)

    def _run(self) -> None:
        checked_s = committed_s = time.monotonic()
        while not self._stopping.is_set():
            check_at_s = checked_s + self._options.look_interval_ms / 1000
            commit_at_s = committed_s + (self._options.auto_commit_interval_ms or float("inf")) / 1000
            self._wake.wait(max(0.0, min(check_at_s, commit_at_s) - time.monotonic()))
            if self._stopping.is_set():
                return
            if time.monotonic() >= commit_at_s:
                self._commit()
                committed_s = time.monotonic()
            if self._wake.is_set() or time.monotonic() >= check_at_s:
                self._wake.clear()
                self._rebalance()
                checked_s = time.monotonic()
            self._stopping.wait(MIN_PAUSE_S)  # many changes in a row must not cause as many requests

    def _rebalance(self) -> None:
        """Rebalance; while a part of the share is missing, wait and have the loop try again."""
        try:
            if self.ownership.rebalance():
                return
        except KafkaIOError as error:
            _LOG.warning("the group cannot be rebalanced now; owned partitions are read on: %s", error)
        self._wait_for_others()
        self._wake.set()

    def _wait_for_others(self) -> None:
        self._stopping.wait(self._options.rebalance_backoff_ms / 1000)

    def _commit(self) -> None:
        with _logged_errors():
            self.ownership.commit(lambda claim: claim.processed)

    def _commit_claim(self, claim: PartitionClaim) -> None:
        with _logged_errors():
            self.ownership.commit_claim(claim)


@contextmanager
def _logged_errors() -> Iterator[None]:
    """Log errors of a commit: the offsets are committed later, or their messages are read again."""
    try:
        yield
    except KafkaIOError as error:
        _LOG.warning("offsets cannot be committed now: %s", error)
