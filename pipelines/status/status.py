"""The status of a topic and its table, as one value for the command line, Dagster and JSON.

The race with retention: the oldest record without a row was written at a known time, and brokers keep records for a
known time. A broker deletes whole segments, each when its newest record is too old. So no record is removed before the
computed time, and from then on the broker's next clean-up may remove it. Retention by size is shown but not computed:
that would need the sizes of logs on disk.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kafka_io.cluster.retention import FOREVER, Retention
from kafka_io.model import BrokerPartition
from pipelines.reports.held_back import hanging_sentence, hangs
from resources.printed import HIDDEN, INLINED, PrintedError, printed_property
from resources.table_names import route_of

if TYPE_CHECKING:  # the command line imports this module at each start; the lake and readers are slow to import
    from kafka_io.cluster.open_transactions import OpenTransaction
    from pipelines.ledger.failure import SliceFailure
    from pipelines.reports.last_error import LastError
    from pipelines.table.open_table import TableSize

AT_RISK_BELOW = 0.25
"""A topic is at risk when less than this share of its retention time is left."""


def now_ms() -> int:
    """The current time, in ms since 1970."""
    return time.time_ns() // 1_000_000


class TopicState(StrEnum):
    """The state of a topic and its table, ordered by how urgent they are for an operator."""

    LOSING = "losing"
    ERROR = "error"
    AT_RISK = "at risk"
    HELD_BACK = "held back"
    BEHIND = "behind"
    NEW = "new"
    GONE = "gone"
    LOADED = "loaded"


class RetentionSource(StrEnum):
    """Where the retention time of a topic comes from."""

    BROKERS = "brokers"
    SETTINGS = "settings"
    ESTIMATE = "estimate"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPeriod:
    """The retention time that `left_s` is computed with.

    `ms` is FOREVER if records do not expire, and None if the time is unknown.
    """

    ms: int | None
    by: RetentionSource

    @property
    def limit_ms(self) -> int | None:
        """The retention time in ms; None if records do not expire or the time is unknown."""
        return None if self.ms == FOREVER else self.ms


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """The log and the cursor of a partition. Times are ms since 1970.

    Offsets are bytes of the log in 0.7 and records later.

    Args:
        id: the partition.
        earliest: the first offset of the log; None if the broker does not answer or no longer has the partition.
        latest: the end of what a load can fetch; None in the same cases. With isolation "committed" it is the last
            stable offset.
        transaction: that transaction; None if there is none, or if it is unknown.
        cursor: the next offset to load; None if the first load still has to find where the partition begins.
        oldest_ms: when the oldest record without a row was written; None if there is no such record, or its time is
            unknown. Brokers before 0.10 only know when its segment was last written to.
        expires_ms: from when on retention may remove that record; None if it never does, or the time is unknown.
    """

    id: BrokerPartition = field(metadata=INLINED)
    earliest: int | None = None
    latest: int | None = None
    held_back: int = 0
    """The number of offsets that an open transaction holds back."""
    transaction: "OpenTransaction | None" = None
    cursor: int | None = None
    oldest_ms: int | None = None
    expires_ms: int | None = None

    @property
    def next(self) -> int | None:
        """The first offset that a load would fetch; None if it is unknown."""
        return None if self.earliest is None else max(self.cursor or 0, self.earliest)

    @printed_property
    def lag(self) -> int | None:
        """How many offsets up to the high watermark have no row; None if that is unknown."""
        loadable = self.loadable
        return None if loadable is None else loadable + self.held_back

    @property
    def loadable(self) -> int | None:
        """How many offsets a load would fetch: the lag without what an open transaction holds back."""
        start = self.next
        return None if start is None or self.latest is None else max(0, self.latest - start)

    @printed_property
    def lost(self) -> int:
        """How many offsets retention removed before they were loaded, as far as is known."""
        if self.cursor is None or self.earliest is None:
            return 0
        return max(0, self.earliest - self.cursor)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLoad:
    """The newest commit of a load, as the table records it. Times are ms since 1970.

    A load that found nothing new has no commit.

    Args:
        planned_ms: when the load, or the last of its steps, was planned, in ms since 1970.
        committed_ms: when it was committed, in ms since 1970; None if that is not known.
        rows: the number of rows that the commit added.
        bytes: the bytes that were read for them (see CommittedRange).
        files: the number of files that it added.
    """

    planned_ms: int
    committed_ms: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    gaps: Mapping[str, int] = field(default_factory=dict)
    """The number of offsets without a row, by cause."""

    @printed_property
    def seconds(self) -> float | None:
        """The time from the plan of the load, or of the last of its steps, to the commit; None if it is not known."""
        return None if self.committed_ms is None else max(0, self.committed_ms - self.planned_ms) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """The status of one topic and its table. Methods that compute ages take the time `now_ms`, in ms since 1970.

    Args:
        cluster: the name of the cluster in the settings.
        topic: the name of the topic, or of one of its further tables, such as `events/orders`.
        incarnation: the identity of the topic's current incarnation; None if the cluster no longer has the topic.
        has_id: without an id only leader epochs and the last loaded messages show that the topic was created again.
        table: the URI of the table.
        version: the version of the table; None if there is no table or it cannot be read.
        size: the rows, bytes and files of the table; None if there is no table or it cannot be read.
        partitions: the partitions of the cluster and of the table, in order; empty if the table cannot be read.
        retention: the retention settings of the topic as brokers report them.
        kept: the retention time from the best source that is known.
        failure: why the topic cannot be loaded, or why its status is unknown.
        last_error: why the last load of the topic failed; None if it succeeded.
        warnings: further sentences for a person.
    """

    cluster: str
    topic: str
    incarnation: str | None
    has_id: bool | None = True
    """Whether the cluster gives the topic an id; None if the cluster no longer has the topic."""
    table: str
    version: int | None = None
    last_load: LastLoad | None = None
    """None before the first load."""
    size: "TableSize | None" = field(default=None, metadata=HIDDEN)
    partitions: tuple[PartitionStatus, ...] = ()
    retention: Retention = field(default_factory=Retention)
    kept: RetentionPeriod = RetentionPeriod(ms=None, by=RetentionSource.NOBODY)
    failure: "SliceFailure | None" = field(default=None, metadata=HIDDEN)
    last_error: "LastError | None" = None
    valid_through_ms: int | None = None
    """The table is complete through this event time; None if nothing proves any time."""
    warnings: tuple[str, ...] = field(default=(), metadata=HIDDEN)

    @printed_property
    def loaded_at_ms(self) -> int | None:
        """When the newest load that committed something was planned, in ms since 1970; None before the first."""
        return self.last_load.planned_ms if self.last_load else None

    @printed_property
    def bad_records(self) -> int:
        """The number of rows of the table whose value does not decode; 0 for a raw table."""
        return self.size.bad_records if self.size else 0

    @property
    def error(self) -> str | None:
        """Why the topic cannot be loaded, or why its status is unknown, as a sentence."""
        return str(self.failure) if self.failure else None

    @printed_property
    def lag(self) -> int | None:
        """How many offsets up to the high watermark have no row; None if that is unknown for a partition."""
        return _sum(partition.lag for partition in self.partitions)

    @property
    def loadable(self) -> int | None:
        """How many offsets a load would fetch; None if that is unknown for a partition."""
        return _sum(partition.loadable for partition in self.partitions)

    def hanging_transactions(self, now_ms: int) -> list[str]:
        """A sentence about each transaction that has been open for too long, with the command that ends it.

        A table such as `events/orders` has none: they are about its topic.
        """
        if route_of(self.topic):
            return []
        return [
            hanging_sentence(
                self.topic, partition.id, partition.transaction, held_back=partition.held_back, now_ms=now_ms
            )
            for partition in self.partitions
            if partition.transaction and hangs(partition.transaction, now_ms)
        ]

    @printed_property
    def lost(self) -> int:
        """How many offsets retention removed before they were loaded."""
        return sum(partition.lost for partition in self.partitions)

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest record without a row was written; None if there is no such record, or its time is unknown."""
        return min((ms for part in self.partitions if (ms := part.oldest_ms) is not None), default=None)

    @property
    def expires_ms(self) -> int | None:
        """From when on retention may remove a record without a row; None if it never does, or that is unknown."""
        return min((ms for part in self.partitions if (ms := part.expires_ms) is not None), default=None)

    def late_s(self, now_ms: int) -> float | None:
        """The age in seconds of the oldest record without a row; 0 if all records are loaded, None if unknown."""
        if self.oldest_ms is None:
            return 0.0 if self.lag == 0 else None
        return max(0, now_ms - self.oldest_ms) / 1000  # a producer's clock may be ahead of ours

    def left_s(self, now_ms: int) -> float | None:
        """Seconds until retention may remove a record, negative if it already may; None if no expiry is known."""
        return None if self.expires_ms is None else (self.expires_ms - now_ms) / 1000

    def left_share(self, now_ms: int) -> float | None:
        """The share of the retention time that is left: 1 for a record just written, 0 for an expired one."""
        left_s, limit_ms = self.left_s(now_ms), self.kept.limit_ms
        if left_s is None or limit_ms is None:
            return None
        return min(1.0, max(0.0, left_s * 1000 / limit_ms)) if limit_ms else 0.0

    def state(self, now_ms: int) -> TopicState:
        """The state. An estimated retention time never leads to the state `losing`."""
        share = self.left_share(now_ms)
        expired = share == 0 and self.kept.by is not RetentionSource.ESTIMATE
        rows = (
            (self.failure is not None, TopicState.ERROR),
            (self.incarnation is None, TopicState.GONE),
            (self.lost > 0 or expired, TopicState.LOSING),
            (self.last_error is not None, TopicState.ERROR),
            (share is not None and share < AT_RISK_BELOW, TopicState.AT_RISK),
            (bool(self.hanging_transactions(now_ms)), TopicState.HELD_BACK),
            (self.loaded_at_ms is None, TopicState.NEW),
            (self.lag != 0, TopicState.BEHIND),
        )
        return next((state for holds, state in rows if holds), TopicState.LOADED)

    def urgency(self, now_ms: int) -> tuple[Any, ...]:
        """A sort key: the most urgent state first, then the earliest loss, then the oldest record."""
        order = list(TopicState).index(self.state(now_ms))
        never = float("inf")
        expires, oldest = (never if ms is None else ms for ms in (self.expires_ms, self.oldest_ms))
        return order, expires, oldest, -(self.lag or 0), self.cluster, self.topic

    def result(self, now_ms: int) -> "ShownTopic":
        """The result of `penstock status`."""
        size, errors = self.size, (self.failure.printed(),) if self.failure else ()
        return ShownTopic(
            status=self,
            rows=size.rows if size else None,
            bytes=size.bytes if size else None,
            files=size.files if size else None,
            state=self.state(now_ms),
            late_s=self.late_s(now_ms),
            left_s=self.left_s(now_ms),
            left_share=self.left_share(now_ms),
            warnings=[*self.warnings, *self.hanging_transactions(now_ms)],
            errors=[replace(error, cluster=self.cluster, topic=self.topic) for error in errors],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTopic:
    """A result of `penstock status` and `penstock topics`."""

    status: TopicStatus = field(metadata=INLINED)
    rows: int | None
    """The number of rows of the table; None if there is no table or it cannot be read. `bytes` and `files` too."""
    bytes: int | None
    files: int | None
    state: TopicState
    late_s: float | None
    left_s: float | None
    left_share: float | None
    warnings: Sequence[str]
    errors: Sequence[PrintedError]


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of the counts; None if there is none, or one is unknown."""
    known = list(counts)
    return sum(filter(None, known)) if known and None not in known else None
