"""The exact sets of slices that are fetched again: rows that were erased or retired do not come back.

Records that the condition `skip` left out come back if it is not true for them any more, and those of other tables of
the topic are found again. A replay loads what a load with the present settings would load.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.table.exact_sets import ExactSets
from pipelines.table.table_store import TableStore

_DECIDED_AGAIN = {ExactCause.FILTERED, ExactCause.ROUTED}
"""The causes that each fetch decides by the present settings."""
ExactOfSlices = Mapping[OffsetRange, Mapping[ExactCause, StoredSet]]


def lasting(sets: Mapping[ExactCause, ExactOffsets]) -> Mapping[ExactCause, ExactOffsets]:
    """The sets whose rows do not come back."""
    return {cause: own for cause, own in sets.items() if cause not in _DECIDED_AGAIN}


def exact_of_slices(
    table: TableStore, ranges: Mapping[BrokerPartition, Sequence[CommittedRange]], slices: Sequence[OffsetRange]
) -> ExactOfSlices:
    """The exact sets of the slices that have some, from the ranges of their partition that count, in order.

    Raises:
        ExactSetLost: a set is missing or damaged, so nobody knows which rows must not come back.
        LakeUnavailable: the store does not answer.
    """
    with_sets = {id_: [part for part in own if part.exact] for id_, own in ranges.items()}
    sets = table.sets
    return {
        offsets: dict(_of_slice(table, sets, overlapping, offsets))
        for offsets in slices
        if (overlapping := _overlapping(with_sets.get(offsets.partition, ()), offsets))
    }


def _overlapping(ranges: Sequence[CommittedRange], offsets: OffsetRange) -> Sequence[CommittedRange]:
    first = bisect_right(ranges, offsets.start, key=lambda part: part.offsets.stop)
    return ranges[first : bisect_left(ranges, offsets.stop, key=lambda part: part.offsets.start)]


def _of_slice(
    table: TableStore, sets: ExactSets, ranges: Sequence[CommittedRange], offsets: OffsetRange
) -> Iterator[tuple[ExactCause, StoredSet]]:
    for cause, own in lasting(sets.of_ranges(ranges, offsets)).items():
        references = {committed.exact[cause] for committed in ranges if cause in committed.exact}
        stored = next(iter(references))
        # A stored set may have more offsets of the slice than the ranges that refer to it.
        is_same = len(references) == 1 and sets.of(stored).within(offsets).count == own.count
        yield cause, stored if is_same else table.store_exact(own)
