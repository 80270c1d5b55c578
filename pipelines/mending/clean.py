"""Housekeeping: files that no version needs are collected, small ones become large ones, the log gets a checkpoint.

It touches neither cursor nor ledger, and runs beside loads. The log's entries are kept for ever: they are the ledger.
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

from pipelines.loading.steps import step
from pipelines.loading.table import WRITING, LakeTable
from pipelines.mending.staged import FOLDER
from resources.lake import filesystem, lake_errors

_COMPACTION = "penstock.compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What was done to a table, or with a dry run would be: files collected, with their bytes, and files merged.

    `merged` small files became `larger` ones; both are 0 in a dry run, and where another writer was first (`busy`).
    """

    table: str
    collected: tuple[str, ...] = ()
    bytes: int = 0
    merged: int = 0
    larger: int = 0
    busy: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As `penstock clean --json` prints it."""
        return asdict(self)


def clean(table: LakeTable, *, keep: timedelta, target_bytes: int, dry_run: bool) -> Cleaning:
    """Clean the table.

    Collected are files older than `keep` that no commit names (of runs that were killed, and of replays), and files
    that were taken out of the table longer ago than that: a rewind to before is then no longer possible. A run that
    takes longer than `keep` would lose its files before it commits them, and be refused.

    Args:
        table: the table.
        keep: how long what is not in the table is kept.
        target_bytes: small files are merged up to this size.
        dry_run: say what would be collected, and do nothing.

    Raises:
        LakeUnavailable: the store gives no answer.
    """
    handle = table.lake.open(table.uri)
    if handle is None:
        return Cleaning(table=table.uri)
    files = filesystem(table.uri, table.lake.options)
    with lake_errors(table.uri):
        done = Cleaning(table=table.uri)
        if not dry_run:
            done = _merge(table, handle, target_bytes)
            _checkpoint(table, handle)
        staged = list(_staged(files, keep))
        paths = sorted([*_vacuum(handle, keep, dry_run=True), *staged])
        sizes = [info.size or 0 for info in files.get_file_info(paths)]
        done = replace(done, collected=tuple(paths), bytes=sum(sizes))
        if dry_run:
            return done
        step("before clean")
        for path in staged:
            with suppress(FileNotFoundError):  # another run cleans as well
                files.delete_file(path)
            step("file cleaned")
        _vacuum(handle, keep, dry_run=False)
    return done


def _vacuum(handle: DeltaTable, keep: timedelta, *, dry_run: bool) -> list[str]:
    """Full: without that it does not see what no commit names (FINDINGS, 5)."""
    hours = -(-int(keep.total_seconds()) // 3600)
    return list(handle.vacuum(hours, dry_run=dry_run, enforce_retention_duration=False, full=True))


def _staged(files: pafs.FileSystem, keep: timedelta) -> Iterator[str]:
    """What replays that were killed left behind; vacuum passes over names that begin with an underscore."""
    before = datetime.now(UTC) - keep
    selector = pafs.FileSelector(FOLDER, allow_not_found=True, recursive=True)
    for info in files.get_file_info(selector):
        if info.type == pafs.FileType.File and info.mtime < before:
            yield info.path


def _merge(table: LakeTable, handle: DeltaTable, target_bytes: int) -> Cleaning:
    """Make large files of small ones. What else replaces files meanwhile is first: the next time will do.

    deltalake lets a compaction land on top of another that has merged the same files, and every row is there twice.
    Nothing lands over a change of the table's properties: so each compaction announces itself there, and is built on
    its own announcement. Of two, the one that announced itself first is refused, however late it comes.
    """
    step("before compaction")
    if not _has_small_files(handle, target_bytes):
        return Cleaning(table=table.uri)
    try:
        handle.alter.set_table_properties({_COMPACTION: uuid.uuid4().hex}, raise_if_not_exists=False)
        step("compaction announced")
        told = handle.optimize.compact(target_size=target_bytes, writer_properties=WRITING)
    except CommitFailedError:
        return Cleaning(table=table.uri, busy=True)
    step("after compaction")
    return Cleaning(table=table.uri, merged=told["numFilesRemoved"], larger=told["numFilesAdded"])


def _has_small_files(handle: DeltaTable, target_bytes: int) -> bool:
    """Whether two files of one day fit into one."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for add in pa.table(handle.get_add_actions()).select(["partition", "size_bytes"]).to_pylist():
        sizes[str(add["partition"])].append(add["size_bytes"])
    return any(len(found) > 1 and sum(sorted(found)[:2]) <= target_bytes for found in sizes.values())


def _checkpoint(table: LakeTable, handle: DeltaTable) -> None:
    """Who opens the table reads this, and not all entries before it."""
    handle.update_incremental()
    handle.create_checkpoint()
    table.sync(after=handle.version() - 1)
