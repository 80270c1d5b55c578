"""The content of a table according to its ledger: all entries folded into the ranges that still count.

An entry's ranges replace all earlier ranges that they overlap (a replay). Offsets beyond the cursor that it left are
gone (a cut). A rewind cancels the entries between it and its target.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import CommitKind, LedgerEntry, TopicIdentity
from pipelines.loading.work import CommittedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class IncarnationRanges:
    """The ranges of one incarnation of the topic, in order of partition and offset, and the problems among them."""

    topic: TopicIdentity
    ranges: tuple[CommittedRange, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _PartitionRanges:
    """Ranges of one partition that do not overlap, in order; `limit` is the lowest cursor that a newer entry left."""

    ranges: list[CommittedRange] = field(default_factory=list)
    limit: int | None = None

    def overlapping(self, older: CommittedRange) -> Sequence[CommittedRange]:
        first = self._index(older.offsets.start)
        if first and self.ranges[first - 1].offsets.stop > older.offsets.start:
            first -= 1
        return self.ranges[first : self._index(older.offsets.stop)]

    def insert(self, older: CommittedRange) -> None:
        # An empty range records where a partition begins; it comes before what was loaded there later.
        self.ranges.insert(self._index(older.offsets.start), older)

    def _index(self, offset: int) -> int:
        """The index of the first range that starts at this offset or after it."""
        return bisect_left(self.ranges, offset, key=lambda committed: committed.offsets.start)


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
    partitions: dict[TopicIdentity, dict[BrokerPartition, _PartitionRanges]] = {}
    problems: dict[TopicIdentity, list[str]] = defaultdict(list)
    # The newest entry comes first, so a range that is already there is newer and wins. The lowest cursor of all newer
    # entries limits an older range: a cut took back the offsets above that cursor, even if they were loaded again.
    for _, entry in effective_entries(entries):
        by_partition = partitions.setdefault(entry.topic, defaultdict(_PartitionRanges))
        for committed in entry.ranges:
            problems[entry.topic] += _add_older(by_partition[committed.partition], committed)
        for partition, (_, cursor) in entry.covered.items():
            newer = by_partition[partition]
            newer.limit = cursor if newer.limit is None else min(newer.limit, cursor)
    return [
        IncarnationRanges(
            topic=topic,
            ranges=tuple(
                committed for partition in sorted(by_partition) for committed in by_partition[partition].ranges
            ),
            problems=tuple(problems[topic]),
        )
        for topic, by_partition in partitions.items()
    ]


def _add_older(newer: _PartitionRanges, older: CommittedRange) -> Iterator[str]:
    """Add an older range to newer ones. If they overlap it, they replace it, and must replace all of it."""
    if older.offsets.size < 0:
        yield f"{older} ends before it begins"
        return
    overlapping = newer.overlapping(older)
    beyond_limit = newer.limit is not None and older.offsets.stop > newer.limit
    if not overlapping and not beyond_limit:
        newer.insert(older)
    elif not _cover(overlapping, older, newer.limit):
        yield f"a later commit replaces only a part of {older}"


def _cover(newer: Sequence[CommittedRange], older: CommittedRange, limit: int | None) -> bool:
    """Whether the newer ranges, one after the other, contain all of `older` below the limit."""
    covered_to = older.offsets.start
    stop = older.offsets.stop if limit is None else min(older.offsets.stop, limit)
    for committed in newer:
        if committed.offsets.start > covered_to:
            return False
        covered_to = max(covered_to, committed.offsets.stop)
    return covered_to >= stop
