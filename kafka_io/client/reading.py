"""How partitions are read, whatever their generation: the caps, what is asked for, and who gives it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from kafka_io.client.link import Patience
from kafka_io.client.retry import Backoff
from kafka_io.model import Broker, BrokerPartition
from kafka_io.records.columns import Decoded, Limits

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The caps of a reader, in bytes and seconds.

    `committed` leaves out what transactions have not committed; `rack` is where we are, as the brokers name it.

    >>> Reading(rack="eu-1a").committed
    True
    """

    sizes: FetchSizes = field(default_factory=FetchSizes)
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)
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
            limits=Limits(max_decompressed_bytes=max_decompressed_bytes),
            patience=Patience(timeout_s=request_timeout_s, backoff=Backoff(attempts=attempts)),
            committed=committed,
            rack=rack,
        )

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        patience = fields["patience"]
        return cls(
            sizes=FetchSizes(**fields["sizes"]),
            limits=Limits(**fields["limits"]),
            patience=Patience(timeout_s=patience["timeout_s"], backoff=Backoff(**patience["backoff"])),
            committed=fields["committed"],
            rack=fields["rack"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range `[start, stop)` of one partition; `incarnation` is the life of the topic that it was planned for.

    >>> Span(topic="clicks", id=BrokerPartition(None, 0), start=0, stop=10, incarnation="").stop
    10
    """

    topic: str
    id: BrokerPartition
    start: int
    stop: int
    incarnation: str


class Reader(Protocol):
    """Reads ranges of partitions over connections of its own. It belongs to one thread, and is closed by its user."""

    def read(self, spans: Iterable[Span]) -> Iterator[Iterator[Decoded]]:
        """The batches of each span, in order; an error is raised where its span's batches are taken."""
        ...

    def serving(self, span: Span) -> Broker | None:
        """Whom the span is read from, once it is read."""
        ...

    def close(self) -> None:
        """End all connections; safe to call again."""
        ...
