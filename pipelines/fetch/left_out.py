"""Leaves out records of exact sets: those whose rows were erased, filtered or retired before."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.model import OffsetRange
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.gaps import ABORTED, COMPACTED, HOLE
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.committed_range import ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.table.exact_sets import ExactSets

_GONE_BY = (HOLE, COMPACTED, ABORTED)
"""The causes by which a record that once had a row can be gone from a log, the usual ones first."""


class LeftOut:
    """The exact sets of a slice. Its rows and gaps have none of their offsets."""

    def __init__(self, task: FetchTask) -> None:
        self._stored = task.exact
        sets = ExactSets.at(task.table_uri, task.options)
        self._sets = {cause: sets.of(stored).within(task.offsets) for cause, stored in task.exact.items()}
        self._all: ExactOffsets = ExactOffsets.union(self._sets.values())
        self._counts_records = task.offsets.partition.broker is None

    def apply(self, decoded: DecodedBatch, covered: OffsetRange) -> tuple[pa.RecordBatch, Mapping[str, int]]:
        """The rows and the gaps of a batch without the offsets of the sets; `covered` are the offsets of the batch."""
        batch, gaps = decoded.batch, decoded.gaps
        if not self._sets or not (in_batch := self._all.within(covered)).count:
            return batch, gaps
        rows = 0
        if batch.num_rows:
            mask = in_batch.contains(_numbers(batch, "offset"), _numbers(batch, "inner"))
            rows = int(np.count_nonzero(mask))
            batch = batch.filter(pa.array(~mask)) if rows else batch
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
