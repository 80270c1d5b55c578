"""A partition that a stream owns: the offsets up to which it was fetched, delivered and processed."""

import threading
import time

from kafka_io.model import BrokerPartition, TopicPartition


class PartitionClaim:
    """A partition owned in one session of ZooKeeper, until it is revoked. Any thread may use it.

    Three offsets advance with the messages: up to `fetched` the messages are in the queue, up to `delivered` the stream
    returned them, and up to `processed` the stream was then asked for the next one. Only processed messages are surely
    dealt with, so auto-commit commits that offset. After a message inside a compressed one of 0.7, both `delivered` and
    `processed` are the wrapper's start [kafka-0.7: Compression].

    Each reset or rewind begins a new epoch. Chunks of older epochs may still be in the queue; they are not delivered.
    """

    def __init__(
        self, partition: TopicPartition, session_id: int | None, offset: int | None, *, fetch_bytes: int
    ) -> None:
        self.topic_partition = partition
        self.session_id = session_id
        self.committed = offset
        self.fetch_bytes = fetch_bytes
        self.last_error: str | None = None
        self._lock = threading.Lock()
        self._revoked = False
        self._fetched = self._delivered = self._processed = offset
        self._epoch = 0
        self._paused_until_s = 0.0

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.topic_partition.topic

    @property
    def partition(self) -> BrokerPartition:
        """The partition of the topic."""
        return self.topic_partition.within_topic

    def pause(self, seconds: float) -> None:
        """Fetch nothing for this time."""
        self._paused_until_s = time.monotonic() + seconds

    @property
    def is_due(self) -> bool:
        """Whether the pause is over."""
        return time.monotonic() >= self._paused_until_s

    def fetch_position(self) -> tuple[int, int | None]:
        """The claim's epoch, and the offset to fetch from; None before the first offset is known."""
        with self._lock:
            return self._epoch, self._fetched

    def reset(self, offset: int) -> None:
        """Continue at `offset`, in a new epoch."""
        with self._lock:
            self._epoch += 1
            self._fetched = self._delivered = self._processed = offset

    def rewind(self) -> None:
        """Fetch again from the delivered offset, in a new epoch."""
        with self._lock:
            self._epoch += 1
            self._fetched = self._delivered

    def advance_fetched(self, epoch: int, offset: int) -> bool:
        """Record that everything before `offset` is fetched; False if the epoch is over or the claim is revoked."""
        with self._lock:
            if self._revoked or epoch != self._epoch:
                return False
            self._fetched = offset
            return True

    def deliver(self, epoch: int, offset: int) -> bool:
        """Record that everything before `offset` is delivered; False if it must not be, as in `advance_fetched`."""
        with self._lock:
            if self._revoked or epoch != self._epoch:
                return False
            self._delivered = offset
            return True

    def mark_processed(self) -> None:
        """Record that everything delivered is processed."""
        with self._lock:
            self._processed = self._delivered

    def revoke(self) -> None:
        """Deliver nothing from here on."""
        with self._lock:
            self._revoked = True

    @property
    def revoked(self) -> bool:
        """Whether the partition may belong to another consumer now."""
        return self._revoked

    @property
    def delivered(self) -> int | None:
        """The offset to commit if every delivered message is dealt with."""
        return self._delivered

    @property
    def processed(self) -> int | None:
        """The offset to commit if the last delivered message may not be dealt with."""
        return self._processed
