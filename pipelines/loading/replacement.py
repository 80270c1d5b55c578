"""A change that replaces rows of a table: a replay, or a cut, which takes back rows that a log has lost."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from kafka_io.model import OffsetRange
from pipelines.loading.failpoints import failpoint
from pipelines.loading.incarnations import incarnations
from pipelines.loading.ledger import CommitKind, CommittedRange, Coverage, LedgerEntry, RecordedChoice, TableState
from pipelines.loading.offset_ranges import SplitRanges, split_ranges, with_counts
from pipelines.loading.table_log import TableLog, TableSnapshot
from pipelines.loading.work import SliceFacts
from resources.errors import CommitRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceChange:
    """Replaces the rows of `ranges` by those of `facts`, which cover the same offsets.

    Args:
        kind: REPLAY or CUT.
        state: the table's state before the change.
        ranges: the offsets whose rows are replaced.
        coverage_after: computes what the table covers after the change from what it covers before; raises
            CommitRefused if the ranges are no longer covered.
        facts: the slices with the new rows.
        choices: the user's choices that the change follows.
        run: the run that makes the change.
        commit: the commit's own id.
    """

    kind: CommitKind
    state: TableState
    ranges: tuple[OffsetRange, ...]
    coverage_after: Callable[[Coverage], Coverage]
    facts: tuple[SliceFacts, ...] = ()
    choices: tuple[RecordedChoice, ...] = ()
    run: str
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, log: TableLog, snapshot: TableSnapshot) -> int:
        """Write the change on top of `snapshot`; returns the version."""
        found = incarnations(log.entries(snapshot))
        incarnation = next(ranges for ranges in found if ranges.topic == self.state.topic)
        split = split_ranges(incarnation.ranges, self.ranges)
        if self.kind is CommitKind.CUT:  # a replay does not check this: it is the way to repair lost rows
            self._check_complete(log, snapshot, split)
        fetched = map(CommittedRange.of, self.facts)
        # The replaced rows are written into new files. So the entry's ranges do not name the files of before.
        ranges = tuple(
            replace(committed, path=None) for committed in (*fetched, *with_counts(log, snapshot, split.outside))
        )
        entry = LedgerEntry(
            commit=self.commit,
            run=self.run,
            kind=self.kind,
            sequence=snapshot.next_sequence,
            topic=self.state.topic,
            ranges=ranges,
            covered=self.coverage_after(self.state.covered),
            epochs=self.state.epochs,
            choices=self.choices,
        )
        failpoint(f"before {self.kind} entry")
        version = log.replace(snapshot, entry, split.inside, self.facts)
        failpoint(f"after {self.kind} entry")
        return version

    def _check_complete(self, log: TableLog, snapshot: TableSnapshot, split: SplitRanges) -> None:
        """Check that the ranges that are split have all their rows.

        The rows of a remaining part are counted again. Rows that were lost before would count as a gap from then on,
        and `verify` would not notice them any more.
        """
        wholes = [whole for _, whole in split.outside]
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
        state = TableState.after(entry)
        for partition in sorted({offsets.partition for offsets in self.ranges}):
            # Under another leader the log may have been truncated and written again (fault B04).
            if state.epochs.get(partition) != self.state.epochs.get(partition):
                raise CommitRefused(
                    f"partition {partition} was loaded from another leader since; run again", self.state.topic.where
                )
        self.coverage_after(state.covered)
        return replace(self, state=state)


def truncate(
    state: TableState, lost: tuple[OffsetRange, ...], *, run: str, choices: tuple[RecordedChoice, ...]
) -> ReplaceChange:
    """The change that takes back the `lost` offsets, each from a partition's new end to its present cursor."""

    def coverage_after(covered: Coverage) -> Coverage:
        after = dict(covered)
        for offsets in lost:
            partition = offsets.partition
            # None: a rewind may have gone to a version before the partition's first load.
            start, cursor = covered.get(partition, (None, None))
            if start is None or cursor != offsets.stop:
                raise CommitRefused(
                    f"partition {partition}: the cursor moved from {offsets.stop} to {cursor}; run again",
                    state.topic.where,
                )
            after[partition] = (min(start, offsets.start), offsets.start)
        return after

    return ReplaceChange(
        kind=CommitKind.CUT,
        state=state,
        ranges=tuple(sorted(lost)),
        coverage_after=coverage_after,
        choices=choices,
        run=run,
    )
