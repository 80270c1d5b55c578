"""The content of a table according to its ledger: all entries folded into the ranges that still count.

An entry's ranges replace all earlier ranges that they overlap (a replay). Offsets beyond the cursor that it left are
gone (a cut). A rewind cancels the entries between it and its target.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TopicIdentity

MAX_PROBLEMS = 100
"""The maximum number of problems of an incarnation that are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncarnationRanges:
    """The ranges of one incarnation of the topic, in order of partition and offset, and the problems among them."""

    topic: TopicIdentity
    ranges: tuple[CommittedRange, ...]
    problems: tuple[str, ...]


class Extent(NamedTuple):
    """Offsets `[start, stop)` that ranges cover one after the other; `first` are the offsets of the first range."""

    start: int
    stop: int
    first: OffsetRange


@dataclass(slots=True)
class _PartitionExtents:
    """The extents of one partition, in order; `limit` is the lowest cursor that a newer entry left."""

    extents: list[Extent] = field(default_factory=list)
    limit: int | None = None

    def overlapping(self, older: OffsetRange) -> Sequence[Extent]:
        if not self.extents or older.stop <= self.extents[0].start:
            return ()  # the usual case, as entries are read from the newest to the oldest
        first = self._index(older.start)
        if first and self.extents[first - 1].stop > older.start:
            first -= 1
        return self.extents[first : self._index(older.stop)]

    def insert(self, older: OffsetRange) -> None:
        """Add a range that overlaps none, and join it with its neighbours."""
        if self.extents and older.stop == self.extents[0].start:
            self.extents[0] = Extent(older.start, self.extents[0].stop, older)
            return
        first = last = self._index(older.start)
        joined = Extent(older.start, older.stop, older)
        if last < len(self.extents) and self.extents[last].start == older.stop:
            joined = joined._replace(stop=self.extents[last].stop)
            last += 1
        if first and self.extents[first - 1].stop == older.start:
            first -= 1
            joined = self.extents[first]._replace(stop=joined.stop)
        self.extents[first:last] = [joined]

    def _index(self, offset: int) -> int:
        """The index of the first extent that starts at this offset or after it."""
        return bisect_left(self.extents, offset, key=lambda extent: extent.start)


class RangeFold:
    """Folds entries into the ranges that still count, and gives each range as soon as it is found.

    It remembers where ranges adjoin and not the ranges: its memory does not grow with the number of commits.

    Attributes:
        problems: the first problems among the ranges of each incarnation.
    """

    def __init__(self) -> None:
        self.problems: dict[TopicIdentity, list[str]] = {}
        self._topics: dict[TopicIdentity, None] = {}
        self._partitions: dict[TopicIdentity, dict[BrokerPartition, _PartitionExtents]] = {}

    @property
    def topics(self) -> Sequence[TopicIdentity]:
        """The incarnations, the newest first: in the order in which they have entries of their own."""
        return list(dict.fromkeys([*self._topics, *self._partitions]))

    def extents(self, topic: TopicIdentity) -> dict[BrokerPartition, Sequence[Extent]]:
        """The extents of the partitions of an incarnation; more than one shows a hole."""
        partitions = self._partitions[topic]
        return {partition: partitions[partition].extents for partition in sorted(partitions)}

    def effective(self, entries: Iterable[tuple[int, LedgerEntry]]) -> Iterator[tuple[TopicIdentity, CommittedRange]]:
        """The ranges that count, the newest first; `entries` are all of the Delta log, newest first."""
        # The newest entry comes first, so a range that is already there is newer and wins. The lowest cursor of all
        # newer entries limits an older range: a cut took back the offsets above that cursor, even if they were loaded
        # again.
        for _, entry in effective_entries(entries):
            self._topics[entry.topic] = None
            for own in entry.by_incarnation():
                yield from ((own.topic, committed) for committed in self._still_counting(own))
            by_partition = self._partitions[entry.topic]
            for partition, (_, cursor) in entry.covered.items():
                newer = by_partition[partition]
                newer.limit = cursor if newer.limit is None else min(newer.limit, cursor)

    def _still_counting(self, entry: LedgerEntry) -> Iterator[CommittedRange]:
        """The ranges of an entry that no newer one has replaced or taken back."""
        by_partition = self._partitions.setdefault(entry.topic, defaultdict(_PartitionExtents))
        problems = self.problems.setdefault(entry.topic, [])
        for committed in entry.ranges:
            newer = by_partition[committed.partition]
            problem = _problem_of(newer, committed)
            if problem:
                problems += [problem] if len(problems) < MAX_PROBLEMS else []
            elif problem is None:
                newer.insert(committed.offsets)
                yield committed


def effective_entries(entries: Iterable[tuple[int, LedgerEntry]]) -> Iterator[tuple[int, LedgerEntry]]:
    """The entries that no rewind has cancelled; `entries` and the result are in order of version, newest first."""
    target: int | None = None
    for version, entry in entries:
        if target is not None and version > target:
            continue
        target = entry.target if entry.kind is CommitKind.REWIND else None
        yield version, entry


def incarnations(entries: Iterable[tuple[int, LedgerEntry]]) -> list[IncarnationRanges]:
    """The ranges of each incarnation in the table, the newest first; `entries` are all of its log, newest first."""
    fold, ranges = RangeFold(), defaultdict[TopicIdentity, list[CommittedRange]](list)
    for topic, committed in fold.effective(entries):
        ranges[topic].append(committed)
    return [
        IncarnationRanges(
            topic=topic,
            # An empty range records where a partition begins; it comes before what was loaded there later.
            ranges=tuple(sorted(ranges[topic], key=lambda committed: committed.offsets)),
            problems=tuple(fold.problems[topic]),
        )
        for topic in fold.topics
    ]


def ranges_of(entries: Iterable[tuple[int, LedgerEntry]], topic: TopicIdentity) -> Sequence[CommittedRange]:
    """The ranges of one incarnation that count, in order; empty if the table does not have it. See `incarnations`."""
    return next((own.ranges for own in incarnations(entries) if own.topic == topic), ())


def _problem_of(newer: _PartitionExtents, older: CommittedRange) -> str | None:
    """Why an older range contradicts newer ones; empty if they replace the whole range, and None if it still counts."""
    if older.offsets.size < 0:
        return f"{older} ends before it begins"
    overlapping = newer.overlapping(older.offsets)
    beyond_limit = newer.limit is not None and older.offsets.stop > newer.limit
    if not overlapping and not beyond_limit:
        return None
    return "" if _cover(overlapping, older, newer.limit) else f"a later commit replaces only a part of {older}"


def _cover(newer: Sequence[Extent], older: CommittedRange, limit: int | None) -> bool:
    """Whether the newer ranges, one after the other, contain all of `older` below the limit."""
    covered_to = older.offsets.start
    stop = older.offsets.stop if limit is None else min(older.offsets.stop, limit)
    for extent in newer:
        if extent.start > covered_to:
            return False
        covered_to = max(covered_to, extent.stop)
    return covered_to >= stop
