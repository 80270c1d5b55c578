"""The snapshots of a table as commits: what each one says of itself, down from the newest one to the first."""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from pyiceberg.manifest import DataFile, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.types import IntegerType, LongType

from pipelines.iceberg.data_files import bound
from pipelines.ledger.ledger import KEY, SEQUENCE, LedgerEntry
from pipelines.table.table_commit import TableCommit
from resources.errors import EntryUnknown

HOUSEKEEPING = "penstock.housekeeping"
"""The key of a summary by which a commit of Penstock without an entry says what it did."""
_CREATED = "CREATE TABLE"


def ancestors(table: Table, newest: Snapshot | None) -> Iterator[Snapshot]:
    """A snapshot and those before it, as far as they have not expired."""
    while newest is not None:
        yield newest
        parent = newest.parent_snapshot_id
        newest = None if parent is None else table.metadata.snapshot_by_id(parent)


def newest_snapshot(table: Table) -> Snapshot | None:
    """The newest snapshot of the table; None if it has none."""
    return table.metadata.snapshot_by_name(MAIN_BRANCH)


def summary_of(entry: LedgerEntry) -> Mapping[str, str]:
    """The part of a summary that keeps a ledger entry."""
    return {KEY: base64.b64encode(zlib.compress(entry.to_json().encode())).decode()}


def commits(table: Table, newest: Snapshot | None, *, with_files: bool) -> Iterator[TableCommit]:
    """The commits of the table up to a snapshot, newest first. The last one created the table, unless some expired.

    Only `with_files` reads manifests, for the data files that each commit added.

    Raises:
        EntryUnknown: a summary has an entry of a newer Penstock.
    """
    has_all = True
    for snapshot in ancestors(table, newest):
        has_all = snapshot.parent_snapshot_id is None
        yield _commit(table, snapshot, with_files=with_files)
    if has_all:
        created = datetime.fromtimestamp(0, UTC) if newest else _time(table.metadata.last_updated_ms)
        yield TableCommit(version=0, time=created, operation=_CREATED, digest=str(table.metadata.table_uuid))


def added_files(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
    """The data files that a snapshot added."""
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if entry.status is ManifestEntryStatus.ADDED:
                    yield entry.data_file


def _commit(table: Table, snapshot: Snapshot, *, with_files: bool) -> TableCommit:
    summary, version = snapshot.summary, snapshot.sequence_number or 0
    assert summary is not None, "format version 2 demands it"
    entry = _entry(version, summary[KEY])
    by_others = entry is None and summary.operation is not Operation.REPLACE and summary[HOUSEKEEPING] is None
    files = list(added_files(table, snapshot)) if with_files else []
    prefix = f"{table.location()}/"
    return TableCommit(
        version=version,
        time=_time(snapshot.timestamp_ms),
        operation=summary.operation.value,
        entry=entry,
        added=tuple(file.file_path.removeprefix(prefix) for file in files),
        changed_rows=by_others and summary.operation is not Operation.APPEND,
        writer=_writer(summary.operation, summary["engine-name"], summary["engine-version"]),
        by_others=by_others,
        foreign_files=tuple(_statistics(table, file) for file in files) if by_others else (),
        transactions={} if entry is None else _cursors(entry),
        digest=str(snapshot.snapshot_id),
    )


def _entry(version: int, text: str | None) -> LedgerEntry | None:
    if text is None:
        return None
    try:
        return LedgerEntry.from_json(zlib.decompress(base64.b64decode(text)).decode())
    except EntryUnknown as error:
        raise EntryUnknown(f"{error.reason} (version {version} of the table)") from error.__cause__
    except (ValueError, zlib.error) as error:
        raise EntryUnknown(f"the entry in version {version} of the table is damaged: {error}") from error


def _writer(operation: Operation, engine: str | None, version: str | None) -> str:
    by = f"{engine} {version or ''}".strip() if engine else "an unknown program"
    return f"{operation.value} by {by}"


def _statistics(table: Table, file: DataFile) -> str:
    """The statistics of a file as JSON: its rows, and the bounds of its columns of whole numbers."""
    numbers = {
        field.field_id: field for field in table.schema().fields if isinstance(field.field_type, IntegerType | LongType)
    }
    bounds = {
        name: {
            numbers[id_].name: bound(numbers[id_].field_type, value) for id_, value in values.items() if id_ in numbers
        }
        for name, values in (("minValues", file.lower_bounds or {}), ("maxValues", file.upper_bounds or {}))
    }
    return json.dumps({"numRecords": file.record_count, **bounds})


def _cursors(entry: LedgerEntry) -> Mapping[str, int]:
    """The cursors as a Delta table stores them beside the entry. Here they are only in the entry."""
    cursors = {entry.topic.app_id(partition): cursor for partition, (_, cursor) in entry.covered.items()}
    return {SEQUENCE: entry.sequence, **cursors}


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
