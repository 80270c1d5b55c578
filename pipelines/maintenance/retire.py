"""Retention: take whole files out of a table whose rows are all older than the topic's `keep_days`.

The age of a row is that of its load; in a table with folders of event days it is that of its event. Which rows a file
has is read from the file, and each of them must belong to a range that the ledger counts. So a retired row is never a
lost one. The files are deleted later, like all that were removed from the table.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import commit
from pipelines.commit.retirement import FileRows, RetireChange, RetiredRows
from pipelines.layout.layout import TableLayout
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.incarnations import ranges_of
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.failpoints import failpoint
from resources.stores.lake import lake_errors

if TYPE_CHECKING:  # it imports pandas
    import pyarrow.dataset as pads

_NO_BROKER = -1
"""Stands for null in columns."""
_EPOCH = date(1970, 1, 1)
_PLACE = ("broker", "partition", "loaded_at", "offset", "inner")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredFiles:
    """The files with old rows that are taken out of a table.

    In a dry run it is the plan.

    Args:
        before: all rows of the files are of days before this one, in UTC, such as `2026-01-31`.
        files: the number of files.
        rows: the number of their rows.
        bytes: their size.
        version: the new version of the table; None if there is none.
        kept: the number of old files that stay: of a former topic of the same name, with rows that the ledger does not
            count, or damaged.
    """

    before: date
    files: int = 0
    rows: int = 0
    bytes: int = 0
    version: int | None = None
    kept: int = 0


def retire(table: LakeTable, before: date, *, dry_run: bool) -> RetiredFiles:
    """Take out the files whose rows are all of days before `before`. Loads may run at the same time.

    Raises:
        TableNotProven: another program has changed rows of the table.
        CommitRefused: another run has changed the table so that the files cannot be taken out.
        LoadError: the store does not answer, or the table cannot be read.
    """
    snapshot, retired = table.existing(), RetiredFiles(before=before)
    if snapshot is None or snapshot.entry is None:
        return retired
    snapshot.check_unchanged(table.where)
    with lake_errors(table.uri):
        files = dict(_old_files(snapshot, before))
        readable = files.keys() - table.damaged(snapshot.opened) if files else set[str]()
        rows = _rows_to_retire(table, snapshot, readable, before) if readable else {}
    retired = _counted(replace(retired, kept=len(files) - len(rows)), files, rows)
    failpoint("retirement planned")
    if dry_run or not rows:
        return retired
    result = commit(table, snapshot, RetireChange(state=snapshot.entry.state, run=uuid.uuid4().hex, files=rows))
    # If another writer has replaced some of the files, the next housekeeping retires what became of them.
    written = result.change.files if isinstance(result.change, RetireChange) else {}
    return replace(_counted(retired, files, written), version=result.version)


def _counted(retired: RetiredFiles, sizes: Mapping[str, int], rows: Mapping[str, Sequence[FileRows]]) -> RetiredFiles:
    return replace(
        retired,
        files=len(rows),
        rows=sum(own.offsets.count for of_file in rows.values() for own in of_file),
        bytes=sum(sizes[path] for path in rows),
    )


def _old_files(snapshot: TableSnapshot, before: date) -> Iterator[tuple[str, int]]:
    """Path and size of the files in folders of old days. Rows without an event day are as old as their load."""
    layout, files = snapshot.layout, snapshot.opened.files()
    newest = f"max.{layout.name('loaded_at')}"
    loaded = files.column(newest).to_pylist() if newest in files.column_names else [None] * files.num_rows
    columns = (
        files.column(name).to_pylist() for name in (f"partition.{layout.partition_column}", "path", "size_bytes")
    )
    for day, path, size, last_loaded in zip(*columns, loaded, strict=True):
        loaded_on = last_loaded.date() if last_loaded is not None and layout.is_by_day else None
        if (day or loaded_on or before) < before:
            yield path, size


def _rows_to_retire(
    table: LakeTable, snapshot: TableSnapshot, paths: Collection[str], before: date
) -> dict[str, Sequence[FileRows]]:
    """The rows of the files, by path. Left out are files with rows that no range of the present topic counts."""
    assert snapshot.entry is not None
    ranges = RetiredRows(ranges_of(table.entries(snapshot), snapshot.entry.topic))
    dataset = snapshot.opened.dataset()
    first_kept_us = (before - _EPOCH) // timedelta(microseconds=1)
    chosen: dict[str, Sequence[FileRows]] = {}
    for fragment in dataset.get_fragments():
        if fragment.path not in paths:
            continue
        rows = list(_file_rows(fragment, dataset.schema, snapshot.layout))
        is_old = snapshot.layout.is_by_day or all(own.loaded_at_us < first_kept_us for own in rows)
        if is_old and ranges.take(rows):
            chosen[fragment.path] = rows
    return chosen


def _file_rows(fragment: "pads.ParquetFileFragment", schema: pa.Schema, layout: TableLayout) -> Iterator[FileRows]:
    """The rows of a file, by their partition and loading time."""
    columns = fragment.to_table(schema=schema, columns=[layout.name(name) for name in _PLACE])
    arrays = [_numbers(columns.column(layout.name(name))) for name in _PLACE]
    order = np.lexsort(arrays[::-1])
    broker, partition, loaded, offsets, inner = (array[order] for array in arrays)
    changes = np.any([np.diff(array) != 0 for array in (broker, partition, loaded)], axis=0)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(offsets)]
    for start, stop in pairwise(bounds if len(offsets) else ()):
        is_07 = broker[start] != _NO_BROKER
        id_ = BrokerPartition(int(broker[start]) if is_07 else None, int(partition[start]))
        own = ExactOffsets.of(offsets[start:stop], inner[start:stop] if is_07 else None)
        yield FileRows(id_, int(loaded[start]), own, stop - start)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    array: npt.NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), _NO_BROKER).to_numpy()
    return array
