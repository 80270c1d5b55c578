"""One version of an Iceberg table, open for reading."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import PrimitiveType
from pyiceberg.utils.datetime import days_to_date

from pipelines.iceberg.columns import COLUMNS
from pipelines.iceberg.data_files import bound
from pipelines.layout.delta_schema import DeltaField
from pipelines.layout.layout import TableLayout
from pipelines.table.open_table import OpenTable
from pipelines.table.table_store import TableSnapshot
from resources.stores.lake import filesystem

if TYPE_CHECKING:  # it imports pandas
    import pyarrow.dataset as pads


class IcebergVersion(OpenTable):
    """A snapshot of a table; None stands for the table before its first one."""

    def __init__(self, table: Table, snapshot: Snapshot | None, uri: str, options: Mapping[str, str]) -> None:
        self.table, self.snapshot = table, snapshot
        self._uri, self.options = uri, options

    @staticmethod
    def of(snapshot: TableSnapshot) -> "IcebergVersion":
        """The version of a snapshot that an Iceberg table gave."""
        return IcebergVersion.of_opened(snapshot.opened)

    @staticmethod
    def of_opened(opened: OpenTable) -> "IcebergVersion":
        """The version that an Iceberg table has opened."""
        assert isinstance(opened, IcebergVersion)
        return opened

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def version(self) -> int:
        return (self.snapshot.sequence_number or 0) if self.snapshot else 0

    @cached_property
    def iceberg_schema(self) -> Schema:
        """The columns of the version with their field ids."""
        own = self.snapshot.schema_id if self.snapshot else None
        return self.table.schema() if own is None else self.table.schemas()[own]

    def fields(self) -> Sequence[DeltaField]:
        described = {field["name"]: field for field in json.loads(self.table.properties[COLUMNS])}
        names = [field.name for field in self.iceberg_schema.fields]
        return [
            described.get(name) or {"name": name, "type": "unknown", "nullable": True, "metadata": {}} for name in names
        ]

    @cached_property
    def layout(self) -> TableLayout:
        return TableLayout.of_delta(json.dumps({"fields": list(self.fields())}))

    def schema(self) -> pa.Schema:
        own = {column.name: column for column in self.layout.table_schema}
        stored = schema_to_pyarrow(self.iceberg_schema, include_field_ids=False)
        return pa.schema([own.get(column.name, column) for column in stored])

    @cached_property
    def data_files(self) -> Sequence[DataFile]:
        """The data files, as the manifests describe them."""
        return list(self._data_files())

    def _data_files(self) -> Iterator[DataFile]:
        io = self.table.io
        for manifest in self.manifests:
            if manifest.content is ManifestContent.DATA:
                yield from (entry.data_file for entry in manifest.fetch_manifest_entry(io, discard_deleted=True))

    @cached_property
    def manifests(self) -> Sequence[ManifestFile]:
        """The manifests of the version."""
        return self.snapshot.manifests(self.table.io) if self.snapshot else []

    @property
    def has_deletes(self) -> bool:
        """Whether another engine has deleted rows by files that only say which rows these are."""
        return any(manifest.content is ManifestContent.DELETES for manifest in self.manifests)

    def path(self, file: DataFile) -> str:
        """The path of a data file, relative to the table."""
        return file.file_path.removeprefix(f"{self.table.location()}/")

    def files(self) -> pa.Table:
        rows = [self._described(file) for file in self.data_files]
        own = {column.name: column.type for column in self.schema()}
        day = self.layout.partition_column
        columns = {
            "path": pa.string(),
            "size_bytes": pa.int64(),
            "num_records": pa.int64(),
            f"partition.{day}": own[day],
        }
        for name in dict.fromkeys(key for row in rows for key in row if key not in columns):
            part, _, column = name.partition(".")
            columns[name] = pa.int64() if part == "null_count" else own[column]
        return pa.Table.from_pylist(rows, schema=pa.schema(columns))

    def _described(self, file: DataFile) -> Mapping[str, Any]:
        ids = {
            field.field_id: field for field in self.iceberg_schema.fields if isinstance(field.field_type, PrimitiveType)
        }
        described: dict[str, Any] = {
            "path": self.path(file),
            "size_bytes": file.file_size_in_bytes,
            "num_records": file.record_count,
            f"partition.{self.layout.partition_column}": _day(file),
        }
        # Other programs also describe members of lists and maps, which are no columns.
        for part, values in (("min", file.lower_bounds or {}), ("max", file.upper_bounds or {})):
            own = {number: stored for number, stored in values.items() if number in ids}
            described |= {f"{part}.{ids[number].name}": bound(ids[number].field_type, own[number]) for number in own}
        nulls = file.null_value_counts or {}
        described |= {f"null_count.{ids[number].name}": count for number, count in nulls.items() if number in ids}
        return described

    def dataset(self) -> "pads.FileSystemDataset":
        import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas

        store = filesystem(self._uri, self.options)
        format_, column = pads.ParquetFileFormat(), pads.field(self.layout.partition_column)
        fragments = [
            format_.make_fragment(self.path(file), filesystem=store, partition_expression=_is_day(column, _day(file)))
            for file in self.data_files
        ]
        return pads.FileSystemDataset(fragments, self.schema(), format_, store)

    def count(self) -> int:
        return sum(file.record_count for file in self.data_files)


def _day(file: DataFile) -> Any:
    """The value of the partition column: a date, or None."""
    value = file.partition[0]
    return days_to_date(value) if isinstance(value, int) else value


def _is_day(column: "pads.Expression", day: Any) -> "pads.Expression":
    return column.is_null() if day is None else column == pa.scalar(day, pa.date32())
