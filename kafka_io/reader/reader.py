"""What readers of every generation share: their settings, the ranges that they read, and their interface."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.fetch_rate import UNLIMITED, FetchRate
from kafka_io.errors import NOWHERE, Corrupt, TooLarge, Where
from kafka_io.model import Broker, OffsetRange
from kafka_io.reader.unreadable import UnreadableRange
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits

_INT32_MAX = 2**31 - 1
_TOPIC_ID_LETTERS = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSizes:
    """The bytes that a fetch asks for at first, and at most, for a message or batch that is larger.

    Raises:
        ValueError: a size is not positive, the first is above the second, or the second does not fit into an int32.
    """

    fetch_bytes: int = 4 * 1024 * 1024
    max_fetch_bytes: int = 128 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 < self.fetch_bytes <= self.max_fetch_bytes <= _INT32_MAX:
            raise ValueError(f"fetch sizes must be 0 < fetch_bytes <= max_fetch_bytes <= {_INT32_MAX}, not {self}")

    def next_larger(self, size: int, needed_bytes: int, where: Where = NOWHERE) -> int:
        """The size of the next fetch, after a fetch of `size` bytes returned no whole message or batch.

        It is at least doubled, because `needed_bytes` is exact only if the answer contained the length of the first
        message or batch.

        Raises:
            TooLarge: the first message or batch is larger than `max_fetch_bytes`.
            Corrupt: the fetch asked for `max_fetch_bytes`, which is enough, and the first one is still not whole.
        """
        if needed_bytes > self.max_fetch_bytes:
            sentence = f"a message or batch of {needed_bytes} bytes is above max_fetch_bytes = {self.max_fetch_bytes}"
            raise TooLarge(sentence, where)
        if size >= self.max_fetch_bytes:
            raise Corrupt(f"a fetch of {size} bytes contains no whole message or batch", where)
        return min(self.max_fetch_bytes, max(needed_bytes, 2 * size))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """How to read: the limits in bytes and seconds, the isolation, and the client's rack.

    With `committed`, records of open and aborted transactions are left out. `rack` is a name of the brokers'
    configuration: a partition with a replica there is read from it (KIP-392). `rate` limits the process.

    >>> ReadSettings(rack="eu-1a").committed
    True
    """

    sizes: FetchSizes = field(default_factory=FetchSizes)
    limits: DecodeLimits = field(default_factory=DecodeLimits)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    committed: bool = True
    rack: str = ""
    rate: FetchRate = UNLIMITED


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range of one partition to read, and the incarnation of the topic for which it was planned.

    With `to_message`, a range of 0.7 is read up to the end of the message that contains its last byte. `epoch` is that
    of the leader that gave the bounds of the log, -1 if it is unknown: no older leader is read (KIP-320).

    >>> planned = PlannedRange("clicks", OffsetRange(BrokerPartition(None, 0), 0, 10), incarnation="")
    >>> planned.offsets.stop
    10
    """

    topic: str
    offsets: OffsetRange
    incarnation: str
    to_message: bool = False
    epoch: int = -1

    def is_for(self, topic_id: str | None) -> bool:
        """Whether it was planned for the topic with this id. Without topic ids this is unknown, and counts as yes."""
        # Without a topic id the incarnation is the zxid of the node, or unknown. No broker knows it (fault B06).
        return len(self.incarnation) != _TOPIC_ID_LETTERS or topic_id in {None, self.incarnation}


class Reader(Protocol):
    """Reads planned ranges over connections of its own. One thread uses it, and its user closes it."""

    def read(self, planned_ranges: Iterable[PlannedRange]) -> Iterator[Iterator[DecodedBatch]]:
        """The batches of each range, in order. An error is raised when the batches of its range are taken."""

    def unreadable(self, planned: PlannedRange, offset: int) -> UnreadableRange:
        """The unreadable part of the range that begins at `offset`, where `read` cannot decode a message or batch.

        Raises:
            KafkaIOError: the broker cannot be asked.
        """

    def serving(self, planned: PlannedRange) -> Broker | None:
        """The broker that the range is read from; None before it is read."""

    def close(self) -> None:
        """Close all connections; safe to call again."""


class PausableReader(Reader, Protocol):
    """A reader that can be kept open for later reads; see `KeptReaders`."""

    def pause(self) -> None:
        """Release memory and forget topics before a time without reads; connections stay open."""

    def resume(self) -> None:
        """Close each connection that the broker has closed during a pause, or sent something on. See `pause`."""
