"""Sets of offsets of several partitions, as sorted intervals that neither overlap nor touch."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.ledger import Coverage

Interval = tuple[int, int]
"""Offsets `[start, stop)`."""


class OffsetSet:
    """A set of offsets, given as ranges that may overlap. Empty ranges add nothing.

    >>> partition = BrokerPartition(None, 0)
    >>> offsets = OffsetSet([OffsetRange(partition, 0, 5), OffsetRange(partition, 5, 9)])
    >>> [str(offsets_left) for offsets_left in offsets - OffsetSet([OffsetRange(partition, 2, 3)])]
    ['partition 0 [0, 2)', 'partition 0 [3, 9)']
    """

    def __init__(self, ranges: Iterable[OffsetRange] = ()) -> None:
        by_partition: dict[BrokerPartition, list[Interval]] = defaultdict(list)
        for offsets in ranges:
            if offsets.size > 0:
                by_partition[offsets.partition].append((offsets.start, offsets.stop))
        self._intervals = {partition: _joined(intervals) for partition, intervals in by_partition.items()}

    @classmethod
    def of_coverage(cls, covered: Coverage) -> Self:
        """The offsets that a table covers."""
        return cls(OffsetRange(partition, start, stop) for partition, (start, stop) in covered.items())

    def __iter__(self) -> Iterator[OffsetRange]:
        for partition in sorted(self._intervals):
            for start, stop in self._intervals[partition]:
                yield OffsetRange(partition, start, stop)

    def __bool__(self) -> bool:
        return bool(self._intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetSet) and self._intervals == other._intervals

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"OffsetSet({', '.join(map(str, self))})"

    def __or__(self, other: Self) -> Self:
        return type(self)([*self, *other])

    def __and__(self, other: Self) -> Self:
        return type(self)(part for own in self for part in other.within(own))

    def __sub__(self, other: Self) -> Self:
        return type(self)(part for own in self for part in other._outside(own))

    def within(self, offsets: OffsetRange) -> Iterator[OffsetRange]:
        """The parts of a range that are in the set. The set's other partitions cost nothing."""
        for start, stop in self._overlapping(offsets):
            yield OffsetRange(offsets.partition, max(start, offsets.start), min(stop, offsets.stop))

    def touching(self, offsets: OffsetRange) -> Iterator[OffsetRange]:
        """The ranges of the set that have offsets of a range, as a whole."""
        for start, stop in self._overlapping(offsets):
            yield OffsetRange(offsets.partition, start, stop)

    def _outside(self, offsets: OffsetRange) -> Iterator[OffsetRange]:
        """The parts of a range that are not in the set. Some of them may be empty."""
        begin = offsets.start
        for start, stop in self._overlapping(offsets):
            yield OffsetRange(offsets.partition, begin, start)
            begin = stop
        yield OffsetRange(offsets.partition, begin, offsets.stop)

    def _overlapping(self, offsets: OffsetRange) -> Sequence[Interval]:
        """The intervals of the set that have offsets of a range."""
        own = self._intervals.get(offsets.partition, []) if offsets.size > 0 else []
        first = bisect_right(own, offsets.start, key=lambda interval: interval[1])
        return own[first : bisect_left(own, offsets.stop, key=lambda interval: interval[0])]


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals in order; those that overlap or touch become one."""
    joined: list[Interval] = []
    for start, stop in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], stop)
        else:
            joined.append((start, stop))
    return joined
