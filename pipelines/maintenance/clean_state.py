"""Housekeeping of state tables: the same as for the tables of topics, without what only a ledger and a rewind need.

An update that runs at the same time is not harmed. It reads the files of the version that it began with: they are in
the table, or were removed from it after that. Its own files are younger than `keep`. If it takes longer than `keep` and
loses some of either, it fails before its commit, and the next attempt begins with the newest version. A compaction and
an update that meet do not both land.
"""

from dataclasses import replace
from datetime import timedelta

from pipelines.increments.source import NOTHING
from pipelines.maintenance.clean import (
    CleanResult,
    UnneededFiles,
    delete_files,
    has_two_small,
    merge,
    open_existing,
    with_deleted,
)
from pipelines.state_tables.files import FILE_BYTES
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import CONSUMER
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable, file_paths
from resources.failpoints import failpoint
from resources.stores.lake import lake_errors


def clean_state(topic_table: LakeTable, *, keep: timedelta, target_bytes: int, dry_run: bool) -> CleanResult:
    """Delete unused files of the state table of a topic, and merge small ones; see `clean`.

    Versions of the state table that are older than `keep` cannot be read after that.

    Args:
        topic_table: the table of the topic.
        keep: how long files that are not in the state table are kept.
        target_bytes: small files are merged up to this size, but not above the size of files that updates write.
        dry_run: report what would be deleted, and do nothing.

    Raises:
        OutputRefused: somebody restored an old version of the state table.
        LoadError: the store does not answer, or the log of the state table is damaged.
    """
    output = state_output(topic_table)
    table = replace(output.table, where=topic_table.where)
    result = CleanResult(table=table.uri)
    writer = output.begin(CONSUMER, f"{table.where.cluster}/{table.where.topic}")
    opened = writer.opened
    if opened is None:
        return result
    if writer.progress == NOTHING:
        return _without_progress(result, opened)
    with lake_errors(table.uri):
        unneeded = UnneededFiles.find(table, opened.version, keep)
        if not dry_run:
            failpoint("before clean")
            unneeded = _deleted(table, unneeded)
        result = with_deleted(result, table, unneeded, keep, dry_run=dry_run)
        if not dry_run:
            # An update writes each file again in which a key has changed, so no file must get too large.
            target_bytes = min(target_bytes, FILE_BYTES)
            newest = open_existing(table)
            days = None if _has_small_files(newest, target_bytes) else ()
            result = merge(result, table, newest, target_bytes, days)
            snapshot = topic_table.newest()
            table.scrub(snapshot.layout.personal if snapshot else ())
    return result


def _without_progress(result: CleanResult, opened: OpenTable) -> CleanResult:
    """The result for a table that no update has filled: its first one was killed, or it belongs to somebody else."""
    if opened.version == 0 and not file_paths(opened):
        return replace(result, empty=True)
    return replace(result, foreign=f"the folder {result.table} holds a table that is no state table of this topic")


def _deleted(table: LakeTable, unneeded: UnneededFiles) -> UnneededFiles:
    """Delete the files; returns what was deleted. A file that a RESTORE has brought back meanwhile stays."""
    unneeded = unneeded.without(file_paths(open_existing(table)))
    delete_files(table, [*unneeded.unnamed, *unneeded.removed])
    return unneeded


def _has_small_files(opened: OpenTable, target_bytes: int) -> bool:
    """Whether two files of a state table fit into one of the target size."""
    sizes = opened.files().column("size_bytes").to_pylist()
    return has_two_small(sorted(size for size in sizes if size < target_bytes), target_bytes)
