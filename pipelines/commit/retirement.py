"""A change that takes whole files with old rows out of a table: their offsets are gaps with the exact cause `retired`.

The rows were read, and their results may stay where they are. So for a consumer of the table nothing is removed.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import Change
from pipelines.ledger.committed_range import NOWHERE, CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from pipelines.table.exact_sets import with_shared_sets
from pipelines.table.open_table import file_paths
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused

_Sets = Mapping[ExactCause, ExactOffsets]


class FileRows(NamedTuple):
    """The rows of a file that are of one partition and have one loading time.

    In 0.7 the set is one of rows. `rows` is their number; it differs from that of the set if a row is there twice.
    """

    partition: BrokerPartition
    loaded_at_us: int
    offsets: ExactOffsets
    rows: int


@dataclass(slots=True)
class RetiredRows:
    """The ranges of a topic in a table, and which of their rows are taken out.

    Args:
        ranges: the ranges that count, in order of partition and offset.
    """

    ranges: Sequence[CommittedRange]
    _numbers: dict[tuple[BrokerPartition, int], list[int]] = field(init=False)
    _taken: dict[int, list[ExactOffsets]] = field(init=False)

    def __post_init__(self) -> None:
        self._taken, self._numbers = defaultdict(list), defaultdict(list)
        for number, committed in enumerate(self.ranges):
            if committed.rows:
                self._numbers[committed.partition, committed.loaded_at_us].append(number)

    def take(self, rows: Sequence[FileRows]) -> bool:
        """Take out the rows of a file. If some belong to no range, no row is taken out, and the answer is False."""
        parts = [part for own in rows for part in self._within(own)]
        is_complete = sum(part.count for _, part in parts) == sum(own.rows for own in rows)
        for number, part in parts if is_complete else ():
            self._taken[number].append(part)
        return is_complete

    def _within(self, rows: FileRows) -> Iterator[tuple[int, ExactOffsets]]:
        numbers = self._numbers.get((rows.partition, rows.loaded_at_us), ())
        start, stop = int(rows.offsets.firsts[0]), int(rows.offsets.stops[-1])
        first = bisect_right(numbers, start, key=lambda number: self.ranges[number].offsets.stop)
        after = bisect_left(numbers, stop, key=lambda number: self.ranges[number].offsets.start)
        for number in numbers[first:after]:
            part = rows.offsets.within(self.ranges[number].offsets)
            if part.count:
                yield number, part

    def without(self, table: TableStore) -> Iterator[tuple[CommittedRange, _Sets]]:
        """The ranges without the rows that are taken out, in order, with all their exact sets.

        Raises:
            CommitRefused: two files have the same row, or more rows than the range.
        """
        for number in sorted(self._taken):
            committed, parts = self.ranges[number], self._taken[number]
            before = table.exact_sets(committed)
            earlier = before.get(ExactCause.RETIRED, NO_OFFSETS)
            retired = ExactOffsets.union([*parts, earlier])
            count = sum(part.count for part in parts)
            if count > committed.rows or retired.count != count + earlier.count:
                raise CommitRefused(
                    f"{committed} has {committed.rows} rows, and {count} of them would be retired, some of them again: "
                    "`penstock verify` shows what is wrong; nothing was retired"
                )
            rows = committed.rows - count
            yield replace(committed, rows=rows, paths=()), {**before, ExactCause.RETIRED: retired}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireChange(Change):
    """Takes files out of a table. It moves no cursor.

    Args:
        files: the rows of each file, by its path.
    """

    kind: CommitKind = CommitKind.RETIRE
    files: Mapping[str, Sequence[FileRows]] = field(repr=False)

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry, and what it replaces. What is replaced is a range that names the files.

        Raises:
            CommitRefused: rows of the files belong to no range in the snapshot.
        """
        rows = RetiredRows(ranges_of(table.entries(snapshot), self.state.topic))
        if not all(map(rows.take, self.files.values())):
            raise CommitRefused(
                "another run has changed the ranges of old rows meanwhile; run again", self.state.topic.where
            )
        ranges = with_shared_sets(merged(rows.without(table)), table.store_exact)
        files = CommittedRange(offsets=NOWHERE, paths=tuple(self.files))
        return replace(entry, ranges=tuple(ranges)), (files,)

    def rebased(self, newest: TableSnapshot) -> Self | None:
        """The change of the files that are still in the table. The rows of others are in other files now.

        Raises:
            CommitRefused: the table holds another incarnation.
        """
        if newest.entry is None or newest.entry.topic != self.state.topic:
            raise CommitRefused("the table holds another incarnation now; run again", self.state.topic.where)
        there = file_paths(newest.opened)
        files = {path: rows for path, rows in self.files.items() if path in there}
        return replace(self, state=newest.entry.state, files=files) if files else None


def merged(ranges: Iterable[tuple[CommittedRange, _Sets]]) -> Iterator[tuple[CommittedRange, _Sets]]:
    """The ranges, of which those that adjoin and have no row any more become one: so an entry stays small.

    The visible gaps of the new range have one cause, so that a split can count them.
    """
    group: list[tuple[CommittedRange, _Sets]] = []
    causes: set[str] = set()
    for own in ranges:
        committed = own[0]
        if group and not (
            _adjoin(group[-1][0], committed) and _can_split(committed, {*causes, *committed.visible_gaps})
        ):
            yield _one_of(group)
            group, causes = [], set()
        group.append(own)
        causes.update(committed.visible_gaps)
    if group:
        yield _one_of(group)


def _adjoin(before: CommittedRange, now: CommittedRange) -> bool:
    """Whether two ranges without rows are one after the other."""
    end = (before.partition, before.offsets.stop, before.isolation, before.rows)
    return end == (now.partition, now.offsets.start, now.isolation, 0) and not now.rows


def _can_split(committed: CommittedRange, causes: Collection[str]) -> bool:
    """Whether the visible gaps could be counted again. In 0.7 offsets are bytes, so none could."""
    return len(causes) <= (1 if committed.partition.broker is None else 0)


def _one_of(group: Sequence[tuple[CommittedRange, _Sets]]) -> tuple[CommittedRange, _Sets]:
    if len(group) == 1:
        return group[0]
    ranges, gaps, sets = [committed for committed, _ in group], defaultdict[str, int](int), defaultdict(list)
    for committed, by_cause in group:
        for cause, size in committed.visible_gaps.items():
            gaps[cause] += size
        for exact, own in by_cause.items():
            sets[exact].append(own)
    whole = CommittedRange(
        offsets=replace(ranges[0].offsets, stop=ranges[-1].offsets.stop),
        bytes=sum(committed.bytes for committed in ranges),
        loaded_at_us=max(committed.loaded_at_us for committed in ranges),
        gaps=gaps,
        isolation=ranges[0].isolation,
    )
    return whole, {cause: ExactOffsets.union(own) for cause, own in sets.items()}
