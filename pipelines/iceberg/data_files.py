"""Describes data files for the manifests of a table: sizes, rows, the value of the partition, and bounds of columns."""

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import date_str_to_days, date_to_days, datetime_to_micros, days_to_date

from pipelines.layout.layout import NO_DAY, TableLayout
from pipelines.ledger.slice_facts import DataFile


def manifest_file(
    location: str, file: DataFile, schema: Schema, spec: PartitionSpec, layout: TableLayout
) -> ManifestDataFile:
    """A data file of a commit, for the manifest. Each column that has an order gets its bounds: readers need them."""
    stats: Mapping[str, Any] = file.stats
    ids = {field.name: field for field in schema.fields}
    nulls: Mapping[str, int] = stats.get("nullCount", {})
    day = partition_date(file.path, layout)
    described = ManifestDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{location}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(None if day is None else date_to_days(day)),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        column_sizes={},
        value_counts={ids[name].field_id: file.rows for name in nulls},
        null_value_counts={ids[name].field_id: count for name, count in nulls.items()},
        nan_value_counts={},
        lower_bounds=dict(_bounds(stats.get("minValues", {}), ids)),
        upper_bounds=dict(_bounds(stats.get("maxValues", {}), ids)),
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    described.spec_id = spec.spec_id
    return described


def _bounds(values: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[tuple[int, bytes]]:
    for name, value in values.items():
        kind = fields[name].field_type
        yield fields[name].field_id, to_bytes(kind, _stored(kind, value))


def _stored(kind: PrimitiveType, value: Any) -> Any:
    """A bound of the ledger's statistics, which are JSON values, as Iceberg stores it."""
    if isinstance(kind, DateType):
        return date_str_to_days(value)
    if isinstance(kind, TimestampType | TimestamptzType):
        return datetime_to_micros(datetime.fromisoformat(value))
    if isinstance(kind, DecimalType):
        return Decimal(value)
    return float(value) if isinstance(kind, FloatType | DoubleType) else value  # JSON has texts for infinity


def bound(kind: IcebergType, stored: bytes) -> Any:
    """A bound in a manifest as a value of Python; dates and times are those of the datetime module."""
    assert isinstance(kind, PrimitiveType), "only such columns have bounds"
    value: Any = from_bytes(kind, stored)
    if isinstance(kind, DateType) and isinstance(value, int):
        return days_to_date(value)
    return value


def partition_date(path: str, layout: TableLayout) -> date | None:
    """The value of the partition column, from the name of a file's folder; None for rows without a day."""
    prefix = f"{layout.partition_column}="
    [value] = [part.removeprefix(prefix) for part in path.split("/") if part.startswith(prefix)]
    return None if value == NO_DAY else date.fromisoformat(unquote(value))
