"""The snapshots of a table as commits, down from the newest one to the first, also those of Penstock that expired."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.types import IntegerType, LongType

from pipelines.iceberg.data_files import bound
from pipelines.iceberg.stored_ledger import LedgerRecord
from pipelines.ledger.ledger import SEQUENCE, LedgerEntry
from pipelines.table.table_commit import TableCommit

COMMIT = "penstock.commit"
"""The key of a summary with the id of the ledger entry that the snapshot committed."""
HOUSEKEEPING = "penstock.housekeeping"
"""The key of a summary by which a commit of Penstock without an entry says what it did."""
CREATED = "penstock.created-ms"
"""The table property with the time at which Penstock created the table."""
_CREATED = "CREATE TABLE"
_EXPIRED = "expired snapshot"


def ancestors(table: Table, newest: Snapshot | None) -> Iterator[Snapshot]:
    """A snapshot and those before it, as far as they have not expired."""
    while newest is not None:
        yield newest
        parent = newest.parent_snapshot_id
        newest = None if parent is None else table.metadata.snapshot_by_id(parent)


def newest_snapshot(table: Table) -> Snapshot | None:
    """The newest snapshot of the table; None if it has none."""
    return table.metadata.snapshot_by_name(MAIN_BRANCH)


def commits(
    table: Table, newest: Snapshot | None, records: Iterator[LedgerRecord], *, upto: int, with_files: bool
) -> Iterator[TableCommit]:
    """The commits of the table down from a snapshot, newest first, without those of versions above `upto`.

    The last one created the table. Of snapshots that expired, only those of Penstock are known, by their `records` in
    the ledger, which are newest first. Only `with_files` reads manifests, for the data files that each commit added.

    Raises:
        EntryUnknown: an entry is of a newer Penstock.
        LogTorn: a file of the ledger is missing or damaged.
    """
    oldest, record = 0, next(records, None)
    for snapshot in ancestors(table, newest):
        oldest = snapshot.sequence_number or 0
        while record is not None and record.version > oldest:  # newer than what is asked for
            record = next(records, None)
        if oldest <= upto:
            entry = record.entry() if record is not None and record.snapshot_id == snapshot.snapshot_id else None
            yield _commit(table, snapshot, entry, with_files=with_files)
    while record is not None:
        if record.version < oldest and record.version <= upto:
            yield _expired(record)
        record = next(records, None)
    yield TableCommit(
        version=0, time=_time(_created_ms(table)), operation=_CREATED, digest=str(table.metadata.table_uuid)
    )


def added_files(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
    """The data files that a snapshot added."""
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is ManifestContent.DATA:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if entry.status is ManifestEntryStatus.ADDED:
                    yield entry.data_file


def _commit(table: Table, snapshot: Snapshot, entry: LedgerEntry | None, *, with_files: bool) -> TableCommit:
    summary, version = snapshot.summary, snapshot.sequence_number or 0
    assert summary is not None, "format version 2 demands it"
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


def _expired(record: LedgerRecord) -> TableCommit:
    """A commit of Penstock whose snapshot has expired."""
    entry = record.entry()
    return TableCommit(
        version=record.version,
        time=_time(record.time_ms),
        operation=_EXPIRED,
        entry=entry,
        transactions=_cursors(entry),
        digest=str(record.snapshot_id),
    )


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


def _created_ms(table: Table) -> int:
    return int(table.properties.get(CREATED, table.metadata.last_updated_ms))


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
