"""A change that replaces rows of a table: a replay, or a cut, which takes back rows that a log has lost."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pyarrow as pa

from kafka_io.model import OffsetRange
from pipelines.commit.commit import Change, columns_to_add, state_after
from pipelines.commit.offset_ranges import split_ranges, with_counts
from pipelines.layout.columns import NO_COLUMNS
from pipelines.ledger.committed_range import CommittedRange, ExactCause, LoadedRange
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry, RecordedChoice
from pipelines.plan.valid_through import moved_back
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, LoadError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceChange(Change):
    """Replaces the rows of `ranges` by those of `facts`, which cover the same offsets.

    `columns` are the columns for fields that the files of the facts have.
    """

    ranges: tuple[OffsetRange, ...]
    columns: pa.Schema = NO_COLUMNS
    shortfall: ClassVar[type[LoadError]] = CommitRefused
    """The error if rows are missing outside of the ranges."""

    @abstractmethod
    def coverage_after(self, covered: Coverage) -> Coverage:
        """The coverage of the table after the change, if it is `covered` before.

        Raises:
            CommitRefused: the ranges are no longer covered.
        """

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        inside, outside = split_ranges(ranges_of(table.entries(snapshot), self.state.topic), self.ranges)
        self._check_shortfall(table, snapshot, outside)
        fetched = [facts.range for facts in self.facts]
        # The replaced rows are written into new files. So the entry's ranges do not name the files of before.
        kept = [replace(committed, paths=()) for committed in with_counts(table, snapshot, outside)]
        columns = columns_to_add(self.state, snapshot, self.columns)
        covered = self.coverage_after(self.state.covered)
        event_time = moved_back(self.state, table, snapshot, self.ranges, by=self.kind)
        changed = replace(
            entry,
            state=replace(entry.state, covered=covered, event_time=event_time),
            ranges=(*fetched, *kept),
            columns=columns,
            written=tuple(map(LoadedRange.of, fetched)),
        )
        return changed, inside

    def _check_shortfall(
        self, table: TableStore, snapshot: TableSnapshot, outside: Sequence[tuple[CommittedRange, CommittedRange]]
    ) -> None:
        """Check that the parts outside of the replaced offsets have all their rows, in the snapshot to be written on.

        The commit counts the rows of these parts again. Rows that somebody deleted there would count as a gap from then
        on, and `verify` would not notice them any more (fault P04). The ledger only knows the rows of the whole range.
        So either the whole range has them all, or what it lacks is among the rows that were fetched again.

        Raises:
            LoadError: a part lacks rows.
        """
        wholes = list(dict.fromkeys(whole.offsets for _, whole in outside))
        by_offsets = {whole.offsets: whole for _, whole in outside}
        counts = table.count_rows(snapshot, [by_offsets[offsets] for offsets in wholes])
        for offsets, rows in zip(wholes, counts, strict=True):
            whole = by_offsets[offsets]
            if rows == whole.rows:
                continue
            inside, _ = split_ranges([whole], self.ranges)
            rows_outside = table.count_rows(snapshot, [part for part, owner in outside if owner.offsets == offsets])
            if sum(rows_outside) + sum(map(self.rows_again, inside)) != whole.rows:
                raise self.shortfall(
                    f"{whole} holds {rows} rows, but its commit counted {whole.rows}, and rows are missing outside of "
                    f"{', '.join(map(str, inside))}: replay all of it first, or `penstock rewind` to a version that "
                    "has them",
                    self.state.topic.where,
                )

    def rows_again(self, part: CommittedRange) -> int:
        """The number of new rows with the offsets of `part`, a part of a committed range that is replaced."""
        del part
        return 0

    def rebased(self, newest: TableSnapshot) -> Self:
        """The same change on top of another run's commit. Before it is written, `complete` checks its coverage."""
        entry = newest.entry
        if entry is None or entry.topic != self.state.topic:
            raise CommitRefused("the table holds another incarnation now; run again", self.state.topic.where)
        state = state_after(entry, self.state)
        for partition in sorted({offsets.partition for offsets in self.ranges}):
            # Under another leader the log may have been truncated and written again (fault B04).
            if state.epochs.get(partition) != self.state.epochs.get(partition):
                raise CommitRefused(
                    f"partition {partition} was loaded from another leader since; run again", self.state.topic.where
                )
        return replace(self, state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutChange(ReplaceChange):
    """Takes back offsets that a log has lost: each range leads from a partition's new end to its present cursor."""

    kind: CommitKind = CommitKind.CUT

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry, and what it replaces. The choices say which erased rows a load may bring back."""
        changed, taken_back = super(CutChange, self).complete(entry, table, snapshot)
        sets = table.sets
        choices = (_with_erased(choice, sets.of_ranges(taken_back, choice.offsets)) for choice in changed.choices)
        return replace(changed, choices=tuple(choices)), taken_back

    def coverage_after(self, covered: Coverage) -> Coverage:
        after = dict(covered)
        for offsets in self.ranges:
            partition = offsets.partition
            # None: a rewind may have gone to a version before the partition's first load.
            start, cursor = covered.get(partition, (None, None))
            if start is None or cursor != offsets.stop:
                raise CommitRefused(
                    f"partition {partition}: the cursor moved from {offsets.stop} to {cursor}; run again",
                    self.state.topic.where,
                )
            after[partition] = (min(start, offsets.start), offsets.start)
        return after


def _with_erased(choice: RecordedChoice, taken_back: Mapping[ExactCause, ExactOffsets]) -> RecordedChoice:
    """The choice with the number of erased rows among the offsets that it takes back.

    Nobody can see whether the log has the erased records there or others, so they are loaded (fault Y11). A log that
    seems to end before them may have them too, because the answer of a broker can be wrong (fault B14).
    """
    erased = taken_back.get(ExactCause.ERASED, NO_OFFSETS).count
    if not erased:
        return choice
    return replace(
        choice,
        reason=f"erased rows of {choice.offsets}: {erased}; the log may still have them, and then a load brings them "
        "back: run `penstock erase` again",
    )
