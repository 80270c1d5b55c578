"""The hours of a table, compared with what producers counted: which have enough rows, and how many are missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self

from pipelines.formats.tables import lake_table
from pipelines.ledger.event_time import EventTime
from pipelines.status.audit import HOUR_MS, sent_records
from pipelines.status.hour_counts import hour_counts
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import AuditUnknown
from resources.printed import HIDDEN, printed_property
from resources.settings.settings import Settings
from resources.stores.lake import Lake


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedHour:
    """An hour of a table, compared with the counts of producers."""

    start_ms: int
    expected: int
    """The number of records that producers counted."""
    rows: int
    """The number of rows in the table."""

    def has_share(self, share: float) -> bool:
        """Whether the table has at least this share of the counted records. The share is taken as a decimal."""
        return self.rows >= Decimal(str(share)) * self.expected

    @printed_property
    def difference(self) -> int:
        """The number of missing rows."""
        return self.expected - self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedHours:
    """The comparison of the last hours of a table with the counts of producers.

    Args:
        counts: the table of the counts.
        counts_version: its version.
        of_version: the version of the topic's table.
        hours: the compared hours, oldest first.
    """

    counts: LakeTable = field(metadata=HIDDEN)
    counts_version: int
    of_version: int = field(metadata=HIDDEN)
    counts_valid_through_ms: int | None
    """All counts that were sent before this time are known; None if nothing proves any time."""
    counts_needed_ms: int
    """The end of the compared hours, and the allowed lateness of the topic: until then records may be counted."""
    share: float
    """The share of the counted records that an hour needs."""
    hours: Sequence[AuditedHour] = field(metadata=HIDDEN)
    malformed_counts: int
    """The number of count messages that cannot be used."""

    @printed_property
    def counts_topic(self) -> str:
        """The topic of the counts."""
        return self.counts.where.topic or ""

    @printed_property
    def has_all_counts(self) -> bool:
        """Whether `counts_valid_through_ms` has reached `counts_needed_ms`."""
        return self.counts_valid_through_ms is not None and self.counts_valid_through_ms >= self.counts_needed_ms

    @printed_property
    def compared_hours(self) -> int:
        """The number of hours."""
        return len(self.hours)

    @printed_property
    def expected(self) -> int:
        """The number of counted records of all compared hours."""
        return sum(hour.expected for hour in self.hours)

    @printed_property
    def rows(self) -> int:
        """The number of rows of all compared hours."""
        return sum(hour.rows for hour in self.hours)

    @printed_property
    def hours_without_counts(self) -> int:
        """The number of hours that have rows, but no counted records."""
        return sum(hour.rows > 0 and hour.expected == 0 for hour in self.hours)

    @printed_property
    def incomplete_hours(self) -> Sequence[AuditedHour]:
        """The hours in which too many rows are missing."""
        return [hour for hour in self.hours if not hour.has_share(self.share)]

    @property
    def is_complete(self) -> bool:
        """Whether all counts are known, and each hour has enough rows."""
        return self.has_all_counts and not self.incomplete_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedWindow:
    """How many records producers counted in an hour or day, and whether no count of it is missing."""

    records: int
    has_all_counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """How a topic is compared: the table with the counts, the share of an hour, and how many hours."""

    counts: LakeTable
    share: float
    hours: int

    @classmethod
    def of(cls, settings: Settings, cluster: str, topic: str, *, hours: int | None = None) -> Self | None:
        """The audit that the settings of a topic ask for; None if they ask for none. `hours` replaces `audit_hours`."""
        own = settings.options_of(topic).audit
        if own.audit is None:
            return None
        counts = lake_table(Lake.of(settings), cluster, own.audit)
        return cls(counts=counts, share=own.audit_share, hours=hours or own.audit_hours)

    def compare(
        self,
        table: LakeTable,
        snapshot: TableSnapshot,
        event_time: EventTime,
        through_ms: int,
        before: AuditedHours | None = None,
    ) -> AuditedHours:
        """Compare the last hours that end at or before a time.

        Args:
            table: the table of the topic.
            snapshot: its version.
            event_time: what its newest entry records.
            through_ms: the time.
            before: an earlier comparison with the same time; it is the result if both tables are what they were.

        Raises:
            AuditUnknown: there is no table of counts, or it cannot say whether all counts are there.
            LoadError: a table cannot be read.
        """
        counts, times = self._counts()
        if before is not None and (before.counts_version, before.of_version) == (counts.version, snapshot.version):
            return before
        stop_ms = through_ms // HOUR_MS * HOUR_MS
        starts = range(max(stop_ms - self.hours * HOUR_MS, 0), stop_ms, HOUR_MS)
        sent = sent_records(self.counts, counts, str(table.where.topic), start_ms=starts.start, stop_ms=stop_ms)
        rows = hour_counts(table, snapshot, event_time.column, [*starts, stop_ms])
        return AuditedHours(
            counts=self.counts,
            counts_version=counts.version,
            of_version=snapshot.version,
            counts_valid_through_ms=times.valid_through_ms,
            counts_needed_ms=stop_ms + event_time.lateness_ms,
            share=self.share,
            hours=[
                AuditedHour(start_ms=start, expected=sent.by_hour.get(start, 0), rows=rows[start]) for start in starts
            ],
            malformed_counts=sent.malformed,
        )

    def counted(self, topic: str, windows: Sequence[tuple[int, int]], lateness_ms: int) -> Mapping[int, CountedWindow]:
        """The counts of windows that lie side by side or apart, by their start.

        A window that does not consist of whole hours of UTC is left out: a day of a zone like that of India.

        Args:
            topic: the topic whose records are counted.
            windows: the start and the end of each, ascending.
            lateness_ms: the allowed lateness of the topic.

        Raises:
            AuditUnknown: there is no table of counts, or it cannot say whether all counts are there.
            LakeUnavailable: a file of this table cannot be read.
        """
        counts, times = self._counts()
        proven_ms = times.valid_through_ms
        counted: dict[int, CountedWindow] = {}
        for adjacent in _adjacent([window for window in windows if window[0] % HOUR_MS == window[1] % HOUR_MS == 0]):
            sent = sent_records(self.counts, counts, topic, start_ms=adjacent[0][0], stop_ms=adjacent[-1][1]).by_hour
            for start_ms, end_ms in adjacent:
                counted[start_ms] = CountedWindow(
                    records=sum(sent.get(hour, 0) for hour in range(start_ms, end_ms, HOUR_MS)),
                    has_all_counts=proven_ms is not None and proven_ms >= end_ms + lateness_ms,
                )
        return counted

    def _counts(self) -> tuple[TableSnapshot, EventTime]:
        """The newest version of the table of counts, and its event time."""
        snapshot, where = self.counts.existing(), self.counts.where
        if snapshot is None or snapshot.entry is None:
            raise AuditUnknown(f"there is no table of the counts of producers; load the topic {where.topic}", where)
        if snapshot.entry.event_time is None:
            raise AuditUnknown(
                "its commits record no event time, so nothing proves that all counts are there; the next load "
                "records it, because the settings name the topic as `audit`",
                where,
            )
        return snapshot, snapshot.entry.event_time


def _adjacent(windows: Sequence[tuple[int, int]]) -> Iterator[Sequence[tuple[int, int]]]:
    """The windows in groups: in a group, each begins where the one before it ends."""
    group: list[tuple[int, int]] = []
    for window in windows:
        if group and group[-1][1] != window[0]:
            yield group
            group = []
        group.append(window)
    if group:
        yield group
