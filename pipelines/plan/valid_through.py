"""The event time of a table after a commit, from the answers of the brokers to the load that makes it.

A proof is only as good as the answer behind it. So a load notes the time before it asks for the topic: what a broker
appends after that, also in partitions that are added meanwhile, is not older than this time minus the allowed lateness.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.event_time import NO_PROOF, EventTime, LogAnswer, PartitionTime, late_rows, latest
from pipelines.ledger.incarnations import effective_entries
from pipelines.ledger.ledger import Coverage, LedgerEntry, TableState
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.table_store import TableSnapshot, TableStore

if TYPE_CHECKING:
    from resources.settings.topic_formats import TopicFormat

_MIN_STEP_MS = 60_000
"""A commit without rows is written if the valid-through rises by this: at most one a minute."""
LogAnswers = Mapping[BrokerPartition, Sequence[LogAnswer]]


def log_answers(bounds: Mapping[BrokerPartition, Bounds], asked_ms: int) -> LogAnswers:
    """The answers of brokers about the ends of logs; empty for Kafka 0.7, where they prove nothing.

    There, records have no times, and a partition is not even listed while its broker is down.
    """
    return {
        partition: (LogAnswer(bound.latest, bound.held_back, asked_ms),)
        for partition, bound in bounds.items()
        if partition.broker is None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesOfLoad:
    """The answers and settings from which a load computes the event time of its commits.

    Args:
        column: see EventTime; empty if the settings ask for no event time.
        lateness_ms: see EventTime.
        partitions: all partitions of the topic. Those without an answer keep the valid-through where it is.
        answers: the answers about the partitions that the load may extend.
    """

    column: str = ""
    lateness_ms: int = 0
    partitions: frozenset[BrokerPartition] = frozenset()
    answers: LogAnswers = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        format_: "TopicFormat",
        partitions: Iterable[BrokerPartition],
        first: LogAnswers,
        newest: LogAnswers,
        *,
        without: Iterable[BrokerPartition],
    ) -> Self:
        """The event times of a load with its first and its newest answers.

        Partitions in `without` have expired or differ from the table: their answers prove nothing.
        """
        known = newest.keys() - set(without)
        return cls(
            column=format_.event_time or "",
            lateness_ms=format_.allowed_lateness_ms,
            partitions=frozenset(partitions),
            answers={partition: (*first.get(partition, ()), *newest[partition]) for partition in known},
        )

    def after(self, state: TableState, covered: Coverage, facts: Sequence[SliceFacts] = ()) -> EventTime | None:
        """The event time of the table in this state after a commit of the facts, which then covers `covered`."""
        if not self.column:
            return None
        before, lost_by = self._before(state)
        largest: dict[BrokerPartition, int | None] = {}
        for part in facts:
            seen = part.observed.times
            largest[part.partition] = latest(largest.get(part.partition), seen.max_ms if seen else None)
        times = {
            id_: self._partition_after(id_, before, covered, largest.get(id_))
            for id_ in sorted({*before.partitions, *self.partitions, *covered})
        }
        late = late_rows(seen.late for slice_facts in facts if (seen := slice_facts.observed.times))
        event_time = replace(before, partitions=times, late=late, moved_back_by=lost_by)
        if _has_older(state.covered, covered):
            # A backfill adds rows to hours that may have been announced. The next commit announces them again.
            return replace(event_time, valid_through_ms=None, moved_back_by="backfill")
        return event_time.advanced

    def _before(self, state: TableState) -> tuple[EventTime, str]:
        """The event time that a commit starts from, and why that of the table is dropped; empty if it is kept."""
        fresh = EventTime(column=self.column, lateness_ms=self.lateness_ms)
        before = state.event_time
        # The proofs are about the log of the former topic, and hours of the new one begin again.
        if state.findings.replaced or state.findings.adopted:
            return fresh, "recreation"
        if before is None:
            return fresh, ""
        if before.column != self.column:
            return fresh, "setting"
        return replace(before.carried, lateness_ms=self.lateness_ms), ""

    def _partition_after(
        self, partition: BrokerPartition, before: EventTime, covered: Coverage, largest_ms: int | None
    ) -> PartitionTime:
        cursor = covered[partition][1] if partition in covered else 0
        return before.partitions.get(partition, NO_PROOF).after(self.answers.get(partition, ()), cursor, largest_ms)

    def is_due(self, state: TableState) -> bool:
        """Whether a load without anything new writes a commit, because the valid-through rises enough.

        It begins no table, and no other topic in a table: the first rows do that.
        """
        after = self.after(state, state.covered) if state.covered else None
        if after is None or after.valid_through_ms is None:
            return False
        before_ms = state.event_time.valid_through_ms if state.event_time else None
        return before_ms is None or after.valid_through_ms - before_ms >= _MIN_STEP_MS


NO_TIMES = TimesOfLoad()


def _has_older(before: Coverage, after: Coverage) -> bool:
    """Whether a commit adds rows before the first offset that the table had of a partition."""
    return any(after[id_][0] < start for id_, (start, _) in before.items() if id_ in after)


def moved_back(
    state: TableState, table: TableStore, snapshot: TableSnapshot, ranges: Sequence[OffsetRange], by: str
) -> EventTime | None:
    """The event time after rows of these ranges were replaced or taken back.

    The valid-through goes back to where it was before the table had the first of these rows. If the rows were taken
    back, so are the proofs of their partitions. The log is read only if the table has an event time.
    """
    if state.event_time is None:
        return None
    # In descending order the lowest start of each partition comes last, and so it stays in the dict.
    first = {offsets.partition: offsets.start for offsets in sorted(ranges, reverse=True)}
    earlier = _entry_before(state, table.entries(snapshot), first)
    times = earlier.event_time if earlier else None
    before_ms = times.valid_through_ms if times else None
    now_ms = state.event_time.valid_through_ms
    partitions = dict(state.event_time.partitions)
    # A replay reads the same log again, and its proofs hold. A cut shows that the answers were about records which the
    # log has lost since.
    if by == "cut":
        partitions |= {id_: _proof(times, id_) for id_ in first}
    return replace(
        state.event_time.carried,
        valid_through_ms=None if before_ms is None or now_ms is None else min(before_ms, now_ms),
        partitions=partitions,
        moved_back_by=by,
    )


def _entry_before(
    state: TableState, entries: Iterable[tuple[int, LedgerEntry]], first: Mapping[BrokerPartition, int]
) -> LedgerEntry | None:
    """The newest entry whose coverage ends before these offsets in each partition; None if no entry's does."""
    for _, entry in effective_entries(entries):
        if entry.topic != state.topic:
            return None
        # A log that is cut at the offset where it ended may have been led by two brokers at that time.
        if all(entry.covered.get(id_, (0, 0))[1] < max(1, start) for id_, start in first.items()):
            return entry
    return None


def _proof(times: EventTime | None, partition: BrokerPartition) -> PartitionTime:
    """The proof in an earlier entry for a partition, without the answer of a broker that has lost records since."""
    earlier = times.partitions.get(partition, NO_PROOF) if times else NO_PROOF
    return PartitionTime(max_ms=earlier.max_ms, proven_ms=earlier.proven_ms)
