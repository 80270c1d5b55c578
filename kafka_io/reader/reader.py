"""How partitions are read, whatever their generation: the caps, what is asked for, and who gives it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, Self

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.errors import NOWHERE, Corrupt, TooLarge, Where
from kafka_io.model import Broker, OffsetRange
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSizes:
    """Bytes asked for in one fetch: at first, and at most, when a message or batch is larger than that.

    Raises:
        ValueError: sizes that are out of order, or that the wire has no room for.
    """

    fetch_bytes: int = 4 * 1024 * 1024
    max_fetch_bytes: int = 128 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 < self.fetch_bytes <= self.max_fetch_bytes <= _INT32_MAX:
            raise ValueError(f"fetch sizes must be 0 < fetch_bytes <= max_fetch_bytes <= {_INT32_MAX}, not {self}")

    def next_larger(self, size: int, needed_bytes: int, where: Where = NOWHERE) -> int:
        """The size of the next fetch after an answer of up to `size` bytes that held no whole message or batch.

        It at least doubles, because `needed_bytes` is exact only if the answer included the length of the first entry.

        Raises:
            TooLarge: the first message or batch is larger than `max_fetch_bytes`.
            Corrupt: an answer of `max_fetch_bytes` had room for the first entry and did not hold it.
        """
        if needed_bytes > self.max_fetch_bytes:
            sentence = f"a message or batch of {needed_bytes} bytes is above max_fetch_bytes = {self.max_fetch_bytes}"
            raise TooLarge(sentence, where)
        if size >= self.max_fetch_bytes:
            raise Corrupt(f"a fetch of {size} bytes holds no whole message or batch", where)
        return min(self.max_fetch_bytes, max(needed_bytes, 2 * size))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """The caps of a reader, in bytes and seconds.

    `committed` leaves out what transactions have not committed; `rack` is where we are, as the brokers name it.

    >>> ReadSettings(rack="eu-1a").committed
    True
    """

    sizes: FetchSizes = field(default_factory=FetchSizes)
    limits: DecodeLimits = field(default_factory=DecodeLimits)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    committed: bool = True
    rack: str = ""

    @classmethod
    def of(
        cls,
        *,
        fetch_bytes: int,
        max_fetch_bytes: int,
        max_decompressed_bytes: int,
        request_timeout_s: float,
        attempts: int,
        committed: bool = True,
        rack: str = "",
    ) -> Self:
        """From the caps of the settings.

        Raises:
            ValueError: one that cannot be.
        """
        return cls(
            sizes=FetchSizes(fetch_bytes=fetch_bytes, max_fetch_bytes=max_fetch_bytes),
            limits=DecodeLimits(max_decompressed_bytes=max_decompressed_bytes),
            retry_policy=RetryPolicy(timeout_s=request_timeout_s, backoff=Backoff(attempts=attempts)),
            committed=committed,
            rack=rack,
        )


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """Offsets to read of one partition, and the incarnation of the topic for which they were planned.

    >>> planned = PlannedRange("clicks", OffsetRange(BrokerPartition(None, 0), 0, 10), incarnation="")
    >>> planned.offsets.stop
    10
    """

    topic: str
    offsets: OffsetRange
    incarnation: str


class Reader(Protocol):
    """Reads ranges of partitions over connections of its own. It belongs to one thread, and is closed by its user."""

    def read(self, spans: Iterable[PlannedRange]) -> Iterator[Iterator[DecodedBatch]]:
        """The batches of each span, in order; an error is raised where its span's batches are taken."""
        ...

    def serving(self, span: PlannedRange) -> Broker | None:
        """Whom the span is read from, once it is read."""
        ...

    def close(self) -> None:
        """End all connections; safe to call again."""
        ...
