"""A partition that a stream owns: the offsets up to which it was fetched, delivered and processed."""

import threading
import time

from kafka_io.model import TopicPartition


class StreamPartition:
    """A partition owned in one session of ZooKeeper, until it is revoked. Any thread may use it.

    Three offsets advance with the messages: up to `fetched` the messages are in the queue, up to `delivered` the stream
    returned them, and up to `processed` the stream was then asked for the next one. Only processed messages are surely
    dealt with, so auto-commit commits that offset. After a message inside a compressed 0.7 message, both `delivered`
    and `processed` are the wrapper's start [kafka-0.7: Compression].

    Each reset or rewind begins a new epoch. Chunks of older epochs may still be in the queue; they are not delivered.

    Args:
        topic_partition: the partition.
        session_id: the session of ZooKeeper in which it is owned.
        offset: the committed offset; None if the group has none.
        stream: the number of the stream that reads the partition.
    """

    def __init__(
        self, topic_partition: TopicPartition, session_id: int | None, offset: int | None, *, stream: int
    ) -> None:
        self.topic_partition = topic_partition
        self.session_id = session_id
        self.stream = stream
        self.committed = self.delivered = self.processed = offset
        self.fetch_bytes: int | None = None  # only if the first message needs more than usual
        self.last_error: str | None = None
        self.revoked = False  # the partition may belong to another consumer now
        self._fetched = offset
        self._epoch = 0
        self._paused_until_s = 0.0
        self._lock = threading.Lock()

    def pause(self, seconds: float) -> None:
        """Fetch nothing for this time."""
        self._paused_until_s = time.monotonic() + seconds

    @property
    def is_due(self) -> bool:
        """Whether to fetch from the partition now."""
        return not self.revoked and time.monotonic() >= self._paused_until_s

    def fetch_offset(self) -> tuple[int, int | None]:
        """The partition's epoch, and the offset to fetch from; None before the first offset is known."""
        with self._lock:
            return self._epoch, self._fetched

    def reset(self, offset: int) -> None:
        """Continue at `offset`, in a new epoch."""
        with self._lock:
            self._epoch += 1
            self._fetched = self.delivered = self.processed = offset

    def rewind(self) -> None:
        """Fetch again from the delivered offset, in a new epoch."""
        with self._lock:
            self._epoch += 1
            self._fetched = self.delivered

    def advance_fetched(self, epoch: int, offset: int) -> bool:
        """Record that everything before `offset` is fetched; False if the epoch is over or the partition is revoked."""
        with self._lock:
            if self.revoked or epoch != self._epoch:
                return False
            self._fetched = offset
            return True

    def deliver(self, epoch: int, offset: int) -> bool:
        """Record that everything before `offset` is delivered; False if it must not be, as in `advance_fetched`."""
        with self._lock:
            if self.revoked or epoch != self._epoch:
                return False
            self.delivered = offset
            return True

    def mark_processed(self) -> None:
        """Record that everything delivered is processed."""
        with self._lock:
            self.processed = self.delivered

    def revoke(self) -> None:
        """Deliver nothing from here on. The lock makes this wait for a delivery that is being recorded."""
        with self._lock:
            self.revoked = True
