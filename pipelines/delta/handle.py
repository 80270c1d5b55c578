"""Reads the data files, features and properties of one version of a table through deltalake."""

from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from pipelines.delta.log_segment import TableDefinition
from pipelines.layout.columns import ERROR_COLUMN
from pipelines.table.table_store import TableSnapshot

CLEANED = "penstock.cleanedBefore"
"""The property in which housekeeping announces what it is about to delete; see `cleaned_before`."""
_READABLE_FEATURES = {"timestampNtz", "vacuumProtocolCheck"}
_COLUMN_MAPPING_VERSION = 2  # the reader version with column mapping; from version 3 on a table names its features


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The size of one version of a table, from the statistics in its log.

    Args:
        rows: the number of rows.
        bytes: the bytes of the data files.
        files: the number of data files.
        bad_records: the number of rows whose value does not decode; 0 in a raw table.
    """

    rows: int = 0
    bytes: int = 0
    files: int = 0
    bad_records: int = 0

    @classmethod
    def of(cls, handle: DeltaTable) -> "TableSize":
        """The size of the handle's version. No data file is read."""
        adds = pa.table(handle.get_add_actions(flatten=True))
        nulls = f"null_count.{ERROR_COLUMN}"
        bad = pc.subtract(adds["num_records"], adds[nulls]) if nulls in adds.column_names else pa.array([], pa.int64())
        sums = [pc.sum(column).as_py() or 0 for column in (adds["num_records"], adds["size_bytes"], bad)]
        return cls(rows=sums[0], bytes=sums[1], files=adds.num_rows, bad_records=sums[2])


def file_paths(handle: DeltaTable) -> set[str]:
    """The paths of the data files of the handle's version, relative to the table."""
    return {unquote(path) for path in pa.table(handle.get_add_actions()).column("path").to_pylist()}


def other_columns(snapshot: TableSnapshot) -> list[pa.Field]:
    """The columns of a typed table that Penstock did not add."""
    schema: pa.Schema = snapshot.handle.to_pyarrow_dataset().schema
    return [schema.field(name) for name in snapshot.layout.others]


def cleaned_before(handle: DeltaTable) -> int:
    """The version before which housekeeping deletes files: those that no version from it on contains."""
    return int(handle.metadata().configuration.get(CLEANED, 0))


def unreadable_features(definition: TableDefinition, uri: str) -> str:
    """The sentence about features of a table that change what its files mean to readers; empty without one.

    With deletion vectors, for example, readers do not see all rows of a file.
    """
    features = set(definition.reader_features)
    if definition.min_reader_version == _COLUMN_MAPPING_VERSION:
        features.add("columnMapping")
    foreign = sorted(features - _READABLE_FEATURES)
    if not foreign:
        return ""
    return (
        f"the table uses the Delta feature {' and '.join(foreign)}, so its files do not show which rows readers see; "
        f"in Spark, ALTER TABLE delta.`{uri}` DROP FEATURE {foreign[0]} writes its files again without it"
    )
