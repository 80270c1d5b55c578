"""Housekeeping of an Iceberg table's metadata: snapshots expire, and files that no snapshot needs are deleted.

The ledger does not need the snapshots of its entries; see `stored_ledger`. What a snapshot gives beyond that is the way
back to its version.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pyarrow.fs as pafs
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemoveSnapshotsUpdate

from pipelines.iceberg.open_version import IcebergVersion
from pipelines.iceberg.snapshot_commit import unchanged
from pipelines.iceberg.snapshots import ancestors, newest_snapshot
from pipelines.iceberg.stored_ledger import LEDGER_FOLDER, StoredLedger
from resources.stores.lake import filesystem, list_folder

_METADATA = "metadata"
_KINDS = (".avro", ".metadata.json")


def older_snapshots(table: Table, before: int) -> list[Snapshot]:
    """The snapshots of main of versions before this one that can expire: no branch and no tag of others needs them."""
    needed = _needed_by_others(table)
    return [
        snapshot
        for snapshot in ancestors(table, newest_snapshot(table))
        if (snapshot.sequence_number or 0) < before and snapshot.snapshot_id not in needed
    ]


def _needed_by_others(table: Table) -> set[int]:
    """The snapshots that main and tags name, and all of other branches."""
    needed = {ref.snapshot_id for ref in table.metadata.refs.values()}
    for name, ref in table.metadata.refs.items():
        if ref.snapshot_ref_type is SnapshotRefType.BRANCH and name != MAIN_BRANCH:
            newest = table.metadata.snapshot_by_id(ref.snapshot_id)
            needed.update(snapshot.snapshot_id for snapshot in ancestors(table, newest))
    return needed


def expire(opened: IcebergVersion, snapshots: Sequence[Snapshot]) -> None:
    """Let snapshots expire, in one request that demands that nobody has committed since the version was opened.

    Raises:
        CommitFailedException: somebody has.
    """
    table, ids = opened.table, [snapshot.snapshot_id for snapshot in snapshots]
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": ids})
    table.catalog.commit_table(table, unchanged(table), (update,))


def delete_unneeded(opened: IcebergVersion, since: datetime | None, also: Collection[str] = ()) -> int:
    """Delete files of the metadata that the table does not need and that are older than `since`; returns their number.

    Younger ones can belong to a commit in progress. `also` are names that are deleted however young they are. Only the
    names are compared, which are never used again: servers write the same place in several ways.
    """
    files = filesystem(opened.uri, opened.options)
    needed = {_name(place) for place in metadata_files(opened.table)}
    ledger = StoredLedger.of(opened.table.properties).files(opened.uri, opened.options)
    infos = [info for info in list_folder(files, _METADATA) if info.base_name.endswith(_KINDS)]
    infos += list_folder(files, LEDGER_FOLDER)
    deleted = 0
    for info in infos:
        is_old = since is not None and (info.mtime or datetime.now(UTC)) < since
        if info.type != pafs.FileType.File or info.base_name in needed or info.path in ledger:
            continue
        if is_old or info.base_name in also:
            with suppress(FileNotFoundError):  # another housekeeping may have deleted it
                files.delete_file(info.path)
            deleted += 1
    return deleted


def _name(place: str) -> str:
    return place.rpartition("/")[2]


def metadata_names(table: Table, snapshots: Sequence[Snapshot]) -> set[str]:
    """The names of the manifest lists and the manifests of some snapshots."""
    return {_name(place) for snapshot in snapshots for place in snapshot_files(table, snapshot)}


def metadata_files(table: Table) -> Iterator[str]:
    """The places of all files that belong to the metadata of a table."""
    yield table.metadata_location
    yield from (earlier.metadata_file for earlier in table.metadata.metadata_log)
    for snapshot in table.metadata.snapshots:
        yield from snapshot_files(table, snapshot)


def snapshot_files(table: Table, snapshot: Snapshot) -> Iterator[str]:
    """The places of the manifest list and of the manifests of a snapshot."""
    yield snapshot.manifest_list
    yield from (manifest.manifest_path for manifest in snapshot.manifests(table.io))
