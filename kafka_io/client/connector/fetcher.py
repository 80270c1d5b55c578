"""Fetching for one stream: a thread that asks for what the stream owns, all partitions of a broker at once."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from kafka_io.client.connector.claim import Claim
from kafka_io.client.connector.handover import Chunk, Handover
from kafka_io.client.connector.options import Options
from kafka_io.client.fetched import FetchAt, Fetched
from kafka_io.client.retry import LEAST_PAUSE_S
from kafka_io.client.simple import SimpleConsumer
from kafka_io.errors import (
    AuthorizationFailed,
    BrokerError,
    Corrupt,
    KafkaIOError,
    LogShort,
    NetworkError,
    OffsetOutOfRange,
    PastEnd,
    RegistryError,
    TooLarge,
)

_LOG = logging.getLogger(__name__)
_RESETS = {"smallest": SimpleConsumer.EARLIEST_TIME, "largest": SimpleConsumer.LATEST_TIME}
_PASSING = (NetworkError, RegistryError, BrokerError, LogShort, PastEnd)


class Fetcher:
    """Fills a stream's queue from `start` to `stop`.

    Args:
        open_consumer: called by the thread itself, as a consumer belongs to one.
        handover: where the chunks go; it waits while there is no room.
        on_reset: told that a claim begins somewhere else than the group left off.
    """

    def __init__(
        self,
        open_consumer: Callable[[], SimpleConsumer],
        handover: Handover,
        options: Options,
        *,
        on_reset: Callable[[Claim], None],
    ) -> None:
        self.handover = handover
        self._open_consumer = open_consumer
        self._options = options
        self._on_reset = on_reset
        self._claims: tuple[Claim, ...] = ()
        self._wake = threading.Event()
        self._stopping = False
        # A thread that waits for a broker ends with the process if nobody waits for it.
        self._thread = threading.Thread(target=self._run, name="penstock-fetcher", daemon=True)

    def start(self) -> None:
        """Begin to fetch."""
        self._thread.start()

    def assign(self, claims: Iterable[Claim]) -> None:
        """Fetch for these from now on, and no others."""
        self._claims = tuple(claims)
        self.handover.drop_revoked()
        self._wake.set()

    def stop(self) -> None:
        """Have the thread end soon, and all who wait for the stream."""
        self._stopping = True
        self.handover.close()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        with self._open_consumer() as consumer:
            while not self._stopping:
                self._wake.clear()
                due = [claim for claim in self._claims if claim.is_due and not claim.revoked]
                self._fetch(consumer, due)
                if not due:
                    self._wake.wait(self._options.fetch_backoff_ms / 1000)

    def _fetch(self, consumer: SimpleConsumer, due: Sequence[Claim]) -> None:
        asked: list[tuple[Claim, int, FetchAt]] = []
        for claim in due:
            life, offset = claim.standing()
            if offset is None:
                self._begin(consumer, claim)
            else:
                at = FetchAt(topic=claim.topic, partition=claim.partition, offset=offset, max_bytes=claim.fetch_bytes)
                asked.append((claim, life, at))
        answers = consumer.multifetch(at for _, _, at in asked)
        for (claim, life, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, OffsetOutOfRange):
                _LOG.warning("the group's offset cannot be read: %s", answer)
                self._begin(consumer, claim)
            elif isinstance(answer, KafkaIOError):
                self._troubled(claim, life, answer)
            else:
                self._fetched(claim, life, answer)

    def _begin(self, consumer: SimpleConsumer, claim: Claim) -> None:
        """Find out where to begin, which is kept at once as a genuine consumer does (facts, 6)."""
        reset = self._options.auto_offset_reset
        try:
            offsets = consumer.get_offsets_before(claim.topic, claim.partition, _RESETS[reset])
            if not offsets:
                raise Corrupt(f"the broker told no {reset} offset")
        except KafkaIOError as error:
            self._troubled(claim, claim.standing()[0], error)
            return
        _LOG.info(
            "partition %s of topic %r begins at its %s offset %d", claim.partition, claim.topic, reset, offsets[0]
        )
        claim.begin(offsets[0])
        claim.rest(LEAST_PAUSE_S)  # a log that does not hold even that is not asked without end
        self._on_reset(claim)

    def _fetched(self, claim: Claim, life: int, fetched: Fetched) -> None:
        claim.trouble = None
        if fetched.next_offset > fetched.asked.offset:
            claim.fetch_bytes = self._options.fetch_bytes
            if claim.fetched(life, fetched.next_offset):
                self.handover.put(Chunk(claim, life, fetched))
        elif not fetched.needed_bytes:
            claim.rest(self._options.fetch_backoff_ms / 1000)
        elif max(fetched.needed_bytes, claim.fetch_bytes + 1) > self._options.max_fetch_bytes:
            sentence = f"no whole message within max_fetch_bytes = {self._options.max_fetch_bytes}"
            self._troubled(claim, life, TooLarge(f"{sentence}: the first takes {fetched.needed_bytes} at least"))
        else:
            claim.fetch_bytes = min(self._options.max_fetch_bytes, max(fetched.needed_bytes, 2 * claim.fetch_bytes))

    def _troubled(self, claim: Claim, life: int, error: KafkaIOError) -> None:
        """Leave the claim alone for a while; what does not pass by itself is the user's to know."""
        if isinstance(error, _PASSING) and not isinstance(error, AuthorizationFailed):
            claim.rest(self._options.fetch_backoff_ms / 1000)
            if claim.trouble != error.reason:
                _LOG.warning("%s: it is tried again", error)
            claim.trouble = error.reason
        else:
            claim.rest(float("inf"))  # until the stream has raised it
            self.handover.put(Chunk(claim, life, error))
