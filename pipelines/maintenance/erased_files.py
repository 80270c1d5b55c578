"""Deletes for good what erasures took out of a table: files, bounds in the log, and bytes beside the table.

An erasure takes rows out of the newest version. Files of earlier versions still have them: those that the erasure
replaced, and those that compactions, replays and other commits had replaced before. All of them are deleted, and no
other file. `keep` of housekeeping does not matter, so no file of a load that runs now is touched (fault Y09).

Everything here can be done again. What was killed in the middle is continued by the next run.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

import pyarrow.fs as pafs

from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.clean import UnneededFiles, data_files, delete_files, delete_removed, files_in
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import CONSUMER
from pipelines.table.lake_table import DAMAGED, LakeTable
from pipelines.table.open_table import OpenTable, file_paths
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from resources.stores.lake import lake_errors

_ERASING = frozenset({CommitKind.ERASE, CommitKind.REWRITE})
"""The kinds of entries after which no file may keep what rows were before."""
_BESIDE = (QUARANTINE_FOLDER, DAMAGED, STAGING_FOLDER)
"""The folders with bytes of records that no reader of the table sees. Copies in them may hold what was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFiles:
    """What `delete_erased` has done to one table, or would do in a dry run.

    Args:
        table: the table's URI.
        version: the version of the newest erasure whose files are deleted; None without one.
        waiting: the number of erasures that are too young, or that the state table has not followed yet.
        deleted: the data files.
        beside: the deleted files of hidden folders, for example skipped bytes in `_quarantine`.
        bytes: the size of all of them.
        log_entries: the number of log entries whose bounds were replaced.
        busy: whether another writer was first, so that nothing was deleted; run again.
        unsupported: why the log keeps the bounds of deleted files; empty if it does not.
    """

    table: str
    version: int | None = None
    waiting: int = 0
    deleted: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    bytes: int = 0
    log_entries: int = 0
    busy: bool = False
    unsupported: str = ""


def finish_erasures(table: LakeTable, *, older_than: timedelta, dry_run: bool) -> Sequence[ErasedFiles]:
    """Delete what erasures took out of a topic's table, and then what they took out of its state table.

    See `delete_erased`.
    """
    erased = delete_erased(table, older_than=older_than, dry_run=dry_run)
    return [erased, delete_erased_of_state(table, erased, dry_run=dry_run)]


def delete_erased(table: LakeTable, *, older_than: timedelta, dry_run: bool) -> ErasedFiles:
    """Delete what erasures of a topic's table took out of it, longer ago than `older_than`.

    Args:
        table: the table.
        older_than: how long the rows stay readable in earlier versions, for queries that run.
        dry_run: report what would be deleted, and do nothing.

    Raises:
        LoadError: the store does not answer, or the Delta log is damaged.
    """
    snapshot = table.newest()
    result = ErasedFiles(table=table.uri)
    if snapshot is None:
        return result
    erasures = _Erasures.read(table, snapshot.version, datetime.now(UTC) - older_than)
    result = replace(result, waiting=erasures.waiting)
    if erasures.newest is None:
        return result
    version = erasures.newest.version
    with lake_errors(table.uri):
        outdated = outdated_files(table, snapshot, version)
        beside = copies_beside(table, erasures.newest.time)
        result = _with_files(replace(result, version=version), table, outdated, beside)
        return result if dry_run else _deleted(result, table, snapshot, outdated)


def delete_erased_of_state(topic_table: LakeTable, erased: ErasedFiles, *, dry_run: bool) -> ErasedFiles:
    """Delete the files of the topic's state table that an erasure has made outdated; `erased` is that of the topic.

    Raises:
        OutputRefused: somebody restored an old version of the state table.
        LoadError: see `delete_erased`.
    """
    output = state_output(topic_table)
    table = replace(output.table, where=topic_table.where)
    writer = output.begin(CONSUMER, f"{table.where.cluster}/{table.where.topic}")
    result = ErasedFiles(table=table.uri)
    opened = writer.opened
    if opened is None or erased.version is None:
        return result
    if writer.progress.version < erased.version:
        return replace(result, waiting=1)
    snapshot = topic_table.newest()
    personal = snapshot.layout.personal if snapshot else ()
    return delete_outdated(result, table, opened, personal=personal, dry_run=dry_run)


def delete_outdated(
    result: ErasedFiles, table: LakeTable, newest: OpenTable, *, personal: Collection[str], dry_run: bool
) -> ErasedFiles:
    """Delete all files that a table had before its newest version, which follows the erasure; returns the result.

    Raises:
        LoadError: see `delete_erased`.
    """
    with lake_errors(table.uri):
        outdated = outdated_state_files(table, newest)
        result = _with_files(replace(result, version=newest.version), table, outdated, ())
        if not dry_run:
            delete_files(table, result.deleted)
            result = _scrubbed(result, table, outdated, personal)
    return result


def waiting_erasures(table: LakeTable) -> Sequence[datetime]:
    """The times of the erasures and rewrites whose former files still exist; the oldest comes first.

    Raises:
        LoadError: the store does not answer, or the Delta log is damaged.
    """
    snapshot = table.newest()
    if snapshot is None:
        return ()
    with lake_errors(table.uri):
        newer = table.commits(snapshot.version, after=table.cleaned_before(snapshot))
        commits = [commit for commit in newer if commit.entry is not None and commit.entry.kind in _ERASING]
        there = {info.path for info in data_files(table)} if commits else set()
        waiting = [commit for commit in commits if there & outdated_files(table, snapshot, commit.version)]
    return sorted(commit.time for commit in waiting)


def outdated_files(table: LakeTable, snapshot: TableSnapshot, version: int) -> set[str]:
    """The data files that a table had before a version, and has neither at this version nor at that of the snapshot."""
    named = {path for commit in table.commits(version) for path in commit.added}
    return named - table.paths(version) - file_paths(snapshot.opened)


def outdated_state_files(table: LakeTable, newest: OpenTable) -> set[str]:
    """The data files that a state table had before its newest version."""
    named = {path for commit in table.commits(newest.version) for path in commit.added}
    return named - file_paths(newest)


def _with_files(
    result: ErasedFiles, table: LakeTable, outdated: Collection[str], beside: Iterable[pafs.FileInfo]
) -> ErasedFiles:
    """The result with those of the files that are still there."""
    files = {info.path: info.size for info in data_files(table) if info.path in outdated}
    others = {info.path: info.size for info in beside}
    size = sum(files.values()) + sum(others.values())
    return replace(result, deleted=tuple(sorted(files)), beside=tuple(sorted(others)), bytes=size)


def _deleted(result: ErasedFiles, table: LakeTable, snapshot: TableSnapshot, outdated: Collection[str]) -> ErasedFiles:
    """Delete the files, and replace their bounds in the log."""
    assert result.version is not None
    removed = dict.fromkeys(result.deleted, 0)
    announced = UnneededFiles(unnamed={}, removed=removed, before=result.version, young=0)
    if removed and not delete_removed(table, snapshot, announced).removed:
        return replace(result, deleted=(), beside=(), bytes=0, busy=True)
    delete_files(table, result.beside)
    return _scrubbed(result, table, outdated, snapshot.layout.personal)


def _scrubbed(
    result: ErasedFiles, table: LakeTable, outdated: Collection[str], personal: Collection[str]
) -> ErasedFiles:
    scrubbed = table.scrub(personal, deleted=outdated)
    return replace(result, log_entries=scrubbed.commits, unsupported=scrubbed.unsupported)


def copies_beside(table: LakeTable, time: datetime) -> Iterator[pafs.FileInfo]:
    """The files in hidden folders that are older than an erasure."""
    for folder in _BESIDE:
        yield from (info for info in files_in(table, folder) if info.mtime < time)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erasures:
    """The erasures in the log of a table.

    Args:
        newest: the commit of the newest one that is old enough; None without one.
        waiting: the number of those that are too young.
    """

    newest: TableCommit | None = None
    waiting: int = 0

    @classmethod
    def read(cls, table: LakeTable, version: int, until: datetime) -> Self:
        """The erasures up to a version. Those are old enough that were committed until this time."""
        waiting = 0
        for commit in table.commits(version):
            if commit.entry is not None and commit.entry.kind in _ERASING:
                if commit.time <= until:
                    return cls(newest=commit, waiting=waiting)
                waiting += 1
        return cls(waiting=waiting)
