"""What travels between driver and workers: work out, facts back, both as JSON text in one column of a DataFrame."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from kafka_io.client.link import Patience
from kafka_io.client.partition import FetchSizes
from kafka_io.client.retry import Backoff
from kafka_io.errors import PlacedError, Where
from kafka_io.model import Broker, BrokerPartition
from kafka_io.records.columns import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a worker reads: the caps of the settings, in bytes and seconds."""

    fetch_bytes: int
    max_fetch_bytes: int
    max_decompressed_bytes: int
    request_timeout_s: float
    attempts: int

    @property
    def patience(self) -> Patience:
        """For the broker's link."""
        return Patience(timeout_s=self.request_timeout_s, backoff=Backoff(attempts=self.attempts))

    @property
    def sizes(self) -> FetchSizes:
        """For the partition's fetches."""
        return FetchSizes(fetch_bytes=self.fetch_bytes, max_fetch_bytes=self.max_fetch_bytes)

    @property
    def limits(self) -> Limits:
        """For the decoder."""
        return Limits(max_decompressed_bytes=self.max_decompressed_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One slice to fetch: all that a worker must know, so that nothing of the driver is in the closure."""

    task: int
    cluster: str
    topic: str
    broker: int
    host: str
    port: int
    partition: int
    start: int
    stop: int
    table_uri: str
    folder: str
    options: Mapping[str, str]
    loaded_at_us: int
    reading: Reading

    @property
    def id(self) -> BrokerPartition:
        """The broker-partition."""
        return BrokerPartition(self.broker, self.partition)

    @property
    def source(self) -> Broker:
        """The broker to fetch from."""
        return Broker(self.broker, self.host, self.port)

    @property
    def where(self) -> Where:
        """The slice's place, for errors."""
        source = f"{self.broker}@{self.source.address}"
        return Where(cluster=self.cluster, broker=source, topic=self.topic, partition=str(self.id), offset=self.start)

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse."""
        fields = json.loads(text)
        return cls(**{**fields, "reading": Reading(**fields["reading"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a slice was not fetched: the error as data, for it crosses from a worker's process to the driver's."""

    kind: str
    reason: str
    where: Mapping[str, Any] = field(default_factory=dict)
    trace: str = ""

    @classmethod
    def of(cls, error: Exception, where: Where, trace: str) -> Self:
        """What is to be told of `error`, which happened at `where` if it does not know better."""
        place, reason = where, str(error)
        if isinstance(error, PlacedError):
            place, reason = error.where.within(where), error.reason
        return cls(kind=type(error).__name__, reason=reason, where=place.as_dict(), trace=trace)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason} [{Where(**self.where)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What came of one slice: its file, if it has rows, or its failure. `bytes` is the log's, `size` the file's."""

    broker: int
    partition: int
    start: int
    stop: int
    rows: int = 0
    bytes: int = 0
    path: str | None = None
    size: int = 0
    first: int | None = None
    last: int | None = None
    gaps: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
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
