"""Reads the rows of an increment: only from files that can hold some of them, in batches, exactly these rows.

The statistics in the log say which partitions and offsets a file can hold. Inside a file, Parquet's statistics skip row
groups. The rows that remain are compared one by one with the spans of offsets and loading times.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from pipelines.increments.difference import LoadedSpan, Spans
from pipelines.increments.source_columns import SOURCE_COLUMNS
from pipelines.layout.layout import TableLayout
from pipelines.table.open_table import OpenTable
from resources.errors import OutputRefused
from resources.failpoints import failpoint
from resources.stores.lake import Lake, filesystem, lake_errors

if TYPE_CHECKING:  # it imports pandas, which takes half a second
    import pyarrow.dataset as pads

_BATCH_ROWS = 32_768
_BATCHES_AHEAD = 2
_MAX_RANGES_IN_FILTER = 32
_PLACE = ("broker", "partition", "offset", "loaded_at")

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A data file that can hold rows of the spans.

    Args:
        path: the path inside the table.
        day: the value of the partition column.
        spans: the spans of which the file can hold rows.
    """

    path: str
    day: Any
    spans: Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRows:
    """The rows of spans in one version of a table.

    Args:
        lake: the options of the table's store.
        opened: the version of the table.
        layout: its columns.
        source: the table as `cluster/topic`, for the column `_source`.
        spans: the rows to read.
        newer: a newer version of the table, whose columns the rows get; those that `opened` lacks are null.
    """

    lake: Lake
    opened: OpenTable
    layout: TableLayout
    source: str
    spans: Spans
    newer: OpenTable | None = None

    @property
    def table_schema(self) -> pa.Schema:
        """The columns of the table.

        Raises:
            OutputRefused: one of them has the name of a column of SOURCE_COLUMNS.
        """
        schema = (self.newer or self.opened).schema()
        taken = sorted(set(schema.names) & set(SOURCE_COLUMNS.names))
        if taken:
            raise OutputRefused(f"the table {self.opened.uri} has columns of its own with the name {taken[0]}")
        return schema

    def files(self) -> list[SourceFile]:
        """The files that can hold rows of the spans, in order of partition and offset."""
        if not self.spans:
            return []
        with lake_errors(self.opened.uri):
            adds = self.opened.files()
        names = [self.layout.name(name) for name in ("partition", "offset")]
        bounds = [_bound(adds, f"{edge}.{name}") for name in names for edge in ("min", "max")]
        days = adds.column(f"partition.{self.layout.partition_column}").to_pylist()
        spans_of_file: dict[int, list[LoadedSpan]] = defaultdict(list)
        for span in self.spans:
            for number in _files_with(span, *bounds):
                spans_of_file[int(number)].append(span)
        paths = adds.column("path").to_pylist()
        order = sorted(spans_of_file, key=lambda number: (bounds[0][number], bounds[2][number], paths[number]))
        return [
            SourceFile(path=paths[number], day=days[number], spans=tuple(spans_of_file[number])) for number in order
        ]

    def reader(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The rows with these columns of the table, or with all, and with those of SOURCE_COLUMNS.

        Files are opened when the reader reaches them. At most three batches are in memory at once.
        """
        schema = self.table_schema
        names = list(columns) if columns is not None else schema.names
        delivered = pa.schema([*(schema.field(name) for name in names), *SOURCE_COLUMNS])
        return pa.RecordBatchReader.from_batches(delivered, self._batches(schema, names, delivered))

    def _batches(self, schema: pa.Schema, names: Sequence[str], delivered: pa.Schema) -> Iterator[pa.RecordBatch]:
        places = [self.layout.name(name) for name in _PLACE]
        needed = list(dict.fromkeys([*names, *places]))
        with lake_errors(self.opened.uri):
            for file in self.files():
                spans = _by_partition(file.spans)
                for batch in self._scan(file, schema, needed):
                    rows = batch.filter(pa.array(_is_inside(spans, *(batch.column(name) for name in places))))
                    if rows.num_rows:
                        failpoint("increment batch read")
                        yield self._with_source(rows, names, places, delivered)

    def _scan(self, file: SourceFile, schema: pa.Schema, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas

        store = filesystem(self.opened.uri, self.lake.options)
        # A row group is read page by page, and not as a whole: it may be large.
        reading = pads.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        format_ = pads.ParquetFileFormat(default_fragment_scan_options=reading)
        dataset = _files_dataset([(file.path, file.day)], self.layout.partition_column, schema, format_, store)
        yield from dataset.to_batches(
            columns=columns,
            filter=_rough_filter(file.spans, self.layout),
            batch_size=_BATCH_ROWS,
            batch_readahead=_BATCHES_AHEAD,
        )

    def _with_source(
        self, rows: pa.RecordBatch, names: Sequence[str], places: Sequence[str], delivered: pa.Schema
    ) -> pa.RecordBatch:
        broker, partition, offset, loaded_at = (rows.column(name) for name in places)
        source = pa.repeat(self.source, rows.num_rows)
        own = [source, broker, partition, offset, loaded_at.cast(pa.int64())]
        return pa.RecordBatch.from_arrays([*(rows.column(name) for name in names), *own], schema=delivered)


def all_rows(opened: OpenTable, options: Mapping[str, str], partition_column: str) -> "pads.Dataset":
    """All rows of a version of a table. Only the column of its folders leaves files out.

    The dataset of deltalake also has the statistics of the log. It takes a column without statistics, such as a struct
    or one that was added later, for one without nulls, so conditions on nulls give wrong rows (fault U21).
    """
    import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas

    with lake_errors(opened.uri):
        adds = opened.files()
    days = adds.column(f"partition.{partition_column}").to_pylist()
    files = list(zip(adds.column("path").to_pylist(), days, strict=True))
    schema, store = opened.schema(), filesystem(opened.uri, options)
    return _files_dataset(files, partition_column, schema, pads.ParquetFileFormat(), store)


def _files_dataset(
    files: Sequence[tuple[str, Any]],
    partition_column: str,
    schema: pa.Schema,
    format_: "pads.ParquetFileFormat",
    store: pafs.FileSystem,
) -> "pads.Dataset":
    """The rows of files, each with its value of the partition column."""
    import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas

    column, kind = pc.field(partition_column), schema.field(partition_column).type

    def fragment(path: str, day: Any) -> "pads.Fragment":
        value = pa.scalar(day, kind)
        is_day = column == value if value.is_valid else column.is_null()
        return format_.make_fragment(path, filesystem=store, partition_expression=is_day)

    return pads.FileSystemDataset([fragment(path, day) for path, day in files], schema, format_, store)


def _bound(adds: pa.Table, name: str) -> IntArray:
    """The bounds of a column by file. A file without one can hold everything."""
    unknown = np.iinfo(np.int64).min if name.startswith("min.") else np.iinfo(np.int64).max
    if name not in adds.column_names:
        return np.full(adds.num_rows, unknown)
    return pc.fill_null(adds.column(name).cast(pa.int64()), unknown).to_numpy()  # type: ignore[no-any-return]


def _files_with(
    span: LoadedSpan, min_partition: IntArray, max_partition: IntArray, min_offset: IntArray, max_offset: IntArray
) -> IntArray:
    """The indexes of the files that can hold rows of the span."""
    partition = span.offsets.partition.partition
    with_partition = (min_partition <= partition) & (max_partition >= partition)
    return np.flatnonzero(with_partition & (min_offset < span.offsets.stop) & (max_offset >= span.offsets.start))


def _rough_filter(spans: Spans, layout: TableLayout) -> "pads.Expression":
    """A filter that all rows of the spans match, and that skips row groups without such rows.

    With many spans it is one range, because Arrow compares each row with each range.
    """
    partition, offset = pc.field(layout.name("partition")), pc.field(layout.name("offset"))
    if len(spans) > _MAX_RANGES_IN_FILTER:
        numbers = sorted({span.offsets.partition.partition for span in spans})
        start, stop = min(span.offsets.start for span in spans), max(span.offsets.stop for span in spans)
        return partition.isin(numbers) & (offset >= start) & (offset < stop)
    ranges = [
        (partition == span.offsets.partition.partition) & (offset >= span.offsets.start) & (offset < span.offsets.stop)
        for span in spans
    ]
    return reduce(or_, ranges)


def _keys(broker: Any, partition: Any) -> Any:
    """Two numbers as one, or two arrays as one. The broker is -1 if partitions do not belong to one."""
    return broker * 2**32 + partition


def _by_partition(spans: Spans) -> dict[int, list[tuple[int, int, IntArray]]]:
    """The first offset, the end, and the loading times of each span."""
    result = defaultdict(list)
    for span in spans:
        partition, times = span.offsets.partition, np.array(span.loaded_at_us, np.int64)
        key = _keys(-1 if partition.broker is None else partition.broker, partition.partition)
        result[key].append((span.offsets.start, span.offsets.stop, times))
    return result


def _is_inside(spans: dict[int, list[tuple[int, int, IntArray]]], *places: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether each row belongs to a span. Only spans of partitions that occur in the batch are compared.

    `places` are the columns of _PLACE.
    """
    broker, partition, offset, loaded_at = (pc.fill_null(place.cast(pa.int64()), -1).to_numpy() for place in places)
    keys, result = _keys(broker, partition), np.zeros(len(offset), np.bool_)
    for key in np.unique(keys):
        own = keys == key
        for start, stop, times in spans.get(int(key), ()):
            result |= own & (offset >= start) & (offset < stop) & np.isin(loaded_at, times)
    return result
