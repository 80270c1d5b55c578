"""The live rows of a table: those of the ranges that no later commit has replaced, identified by their loading time."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.model import BrokerPartition
from pipelines.layout.layout import RAW, TableLayout
from pipelines.layout.rows import FILE_SCHEMA, RAW_TIME_COLUMN, without_empty_lists
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import TopicIdentity
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.stores.lake import lake_errors

if TYPE_CHECKING:  # it imports pandas, which takes half a second of each run of Dagster
    import pyarrow.dataset as pads

_BATCH_ROWS = 65_536
_BATCHES_AHEAD = 2
_LATER_COLUMNS = pa.schema([FILE_SCHEMA.field(RAW_TIME_COLUMN)])

OffsetArray = npt.NDArray[np.int64]


class TableRows:
    """The rows of one incarnation of a topic, in one version of its table, without those of the files `without`.

    `ranges` are the live ranges by partition, in order of offset.
    """

    def __init__(
        self, table: TableStore, snapshot: TableSnapshot, topic: TopicIdentity, *, without: Collection[str] = ()
    ) -> None:
        ranges = ranges_of(table.entries(snapshot), topic)
        self.ranges: Mapping[BrokerPartition, Sequence[CommittedRange]] = {
            partition: list(group) for partition, group in groupby(ranges, key=lambda committed: committed.partition)
        }
        self._files = snapshot.opened.dataset()
        readable = [fragment for fragment in self._files.get_fragments() if fragment.path not in without]
        self._layout = snapshot.layout
        self._by_number = _by_partition_number(snapshot, readable)
        self._uri = table.uri

    def of(self, partition: BrokerPartition) -> "LiveRows":
        """The rows of one partition. Only the files that may have some are read, because partitions can be many."""
        own, of_several = self._by_number.get(partition.partition, ()), self._by_number.get(None, ())
        files = _with_files(self._files, [*own, *of_several], self._files.schema)
        return LiveRows(files, self.ranges.get(partition, ()), uri=self._uri, layout=self._layout)


def _with_files(
    table: "pads.FileSystemDataset", files: "Sequence[pads.Fragment]", schema: pa.Schema
) -> "pads.FileSystemDataset":
    """The rows of these files of a table, with the columns of `schema`."""
    return type(table)(files, schema, table.format, table.filesystem)


def _by_partition_number(
    snapshot: TableSnapshot, fragments: "Sequence[pads.Fragment]"
) -> "Mapping[int | None, Sequence[pads.Fragment]]":
    """The files of the table by partition number; under None, those that may have rows of several partitions."""
    adds, name = snapshot.opened.files(), snapshot.layout.name("partition")
    known = {"path", f"min.{name}", f"max.{name}"} & set(adds.column_names)
    numbers_by_path = {
        add["path"]: add.get(f"min.{name}") if add.get(f"min.{name}") == add.get(f"max.{name}") else None
        for add in adds.select(list(known)).to_pylist()
    }
    files: dict[int | None, list[pads.Fragment]] = defaultdict(list)
    for fragment in fragments:
        files[numbers_by_path.get(fragment.path)].append(fragment)
    return files


class LiveRows:
    """The rows of a partition with these live `ranges`, which are in order of offset and do not overlap.

    Only the files of the table that may hold such rows are opened. They are read in batches, so the memory is bounded
    however long a range is.
    """

    def __init__(
        self, table: "pads.FileSystemDataset", ranges: Sequence[CommittedRange], *, uri: str, layout: TableLayout = RAW
    ) -> None:
        self.layout = layout
        self._offset = layout.name("offset")
        self._ranges = [committed for committed in ranges if committed.offsets.size > 0]
        self._starts = np.array([committed.offsets.start for committed in self._ranges], np.int64)
        self._stops = np.array([committed.offsets.stop for committed in self._ranges], np.int64)
        self._loaded_us = np.array([committed.loaded_at_us for committed in self._ranges], np.int64)
        self._uri = uri
        self._filter = self._filter_of_ranges()
        # Tables of older versions may lack columns; the dataset gives null for a column that a file lacks.
        schema = table.schema if layout.is_typed else pa.unify_schemas([table.schema, _LATER_COLUMNS])
        fragments = list(table.get_fragments(filter=self._filter))
        self._files = _with_files(table, fragments, schema)

    def _filter_of_ranges(self) -> pc.Expression:
        """Matches the rows of the partition from the first range's start to the last one's stop."""
        if not self._ranges:
            return pc.scalar(value=False)
        partition = self._ranges[0].partition
        offsets = self._between(self._ranges[0].offsets.start, self._ranges[-1].offsets.stop)
        matches = (self._field("partition") == partition.partition) & offsets
        return matches if partition.broker is None else matches & (self._field("broker") == partition.broker)

    def _field(self, name: str) -> pc.Expression:
        return pc.field(self.layout.name(name))

    def _between(self, start: int, stop: int) -> pc.Expression:
        offset = self._field("offset")
        return (offset >= start) & (offset < stop)

    def between(
        self, start: int, stop: int, columns: Sequence[str] = (), also: pc.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows with offsets `[start, stop)`, in no particular order, with `offset`, `inner` and the `columns`.

        Rows of older versions are given as this version writes them.

        Args:
            start: the first offset.
            stop: the offset after the last.
            columns: names of columns of the table's files.
            also: a further filter.

        Raises:
            LakeUnavailable: a file cannot be read.
        """
        filter_ = self._filter & self._between(start, stop)
        names = [self.layout.name("offset"), self.layout.name("inner"), *columns]
        schema = pa.schema([self.layout.file_schema.field(name) for name in names])
        with lake_errors(self._uri):
            for batch in self._files.to_batches(
                columns=[*names, self.layout.name("loaded_at")],
                filter=filter_ if also is None else filter_ & also,
                batch_size=_BATCH_ROWS,
                batch_readahead=_BATCHES_AHEAD,
                fragment_readahead=1,
            ):
                live = self._live(batch).select(names)
                if live.num_rows:
                    # Delta names the elements of lists differently.
                    yield _as_written_now(live.cast(schema), self.layout.name("headers"))

    def counts(self, start: int, stop: int) -> list[tuple[CommittedRange, int]]:
        """The ranges that overlap `[start, stop)`, and the number of rows in all of each range."""
        first, last = bisect_right(self._stops, start), bisect_left(self._starts, stop)
        ranges = self._ranges[first:last]
        rows = np.zeros(len(ranges), np.int64)
        for batch in self.between(ranges[0].offsets.start, ranges[-1].offsets.stop) if ranges else ():
            indexes = np.searchsorted(self._starts[first:last], numbers(batch.column(self._offset)), side="right") - 1
            rows += np.bincount(indexes, minlength=len(ranges))
        return list(zip(ranges, rows.tolist(), strict=True))

    def first_since(self, time_ms: int, *, below: int) -> int | None:
        """The first offset below `below` whose row has that time, a later one, or none."""
        timestamp = self._field("timestamp")
        since = pa.scalar(time_ms * 1000, FILE_SCHEMA.field("timestamp").type)
        batches = self.between(0, below, also=(timestamp >= since) | timestamp.is_null())
        return min((int(pc.min(batch.column(self._offset)).as_py()) for batch in batches), default=None)

    def start_before(self, offset: int) -> int:
        """The last offset, not above `offset`, at which a row or a range is known to start."""
        starts = (committed.offsets.start for committed in self._ranges)
        range_start = max((start for start in starts if start <= offset), default=offset)
        batches = self.between(range_start, offset + 1)
        return max((int(pc.max(batch.column(self._offset)).as_py()) for batch in batches), default=range_start)

    def start_after(self, offset: int) -> int:
        """The first offset, not below `offset`, at which a row is known to start or a range to end."""
        stops = (committed.offsets.stop for committed in self._ranges)
        range_stop = min((stop for stop in stops if offset <= stop), default=offset)
        batches = self.between(offset, range_stop)
        return min((int(pc.min(batch.column(self._offset)).as_py()) for batch in batches), default=range_stop)

    def _live(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that belong to a live range: they have the loading time of the range with their offset."""
        offsets, loaded_us = numbers(batch.column(self._offset)), numbers(batch.column(self.layout.name("loaded_at")))
        indexes = np.searchsorted(self._starts, offsets, side="right") - 1
        live = (indexes >= 0) & (offsets < self._stops[indexes]) & (loaded_us == self._loaded_us[indexes])
        return batch if live.all() else batch.filter(pa.array(live))


def _as_written_now(rows: pa.RecordBatch, headers: str) -> pa.RecordBatch:
    """The rows with null instead of each empty list of headers, as this version writes them."""
    place = rows.schema.get_field_index(headers)
    if place < 0:
        return rows
    return rows.set_column(place, rows.schema.field(place), without_empty_lists(rows.column(place)))


def numbers(column: pa.Array) -> OffsetArray:
    """Integers or times as a numpy array, with 0 for null."""
    array: OffsetArray = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return array
