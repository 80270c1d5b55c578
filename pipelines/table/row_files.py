"""Writes rows into new data files of a table, one for each value of the partition column, with their statistics."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.layout.file_statistics import column_stats
from pipelines.layout.layout import NO_DAY, TableLayout, types_with_order
from pipelines.layout.personal import is_personal
from pipelines.ledger.slice_facts import DataFile
from resources.stores import durable
from resources.stores.lake import filesystem

_ROWS_AT_ONCE = 65_536


def write_row_files(
    batches: Iterable[pa.RecordBatch], layout: TableLayout, uri: str, options: Mapping[str, str]
) -> list[DataFile]:
    """Write the rows, which have the partition column too, into files that no version names yet.

    Raises:
        OSError: the store does not answer, or the disk is full.
    """
    with ExitStack() as open_files:
        files: dict[Any, _RowFile] = {}
        for batch in batches:
            for day, rows in _by_day(batch, layout.partition_column):
                if day not in files:
                    files[day] = open_files.enter_context(_RowFile(day, rows.schema, layout, uri, options))
                files[day].write(rows)
    return [file.written() for file in files.values()]


def _by_day(batch: pa.RecordBatch, column: str) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """The rows of each value of the partition column, without this column."""
    days, rows = batch.column(column), batch.drop_columns([column])
    for day in pc.unique(days).to_pylist():
        is_day = days.is_null() if day is None else pc.equal(days, pa.scalar(day, pa.date32()))
        chosen = rows.filter(is_day)
        if chosen.num_rows:
            yield day, chosen


class _RowFile:
    """A data file that is being written."""

    def __init__(self, day: Any, schema: pa.Schema, layout: TableLayout, uri: str, options: Mapping[str, str]) -> None:
        self._uri, self._store = uri, filesystem(uri, options)
        folder = f"{layout.partition_column}={NO_DAY if day is None else day}"
        self._store.create_dir(folder, recursive=True)
        self._path = f"{folder}/rows-{uuid.uuid4().hex}.parquet"
        own = {column.name: column for column in layout.values}
        self._ordered = types_with_order(schema)
        self._nulls = {name: 0 for name in self._ordered if name in own and is_personal(own[name])}
        self._footers: list[pq.FileMetaData] = []
        self._stream = self._store.open_output_stream(self._path)
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in layout.dictionary if name in schema.names],
            write_statistics=[name for name in self._ordered if name not in self._nulls],
            write_page_checksum=True,
            metadata_collector=self._footers,
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Write some rows."""
        self._writer.write_batch(rows, row_group_size=_ROWS_AT_ONCE)
        for name in self._nulls:
            self._nulls[name] += rows.column(name).null_count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._stream.close()

    def written(self) -> DataFile:
        """The closed file with its statistics, on disk."""
        durable.sync_file(self._uri, self._path)
        [footer] = self._footers
        size = self._store.get_file_info(self._path).size
        stats = column_stats(footer, self._ordered, self._nulls)
        return DataFile(path=self._path, size=size, rows=footer.num_rows, stats=stats)
