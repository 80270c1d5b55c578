"""The changes that a ledger entry makes to an Iceberg table: the files of its snapshot, and the columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema

from pipelines.iceberg.columns import column_properties, iceberg_schema
from pipelines.iceberg.data_files import manifest_file
from pipelines.iceberg.open_version import IcebergVersion
from pipelines.iceberg.replacement import files_with, replaced_files
from pipelines.iceberg.snapshot_commit import SnapshotChange
from pipelines.layout.delta_schema import DeltaField, delta_fields
from pipelines.layout.layout import TableLayout
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import TAKING_OUT, CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from resources.errors import LakeRefused
from resources.failpoints import failpoint

_REPLACING = {CommitKind.REPLAY, CommitKind.CUT, CommitKind.REDECODE}
_OF_ALL_FILES = {CommitKind.CONVERT, CommitKind.REWRITE}
"""The commits that replace all files of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The columns of a table after a commit; `fields` is None if they stay."""

    layout: TableLayout
    schema: Schema
    fields: Sequence[DeltaField] | None = None

    @classmethod
    def after(cls, opened: IcebergVersion, entry: LedgerEntry) -> "_Columns":
        """The columns after the commit of an entry."""
        layout = opened.layout.converted() if entry.kind is CommitKind.CONVERT else opened.layout
        layout = layout.with_columns(entry.columns)
        present = {field["name"]: field for field in opened.fields()}
        needed = delta_fields(layout.table_schema) if entry.kind is CommitKind.CONVERT else entry.columns
        fields = present | {field["name"]: field for field in needed}
        if fields == present:
            return cls(layout=layout, schema=opened.iceberg_schema)
        failpoint("columns changed")
        if entry.kind is CommitKind.CONVERT:  # the columns of a raw table are no columns of a typed one
            fields = {field["name"]: field for field in needed}
        last_id = opened.table.metadata.last_column_id
        schema = iceberg_schema(fields.values(), opened.iceberg_schema, last_id)
        return cls(layout=layout, schema=schema, fields=list(fields.values()))

    def properties(self) -> Mapping[str, str]:
        """The table properties that belong to them, if they change."""
        return {} if self.fields is None else column_properties(self.schema, self.fields)


def change_of(
    opened: IcebergVersion,
    entry: LedgerEntry,
    new_slices: Sequence[SliceFacts],
    replaced: Sequence[CommittedRange],
    target: IcebergVersion | None,
) -> SnapshotChange:
    """The snapshot of an entry on top of a version. `target` is the version that a rewind brings back.

    Raises:
        LakeRefused: another engine has deleted rows by delete files.
    """
    if target is not None:
        return _rewound(opened, entry, target)
    if opened.has_deletes:
        raise LakeRefused(
            f"another engine has deleted rows of the table {opened.uri} by delete files (merge on read), which "
            "Penstock does not read: `penstock rewind` goes back to the version before that"
        )
    columns = _Columns.after(opened, entry)
    files = [file for facts in new_slices for file in facts.files]
    removed = {path for committed in replaced for path in committed.paths} if entry.kind in TAKING_OUT else set[str]()
    if entry.kind in _OF_ALL_FILES:
        removed = {opened.path(file) for file in opened.data_files}
    ranges = [*replaced, *(facts.range for facts in new_slices if facts.files)]
    if entry.kind in _REPLACING and ranges:
        removed = set(files_with(opened, ranges))
        files = replaced_files(opened, removed, ranges, new_slices, columns.layout)
    location = opened.table.location()
    return SnapshotChange(
        added=[manifest_file(location, file, columns.schema, opened.table.spec(), columns.layout) for file in files],
        removed={f"{location}/{path}" for path in removed},
        entry=entry,
        properties=columns.properties(),
        schema=columns.schema if columns.fields is not None else None,
    )


def _rewound(opened: IcebergVersion, entry: LedgerEntry, target: IcebergVersion) -> SnapshotChange:
    """The change that brings back the files of a version. Columns stay: the rows have no values in later ones."""
    now, then = ({file.file_path: file for file in version.data_files} for version in (opened, target))
    return SnapshotChange(
        added=[file for path, file in then.items() if path not in now],
        removed=now.keys() - then.keys(),
        drops_deletes=True,
        entry=entry,
    )
