"""Up to which event time a table is complete, as its newest entry says. Only tables are read, and no broker is asked.

A table is complete through a time if no row with an earlier event time will be added, except late ones. If the settings
of the topic name counts of producers, the last hours before the time must also have what producers counted.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self

from kafka_io.model import BrokerPartition
from pipelines.formats.tables import table_at
from pipelines.ledger.event_time import EventTime, PartitionTime
from pipelines.status.audited_hours import Audit, AuditedHours
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import EventTimeUnknown, TableMissing
from resources.printed import INLINED

_POLL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEventTime:
    """The event time of a partition, as the newest commit records it. Times are ms since 1970."""

    id: BrokerPartition = field(metadata=INLINED)
    time: PartitionTime = field(metadata=INLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedTable:
    """The result of `penstock complete`."""

    cluster: str
    topic: str
    table: str
    version: int
    complete: bool
    through_ms: int
    valid_through_ms: int | None
    """The table is complete through this time; None if nothing proves any time."""
    event_time: str
    """The setting `event_time` of the topic."""
    allowed_lateness_ms: int
    moved_back_by: str
    """The reason why the newest commit moved the valid-through back, such as "rewind"; empty if it did not."""
    partitions: Sequence[PartitionEventTime]
    audit: AuditedHours | None
    """None if the topic has no setting `audit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """The event time that one version of a table records.

    Args:
        table: the table.
        snapshot: its version.
        event_time: the record.
        audited: the comparison with the counts of producers; None if nothing was compared.
    """

    table: LakeTable
    snapshot: TableSnapshot
    event_time: EventTime
    audited: AuditedHours | None = None

    @classmethod
    def of(cls, table: LakeTable) -> Self:
        """The event time that the newest version of a table records.

        Raises:
            TableMissing: there is no table.
            EventTimeUnknown: its newest commit records no event time.
            LoadError: the table cannot be read, or is not Penstock's.
        """
        snapshot = table.existing()
        if snapshot is None:
            raise TableMissing(f"there is no table {table.uri}", table.where)
        event_time = snapshot.entry.event_time if snapshot.entry else None
        if event_time is None:
            raise EventTimeUnknown(
                'its commits record no event time; `event_time = "timestamp"` in the section of the topic records it '
                "from the next load on",
                table.where,
            )
        return cls(table=table, snapshot=snapshot, event_time=event_time)

    def is_valid_through(self, through_ms: int) -> bool:
        """Whether the valid-through of the table has reached this time, in ms since 1970."""
        valid_ms = self.event_time.valid_through_ms
        return valid_ms is not None and valid_ms >= through_ms

    def is_through(self, through_ms: int) -> bool:
        """Whether the table is complete through this time, in ms since 1970."""
        return self.is_valid_through(through_ms) and (self.audited is None or self.audited.is_complete)

    def compared(self, audit: Audit, through_ms: int, before: AuditedHours | None) -> Self:
        """The same with the comparison of the hours before this time; see Audit."""
        audited = audit.compare(self.table, self.snapshot, self.event_time, through_ms, before)
        return replace(self, audited=audited)

    def result(self, through_ms: int) -> CompletedTable:
        """The result of `penstock complete` for a time."""
        where, times = self.table.where, self.event_time
        return CompletedTable(
            cluster=where.cluster or "",
            topic=where.topic or "",
            table=self.table.uri,
            version=self.snapshot.version,
            complete=self.is_through(through_ms),
            through_ms=through_ms,
            valid_through_ms=times.valid_through_ms,
            event_time=times.column,
            allowed_lateness_ms=times.lateness_ms,
            moved_back_by=times.moved_back_by,
            partitions=[PartitionEventTime(id=id_, time=time) for id_, time in sorted(times.partitions.items())],
            audit=self.audited,
        )


def complete_through(table: LakeTable | str, *, options: dict[str, str] | None = None) -> datetime | None:
    """The time up to which a table is complete, in UTC; None if nothing proves any time.

    Counts of producers are not compared: only `penstock complete` does that.

    Args:
        table: the table or its URI, such as `lake/main/orders`.
        options: the options of the store, if `table` is a URI.

    Raises:
        EventTimeUnknown: the settings of the topic ask for no event time.
        LoadError: there is no table, or it cannot be read.
    """
    valid_ms = Completeness.of(table_at(table, options)).event_time.valid_through_ms
    return None if valid_ms is None else datetime.fromtimestamp(valid_ms / 1000, UTC)


def wait_until_complete(
    table: LakeTable,
    through_ms: int,
    wait_s: float,
    *,
    audit: Audit | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Completeness:
    """Wait until the table is complete through a time, or until the wait is over; returns its completeness then.

    Rows are compared with the counts of producers only when that can decide, and not again without another commit.

    Raises:
        LoadError: see Completeness, and Audit.
    """
    until, audited = clock() + wait_s, None
    while True:
        completeness = Completeness.of(table)
        left_s = until - clock()
        if audit and (completeness.is_valid_through(through_ms) or left_s <= 0):
            completeness = completeness.compared(audit, through_ms, audited)
            audited = completeness.audited
        if completeness.is_through(through_ms) or left_s <= 0:
            return completeness
        sleep(min(_POLL_S, left_s))
