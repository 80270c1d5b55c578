"""Leaves out records: those of exact sets, whose rows were erased or retired before, those of `skip`, and of others.

Others are the records that are rows of another table of the topic.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.model import OffsetRange
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.gaps import ABORTED, COMPACTED, HOLE
from pipelines.fetch.fetch_task import FetchTask
from pipelines.layout.layout import TableLayout
from pipelines.ledger.committed_range import ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.rules.skip_condition import RecordMask
from pipelines.table.exact_sets import ExactSets, store_exact

_GONE_BY = (HOLE, COMPACTED, ABORTED)
"""The causes by which a record that once had a row can be gone from a log, the usual ones first."""


class LeftOut:
    """The exact sets of a slice. Its rows and gaps have none of their offsets. `sets` are those of its table."""

    def __init__(self, task: FetchTask, sets: ExactSets) -> None:
        self._stored = task.exact
        self._sets = {cause: sets.of(stored).within(task.offsets) for cause, stored in task.exact.items()}
        self._all: ExactOffsets = ExactOffsets.union(self._sets.values())
        self._counts_records = task.offsets.partition.broker is None

    def apply(self, decoded: DecodedBatch, covered: OffsetRange) -> tuple[pa.RecordBatch, Mapping[str, int]]:
        """The rows and the gaps of a batch without the offsets of the sets; `covered` are the offsets of the batch."""
        batch, gaps = decoded.batch, decoded.gaps
        if not self._sets or not (in_batch := self._all.within(covered)).count:
            return batch, gaps
        batch = records_without(decoded.batch, in_batch)
        rows = decoded.batch.num_rows - batch.num_rows
        # The log no longer has the other records of the set, and counts their offsets as its own gaps. In 0.7 gaps are
        # bytes that belong to no record.
        absent = in_batch.count - rows if self._counts_records else 0
        return batch, _without(gaps, absent) if absent else gaps

    def counts(self, offsets: OffsetRange) -> dict[ExactCause, int]:
        """The number of offsets of each cause that has some in a range."""
        return {cause: count for cause, own in self._sets.items() if (count := own.within(offsets).count)}

    def stored(self, offsets: OffsetRange) -> Mapping[ExactCause, StoredSet]:
        """The references to the sets that have offsets in a range."""
        return {cause: self._stored[cause] for cause in self.counts(offsets)}


class SkippedRecords:
    """The records of a slice that have no row: `skip` is true for them, or they are rows of another table.

    Args:
        task: the slice and its table.
        cause: why they have no row.
        layout: the names of the columns of the batches.
    """

    def __init__(self, task: FetchTask, cause: ExactCause, layout: TableLayout) -> None:
        self._task = task
        self._cause = cause
        names = ("offset",) if task.offsets.partition.broker is None else ("offset", "inner")
        self._names = [layout.name(name) for name in names]
        self._sets: list[ExactOffsets] = []

    def without(self, rows: pa.RecordBatch, skipped: RecordMask | None) -> pa.RecordBatch:
        """The rows of a batch without those that are skipped, which are remembered."""
        if skipped is None or not skipped.any():
            return rows
        own = rows.select(self._names).filter(pa.array(skipped))
        self._sets.append(ExactOffsets.of(*(_numbers(own, name) for name in self._names)))
        return rows.filter(pa.array(~skipped))

    def stored(self) -> tuple[dict[ExactCause, int], Mapping[ExactCause, StoredSet]]:
        """The number of skipped records, and the reference to their stored set, each by cause.

        Raises:
            LakeUnavailable: the store does not take the file with a large set.
        """
        skipped: ExactOffsets = ExactOffsets.union(self._sets)
        if not skipped.count:
            return {}, {}
        return {self._cause: skipped.count}, {
            self._cause: store_exact(self._task.table_uri, self._task.options, skipped)
        }


def records_without(records: pa.RecordBatch, offsets: ExactOffsets) -> pa.RecordBatch:
    """The records whose offsets, or rows in 0.7, are not in a set."""
    mask = offsets.contains(_numbers(records, "offset"), _numbers(records, "inner"))
    return records.filter(pa.array(~mask)) if mask.any() else records


def _without(gaps: Mapping[str, int], count: int) -> Mapping[str, int]:
    """The gaps with so many offsets fewer."""
    left = Counter(gaps)
    for cause in dict.fromkeys((*_GONE_BY, *gaps)):
        taken = min(count, left[cause])
        left[cause] -= taken
        count -= taken
    return +left


def _numbers(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """A column of numbers. From 0.8 on, records have no inner position."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64)
    numbers: npt.NDArray[np.int64] = batch.column(name).cast(pa.int64()).to_numpy()
    return numbers
