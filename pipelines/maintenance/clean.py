"""Housekeeping: delete files that no version needs, merge small files into large ones, and write a checkpoint.

It changes neither cursors nor ledger, and can run at the same time as loads. The entries of the log are kept forever,
because they are the ledger.

What no version ever contained is deleted first, before anything is written: a full disk can be cleaned. Files that were
removed from the table may come back by a rewind. So housekeeping first announces in the log before which version it
deletes them. From then on a rewind to an older version that needs one of them is refused, even if the housekeeping is
suspended for hours before it deletes them (fault P14).
"""

import shutil
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow.fs as pafs

from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.layout.layout import LAYOUTS
from pipelines.reports.table_notes import DeletedFiles, TableNotes, now
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.table.exact_sets import OFFSETS_FOLDER
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from pipelines.table.table_store import CommitConflict, TableSnapshot
from resources.errors import TableForeign
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.lake import files_below, filesystem, lake_errors, list_folder
from resources.stores.unfinished_uploads import UnfinishedUploads, UploadsUnknown

_DELETES_AT_ONCE = 8
_LOG_BYTES = 1024 * 1024
"""The room for the commits and the checkpoint of a housekeeping run."""
_MAX_LATE_FILES = 8
"""The number of small files of late records that may stay beside the large file of a closed day."""
_PARTITION_FOLDERS = tuple(f"{layout.partition_column}=" for layout in LAYOUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    """What `penstock clean` did with the files of a table.

    In a dry run it is the plan.

    Args:
        table: the table's URI.
        collected: the deleted files.
        bytes: their size.
        merged: the number of small files that were merged; 0 in a dry run.
        larger: the number of files that they became; 0 in a dry run.
        busy: whether another writer was first, so that nothing was merged.
        foreign: why nothing was done to a table that is not Penstock's; empty for others.
        damaged: data files that are lost or have another size; if there are any, nothing was merged.
    """

    table: str
    collected: tuple[str, ...] = ()
    bytes: int = 0
    young: int = 0
    """Files that no commit names, of failed loads or of loads in progress, that are younger than `keep_days`."""
    empty: bool = False
    """Whether nothing has been loaded into the table yet."""
    merged: int = 0
    larger: int = 0
    busy: bool = False
    full: bool = False
    """Whether the disk has too little room to merge files, so that nothing was merged."""
    foreign: str = ""
    damaged: tuple[str, ...] = ()
    uploads: int = 0
    """Uploads of files that began longer ago than `keep_days` and were never completed: they were aborted."""
    uploads_unknown: str = ""
    """Why such uploads were not looked for; empty if they were, or if the store has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnneededFiles:
    """The files that housekeeping deletes, with their sizes.

    Args:
        unnamed: files that no version ever contained, files of killed replays, and skipped bytes and sets of offsets
            of failed runs.
        removed: files that were in the table, and that no version from `before` on contains.
        before: the version.
        young: the number of further files that no version ever contained, but that are too young.
    """

    unnamed: dict[str, int]
    removed: dict[str, int]
    before: int
    young: int

    @classmethod
    def find(cls, table: LakeTable, version: int, keep: timedelta) -> "UnneededFiles":
        """The files that can be deleted at a version if all that was needed less than `keep` ago is kept."""
        since = datetime.now(UTC) - keep
        before, named, needed = 0, set[str](), set[str]()
        for commit in table.commits(version):
            named.update(commit.added)
            named.update(commit.entry.kept_paths if commit.entry else ())
            if not before:
                needed.update(commit.added)
                before = commit.version if commit.time <= since else 0
        before = table.oldest(before)
        needed |= table.paths(before)
        named |= needed  # commits that nobody keeps any more have added some of them
        files = list(data_files(table))
        beside = (info for folder in (QUARANTINE_FOLDER, OFFSETS_FOLDER) for info in files_in(table, folder))
        kept = [info for info in beside if info.path not in named]
        unnamed = [*(info for info in files if info.path not in named), *files_in(table, STAGING_FOLDER), *kept]
        old = [info for info in unnamed if info.mtime < since]
        removed = [info for info in files if info.path in named and info.path not in needed]
        return cls(
            unnamed={info.path: info.size for info in old},
            removed={info.path: info.size for info in removed},
            before=before,
            young=len(unnamed) - len(old),
        )

    def without(self, needed: Collection[str]) -> "UnneededFiles":
        """The same without those that were in the table and are needed again."""
        return replace(self, removed={path: size for path, size in self.removed.items() if path not in needed})


def clean(table: LakeTable, *, keep: timedelta, target_bytes: int, dry_run: bool) -> CleanResult:
    """Delete unused files of the table, and merge small ones.

    It deletes files older than `keep` that no commit names (of runs that were killed, and of replays), and files that
    were removed from the table longer ago than that. A rewind to a version with these files is then impossible. A run
    that takes longer than `keep` loses its files before it commits them; its commit is refused.

    Args:
        table: the table. One that is not Penstock's is left as it is.
        keep: how long files that are not in the table are kept.
        target_bytes: small files are merged up to this size.
        dry_run: report what would be deleted, and do nothing.

    Raises:
        LoadError: the store does not answer, or the Delta log is damaged.
    """
    result = CleanResult(table=table.uri)
    try:
        snapshot = table.newest()
    except TableForeign as error:
        return replace(result, foreign=error.reason)
    if snapshot is None:
        return result
    with lake_errors(table.uri):
        unneeded = UnneededFiles.find(table, snapshot.version, keep)
        if not dry_run:
            failpoint("before clean")
            delete_files(table, unneeded.unnamed)
            unneeded = delete_removed(table, snapshot, unneeded)
        result = with_deleted(replace(result, empty=snapshot.entry is None), table, unneeded, keep, dry_run=dry_run)
        if not dry_run:
            newest = open_existing(table)
            days = _days_to_merge(newest, target_bytes, datetime.now(UTC).date())
            result = merge(result, table, newest, target_bytes, days)
            table.forget(unneeded.before)
            table.scrub(snapshot.layout.personal)  # a merge can write bounds of all columns, some of them wrong
    return result


def open_existing(table: LakeTable) -> OpenTable:
    """The newest version of a table that exists."""
    newest = table.open_newest()
    assert newest is not None
    return newest


def delete_removed(table: LakeTable, snapshot: TableSnapshot, unneeded: UnneededFiles) -> UnneededFiles:
    """Announce which files are deleted that were in the table, and delete them; returns what was deleted.

    If another writer commits at the same time, they are left for the next housekeeping.
    """
    if unneeded.removed:
        try:
            table.announce_clean(snapshot, unneeded.before)
        except CommitConflict:
            return replace(unneeded, removed={})
    failpoint("clean announced")
    if not unneeded.removed:
        return unneeded
    # A rewind may have brought back files between the snapshot and the announcement. None can do so after it.
    newest = table.newer(snapshot)
    needed = table.paths(unneeded.before).union(
        *(commit.added for commit in table.commits(newest.version, after=unneeded.before))
    )
    unneeded = unneeded.without(needed)
    delete_files(table, unneeded.removed)
    return unneeded


def delete_files(table: LakeTable, paths: Collection[str]) -> None:
    """Delete these files, and note when."""
    files = filesystem(table.uri, table.lake.options)

    def delete(path: str) -> None:
        with suppress(FileNotFoundError):  # another housekeeping run may have deleted it
            files.delete_file(path)
        failpoint("file cleaned")

    with ThreadPoolExecutor(_DELETES_AT_ONCE) as deleting:
        list(deleting.map(delete, paths))
    if paths:
        note = DeletedFiles(time=now(), paths=sorted(paths))
        TableNotes(table.uri, table.lake.options, DeletedFiles).write(uuid.uuid4().hex, note)


def with_deleted(
    result: CleanResult, table: LakeTable, unneeded: UnneededFiles, keep: timedelta, *, dry_run: bool
) -> CleanResult:
    """The result with the deleted files, and with the uploads of files that are aborted.

    These began longer ago than `keep`. A store may keep their parts for ever.
    """
    sizes = {**unneeded.unnamed, **unneeded.removed}
    result = replace(result, collected=tuple(sorted(sizes)), bytes=sum(sizes.values()), young=unneeded.young)
    try:
        uploads = UnfinishedUploads.find(table.uri, table.lake.options, before=datetime.now(UTC) - keep)
        if uploads is not None and not dry_run:
            uploads.abort()
    except UploadsUnknown as error:
        return replace(result, uploads_unknown=str(error))
    return replace(result, uploads=len(uploads.uploads) if uploads else 0)


def data_files(table: LakeTable) -> Iterator[pafs.FileInfo]:
    """The data files below the table's folder. As for Delta's vacuum, names with an underscore or a dot are hidden.

    The folders of a partition column are never hidden.
    """
    files = filesystem(table.uri, table.lake.options)
    for top in list_folder(files, ""):
        if top.base_name.startswith(("_", ".")) and not top.base_name.startswith(_PARTITION_FOLDERS):
            continue
        is_folder = top.type == pafs.FileType.Directory
        for info in files_below(table.uri, files, top.path) if is_folder else [top]:
            if info.base_name.endswith(".parquet"):
                yield info


def files_in(table: LakeTable, folder: str) -> list[pafs.FileInfo]:
    """The files in a folder of Penstock's, which readers of the table do not see."""
    return files_below(table.uri, filesystem(table.uri, table.lake.options), folder)


def merge(
    result: CleanResult, table: LakeTable, opened: OpenTable, target_bytes: int, days: Sequence[date | None] | None
) -> CleanResult:
    """Merge small files, and write a checkpoint: who opens the table reads it instead of older commits.

    `days` are the days whose folders need it, and None stands for all folders. If data files are lost or damaged,
    nothing is merged.
    """
    result = replace(result, damaged=tuple(sorted(table.damaged(opened))))
    if not _has_room(opened, target_bytes):
        return replace(result, full=True)
    if not result.damaged:
        failpoint("before compaction")
        if days is None or days:
            done = table.compact(days, target_bytes)
            result = replace(result, merged=done.merged, larger=done.larger, busy=done.busy)
    table.checkpoint()
    return result


def _has_room(opened: OpenTable, target_bytes: int) -> bool:
    """Whether a local disk has room for the merged files. Nothing is written on a full one (fault E21)."""
    root = durable.local_path(opened.uri)
    if root is None:
        return True
    needed = sum(size for size in opened.files().column("size_bytes").to_pylist() if size < target_bytes)
    return bool(shutil.disk_usage(root).free > needed + _LOG_BYTES)


def _days_to_merge(opened: OpenTable, target_bytes: int, today: date) -> list[date | None] | None:
    """The days of the folders with two files that fit into one file of the target size; None for all folders.

    Folders of event days are left alone until their day is over: before that, loads add files all the time. After
    that, late records come in small files. The large file of a closed day is not written again for a few of them.
    """
    files, layout = opened.files(), opened.layout
    days = files.column(f"partition.{layout.partition_column}").to_pylist()
    sizes: dict[date | None, list[int]] = defaultdict(list)
    for day, size in zip(days, files.column("size_bytes").to_pylist(), strict=True):
        sizes[day].append(size)
    small = {day: sorted(size for size in of_day if size < target_bytes) for day, of_day in sizes.items()}
    folders = [day for day, of_day in small.items() if has_two_small(of_day, target_bytes)]
    if not layout.is_by_day:
        return None if folders else []
    return [day for day in folders if (day is None or day < today) and _is_worth_merging(small[day])]


def has_two_small(sizes: Sequence[int], target_bytes: int) -> bool:
    """Whether two files of these sizes, in order, fit into one file of the target size."""
    return len(sizes) > 1 and sum(sizes[:2]) <= target_bytes


def _is_worth_merging(sizes: Sequence[int]) -> bool:
    """Whether files of these sizes, in order, are many, or the largest one is not much larger than the others."""
    return len(sizes) > _MAX_LATE_FILES or sum(sizes[:-1]) * _MAX_LATE_FILES >= sizes[-1]
