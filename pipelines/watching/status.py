"""How a topic stands beside its table, as one value that every view of it shows.

The retention race: the oldest record that no commit holds was written at some time, and is kept for so long. A broker
deletes whole segments, each once its newest record is too old. So nothing goes before the time that is told here, and
what is past it goes at the broker's next look. Retention by size is shown and not reckoned with: it takes the sizes of
logs on disk to tell when it strikes.
"""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from kafka_io.client.retention import FOREVER, Retention
from kafka_io.model import BrokerPartition

AT_RISK_BELOW = 0.25
"""Of the time that records are kept; with less of it left a topic is at risk."""


def now_ms() -> int:
    """The time at which topics are judged, in ms since 1970."""
    return time.time_ns() // 1_000_000


class State(StrEnum):
    """How a topic stands; in the order in which operators should look."""

    LOSING = "losing"
    ERROR = "error"
    AT_RISK = "at risk"
    BEHIND = "behind"
    NEW = "new"
    GONE = "gone"
    LOADED = "loaded"


class By(StrEnum):
    """Who says how long a topic's records are kept."""

    BROKERS = "brokers"
    SETTINGS = "settings"
    ESTIMATE = "estimate"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """For how many milliseconds records are kept: FOREVER, or None if nobody says."""

    ms: int | None
    by: By

    @property
    def limit_ms(self) -> int | None:
        """None where records do not expire, or nobody says when."""
        return None if self.ms == FOREVER else self.ms


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition: offsets (bytes of the log in 0.7, records later) and times in ms since 1970.

    Args:
        id: which it is.
        earliest: where its broker's log begins, and
        latest: ends; None while the broker does not answer, or no longer has it.
        cursor: the next offset to load; None before a first load.
        oldest_ms: when the oldest record was written that is not loaded; None if there is none or it is not known. Of
            brokers before 0.10: when its segment was last written to.
        expires_ms: from when on retention may delete that record; None if it will not, or that is not known.
    """

    id: BrokerPartition
    earliest: int | None
    latest: int | None
    cursor: int | None
    oldest_ms: int | None = None
    expires_ms: int | None = None

    @property
    def next(self) -> int | None:
        """The first offset that a load would fetch; None if that is not known."""
        if self.earliest is None:
            return None
        return self.earliest if self.cursor is None else max(self.cursor, self.earliest)

    @property
    def lag(self) -> int | None:
        """What a load would fetch, in offsets; None if that is not known."""
        at = self.next
        return None if at is None or self.latest is None else max(0, self.latest - at)

    @property
    def lost(self) -> int:
        """Offsets that retention deleted before they were loaded, as far as is known."""
        if self.cursor is None or self.earliest is None:
            return 0
        return max(0, self.earliest - self.cursor)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        numbers = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "id"}
        return {"broker": self.id.broker, "partition": self.id.partition, **numbers, "lag": self.lag, "lost": self.lost}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """One topic and its table. Ages are asked for at a time, `now_ms` since 1970, so that a value can be shown later.

    Args:
        cluster: the settings' name of it.
        topic: its name there.
        incarnation: which life it is; None when the cluster has no such topic any more.
        table: the URI of the table.
        version: that of the table; None while there is none, or it cannot be read.
        loaded_at_ms: when the newest load was planned that committed anything; None before the first.
        partitions: those of the cluster and of the table, in order; none where the table cannot be read.
        retention: what the brokers' settings say.
        kept: how long records are kept, by whoever knows best.
        error: why the topic cannot be loaded, or not be judged.
        warnings: what else a person should know.
    """

    cluster: str
    topic: str
    incarnation: str | None
    table: str
    version: int | None = None
    loaded_at_ms: int | None = None
    partitions: tuple[PartitionStatus, ...] = ()
    retention: Retention = field(default_factory=Retention)
    kept: Kept = Kept(ms=None, by=By.NOBODY)
    error: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def lag(self) -> int | None:
        """What a load would fetch, in offsets; None if that is not known of all partitions."""
        lags = [one.lag for one in self.partitions]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if known and len(known) == len(lags) else None

    @property
    def lost(self) -> int:
        """Offsets that retention deleted before they were loaded."""
        return sum(one.lost for one in self.partitions)

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest record was written that is not loaded; None if there is none, or no time is known."""
        return min(_known(one.oldest_ms for one in self.partitions), default=None)

    @property
    def expires_ms(self) -> int | None:
        """From when on retention may delete something that is not loaded; None if it will not, or is not known to."""
        return min(_known(one.expires_ms for one in self.partitions), default=None)

    def late_s(self, now_ms: int) -> float | None:
        """The age in seconds of the oldest record that is not loaded: 0 if all is loaded; None if it is not known."""
        if self.oldest_ms is None:
            return 0.0 if self.lag == 0 else None
        return max(0, now_ms - self.oldest_ms) / 1000  # producers' clocks may be ahead of ours

    def left_s(self, now_ms: int) -> float | None:
        """Seconds until something may be lost, below 0 if it may be already; None where nothing is known to expire."""
        return None if self.expires_ms is None else (self.expires_ms - now_ms) / 1000

    def left_share(self, now_ms: int) -> float | None:
        """What is left of the time that records are kept: from 1 for just written to 0 for expired."""
        left_s, limit_ms = self.left_s(now_ms), self.kept.limit_ms
        if left_s is None or limit_ms is None:
            return None
        return min(1.0, max(0.0, left_s * 1000 / limit_ms)) if limit_ms else 0.0

    def state(self, now_ms: int) -> State:
        """How it stands. What is only estimated never counts as being lost."""
        share = self.left_share(now_ms)
        expired = share == 0 and self.kept.by is not By.ESTIMATE
        rows = (
            (self.error is not None, State.ERROR),
            (self.incarnation is None, State.GONE),
            (self.lost > 0 or expired, State.LOSING),
            (share is not None and share < AT_RISK_BELOW, State.AT_RISK),
            (self.loaded_at_ms is None, State.NEW),
            (self.lag != 0, State.BEHIND),
        )
        return next((state for holds, state in rows if holds), State.LOADED)

    def urgency(self, now_ms: int) -> tuple[Any, ...]:
        """Sorts topics: what needs the operator most comes first, then what will be lost first, then what is oldest."""
        order = list(State).index(self.state(now_ms))
        never = float("inf")
        expires, oldest = (never if ms is None else ms for ms in (self.expires_ms, self.oldest_ms))
        return order, expires, oldest, -(self.lag or 0), self.cluster, self.topic

    def as_dict(self, now_ms: int) -> dict[str, Any]:
        """As `penstock status --json` prints it."""
        plain = ("cluster", "topic", "incarnation", "table", "version", "loaded_at_ms", "error", "lag", "lost")
        late_s, left_s = self.late_s(now_ms), self.left_s(now_ms)
        return {
            **{name: getattr(self, name) for name in plain},
            "state": self.state(now_ms),
            "late_s": late_s,
            "left_s": left_s,
            "left_share": self.left_share(now_ms),
            "kept": asdict(self.kept),
            "retention": asdict(self.retention),
            "partitions": [one.as_dict() for one in self.partitions],
            "warnings": list(self.warnings),
        }


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]
