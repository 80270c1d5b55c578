"""What travels between driver and workers: work out, facts back, both as JSON text in one column of a DataFrame."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from kafka_io.client.reading import Span
from kafka_io.client.source import Source
from kafka_io.errors import PlacedError, Where
from kafka_io.model import BrokerPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One slice to fetch: all that a worker must know, so that nothing of the driver is in the closure."""

    task: int
    source: Source
    topic: str
    incarnation: str
    broker: int | None
    partition: int
    start: int
    stop: int
    table_uri: str
    folder: str
    options: Mapping[str, str]
    parquet_codec: str
    loaded_at_us: int

    @property
    def span(self) -> Span:
        """What to read."""
        id_ = BrokerPartition(self.broker, self.partition)
        return Span(topic=self.topic, id=id_, start=self.start, stop=self.stop, incarnation=self.incarnation)

    @property
    def where(self) -> Where:
        """The slice's place, for errors."""
        id_ = BrokerPartition(self.broker, self.partition)
        return Where(cluster=self.source.cluster, topic=self.topic, partition=str(id_), offset=self.start)

    def to_json(self) -> str:
        """As text."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps({**fields, "source": self.source.as_dict()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse."""
        fields = json.loads(text)
        return cls(**{**fields, "source": Source.from_dict(fields["source"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a slice was not fetched: the error as data, for it crosses from a worker's process to the driver's.

    What is `passing` may be gone at another attempt.
    """

    kind: str
    reason: str
    where: Mapping[str, Any] = field(default_factory=dict)
    trace: str = ""
    passing: bool = False

    @classmethod
    def of(cls, error: Exception, where: Where, trace: str) -> Self:
        """What is to be told of `error`, which happened at `where` if it does not know better."""
        place, reason, passing = where, str(error), False
        if isinstance(error, PlacedError):
            place, reason, passing = error.where.within(where), error.reason, error.retriable
        return cls(kind=type(error).__name__, reason=reason, where=place.as_dict(), trace=trace, passing=passing)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason} [{Where(**self.where)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What came of one slice: its file, if it has rows, or its failure.

    `bytes` were read: of the log in 0.7, of columns later, where a slice may cut through what is compressed together.
    `stats` tell of the file's columns (see file_stats); `source` is the broker read from at last, `id@host:port`.
    `size` is the file's.
    """

    broker: int | None
    partition: int
    start: int
    stop: int
    rows: int = 0
    bytes: int = 0
    path: str | None = None
    size: int = 0
    stats: Mapping[str, Any] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    loaded_at_us: int = 0
    source: str = ""
    failure: Failure | None = None

    @property
    def id(self) -> BrokerPartition:
        """The broker-partition."""
        return BrokerPartition(self.broker, self.partition)

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse."""
        fields = json.loads(text)
        failure = fields["failure"]
        return cls(**{**fields, "failure": Failure(**failure) if failure else None})
