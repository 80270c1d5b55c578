"""Housekeeping: delete files that no version needs, merge small files into large ones, and write a checkpoint.

It changes neither cursors nor ledger, and can run at the same time as loads. The entries of the log are kept forever,
because they are the ledger.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from pipelines.loading.failpoints import failpoint
from pipelines.loading.table import AFTER_COMMIT, CONFIGURATION, WRITING, LakeTable
from pipelines.maintenance.staging import STAGING_FOLDER
from resources.lake import filesystem, lake_errors

_COMPACTION = "penstock.compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    """The result of housekeeping for a table, or its plan in a dry run.

    Args:
        table: the table's URI.
        collected: the deleted files.
        bytes: their size.
        merged: the number of small files that were merged; 0 in a dry run.
        larger: the number of files that they became; 0 in a dry run.
        busy: whether another writer was first, so that nothing was merged.
    """

    table: str
    collected: tuple[str, ...] = ()
    bytes: int = 0
    merged: int = 0
    larger: int = 0
    busy: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock clean --json`."""
        return asdict(self)


def clean(table: LakeTable, *, keep: timedelta, target_bytes: int, dry_run: bool) -> CleanResult:
    """Delete unused files of the table, and merge small ones.

    It deletes files older than `keep` that no commit names (of runs that were killed, and of replays), and files that
    were removed from the table longer ago than that. A rewind to a version with these files is then impossible. A run
    that takes longer than `keep` loses its files before it commits them; its commit is refused.

    Args:
        table: the table.
        keep: how long files that are not in the table are kept.
        target_bytes: small files are merged up to this size.
        dry_run: report what would be deleted, and do nothing.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    handle = table.lake.open(table.uri)
    if handle is None:
        return CleanResult(table=table.uri)
    files = filesystem(table.uri, table.lake.options)
    with lake_errors(table.uri):
        result = CleanResult(table=table.uri)
        if not dry_run:
            result = _merge(table, handle, target_bytes)
            _checkpoint(table, handle)
        staged = list(_old_staged_files(files, keep))
        paths = sorted([*_vacuum(handle, keep, dry_run=True), *staged])
        sizes = [info.size or 0 for info in files.get_file_info(paths)]
        result = replace(result, collected=tuple(paths), bytes=sum(sizes))
        if dry_run:
            return result
        failpoint("before clean")
        for path in staged:
            with suppress(FileNotFoundError):  # another housekeeping run may have deleted it
                files.delete_file(path)
            failpoint("file cleaned")
        _vacuum(handle, keep, dry_run=False)
    return result


def _vacuum(handle: DeltaTable, keep: timedelta, *, dry_run: bool) -> list[str]:
    """Delta's vacuum, with `full`: without it, files that no commit names are not found (decision D17)."""
    hours = -(-int(keep.total_seconds()) // 3600)
    return list(
        handle.vacuum(
            hours,
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,
            post_commithook_properties=AFTER_COMMIT,
        )
    )


def _old_staged_files(files: pafs.FileSystem, keep: timedelta) -> Iterator[str]:
    """Files of replays that were killed; Delta's vacuum ignores names that begin with an underscore."""
    before = datetime.now(UTC) - keep
    selector = pafs.FileSelector(STAGING_FOLDER, allow_not_found=True, recursive=True)
    for info in files.get_file_info(selector):
        if info.type == pafs.FileType.File and info.mtime < before:
            yield info.path


def _merge(table: LakeTable, handle: DeltaTable, target_bytes: int) -> CleanResult:
    """Merge small files. If another writer replaces files meanwhile, nothing is merged until the next housekeeping.

    deltalake has a race: it lets a compaction land on top of another one that has merged the same files, and then every
    row is in the table twice. But nothing lands on top of a change of the table's properties that it has not seen. So
    each compaction first writes a new value of the property _COMPACTION, and is built on that version. If two run at
    once, the one that wrote its property first is refused, whenever it finishes. The same version sets the properties
    of every table, because deltalake's compaction cleans up the log whatever AFTER_COMMIT says.
    """
    failpoint("before compaction")
    if not _has_small_files(handle, target_bytes):
        return CleanResult(table=table.uri)
    try:
        handle.alter.set_table_properties(
            {**CONFIGURATION, _COMPACTION: uuid.uuid4().hex},
            raise_if_not_exists=False,
            post_commithook_properties=AFTER_COMMIT,
        )
        failpoint("compaction announced")
        metrics = handle.optimize.compact(
            target_size=target_bytes, writer_properties=WRITING, post_commithook_properties=AFTER_COMMIT
        )
    except CommitFailedError:
        return CleanResult(table=table.uri, busy=True)
    failpoint("after compaction")
    return CleanResult(table=table.uri, merged=metrics["numFilesRemoved"], larger=metrics["numFilesAdded"])


def _has_small_files(handle: DeltaTable, target_bytes: int) -> bool:
    """Whether two files of one day fit into one file of the target size."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for add in pa.table(handle.get_add_actions()).select(["partition", "size_bytes"]).to_pylist():
        sizes[str(add["partition"])].append(add["size_bytes"])
    return any(len(of_day) > 1 and sum(sorted(of_day)[:2]) <= target_bytes for of_day in sizes.values())


def _checkpoint(table: LakeTable, handle: DeltaTable) -> None:
    """Write a checkpoint of the log: who opens the table reads it instead of all entries before it."""
    handle.update_incremental()
    handle.create_checkpoint()
    table.sync(after=handle.version() - 1)
