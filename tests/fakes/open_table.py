"""A version of a table whose rows are in memory: all that the rooms above `table` may ask of a version."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import Schema

from pipelines.layout.delta_schema import DeltaField
from pipelines.layout.layout import RAW, TableLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOpenTable:
    """An OpenTable; `read` gives the rows of each file by its path, when they are needed."""

    read: Callable[[], Mapping[str, pa.Table]] = dict
    layout: TableLayout = RAW
    uri: str = "memory://lake/clicks"
    version: int = 0

    def schema(self) -> pa.Schema:
        """See OpenTable."""
        return next((rows.schema for rows in self.read().values()), self.layout.table_schema)

    def fields(self) -> Sequence[DeltaField]:
        """See OpenTable."""
        fields: Sequence[DeltaField] = json.loads(Schema.from_arrow(self.schema()).to_json())["fields"]
        return fields

    def files(self) -> pa.Table:
        """See OpenTable. The size of a file is the number of its rows."""
        described = [{"path": path, **dict(_statistics(rows))} for path, rows in self.read().items()]
        empty = {"path": pa.string(), "size_bytes": pa.int64(), "num_records": pa.int64()}
        return pa.Table.from_pylist(described) if described else pa.schema(empty).empty_table()

    def dataset(self) -> pads.FileSystemDataset:
        """See OpenTable."""
        format_, store = pads.ParquetFileFormat(), pafs._MockFileSystem()
        for path, rows in self.read().items():
            store.create_dir(path.rpartition("/")[0] or ".")
            pq.write_table(rows, path, filesystem=store)
        fragments = [format_.make_fragment(path, filesystem=store) for path in self.read()]
        return pads.FileSystemDataset(fragments, self.schema(), format_, store)

    def count(self) -> int:
        """See OpenTable."""
        return sum(rows.num_rows for rows in self.read().values())


def _statistics(rows: pa.Table) -> Iterator[tuple[str, Any]]:
    yield "size_bytes", rows.num_rows
    yield "num_records", rows.num_rows
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        bounds = {} if pa.types.is_nested(column.type) else pc.min_max(column).as_py()
        yield from ((f"{bound}.{name}", value) for bound, value in bounds.items())
        yield f"null_count.{name}", column.null_count
