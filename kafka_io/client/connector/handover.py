"""What fetchers hand to streams: a bounded queue that can be closed, and cleared of what counts no more."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from kafka_io.client.connector.claim import Claim
from kafka_io.client.fetched import Fetched
from kafka_io.errors import KafkaIOError


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was fetched for a claim in one of its lives, or why nothing could be."""

    claim: Claim
    life: int
    fetched: Fetched | KafkaIOError


class Handover:
    """At most so many chunks, in order. One thread puts, one takes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: deque[Chunk] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, chunk: Chunk) -> None:
        """Add a chunk when there is room; what is put into a closed queue is dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._chunks) < self._most)
            if not self._closed:
                self._chunks.append(chunk)
                self._changed.notify_all()

    def take(self, deadline: float | None) -> Chunk | None:
        """The next chunk; None when there is none by then (as `time.monotonic` counts) or the queue is closed."""
        with self._changed:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._changed.wait_for(lambda: self._closed or bool(self._chunks), left)
            if self._closed or not self._chunks:
                return None
            self._changed.notify_all()
            return self._chunks.popleft()

    def drop_revoked(self) -> None:
        """Drop what is another's now: it must not keep the fetcher waiting."""
        with self._changed:
            self._chunks = deque(chunk for chunk in self._chunks if not chunk.claim.revoked)
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody waits any more; safe to call again."""
        with self._changed:
            self._closed = True
            self._chunks.clear()
            self._changed.notify_all()
