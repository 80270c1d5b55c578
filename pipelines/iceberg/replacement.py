"""Puts rows in the place of others: the files that have some of them are written again, in one snapshot."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from pipelines.iceberg.data_files import partition_date
from pipelines.iceberg.open_version import IcebergVersion
from pipelines.layout.event_days import EventDays
from pipelines.layout.layout import TableLayout
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table.row_files import write_row_files
from pipelines.table.row_filter import arrow_filter
from resources.stores.lake import filesystem


def files_with(opened: IcebergVersion, ranges: Sequence[CommittedRange]) -> list[str]:
    """The paths of the data files that have rows of these ranges."""
    rows, dataset = _filter(opened, ranges), opened.dataset()
    return [file.path for file in dataset.get_fragments() if _of(dataset, [file]).count_rows(filter=rows)]


def _of(dataset: pads.FileSystemDataset, files: Sequence[pads.Fragment]) -> pads.FileSystemDataset:
    """Some files of a dataset. They have all columns of it, also those that they lack."""
    return pads.FileSystemDataset(files, dataset.schema, dataset.format, dataset.filesystem)


def replaced_files(
    opened: IcebergVersion,
    paths: Collection[str],
    ranges: Sequence[CommittedRange],
    new_slices: Sequence[SliceFacts],
    layout: TableLayout,
) -> list[DataFile]:
    """Write the rows of these files that are not of the ranges, and the rows of the new slices, into new files."""
    kept = _rows_of(opened, paths, ~_filter(opened, ranges))
    staged = _staged(new_slices, layout, filesystem(opened.uri, opened.options))
    return _written(opened, chain(kept, staged), layout)


def merged_files(opened: IcebergVersion, paths: Collection[str]) -> list[DataFile]:
    """Write the rows of these files, which have the same value of the partition column, into one new file."""
    return _written(opened, _rows_of(opened, paths), opened.layout)


def _written(opened: IcebergVersion, batches: Iterable[pa.RecordBatch], layout: TableLayout) -> list[DataFile]:
    schema = pa.schema([*layout.file_schema, *_others(opened), layout.partition_field])
    complete = (_with_columns(batch, schema) for batch in batches)
    return write_row_files(complete, layout, opened.uri, opened.options)


def _filter(opened: IcebergVersion, ranges: Sequence[CommittedRange]) -> pc.Expression:
    return reduce(or_, (arrow_filter(committed, opened.layout) for committed in ranges))


def _rows_of(
    opened: IcebergVersion, paths: Collection[str], rows: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    dataset, wanted = opened.dataset(), set(paths)
    files = [file for file in dataset.get_fragments() if file.path in wanted]
    yield from _of(dataset, files).to_batches(filter=rows)


def _others(opened: IcebergVersion) -> list[pa.Field]:
    schema = opened.schema()
    return [schema.field(name) for name in opened.layout.others]


def _staged(slices: Sequence[SliceFacts], layout: TableLayout, store: object) -> Iterator[pa.RecordBatch]:
    """The rows of new slices, with the partition column: the date in the name of the folder, or the day of each row."""
    for slice_range, path in ((facts.range, file.path) for facts in slices for file in facts.files):
        days = EventDays(layout, slice_range.loaded_at_us) if layout.is_by_day else None
        for batch in pads.dataset([path], schema=layout.file_schema, filesystem=store, format="parquet").to_batches():
            day = pa.scalar(partition_date(path, layout), pa.date32())
            column = days.column(batch) if days else pa.repeat(day, batch.num_rows)
            yield batch.append_column(layout.partition_field, column)


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with all columns, in order; those that it lacks are null."""
    columns = [
        batch.column(column.name).cast(column.type)
        if column.name in batch.schema.names
        else pa.nulls(batch.num_rows, column.type)
        for column in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
