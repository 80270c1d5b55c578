"""The bounded queue between a fetcher and its stream: it can be closed, and cleared of revoked partitions."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from kafka_io.consumer.connector.stream_partition import StreamPartition
from kafka_io.consumer.fetched import FetchResult
from kafka_io.errors import KafkaIOError


@dataclass(frozen=True, slots=True)
class Chunk:
    """The result of a fetch for a partition, in one of its epochs, or the error."""

    partition: StreamPartition
    epoch: int
    result: FetchResult | KafkaIOError


class ChunkQueue:
    """Holds at most `max_chunks` chunks, in order. One thread puts, one takes."""

    def __init__(self, max_chunks: int) -> None:
        self._max_chunks = max_chunks
        self._chunks: deque[Chunk] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, chunk: Chunk) -> None:
        """Wait for room, and add a chunk; a closed queue drops it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._chunks) < self._max_chunks)
            if not self._closed:
                self._chunks.append(chunk)
                self._changed.notify_all()

    def take(self, deadline_s: float | None) -> Chunk | None:
        """The next chunk; None if there is none by the deadline (of `time.monotonic`), or the queue is closed."""
        with self._changed:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            self._changed.wait_for(lambda: self._closed or bool(self._chunks), left_s)
            if self._closed or not self._chunks:
                return None
            self._changed.notify_all()
            return self._chunks.popleft()

    def drop_revoked(self) -> None:
        """Drop the chunks of revoked partitions, so that the fetcher does not wait for their room.

        A stream may not be read for a long time. Its queue would then stay full of chunks that nobody may deliver.
        """
        with self._changed:
            self._chunks = deque(chunk for chunk in self._chunks if not chunk.partition.revoked)
            self._changed.notify_all()

    def close(self) -> None:
        """Drop all chunks, and wake every thread that waits; safe to call again."""
        with self._changed:
            self._closed = True
            self._chunks.clear()
            self._changed.notify_all()
