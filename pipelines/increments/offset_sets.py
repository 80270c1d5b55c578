"""Sets of offsets of several partitions, as sorted intervals that neither overlap nor touch."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
            by_partition[offsets.partition].append((offsets.start, offsets.stop))
        self._intervals = _without_empty({key: _joined(intervals) for key, intervals in by_partition.items()})

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
        return self._of({key: _shared(own, other._intervals.get(key, [])) for key, own in self._intervals.items()})

    def __sub__(self, other: Self) -> Self:
        return self._of({key: _left(own, other._intervals.get(key, [])) for key, own in self._intervals.items()})

    def within(self, offsets: OffsetRange) -> Iterator[OffsetRange]:
        """The parts of the set that are inside of a range. The set's other partitions cost nothing."""
        own = self._intervals.get(offsets.partition, []) if offsets.size > 0 else []
        first = bisect_right(own, offsets.start, key=lambda interval: interval[1])
        for start, stop in own[first : bisect_left(own, offsets.stop, key=lambda interval: interval[0])]:
            yield OffsetRange(offsets.partition, max(start, offsets.start), min(stop, offsets.stop))

    def _of(self, intervals: Mapping[BrokerPartition, list[Interval]]) -> Self:
        return type(self)(
            OffsetRange(partition, start, stop) for partition, own in intervals.items() for start, stop in own
        )


def _without_empty(intervals: Mapping[BrokerPartition, list[Interval]]) -> dict[BrokerPartition, list[Interval]]:
    return {partition: of_partition for partition, of_partition in intervals.items() if of_partition}


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals in order; those that overlap or touch become one."""
    joined: list[Interval] = []
    for start, stop in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], stop)
        else:
            joined.append((start, stop))
    return joined


def _shared(first: list[Interval], second: list[Interval]) -> list[Interval]:
    """The offsets in both lists."""
    shared, own, other = list[Interval](), 0, 0
    while own < len(first) and other < len(second):
        start, stop = max(first[own][0], second[other][0]), min(first[own][1], second[other][1])
        if start < stop:
            shared.append((start, stop))
        if first[own][1] < second[other][1]:
            own += 1
        else:
            other += 1
    return shared


def _left(first: list[Interval], second: list[Interval]) -> list[Interval]:
    """The offsets in the first list that are not in the second."""
    left, other = list[Interval](), 0
    for start, stop in first:
        at = start
        while other < len(second) and second[other][1] <= at:
            other += 1
        cutting = other
        while cutting < len(second) and second[cutting][0] < stop:
            if at < second[cutting][0]:
                left.append((at, second[cutting][0]))
            at = max(at, second[cutting][1])
            cutting += 1
        if at < stop:
            left.append((at, stop))
    return left
