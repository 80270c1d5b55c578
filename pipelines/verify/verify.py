"""Verify: check, from the table alone, that the table holds what its ledger says.

For every partition, the committed ranges follow each other without a hole up to the cursor, and every file is there.
Every range has as many rows of its commit as the commit counted, and none twice. No row is outside of all ranges. From
0.8 on, where offsets count records, the rows and the gaps of a range add up to its size. The exact set of a cause has
as many offsets of the range as the cause counts, and no row has one of them. No other program wrote rows of a range, as
far as the log shows it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import BoundedSemaphore
from typing import Self

import numpy as np

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.layout.event_days import files_of_other_days
from pipelines.ledger.committed_range import CommittedRange, LoadedRange
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.failure import Failable, SliceFailure
from pipelines.ledger.incarnations import MAX_PROBLEMS, Extent, RangeFold
from pipelines.ledger.ledger import SEQUENCE, Coverage, LedgerEntry, TopicIdentity
from pipelines.table.exact_sets import ExactSets
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from pipelines.table.table_commit import TableCommit
from pipelines.verify.changes_by_others import ChangesByOthers
from pipelines.verify.complete_files import CompleteFiles
from pipelines.verify.exact_file import ExactFile, ExactPlace, exact_problems
from pipelines.verify.range_file import RangeColumns, RangeFile, Window
from pipelines.verify.row_counts import RangeCounts, count_rows, partition_code
from resources.errors import ExactSetLost, LakeRefused, LakeUnavailable, LoadError, TableForeign
from resources.printed import INLINED, printed_property

_LARGE_BYTES = 64 * 1024 * 1024
_LARGE_TABLES = BoundedSemaphore(2)
"""The number of large tables whose rows are counted at the same time: each needs memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProof:
    """The part of a partition that the table holds, for one incarnation of the topic.

    If a topic was recreated and loaded into the same table, each incarnation has its partitions.

    Args:
        incarnation: the incarnation of the topic.
        offsets: what the ledger says is committed.
        rows: the number of different rows.
        gaps: the number of offsets without a row, by cause.
        missing: how many rows fewer there are than the commits counted.
        duplicates: the number of rows that are there again.
    """

    incarnation: str
    offsets: OffsetRange = field(metadata=INLINED)
    rows: int = 0
    gaps: dict[str, int]
    missing: int = 0
    duplicates: int = 0

    def plus(self, rows: int, missing: int, duplicates: int) -> Self:
        """The proof with more counted rows."""
        return replace(
            self, rows=self.rows + rows, missing=self.missing + missing, duplicates=self.duplicates + duplicates
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof(Failable):
    """The result of `verify` for a topic's table. The table is proven if there is no problem.

    A failure is also the problem.

    Args:
        topic: the topic's name.
        table: the table's URI.
        problems: why the table is not proven.
        partitions: what the table holds.
        values_read: whether all pages of all data files were read. Otherwise damage in a value is not noticed.
    """

    topic: str
    table: str
    values_read: bool = False
    problems: tuple[str, ...] = ()
    partitions: tuple[PartitionProof, ...] = ()

    @printed_property
    def proven(self) -> bool:
        """Whether the table holds what its ledger says, and each row once."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The result of examining a version of a table.

    Args:
        proof: the proof, or its problems.
        lacking: the ranges that lack rows, if the caller asks for them.
        lost_files: the data files that are missing or truncated.
        others: the problems that missing rows do not explain.
    """

    proof: Proof
    lacking: Sequence[LoadedRange] = ()
    lost_files: Sequence[str] = ()
    others: Sequence[str] = ()


def proof_of(table: LakeTable, check: Callable[[LakeTable], Proof]) -> Proof:
    """The result of `check`, such as `verify`. An error becomes its problem, so that other tables are still checked."""
    try:
        return check(table)
    except Exception as error:  # noqa: BLE001 - whatever the reason is, this table is not proven
        failure = SliceFailure.of(error, table.where)
        problem = f"the check did not end: {failure}"
        return Proof(topic=table.where.topic or "", table=table.uri, problems=(problem,), failure=failure)


def verify(table: LakeTable, *, values: bool = False) -> Proof:
    """Check the table. This reads the columns that identify rows, and asks no broker.

    With `values`, it reads each page of each data file (fault A14).

    Raises:
        LakeUnavailable: the store does not answer.
    """
    topic = table.where.topic or ""
    try:
        opened = table.open_newest()
    except TableForeign as error:
        return Proof(topic=topic, table=table.uri, problems=(error.reason,))
    if opened is None:
        return Proof(topic=topic, table=table.uri, problems=(f"there is no table {table.uri}",))
    return examine(table, opened, values=values).proof


def examine(table: LakeTable, opened: OpenTable, *, values: bool = False, lists_lacking: bool = False) -> Examination:
    """Check a version of the table; see `verify`. With `lists_lacking`, all ranges that lack rows stay in memory."""
    topic = table.where.topic or ""
    fold, cursors, changes = RangeFold(), _StoredCursors(), ChangesByOthers(opened.layout)
    files, exact_sets = CompleteFiles(table, opened), table.sets
    ranges_of_damaged: dict[str, list[str]] = {path: [] for path in files.damaged}
    with RangeFile() as ranges, ExactFile() as exact:
        counts = _Counts(exact, lists_lacking=lists_lacking)
        for incarnation, committed in fold.effective(cursors.collect(changes.watch(table.commits_of(opened)))):
            changes.compare(committed)
            counts.add(incarnation, committed, ranges, exact_sets)
            for path in ranges_of_damaged.keys() & set(committed.paths):
                ranges_of_damaged[path].append(str(committed))
        with _LARGE_TABLES if files.size_bytes > _LARGE_BYTES else nullcontext():
            for window, columns in ranges.windows():
                counts.count(window, columns, files)
    others = [problem for incarnation in fold.topics for problem in _range_problems(fold, incarnation)]
    others += _why_not_loadable(table, opened)
    if cursors.newest is not None:
        others += cursors.mismatched(cursors.newest)
        others += _short_of_cursor(fold.extents(cursors.newest.topic), cursors.newest.covered)
    others += _misplaced_files(opened)
    damaged_pages = dict(files.damaged_pages()) if values else {}
    others += _unreadable_problems(topic, dict.fromkeys(files.unreadable, "") | damaged_pages)
    others += counts.misplaced_rows()
    named = bool(counts.outside or counts.miscounts)
    problems = [*others, *_lost_problems(topic, ranges_of_damaged), *changes.problems(topic, named=named)]
    proof = Proof(
        topic=topic,
        table=table.uri,
        values_read=values,
        problems=tuple(dict.fromkeys([*problems, *counts.miscounts][:MAX_PROBLEMS])),
        partitions=tuple(counts.proofs(fold)),
    )
    others += [*changes.of_written_rows(topic), *counts.other_miscounts]
    return Examination(proof=proof, lacking=counts.lacking, lost_files=files.damaged, others=others)


class _StoredCursors:
    """Remembers the newest `txn` entries of a log, and the links of its entries, while its commits are read once.

    deltalake reads the whole log for each `txn`, so asking it for every partition takes quadratic time.

    Attributes:
        newest: Penstock's newest entry; None if there is none.
        misplaced: the versions whose entries were planned on another commit than the one before them (fault E05).
    """

    def __init__(self) -> None:
        self.newest: LedgerEntry | None = None
        self.misplaced: list[int] = []
        self._stored: dict[str, int] = {}

    def collect(self, commits: Iterable[TableCommit]) -> Iterator[tuple[int, LedgerEntry]]:
        """Version and entry of Penstock's commits; `commits` are all of the log, newest first."""
        planned_on, target = "", None
        for commit in commits:
            if planned_on not in {"", commit.digest} and len(self.misplaced) < MAX_PROBLEMS:
                self.misplaced.append(commit.version + 1)
            planned_on = ""
            if commit.entry is not None and (target is None or commit.version <= target):  # no rewind has cancelled it
                planned_on, target = commit.entry.planned_on, commit.entry.target
            for app_id, version in commit.transactions.items():
                self._stored.setdefault(app_id, version)
            if commit.entry is not None:
                self.newest = self.newest or commit.entry
                yield commit.version, commit.entry

    def mismatched(self, newest: LedgerEntry) -> Iterator[str]:
        """A problem for each `txn` that is not where the newest entry left it, and for each misplaced entry."""
        expected = {SEQUENCE: ("the number of the newest commit", newest.sequence)}
        for partition, (_, cursor) in newest.covered.items():
            expected[newest.topic.app_id(partition)] = (f"partition {partition}: the cursor", cursor)
        for app_id, (name, value) in expected.items():
            stored = self._stored.get(app_id)
            if stored != value:
                yield f"{name} is {stored}, but the newest commit left it at {value}"
        for version in self.misplaced:
            yield (
                f"version {version} was planned on another version {version - 1} than the one in the log, which was "
                f"put back to a copy, or changed: `penstock rewind {newest.topic.name} --version {version - 1}` takes "
                "this and what came later back"
            )


def _lost_problems(topic: str, ranges_of_damaged: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The problems of lost files. The values are the ranges of a file, the newest first."""
    for path, contents in ranges_of_damaged.items():
        listed = ", ".join(reversed(contents)) or "compacted rows"
        yield (
            f"the data file {path} is missing or truncated: it held {listed}; `penstock replay {topic} --from earliest "
            f"--to latest` fetches the rows again, or `penstock erase {topic} --missing` records that they are gone"
        )


def _unreadable_problems(topic: str, unreadable: Mapping[str, str]) -> Iterator[str]:
    """The problems of damaged files. The values say which part of a file is damaged, if it is known."""
    for path, part in unreadable.items():
        where = f" in {part}" if part else ""
        yield (
            f"the data file {path} is damaged{where}: move it away, and `penstock replay {topic} --from earliest --to "
            "latest` fetches its rows again"
        )


def _misplaced_files(opened: OpenTable) -> Iterator[str]:
    """The problems of files in folders of event days, if the log says that they have rows of other days."""
    layout = opened.layout
    if layout.is_by_day:
        for path, day in files_of_other_days(opened.files(), layout):
            yield f"the data file {path} is in the folder of {day}, but not the {layout.time_column} of all its rows"


def _why_not_loadable(table: LakeTable, opened: OpenTable) -> Iterator[str]:
    """The reason why a load would refuse to continue from the version, if there is one."""
    try:
        table.check_loadable(opened)
    except LakeUnavailable:
        raise
    except LoadError as error:
        yield error.reason


def _range_problems(fold: RangeFold, topic: TopicIdentity) -> Iterator[str]:
    """Problems of an incarnation's ranges, for example of those that do not start where the one before them ends."""
    yield from fold.problems[topic]
    for extents in fold.extents(topic).values():
        for before, after in pairwise(extents):
            yield f"{after.first} does not follow the range before it, which ended at {before.stop}"


def _short_of_cursor(extents: Mapping[BrokerPartition, Sequence[Extent]], covered: Coverage) -> Iterator[str]:
    """Problems of partitions whose ranges do not lead from their start to their cursor."""
    for partition, (start, cursor) in sorted(covered.items()):
        own_extents = extents.get(partition)
        extent = (own_extents[0].start, own_extents[-1].stop) if own_extents else None
        if (extent or (start, start)) != (start, cursor):
            actual = f"[{extent[0]}, {extent[1]})" if extent else "nothing"
            yield f"partition {partition}: the ledger covers [{start}, {cursor}), but its ranges cover {actual}"


_Problem = tuple[tuple[int, BrokerPartition], int, str]
"""A problem of a range, behind the place of the range: the number of the incarnation, the partition, and the offset."""
_TAKEN_OUT = "were erased, filtered or retired"


def _first(problems: Sequence[_Problem]) -> list[str]:
    return [problem for _, _, problem in sorted(problems)[:MAX_PROBLEMS]]


class _Counts:
    """Counts the rows of the ranges in the files. Only the sums of each partition stay in memory, not the ranges.

    With `lists_lacking`, those that lack rows stay too.

    Attributes:
        lacking: the ranges that lack rows, if they stay.
        outside: the number of rows that belong to no range.
        misplaced: the number of rows with a position that only rows of 0.7 have.
    """

    def __init__(self, exact: ExactFile, *, lists_lacking: bool) -> None:
        self.lacking: list[LoadedRange] = []
        self.outside = self.misplaced = 0
        self._exact, self._lists_lacking = exact, lists_lacking
        self._partitions: list[PartitionProof] = []
        self._order: list[tuple[int, BrokerPartition]] = []
        self._slots: dict[TopicIdentity, dict[BrokerPartition, int]] = defaultdict(dict)
        self._lacks: list[_Problem] = []
        self._others: list[_Problem] = []

    def add(self, topic: TopicIdentity, committed: CommittedRange, ranges: RangeFile, exact_sets: ExactSets) -> None:
        """Add a range to the sums, and to `ranges` if its rows must be counted. Its exact sets are read."""
        by_partition, offsets = self._slots[topic], committed.offsets
        slot = by_partition.setdefault(offsets.partition, len(self._partitions))
        if slot == len(self._partitions):
            self._partitions.append(PartitionProof(incarnation=topic.incarnation, offsets=offsets, gaps={}))
            self._order.append((len(self._slots), offsets.partition))
        sums, gaps = self._partitions[slot].gaps, sum(committed.gaps.values())
        for cause, size in committed.gaps.items():
            sums[cause] = sums.get(cause, 0) + size
        if offsets.partition.broker is None and committed.rows + gaps != offsets.size:
            problem = f"its {committed.rows} rows and {gaps} offsets in gaps do not add up to its size"
            self._add(self._others, slot, offsets, f"{offsets}: {problem}")
        place = self._add_sets(slot, committed, exact_sets)
        if committed.rows:  # a row with the offsets of any other range is outside of the ranges
            files = len(committed.paths)
            ranges.add(committed.loaded_at_us, slot, offsets.start, offsets.stop, committed.rows, files, *place)

    def _add_sets(self, slot: int, committed: CommittedRange, exact_sets: ExactSets) -> ExactPlace:
        """Check the exact sets of a range, and add them to the file; returns where they are."""
        if not committed.exact and committed.gaps == committed.visible_gaps:
            return ExactPlace()
        try:
            sets = exact_sets.within(committed)
            problems, offsets = exact_problems(committed, sets), ExactOffsets.union(sets.values())
        except ExactSetLost as error:
            problems, offsets = [error.reason], NO_OFFSETS
        for problem in problems:
            self._add(self._others, slot, committed.offsets, f"{committed}: {problem}")
        return self._exact.add(offsets) if committed.rows else ExactPlace()

    def count(self, window: Window, ranges: RangeColumns, files: CompleteFiles) -> None:
        """Count the rows of the ranges of a window. Files that turn out to be damaged are left out."""
        codes = np.array([partition_code(id_.broker, id_.partition) for _, id_ in self._order], np.int64)
        try:
            counted = count_rows(ranges, codes[ranges.slots], window, files.rows, self._exact)
        except LakeRefused:
            if not files.find_unreadable(window):
                raise
            counted = count_rows(ranges, codes[ranges.slots], window, files.rows, self._exact)
        rows, copies = counted.rows, counted.copies
        self.outside += counted.outside
        self.misplaced += counted.misplaced
        missing = np.maximum(ranges.rows - rows, 0)
        sums = (np.bincount(ranges.slots, numbers) for numbers in (rows, missing, copies))
        for slot, of_slot in enumerate(zip(*sums, strict=True)):
            self._partitions[slot] = self._partitions[slot].plus(*map(int, of_slot))
        if self._lists_lacking:
            chosen = np.flatnonzero(rows < ranges.rows).tolist()
            self.lacking += [LoadedRange(self._offsets(ranges, n), int(ranges.loaded_us[n])) for n in chosen]
        self._note(ranges, counted)

    def _note(self, ranges: RangeColumns, counted: RangeCounts) -> None:
        """Note what is wrong with the ranges of a window."""

        def rows(number: int) -> str:
            return f"{counted.rows[number]} rows, but its commit counted {ranges.rows[number]}"

        for problems, is_wrong, what in (
            (self._lacks, counted.rows < ranges.rows, rows),
            (self._others, counted.rows > ranges.rows, rows),
            (self._others, counted.copies > 0, lambda number: f"{counted.copies[number]} rows more than once"),
            (self._others, counted.in_set > 0, lambda number: f"{counted.in_set[number]} rows that {_TAKEN_OUT}"),
        ):
            for number in np.flatnonzero(is_wrong)[:MAX_PROBLEMS].tolist():
                offsets = self._offsets(ranges, number)
                self._add(problems, int(ranges.slots[number]), offsets, f"{offsets} holds {what(number)}")

    def _offsets(self, ranges: RangeColumns, number: int) -> OffsetRange:
        slot, start, stop = (int(column[number]) for column in (ranges.slots, ranges.starts, ranges.stops))
        return OffsetRange(self._order[slot][1], start, stop)

    def _add(self, problems: list[_Problem], slot: int, offsets: OffsetRange, problem: str) -> None:
        problems.append((self._order[slot], offsets.start, problem))
        if len(problems) > 2 * MAX_PROBLEMS:
            problems[:] = sorted(problems)[:MAX_PROBLEMS]

    @property
    def miscounts(self) -> Sequence[str]:
        """The first problems of single ranges, in order of incarnation, partition and offset."""
        return _first([*self._lacks, *self._others])

    @property
    def other_miscounts(self) -> Sequence[str]:
        """The same without those of ranges that lack rows."""
        return _first(self._others)

    def misplaced_rows(self) -> Iterator[str]:
        """The problems of rows that no range has."""
        if self.outside:
            yield f"{self.outside} rows are outside of every committed range"
        if self.misplaced:
            yield f"{self.misplaced} rows have a position inside a compressed message, as only rows of 0.7 do"

    def proofs(self, fold: RangeFold) -> Iterator[PartitionProof]:
        """The proof of each partition, in order of incarnation and partition."""
        for topic, by_partition in self._slots.items():
            extents = fold.extents(topic)
            for number, slot in sorted(by_partition.items()):
                offsets = OffsetRange(number, extents[number][0].start, extents[number][-1].stop)
                yield replace(self._partitions[slot], offsets=offsets)
