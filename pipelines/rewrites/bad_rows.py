"""The rows of a typed table whose values did not decode: where they are, and their rows when they are decoded again.

Such a row keeps the record's metadata, such as offset and time, and the bytes of its value. So it can become the row of
a raw table again, and is decoded as in a load.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.fetch.decode_plan import DecodePlan
from pipelines.fetch.typed_rows import KEY_REASON, TypedRows
from pipelines.layout.columns import ERROR_COLUMN, HEADER_PREFIX, RAW_COLUMN, TOMBSTONE_COLUMN
from pipelines.layout.layout import TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.committed_range import CommittedRange
from pipelines.rewrites.redecode_result import DecodedAgain
from pipelines.rules.row_rules import RowRules
from pipelines.table.row_filter import arrow_filter
from pipelines.table.table_store import TableSnapshot
from resources.stores.lake import lake_errors

_BATCH_ROWS = 16_384
_BATCHES_AHEAD = 2
_Key = tuple[date | None, int, BrokerPartition]
_MAX_RANGES = 64  # per commit, because each range is one condition of the filter that deltalake evaluates


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRanges:
    """Ranges of rows that are decoded again in one commit. All of them were loaded on `day`.

    In a table with folders of event days it is None: the rows of a range have several days.

    A range leads from the first to the last bad record that were loaded together, and has other rows in between.
    """

    day: date | None
    ranges: Sequence[CommittedRange]


def can_be_decoded(rules: RowRules) -> pads.Expression:
    """Matches the bad records whose bytes the table has. By its rules it may have none, or only the hash of a key."""
    error = pads.field(ERROR_COLUMN)
    has_bytes = pads.field(RAW_COLUMN).is_valid() | pads.field(TOMBSTONE_COLUMN)
    if rules.hides_keys:
        has_bytes &= ~pc.starts_with(error, KEY_REASON)
    return error.is_valid() & has_bytes


def count_without_bytes(snapshot: TableSnapshot, uri: str, rules: RowRules) -> int:
    """The number of bad records whose bytes the table does not have.

    Raises:
        LakeUnavailable: a file cannot be read.
    """
    with lake_errors(uri):
        rows = snapshot.opened.dataset()
        bad = rows.count_rows(filter=pads.field(ERROR_COLUMN).is_valid())
        return int(bad - rows.count_rows(filter=can_be_decoded(rules))) if bad else 0


def find_bad_ranges(snapshot: TableSnapshot, uri: str, rules: RowRules) -> list[BadRanges]:
    """All bad records of the snapshot that can be decoded. Only files that have some are read, by their statistics.

    Raises:
        LakeUnavailable: a file cannot be read.
    """
    layout, extents = snapshot.layout, dict[_Key, tuple[int, int]]()
    keys = [layout.partition_column, *(layout.name(name) for name in ("loaded_at", "broker", "partition"))]
    offset = layout.name("offset")
    with lake_errors(uri):
        for batch in batches_of(snapshot.opened.dataset(), can_be_decoded(rules), [*keys, offset]):
            groups = pa.table(batch).group_by(keys).aggregate([(offset, "min"), (offset, "max")])
            loaded_us = groups.column(keys[1]).cast(pa.int64()).to_pylist()
            columns = [
                groups.column(name).to_pylist() for name in (keys[0], *keys[2:], f"{offset}_min", f"{offset}_max")
            ]
            for loaded, day, broker, number, first, last in zip(loaded_us, *columns, strict=True):
                key = (None if layout.is_by_day else day, loaded, BrokerPartition(broker, number))
                extent = extents.get(key, (first, last))
                extents[key] = min(extent[0], first), max(extent[1], last)
    return list(_by_day(extents))


def _by_day(extents: dict[_Key, tuple[int, int]]) -> Iterator[BadRanges]:
    for day, of_day in groupby(sorted(extents.items()), key=lambda item: item[0][0]):
        ranges = [
            CommittedRange(offsets=OffsetRange(partition, first, last + 1), loaded_at_us=loaded_us)
            for (_, loaded_us, partition), (first, last) in of_day
        ]
        for start in range(0, len(ranges), _MAX_RANGES):
            yield BadRanges(day=day, ranges=ranges[start : start + _MAX_RANGES])


def batches_of(dataset: pads.Dataset, filter_: pads.Expression, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a dataset in small batches, of which few are in memory."""
    yield from dataset.to_batches(
        columns=list(columns),
        filter=filter_,
        batch_size=_BATCH_ROWS,
        batch_readahead=_BATCHES_AHEAD,
        fragment_readahead=1,
    )


class RowsDecodedAgain:
    """The rows of ranges of a snapshot, in which the bad records are decoded as `plan` says.

    `schema` has the columns of the rows: all columns of the table with those that the plan adds, except for the date.
    """

    def __init__(self, snapshot: TableSnapshot, plan: DecodePlan, uri: str) -> None:
        self._layout: TableLayout = plan.layout
        self.schema = pa.schema([*self._layout.file_schema, *snapshot.other_columns()])
        self._rows: pads.Dataset = snapshot.opened.dataset()
        self._filter_layout = snapshot.layout
        self._decoder = TypedRows(plan.of_stored_rows)
        self._hides_keys = plan.row_rules.hides_keys
        self._uri = uri

    def of(self, committed: CommittedRange, counts: DecodedAgain) -> Iterator[pa.RecordBatch]:
        """The rows of a range, in batches; the bad records among them are added to `counts`.

        Raises:
            IncompletePlan: the driver must resolve ids or add columns first.
            LakeUnavailable: a file cannot be read.
        """
        columns = [name for name in self.schema.names if name in self._rows.schema.names]
        filter_ = arrow_filter(committed, self._filter_layout)
        with lake_errors(self._uri):
            for batch in batches_of(self._rows, filter_, columns):
                if batch.num_rows:
                    yield self._decoded_again(self._widened(batch), counts)

    def _widened(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with all columns; those that the table does not have yet are null."""
        present = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays = [
            present[field.name].cast(field.type) if field.name in present else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decoded_again(self, rows: pa.RecordBatch, counts: DecodedAgain) -> pa.RecordBatch:
        if rows.column(ERROR_COLUMN).null_count == rows.num_rows:
            return rows
        was_bad = self._is_decoded(rows)
        if not was_bad.true_count:
            return rows
        bad = rows.filter(was_bad)
        decoded = _with_texts_of_headers(self._decoder.of_raw_rows(self._as_raw(bad)), bad)
        counts.add(_counted(bad.column(ERROR_COLUMN), decoded.column(ERROR_COLUMN)))
        # Row i of the result is row i of `rows`, or the next decoded one, which all follow after `rows`.
        is_bad, indexes = was_bad.to_numpy(zero_copy_only=False), np.arange(rows.num_rows)
        indexes[is_bad] = rows.num_rows + np.arange(decoded.num_rows)
        arrays = [
            pa.concat_arrays([rows.column(name), decoded.column(name)]).take(pa.array(indexes))
            if name in decoded.schema.names
            else rows.column(name)
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _is_decoded(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        error = rows.column(ERROR_COLUMN)
        has_bytes = pc.or_(rows.column(RAW_COLUMN).is_valid(), rows.column(TOMBSTONE_COLUMN))
        if self._hides_keys:
            has_bytes = pc.and_not(has_bytes, pc.fill_null(pc.starts_with(error, KEY_REASON), fill_value=False))
        return pc.and_(error.is_valid(), has_bytes)

    def _as_raw(self, bad: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a typed table that did not decode, as rows of a raw table."""
        arrays = [bad.column(self._layout.name(field.name)) for field in FILE_SCHEMA]
        return pa.RecordBatch.from_arrays(arrays, schema=FILE_SCHEMA)


def _with_texts_of_headers(decoded: pa.RecordBatch, stored: pa.RecordBatch) -> pa.RecordBatch:
    """The decoded rows with the texts of headers that their stored rows have, although the headers are not stored."""
    columns = [
        pc.coalesce(column, stored.column(name)) if name.startswith(HEADER_PREFIX) else column
        for name, column in zip(decoded.schema.names, decoded.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=decoded.schema)


def _counted(before: pa.Array, after: pa.Array) -> DecodedAgain:
    """The counts of records by their reasons before and after; null stands for a record that decodes."""
    return DecodedAgain(decoded=after.null_count, bad=reasons_of(after), changed=not before.equals(after))


def reasons_of(errors: pa.Array) -> Counter[str]:
    """The reasons why records do not decode, with the number of records; null stands for a record that decodes."""
    counts = pc.value_counts(errors.drop_null()).to_pylist()
    return Counter({item["values"]: item["counts"] for item in counts})
