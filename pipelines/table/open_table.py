"""The interface of one version of a table that is open for reading: its columns, its data files and its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout.columns import ERROR_COLUMN
from pipelines.layout.delta_schema import DeltaField
from pipelines.layout.layout import TableLayout

if TYPE_CHECKING:  # it imports pandas, which takes half a second
    import pyarrow.dataset as pads


class OpenTable(Protocol):
    """One version of a table.

    It always gives the columns, files and rows of this version. Nothing is read before it is asked for the first time.
    Each method raises what the store raises; `lake_errors` turns that into a LoadError.
    """

    @property
    def uri(self) -> str:
        """The table's URI."""

    @property
    def version(self) -> int:
        """The number of the version."""

    @property
    def layout(self) -> TableLayout:
        """The columns that Penstock gave the table."""

    def fields(self) -> Sequence[DeltaField]:
        """All columns, as fields of Delta's schema."""

    def schema(self) -> pa.Schema:
        """All columns, as readers of the table see them."""

    def files(self) -> pa.Table:
        """The data files, one in each row, with the statistics that the table has of them.

        The columns are `path` (relative to the table), `size_bytes`, `num_records`, and for columns of the table
        `partition.NAME`, `min.NAME`, `max.NAME` and `null_count.NAME`. Without statistics, a column or a value of it is
        absent.
        """

    def dataset(self) -> "pads.FileSystemDataset":
        """The rows. Each data file is a fragment, whose path is relative to the table."""

    def count(self) -> int:
        """The number of rows."""


def file_paths(opened: OpenTable) -> set[str]:
    """The paths of the data files, relative to the table."""
    return set(opened.files().column("path").to_pylist())


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The size of one version of a table, from its statistics.

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
    def of(cls, opened: OpenTable) -> "TableSize":
        """The size of the version. No data file is read."""
        files, nulls = opened.files(), f"null_count.{ERROR_COLUMN}"
        has_nulls = nulls in files.column_names
        bad = pc.subtract(files["num_records"], files[nulls]) if has_nulls else pa.array([], pa.int64())
        sums = [pc.sum(column).as_py() or 0 for column in (files["num_records"], files["size_bytes"], bad)]
        return cls(rows=sums[0], bytes=sums[1], files=files.num_rows, bad_records=sums[2])
