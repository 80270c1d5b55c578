"""Record that rows are gone that the ledger counts, and that nobody can fetch again.

Another program deleted them, or lost them when it merged files, or their files are lost. All rows are counted, as
`verify` does, and the offsets of the ranges that lack rows are read. The absent offsets become exact sets of erased
rows in one commit, so the table is proven again, with this gap. No file is written.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import commit
from pipelines.commit.erasure import MissingChange, on_newest
from pipelines.ledger.committed_range import CommittedRange, LoadedRange
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.incarnations import RangeFold
from pipelines.ledger.ledger import RecordedChoice
from pipelines.maintenance.erase import ended, existing_snapshot
from pipelines.maintenance.erase_result import ErasedRows, TopicErase
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.present_offsets import present_offsets
from pipelines.verify.verify import examine
from resources.errors import EraseRefused

_MAX_REASONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRequest:
    """A request to record missing rows.

    Args:
        table: the topic's table.
        run: the run's id in the ledger.
        name: what the user calls the request.
        dry_run: only count the rows.
    """

    table: LakeTable
    run: str
    name: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _LackingRange:
    """A range that lacks rows.

    Args:
        committed: the range.
        absent: its offsets without a row that no exact set has. If other gaps are among them, nobody can tell which.
        removed_by: the commits of other programs that took rows out of the table since it was loaded.
    """

    committed: CommittedRange
    absent: ExactOffsets
    removed_by: Sequence[TableCommit]

    @property
    def gaps(self) -> int:
        """The number of absent offsets that had no row before."""
        return sum(self.committed.visible_gaps.values())

    @property
    def rows(self) -> int:
        """The number of rows that it lacks."""
        return self.absent.count - self.gaps


def erase_missing(request: MissingRequest) -> TopicErase:
    """Record the missing rows as erased. An error is in the result; only interruptions are raised."""
    table = request.table
    result = TopicErase(topic=table.where.topic or "", table=table.uri, request=request.name, dry_run=request.dry_run)
    return ended(table, result, lambda: on_newest(table, existing_snapshot(table), partial(_recorded, request, result)))


def _recorded(request: MissingRequest, result: TopicErase, snapshot: TableSnapshot) -> TopicErase:
    """The result after a commit on top of this version.

    Raises:
        EraseRefused: the table has other problems than missing rows.
        TableMoved: another run was first.
        LoadError: the table cannot be read or written.
    """
    assert snapshot.entry is not None
    lacking, lost = _lacking(request.table, snapshot)
    result = replace(
        result,
        version=snapshot.version,
        rows=sum(own.rows for own in lacking),
        gaps=sum(own.gaps for own in lacking),
        files=len(lost),
        partitions=tuple(_partitions(lacking)),
        reasons=tuple(_reasons(lacking, lost)),
    )
    # A change by others that lacks nothing is recorded too, so that loads continue: somebody took it back.
    if request.dry_run or not (lacking or lost or snapshot.changed):
        return result
    change = MissingChange(
        state=snapshot.entry.state,
        run=request.run,
        missing={LoadedRange.of(own.committed): own.absent for own in lacking},
        removed=lost,
        request=request.name,
        choices=tuple(_choices(lacking, result.reasons)),
    )
    return replace(result, version=commit(request.table, snapshot, change).version)


def _lacking(table: LakeTable, snapshot: TableSnapshot) -> tuple[list[_LackingRange], tuple[str, ...]]:
    """The ranges that lack rows, and the paths of the data files that are lost.

    Raises:
        EraseRefused: see `_recorded`.
    """
    examined = examine(table, snapshot.opened, lists_lacking=True)
    if examined.others:
        raise EraseRefused(
            f"more is wrong with the table than missing rows: {examined.others[0]}; take it back, or replay these "
            "offsets first",
            table.where,
        )
    if of_bytes := [own for own in examined.lacking if own.offsets.partition.broker is not None]:
        raise EraseRefused(
            f"{of_bytes[0]} lacks rows. In 0.7 offsets count bytes, so nobody can tell at which of them a row is "
            "missing: `penstock rewind`, or replay these offsets",
            table.where,
        )
    present = present_offsets(table, snapshot.opened, examined.lacking)
    return list(_with_absent(table, snapshot, present)), tuple(examined.lost_files)


def _with_absent(
    table: LakeTable, snapshot: TableSnapshot, present: Mapping[LoadedRange, ExactOffsets]
) -> Iterator[_LackingRange]:
    """The ranges of the ledger that have only these rows."""
    for committed, removed_by in _ranges(table, snapshot):
        rows = present.get(LoadedRange.of(committed))
        if rows is not None:
            known = ExactOffsets.union([rows, *table.exact_sets(committed).values()])
            absent = known.complement(committed.offsets)
            yield _LackingRange(committed=committed, absent=absent, removed_by=removed_by)


def _ranges(table: LakeTable, snapshot: TableSnapshot) -> Iterator[tuple[CommittedRange, tuple[TableCommit, ...]]]:
    """The ranges that count, newest first, each with the newer commits of others that took rows out of the table."""
    fold, removed_by = RangeFold(), tuple[TableCommit, ...]()
    target: int | None = None
    for commit_ in table.commits(snapshot.version):
        if target is not None and commit_.version > target:  # a rewind has cancelled it
            continue
        if commit_.entry is not None:
            target = commit_.entry.target
            ranges = fold.effective([(commit_.version, commit_.entry)])
            yield from ((committed, removed_by) for _, committed in ranges)
        elif commit_.changed_rows:
            removed_by = (*removed_by, commit_)


def _partitions(lacking: Sequence[_LackingRange]) -> Iterator[ErasedRows]:
    rows = Counter[BrokerPartition]()
    for own in lacking:
        rows[own.committed.partition] += own.rows
    for id_, count in sorted(rows.items()):
        yield ErasedRows(broker=id_.broker, partition=id_.partition, rows=count)


def _reasons(lacking: Collection[_LackingRange], lost: Sequence[str]) -> Iterator[str]:
    """Why rows are missing, as far as the log and the folder show it."""
    removed_by = {commit_.version: commit_ for own in lacking for commit_ in own.removed_by}
    for version, commit_ in sorted(removed_by.items()):
        yield f"removed by version {version}, {commit_.writer}"
    for path in lost:
        yield f"the data file {path} is lost"
    if not lost and any(not own.removed_by for own in lacking):
        yield "no commit says what removed them"


def _choices(lacking: Sequence[_LackingRange], reasons: Sequence[str]) -> Iterator[RecordedChoice]:
    """The choice of the user, for the offsets of each partition from the first missing row to the last one."""
    by_partition: dict[BrokerPartition, list[ExactOffsets]] = defaultdict(list)
    for own in lacking:
        by_partition[own.committed.partition].append(own.absent)
    more = [f"{len(reasons) - _MAX_REASONS} more reasons"] if len(reasons) > _MAX_REASONS else []
    reason = "; ".join([*reasons[:_MAX_REASONS], *more])
    for id_, sets in sorted(by_partition.items()):
        first, stop = min(int(own.firsts[0]) for own in sets), max(int(own.stops[-1]) for own in sets)
        yield RecordedChoice.of("missing", "erase", OffsetRange(id_, first, stop), reason=reason)
