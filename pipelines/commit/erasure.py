"""A change that takes rows out of a table for ever: their offsets become gaps with the exact cause `erased`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import Change
from pipelines.ledger.committed_range import NOWHERE, CommittedRange, ExactCause, LoadedRange
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import MAX_WRITTEN, CommitKind, LedgerEntry
from pipelines.table.exact_sets import with_shared_sets
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, EraseRefused


class HitRows(NamedTuple):
    """Rows of one partition that are to be erased, in any order."""

    offsets: npt.NDArray[np.int64]
    inner: npt.NDArray[np.int64]
    loaded_us: npt.NDArray[np.int64]


class TableMoved(CommitRefused):
    """The table has another version than the one that was searched."""


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
        """See Change. What is replaced is a range that names the removed files.

        Raises:
            EraseRefused: rows belong to no range of the present topic.
        """
        table.check(self.facts)
        erased = list(self._erased(ranges_of(table.entries(snapshot), self.state.topic)))
        if sum(mask_size for _, _, mask_size in erased) != sum(len(rows.offsets) for rows in self.hits.values()):
            raise EraseRefused(
                "some of the rows belong to a former topic of the same name, or to no committed range: `penstock "
                f"verify {self.state.topic.name}` shows the ranges; nothing was erased",
                self.state.topic.where,
            )
        pairs = [(committed, offsets) for committed, offsets, _ in erased]
        ranges = with_shared_sets((_left(table, *pair) for pair in pairs), table.store_exact)
        written = tuple(taken_out(pairs))
        files = CommittedRange(offsets=NOWHERE, paths=self.removed)
        return replace(entry, ranges=tuple(ranges), written=written, request=self.request), (files,)

    def _erased(self, ranges: Sequence[CommittedRange]) -> Iterator[tuple[CommittedRange, ExactOffsets, int]]:
        """The ranges with hits, the offsets to erase, and the number of these rows."""
        for committed in ranges:
            rows = self.hits.get(committed.partition)
            if rows is None or not committed.rows:
                continue
            mask = (rows.offsets >= committed.offsets.start) & (rows.offsets < committed.offsets.stop)
            mask &= rows.loaded_us == committed.loaded_at_us
            if mask.any():
                inner = None if committed.partition.broker is None else rows.inner[mask]
                yield committed, ExactOffsets.of(rows.offsets[mask], inner), int(np.count_nonzero(mask))

    def rebased(self, newest: TableSnapshot) -> Self:
        """Never: the newest version has to be searched first.

        Raises:
            TableMoved: always.
        """
        del newest
        raise TableMoved("other runs change the table all the time; run again", self.state.topic.where)


def _left(
    table: TableStore, committed: CommittedRange, erased: ExactOffsets
) -> tuple[CommittedRange, Mapping[ExactCause, ExactOffsets]]:
    """The range without these rows, and the set of all its erased rows. Its other sets stay where they are stored."""
    before = table.exact_sets(committed).get(ExactCause.ERASED, NO_OFFSETS)
    return replace(committed, rows=committed.rows - erased.count, paths=()), {ExactCause.ERASED: before | erased}


def taken_out(erased: Sequence[tuple[CommittedRange, ExactOffsets]]) -> Iterator[LoadedRange]:
    """The erased rows as ranges, for consumers of the table.

    If they are very many, one range leads from the first erased row of a committed range to its last one. Consumers
    then replace the rows in between by the same rows.
    """
    is_few = sum(len(offsets.firsts) for _, offsets in erased) <= MAX_WRITTEN
    for committed, offsets in erased:
        starts, stops = offsets.firsts, offsets.stops
        runs = zip(starts.tolist(), stops.tolist(), strict=True) if is_few else [(int(starts[0]), int(stops[-1]))]
        for start, stop in dict.fromkeys(runs):
            yield LoadedRange(OffsetRange(committed.partition, start, stop), committed.loaded_at_us)
