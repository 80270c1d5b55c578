"""Writes one snapshot of an Iceberg table: files, the entry and new columns, in one request to the catalog.

pyiceberg's own `append` commits on top of any newer snapshot, so that two loads of the same offsets both land. And its
transactions delete the manifest list of a snapshot that has landed, if a proxy has sent the request twice and the
second answer is 409. So this module builds the request itself, and sends it once.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from pipelines.iceberg.open_version import IcebergVersion
from pipelines.iceberg.snapshots import COMMIT, newest_snapshot
from pipelines.iceberg.stored_ledger import LedgerRecord, StoredLedger
from pipelines.ledger.ledger import LedgerEntry

TAG = "penstock"
"""The tag on Penstock's newest snapshot. No expiry of snapshots removes it, and no two loads can both move it."""
_COMPRESSION: Final = "deflate"
_MANIFESTS_MERGED = 50
"""How many small manifests are merged."""
_SMALL_MANIFEST = 1024 * 1024
_PLACES = {field.name: number for number, field in enumerate(DATA_FILE_TYPE[2].fields)}
"""The places of the fields in the description of a data file."""
_NEWEST_SCHEMA = -1  # in SetCurrentSchemaUpdate: the one that was added last


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChange:
    """The changes that a new snapshot makes.

    Args:
        added: the new data files.
        removed: the paths of data files that are not in the table any more, as its manifests have them.
        keeps_rows: whether the added files have the rows of the removed ones, as after a merge of small files.
        drops_deletes: whether files of other engines that say which rows are deleted are removed, too.
        entry: the ledger entry that is committed with it; None for housekeeping.
        summary: what the snapshot says of itself, besides the numbers of files and rows.
        properties: properties of the table that are set in the same request.
        schema: the columns of the table, if they change.
    """

    added: Sequence[DataFile] = ()
    removed: Collection[str] = ()
    keeps_rows: bool = False
    drops_deletes: bool = False
    entry: LedgerEntry | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    schema: Schema | None = None


def commit_snapshot(opened: IcebergVersion, change: SnapshotChange) -> Snapshot:
    """Write a snapshot on top of an opened version; returns it.

    Raises:
        ValueError: a file to remove is not in the table.
        Exception: any error of the catalog or the store. Only the table itself shows whether the snapshot landed.
    """
    draft = _SnapshotDraft.of(opened, change)
    manifests = [*draft.kept_manifests(), *draft.added_manifest()]
    snapshot = draft.snapshot(manifests)
    updates = tuple(draft.updates(snapshot))
    opened.table.catalog.commit_table(opened.table, tuple(draft.requirements()), updates)
    return snapshot


@dataclass(slots=True, kw_only=True)
class _SnapshotDraft:
    """A snapshot while it is written.

    `counts` collects the numbers of files and rows for its summary.
    """

    opened: IcebergVersion
    change: SnapshotChange
    snapshot_id: int
    counts: SnapshotSummaryCollector
    name: str
    _manifests_written: int = 0

    @classmethod
    def of(cls, opened: IcebergVersion, change: SnapshotChange) -> "_SnapshotDraft":
        """An empty draft on top of the newest snapshot that the version's table knows."""
        return cls(
            opened=opened,
            change=change,
            snapshot_id=opened.table.metadata.new_snapshot_id(),
            counts=SnapshotSummaryCollector(),
            name=str(uuid.uuid4()),
        )

    @property
    def table(self) -> Table:
        """The table with the metadata on which the commit was planned."""
        return self.opened.table

    @property
    def parent(self) -> Snapshot | None:
        """The snapshot on which the commit was planned; None for a table without any."""
        return newest_snapshot(self.table)

    def kept_manifests(self) -> Iterator[ManifestFile]:
        """The manifests of the parent. Those with removed files are written again without them.

        Many small ones become one: whoever opens the table reads all of them.

        Raises:
            ValueError: the parent does not have a removed file.
        """
        left = set(self.change.removed)
        for group in _groups(self.parent.manifests(self.table.io) if self.parent else []):
            if group[0].content is ManifestContent.DELETES and self.change.drops_deletes:
                continue
            entries = list(self._entries(group)) if left or len(group) > 1 else []
            removed = left.intersection(entry.data_file.file_path for entry in entries)
            left -= removed
            yield self._written_again(group[0], entries, removed) if removed or len(group) > 1 else group[0]
        if left:
            raise ValueError(f"the table does not have the data file {min(left)}")

    def _entries(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntry]:
        for manifest in manifests:
            yield from manifest.fetch_manifest_entry(self.table.io, discard_deleted=True)

    def _written_again(
        self, manifest: ManifestFile, entries: Sequence[ManifestEntry], removed: Collection[str]
    ) -> ManifestFile:
        """A manifest like this one, in which the files with the removed paths are deleted."""
        metadata = self.table.metadata
        spec = metadata.specs()[manifest.partition_spec_id]
        with self._manifest_writer(spec) as writer:
            for entry in entries:
                if entry.data_file.file_path in removed:
                    self.counts.remove_file(entry.data_file, metadata.schema(), spec)
                    for name in ("lower_bounds", "upper_bounds"):  # no reader needs them, and the rows may be erased
                        entry.data_file[_PLACES[name]] = None
                    writer.delete(entry)
                else:
                    writer.existing(entry)
        return writer.to_manifest_file()

    def added_manifest(self) -> Iterator[ManifestFile]:
        """The manifest with the added files; none if there are none."""
        if not self.change.added:
            return
        metadata = self.table.metadata
        with self._manifest_writer(metadata.spec()) as writer:
            for file in self.change.added:
                entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=self.snapshot_id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=file,
                )
                writer.add_entry(entry)
                self.counts.add_file(file, metadata.schema(), metadata.spec())
        yield writer.to_manifest_file()

    def _manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        self._manifests_written += 1
        path = self._metadata_path(f"{self.name}-m{self._manifests_written}.avro")
        schema = self.change.schema or self.table.metadata.schema()
        return write_manifest(2, spec, schema, self.table.io.new_output(path), self.snapshot_id, _COMPRESSION)

    def _metadata_path(self, name: str) -> str:
        return self.table.location_provider().new_metadata_location(name)

    def snapshot(self, manifests: Sequence[ManifestFile]) -> Snapshot:
        """Write the manifest list; returns the snapshot."""
        metadata, parent = self.table.metadata, self.parent
        parent_id = parent.snapshot_id if parent else None
        sequence = metadata.next_sequence_number()
        path = self._metadata_path(f"snap-{self.snapshot_id}-0-{self.name}.avro")
        output = self.table.io.new_output(path)
        with write_manifest_list(2, output, self.snapshot_id, parent_id, sequence, _COMPRESSION) as writer:
            writer.add_manifests(list(manifests))
        operation = Operation.OVERWRITE if self.change.removed else Operation.APPEND
        own = {COMMIT: self.change.entry.commit} if self.change.entry else {}
        summary = Summary(operation=operation, **self.counts.build(), **self.change.summary, **own)
        totals = update_snapshot_summaries(summary, parent.summary if parent else None)
        if self.change.keeps_rows:
            totals = Summary(operation=Operation.REPLACE, **totals.additional_properties)
        return Snapshot.model_validate(
            {
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": parent_id,
                "manifest-list": path,
                "sequence-number": sequence,
                "summary": totals,
                "schema-id": None if self.change.schema else metadata.current_schema_id,
            }
        )

    def requirements(self) -> Iterator[TableRequirement]:
        """The requirements of the request: if one is not met when it arrives, the catalog refuses it."""
        metadata = self.table.metadata
        tagged = metadata.refs.get(TAG)
        yield from unchanged(self.table)
        if tagged:  # a catalog can refuse to look for a tag of a table without snapshots
            yield _on_snapshot(TAG, metadata.snapshot_by_id(tagged.snapshot_id))
        yield AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id})

    def updates(self, snapshot: Snapshot) -> Iterator[TableUpdate]:
        """The changes of the table's metadata, in the order in which the catalog does them."""
        if self.change.schema:
            yield AddSchemaUpdate(schema=self.change.schema)
            yield SetCurrentSchemaUpdate.model_validate({"schema-id": _NEWEST_SCHEMA})
        if properties := {**self.change.properties, **self._ledger(snapshot)}:
            yield SetPropertiesUpdate(updates=properties)
        yield AddSnapshotUpdate(snapshot=snapshot)
        refs = [(MAIN_BRANCH, SnapshotRefType.BRANCH), *([(TAG, SnapshotRefType.TAG)] if self.change.entry else [])]
        for name, kind in refs:
            fields = {"ref-name": name, "type": kind, "snapshot-id": snapshot.snapshot_id}
            yield SetSnapshotRefUpdate.model_validate(fields)

    def _ledger(self, snapshot: Snapshot) -> Mapping[str, str]:
        """The property with the ledger, if the commit has an entry."""
        if self.change.entry is None:
            return {}
        record = LedgerRecord(
            version=snapshot.sequence_number or 0,
            snapshot_id=snapshot.snapshot_id,
            time_ms=snapshot.timestamp_ms,
            text=self.change.entry.to_json(),
        )
        ledger = StoredLedger.of(self.table.properties)
        return ledger.plus(record, self.opened.uri, self.opened.options)


def _groups(manifests: Sequence[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """The manifests, each one alone; many small ones with data files of one partition spec are together."""
    small: dict[int, list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.manifest_length < _SMALL_MANIFEST:
            small[manifest.partition_spec_id].append(manifest)
        else:
            yield [manifest]
    for group in small.values():
        yield from [group] if len(group) >= _MANIFESTS_MERGED else ([manifest] for manifest in group)


def unchanged(table: Table) -> tuple[TableRequirement, ...]:
    """The requirements that it is still the same table, and that nobody has committed since it was read."""
    return AssertTableUUID(uuid=table.metadata.table_uuid), _on_snapshot(MAIN_BRANCH, newest_snapshot(table))


def _on_snapshot(ref: str, snapshot: Snapshot | None) -> AssertRefSnapshotId:
    """The requirement that a branch or a tag names this snapshot; None demands that there is no such branch or tag."""
    return AssertRefSnapshotId.model_validate({"ref": ref, "snapshot-id": snapshot.snapshot_id if snapshot else None})
