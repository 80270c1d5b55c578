"""What a consumer connector can be told, with the defaults of the documents."""

from dataclasses import dataclass, field
from typing import Literal

from kafka_io.client.link import Patience
from kafka_io.client.reading import FetchSizes, Reading
from kafka_io.client.retry import LEAST_PAUSE_S, Backoff

Reset = Literal["smallest", "largest"]
_LEAST_PAUSE_MS = int(LEAST_PAUSE_S * 1000)
_FETCH_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a connector, in ms and bytes.

    Args:
        auto_commit_interval_ms: how often offsets are committed; None for only when told, and at shutdown not either.
        auto_offset_reset: where to begin without an offset, or with one that the broker's log does not hold: at the
            `smallest` there is, as 0.7 does, or the `largest`.
        consumer_timeout_ms: after how long without a message the iteration over a stream ends; None for never.
        rebalance_max_retries: how often to try to get one's share before `create_message_streams` gives up. Later
            rebalances never do: each time they say so in the log.
        rebalance_backoff_ms: how long to leave the former owner to let go.
        look_interval_ms: how often to look for changes that no watch told of.
        fetch_bytes: what to ask for of a partition at once.
        max_fetch_bytes: the largest message or batch that is read.
        fetch_backoff_ms: how long to leave a partition alone that had nothing new, or trouble.
        queued_max_chunks: how many answers may wait in each stream.
        socket_timeout_ms: how long to wait for a broker.
        session_timeout_ms: how long a member that was killed keeps what it owned.
        zookeeper_timeout_ms: how long to wait for ZooKeeper.
        shutdown_timeout_ms: how long `shutdown` waits for threads that are waiting for a broker.

    Raises:
        ValueError: one that cannot be.
    """

    auto_commit_interval_ms: int | None = 10_000
    auto_offset_reset: Reset = "smallest"
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
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        if self.auto_offset_reset not in {"smallest", "largest"}:
            raise ValueError(f"auto_offset_reset is smallest or largest, not {self.auto_offset_reset!r}")
        pauses = (self.rebalance_backoff_ms, self.look_interval_ms, self.fetch_backoff_ms)
        if min(*pauses, self.auto_commit_interval_ms or _LEAST_PAUSE_MS) < _LEAST_PAUSE_MS:
            raise ValueError(f"intervals and back-offs are {_LEAST_PAUSE_MS} ms at least")
        if min(self.rebalance_max_retries, self.queued_max_chunks) < 1:
            raise ValueError("rebalance_max_retries and queued_max_chunks are 1 at least")
        object.__setattr__(self, "reading", self._reading())

    def _reading(self) -> Reading:
        """A fetch that fails is tried once more at once, for its connection may just be old: fetchers go on anyway."""
        return Reading(
            sizes=FetchSizes(fetch_bytes=self.fetch_bytes, max_fetch_bytes=self.max_fetch_bytes),
            patience=Patience(timeout_s=self.socket_timeout_ms / 1000, backoff=Backoff(attempts=2)),
        )
