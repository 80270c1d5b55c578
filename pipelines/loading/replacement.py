"""A change that replaces rows of a table: a replay, or a cut, which takes back rows that a log has lost."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from kafka_io.model import OffsetRange
from pipelines.loading.commit import Change, state_after
from pipelines.loading.incarnations import incarnations
from pipelines.loading.ledger import CommitKind, Coverage, LedgerEntry
from pipelines.loading.offset_ranges import split_ranges, with_counts
from pipelines.loading.table_log import TableLog, TableSnapshot
from pipelines.loading.work import CommittedRange
from resources.errors import CommitRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceChange(Change):
    """Replaces the rows of `ranges` by those of `facts`, which cover the same offsets."""

    ranges: tuple[OffsetRange, ...]

    @abstractmethod
    def coverage_after(self, covered: Coverage) -> Coverage:
        """The coverage of the table after the change, if it is `covered` before.

        Raises:
            CommitRefused: the ranges are no longer covered.
        """

    def complete(
        self, entry: LedgerEntry, log: TableLog, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """See Change."""
        by_topic = {incarnation.topic: incarnation.ranges for incarnation in incarnations(log.entries(snapshot))}
        inside, outside = split_ranges(by_topic[self.state.topic], self.ranges)
        if self.kind is CommitKind.CUT:  # a replay does not check this: it is the way to repair lost rows
            self._check_complete(log, snapshot, [whole for _, whole in outside])
        fetched = map(CommittedRange.of, self.facts)
        # The replaced rows are written into new files. So the entry's ranges do not name the files of before.
        ranges = [replace(committed, path=None) for committed in (*fetched, *with_counts(log, snapshot, outside))]
        return replace(entry, ranges=tuple(ranges), covered=self.coverage_after(self.state.covered)), inside

    def _check_complete(self, log: TableLog, snapshot: TableSnapshot, wholes: Sequence[CommittedRange]) -> None:
        """Check that the ranges that are split have all their rows.

        The rows of a remaining part are counted again. Rows that were lost before would count as a gap from then on,
        and `verify` would not notice them any more.
        """
        for whole, rows in zip(wholes, log.count_rows(snapshot, wholes), strict=True):
            if rows != whole.rows:
                raise CommitRefused(
                    f"{whole} holds {rows} rows, but its commit counted {whole.rows}: replay it first",
                    self.state.topic.where,
                )

    def rebased(self, newest: TableSnapshot) -> Self:
        """The same change on top of another run's commit, if the ranges are still covered."""
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
        self.coverage_after(state.covered)
        return replace(self, state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutChange(ReplaceChange):
    """Takes back offsets that a log has lost: each range leads from a partition's new end to its present cursor."""

    kind: CommitKind = CommitKind.CUT

    def coverage_after(self, covered: Coverage) -> Coverage:
        """See ReplaceChange."""
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
