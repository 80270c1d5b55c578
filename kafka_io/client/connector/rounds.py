"""The life of a member with streams: it joins, rebalances whenever something changed, commits, and leaves.

One thread does so. Watches only wake it: it also looks at intervals, as a watch may fail to come (Z02).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka_io.client.connector.claim import Claim
from kafka_io.client.connector.fetcher import Fetcher
from kafka_io.client.connector.handover import Handover
from kafka_io.client.connector.options import Options
from kafka_io.client.connector.ownership import Ownership
from kafka_io.client.retry import LEAST_PAUSE_S
from kafka_io.client.simple import SimpleConsumer
from kafka_io.errors import KafkaIOError, RegistryError
from kafka_io.registry.dialect import Dialect
from kafka_io.registry.members import Subscription
from kafka_io.registry.membership import Membership

_LOG = logging.getLogger(__name__)


class Rounds:
    """Runs from `start` to `stop`. `handovers` are those of the streams, by topic or for EVERY_TOPIC."""

    def __init__(
        self,
        membership: Membership,
        *,
        subscription: Subscription,
        dialect: Dialect,
        open_consumer: Callable[[], SimpleConsumer],
        handovers: Mapping[str, Sequence[Handover]],
        options: Options,
    ) -> None:
        self._options = options
        self._wake = threading.Event()
        self._stopping = threading.Event()
        streams = {
            topic: [Fetcher(open_consumer, handover, options, on_reset=self._keep) for handover in some]
            for topic, some in handovers.items()
        }
        self._fetchers = [fetcher for some in streams.values() for fetcher in some]
        self.ownership = Ownership(
            membership,
            subscription=subscription,
            dialect=dialect,
            streams=streams,
            options=options,
            on_change=self._wake.set,
        )
        self._thread = threading.Thread(target=self._run, name="penstock-consumer", daemon=True)

    def start(self) -> None:
        """Take this member's share, and go on by itself from then on.

        Raises:
            RegistryError: ZooKeeper gives no answer, or others did not let go in time.
        """
        attempts = self._options.rebalance_max_retries
        while not self.ownership.rebalance():
            attempts -= 1
            if not attempts:
                raise RegistryError(
                    f"others still own what is to be this consumer's after {self._options.rebalance_max_retries} tries"
                )
            self._wait_for_others()
        for fetcher in self._fetchers:
            fetcher.start()
        self._thread.start()

    def stop(self) -> None:
        """End all threads, commit what the streams gave out unless auto-commit is off.

        Raises:
            RegistryUnavailable: the offsets could not be committed; all else is done.
        """
        deadline = time.monotonic() + self._options.shutdown_timeout_ms / 1000
        self._stopping.set()
        self._wake.set()
        for fetcher in self._fetchers:
            fetcher.stop()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        for fetcher in self._fetchers:
            fetcher.join(max(0.0, deadline - time.monotonic()))
        self.ownership.revoke_all()
        if self._options.auto_commit_interval_ms is not None:
            self.ownership.commit(lambda claim: claim.handed)

    def _run(self) -> None:
        looked = committed = time.monotonic()
        while not self._stopping.is_set():
            look_at = looked + self._options.look_interval_ms / 1000
            commit_at = committed + (self._options.auto_commit_interval_ms or float("inf")) / 1000
            self._wake.wait(max(0.0, min(look_at, commit_at) - time.monotonic()))
            if self._stopping.is_set():
                return
            if time.monotonic() >= commit_at:
                self._commit()
                committed = time.monotonic()
            if self._wake.is_set() or time.monotonic() >= look_at:
                self._wake.clear()
                self._rebalance()
                looked = time.monotonic()
            self._stopping.wait(LEAST_PAUSE_S)  # a storm of changes must not become one of questions

    def _rebalance(self) -> None:
        """Rebalance, and once more after a while as long as something is missing."""
        try:
            if self.ownership.rebalance():
                return
        except KafkaIOError as error:
            _LOG.warning("the group cannot be rebalanced now, what is owned is read on: %s", error)
        self._wait_for_others()
        self._wake.set()

    def _wait_for_others(self) -> None:
        self._stopping.wait(self._options.rebalance_backoff_ms / 1000)

    def _commit(self) -> None:
        with _warning():
            self.ownership.commit(lambda claim: claim.done)

    def _keep(self, claim: Claim) -> None:
        with _warning():
            self.ownership.keep(claim)


@contextmanager
def _warning() -> Iterator[None]:
    """What cannot be committed now is committed later, or read again."""
    try:
        yield
    except KafkaIOError as error:
        _LOG.warning("offsets cannot be committed now: %s", error)
