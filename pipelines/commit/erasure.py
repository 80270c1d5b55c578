"""A change that takes rows out of a table for ever: their offsets become gaps with the exact cause `erased`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import Change
from pipelines.ledger.committed_range import NOWHERE, CommittedRange, ExactCause, LoadedRange
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import IncarnationRanges, incarnations
from pipelines.ledger.ledger import MAX_WRITTEN, CommitKind, Erasure, FormerRanges, LedgerEntry
from pipelines.table.exact_sets import with_shared_sets
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, EraseRefused

_MAX_TRIES = 20
ResultT = TypeVar("ResultT")


class HitRows(NamedTuple):
    """Rows of one partition that are to be erased, in any order."""

    offsets: npt.NDArray[np.int64]
    inner: npt.NDArray[np.int64]
    loaded_us: npt.NDArray[np.int64]


class TableMoved(CommitRefused):
    """The table has another version than the one that was searched."""


def on_newest(table: TableStore, snapshot: TableSnapshot, attempt: Callable[[TableSnapshot], ResultT]) -> ResultT:
    """The result of an attempt to erase on top of the newest version, from `snapshot` on.

    Raises:
        TableMoved: other runs were first in all attempts.
        LoadError: an attempt has failed.
    """
    for _ in range(_MAX_TRIES - 1):
        try:
            return attempt(snapshot)
        except TableMoved:
            snapshot = table.newer(snapshot)
    return attempt(snapshot)


class ErasedRange(NamedTuple):
    """A committed range that loses rows: the places that become gaps, and the number of given rows among them."""

    committed: CommittedRange
    places: ExactOffsets
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseChange(Change):
    """Replaces the files with hits by files without these rows. It moves no cursor.

    It is right only for the version that was searched: a newer one may have rows that nobody has looked at.

    Args:
        hits: the rows to erase.
        removed: the paths of the files that have them. Those of `facts` have their other rows.
        request: the request for which they are erased.
    """

    kind: CommitKind = CommitKind.ERASE
    hits: Mapping[BrokerPartition, HitRows] = field(repr=False)
    removed: tuple[str, ...]
    request: str

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry, and what it replaces. What is replaced is a range that names the removed files.

        Raises:
            EraseRefused: rows belong to no range.
        """
        table.check(self.facts)
        erased = [(own, list(self.erased(own.ranges))) for own in incarnations(table.entries(snapshot))]
        if sum(part.rows for _, of_incarnation in erased for part in of_incarnation) != self.size:
            raise EraseRefused(
                f"some of the rows belong to no committed range: `penstock verify {self.state.topic.name}` shows the "
                "ranges; nothing was erased",
                self.state.topic.where,
            )
        changed = [_changed(table, own, of_incarnation) for own, of_incarnation in erased if of_incarnation]
        former = tuple(own for own in changed if own.topic != self.state.topic)
        erasure = Erasure(request=self.request, former=former)
        files = CommittedRange(offsets=NOWHERE, paths=self.removed)
        for own in changed:
            if own.topic == self.state.topic:
                entry = replace(entry, ranges=own.ranges, written=own.written)
        return replace(entry, erasure=erasure), (files,)

    @property
    def size(self) -> int:
        """The number of rows that are given."""
        return sum(len(rows.offsets) for rows in self.hits.values())

    def erased(self, ranges: Sequence[CommittedRange]) -> Iterator[ErasedRange]:
        """The ranges that lose rows."""
        for committed in ranges:
            rows = self.hits.get(committed.partition)
            if rows is None or not committed.rows:
                continue
            mask = (rows.offsets >= committed.offsets.start) & (rows.offsets < committed.offsets.stop)
            mask &= rows.loaded_us == committed.loaded_at_us
            if mask.any():
                inner = None if committed.partition.broker is None else rows.inner[mask]
                yield ErasedRange(committed, ExactOffsets.of(rows.offsets[mask], inner), int(np.count_nonzero(mask)))

    def rebased(self, newest: TableSnapshot) -> Self:
        """Never: the newest version has to be searched first.

        Raises:
            TableMoved: always.
        """
        del newest
        raise TableMoved("other runs change the table all the time; run again", self.state.topic.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingChange(EraseChange):
    """Records that rows are gone already. It repairs a table from which another program has removed rows.

    Args:
        missing: the offsets without a row of each range that lacks rows, except for those of its exact sets. If the
            range has gaps that the log shows, these are among them.
        removed: the paths of files that are lost.
    """

    repairs: ClassVar[bool] = True
    hits: Mapping[BrokerPartition, HitRows] = field(default_factory=dict)
    missing: Mapping[LoadedRange, ExactOffsets] = field(repr=False)

    @property
    def size(self) -> int:
        """The number of ranges. Each range counts as one."""
        return len(self.missing)

    def erased(self, ranges: Sequence[CommittedRange]) -> Iterator[ErasedRange]:
        """The ranges that lack rows. Their visible gaps end, because nobody can tell them from missing rows."""
        for committed in ranges:
            absent = self.missing.get(LoadedRange.of(committed))
            if absent is not None:
                visible = committed.visible_gaps
                exact = {cause: count for cause, count in committed.gaps.items() if cause not in visible}
                yield ErasedRange(
                    replace(committed, rows=committed.rows + sum(visible.values()), gaps=exact), absent, 1
                )


def _changed(table: TableStore, own: IncarnationRanges, erased: Sequence[ErasedRange]) -> FormerRanges:
    """The ranges of one incarnation without the erased rows. No two incarnations share the file of a set."""
    covered: dict[BrokerPartition, tuple[int, int]] = {}
    for committed in own.ranges:
        start, _ = covered.get(committed.partition, (committed.offsets.start, 0))
        covered[committed.partition] = start, committed.offsets.stop
    ranges = with_shared_sets((_left(table, part) for part in erased), table.store_exact)
    return FormerRanges(topic=own.topic, covered=covered, ranges=tuple(ranges), written=tuple(taken_out(erased)))


def _left(table: TableStore, erased: ErasedRange) -> tuple[CommittedRange, Mapping[ExactCause, ExactOffsets]]:
    """The range without these rows, and the set of all its erased rows. Its other sets stay where they are stored."""
    committed, places, _ = erased
    before = table.exact_sets(committed).get(ExactCause.ERASED, NO_OFFSETS)
    return replace(committed, rows=committed.rows - places.count, paths=()), {ExactCause.ERASED: before | places}


def taken_out(erased: Sequence[ErasedRange]) -> Iterator[LoadedRange]:
    """The erased rows as ranges, for consumers of the table.

    If they are very many, one range leads from the first erased row of a committed range to its last one. Consumers
    then replace the rows in between by the same rows.
    """
    is_few = sum(len(own.places.firsts) for own in erased) <= MAX_WRITTEN
    for committed, offsets, _ in erased:
        starts, stops = offsets.firsts, offsets.stops
        runs = zip(starts.tolist(), stops.tolist(), strict=True) if is_few else [(int(starts[0]), int(stops[-1]))]
        for start, stop in dict.fromkeys(runs):
            yield LoadedRange(OffsetRange(committed.partition, start, stop), committed.loaded_at_us)
