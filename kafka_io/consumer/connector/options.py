"""The settings of a consumer connector; names and defaults follow those of Kafka 0.7 and 0.8."""

from dataclasses import dataclass
from typing import Literal, TypedDict

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import MIN_PAUSE_S, Backoff
from kafka_io.reader.reader import FetchSizes, ReadSettings

AutoOffsetReset = Literal["smallest", "largest"]
_MIN_PAUSE_MS = int(MIN_PAUSE_S * 1000)
_FETCH_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOptions:
    """The settings of a connector; times in ms, sizes in bytes.

    Args:
        auto_commit_interval_ms: how often offsets are committed; None commits only on `commit_offsets`, and not at
            shutdown.
        auto_offset_reset: where to start without a committed offset, or if the log does not hold that offset: at the
            `smallest` offset (the default of 0.7) or the `largest`.
        consumer_timeout_ms: the iteration over a stream ends after this time without a message; None is without limit.
        rebalance_max_retries: attempts to get this member's share before `create_message_streams` gives up. Later
            rebalances never give up; each failure is logged.
        rebalance_backoff_ms: how long a former owner has to release its partitions before the next attempt.
        look_interval_ms: how often to check for changes that no watch reported.
        fetch_bytes: the size of a fetch from a partition.
        max_fetch_bytes: the largest message or batch that can be read.
        fetch_backoff_ms: the pause of a partition that had nothing new, or an error.
        queued_max_chunks: the maximum number of fetched answers that wait in each stream.
        socket_timeout_ms: the deadline for an answer of a broker.
        session_timeout_ms: how long a killed member stays the owner of its partitions.
        zookeeper_timeout_ms: the deadline for an answer of ZooKeeper.
        shutdown_timeout_ms: how long `shutdown` waits for threads that wait for a broker.

    Raises:
        ValueError: a value is not allowed.
    """

    auto_commit_interval_ms: int | None = 10_000
    auto_offset_reset: AutoOffsetReset = "smallest"
    consumer_timeout_ms: int | None = None
    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int = 2_000
    look_interval_ms: int = 10_000
    fetch_bytes: int = _FETCH_BYTES
    max_fetch_bytes: int = FetchSizes().max_fetch_bytes
    fetch_backoff_ms: int = 1_000
    queued_max_chunks: int = 10
    socket_timeout_ms: int = 30_000
    session_timeout_ms: int = 6_000
    zookeeper_timeout_ms: int = 15_000
    shutdown_timeout_ms: int = 10_000

    def __post_init__(self) -> None:
        if self.auto_offset_reset not in {"smallest", "largest"}:
            raise ValueError(f"auto_offset_reset must be smallest or largest, not {self.auto_offset_reset!r}")
        pauses = (self.rebalance_backoff_ms, self.look_interval_ms, self.fetch_backoff_ms)
        if min(*pauses, self.auto_commit_interval_ms or _MIN_PAUSE_MS) < _MIN_PAUSE_MS:
            raise ValueError(f"intervals and back-offs must be at least {_MIN_PAUSE_MS} ms")
        if min(self.rebalance_max_retries, self.queued_max_chunks) < 1:
            raise ValueError("rebalance_max_retries and queued_max_chunks must be at least 1")
        assert self.read_settings  # raises the ValueError for sizes that are not allowed

    @property
    def read_settings(self) -> ReadSettings:
        """A failed fetch is retried once, as its connection may be stale; after that the fetcher itself retries."""
        return ReadSettings(
            sizes=FetchSizes(fetch_bytes=self.fetch_bytes, max_fetch_bytes=self.max_fetch_bytes),
            retry_policy=RetryPolicy(timeout_s=self.socket_timeout_ms / 1000, backoff=Backoff(attempts=2)),
        )


class ConnectorSettings(TypedDict, total=False):
    """The fields of ConnectorOptions as keyword arguments, for type checkers. All of them may be left out."""

    auto_commit_interval_ms: int | None
    auto_offset_reset: AutoOffsetReset
    consumer_timeout_ms: int | None
    rebalance_max_retries: int
    rebalance_backoff_ms: int
    look_interval_ms: int
    fetch_bytes: int
    max_fetch_bytes: int
    fetch_backoff_ms: int
    queued_max_chunks: int
    socket_timeout_ms: int
    session_timeout_ms: int
    zookeeper_timeout_ms: int
    shutdown_timeout_ms: int
