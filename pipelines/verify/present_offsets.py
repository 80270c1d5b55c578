"""The offsets of the rows that some committed ranges have in the files of a table."""

from collections.abc import Sequence

import numpy as np

from pipelines.ledger.committed_range import LoadedRange
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from pipelines.verify.complete_files import CompleteFiles
from pipelines.verify.range_file import RangeFile, Window
from pipelines.verify.row_counts import partition_code, row_sets


def present_offsets(
    table: LakeTable, opened: OpenTable, ranges: Sequence[LoadedRange]
) -> dict[LoadedRange, ExactOffsets]:
    """The offsets of the rows of each range. Only the files that may have some of them are read.

    Raises:
        LakeRefused: a file is damaged.
        LakeUnavailable: the store does not answer.
    """
    codes = np.array([partition_code(own.offsets.partition.broker, own.offsets.partition.partition) for own in ranges])
    files, present = CompleteFiles(table, opened), dict[LoadedRange, ExactOffsets]()
    with RangeFile() as stored:
        for number, own in enumerate(ranges):
            stored.add(own.loaded_at_us, number, own.offsets.start, own.offsets.stop, 0, 0, 0, 0)
        for _, columns in stored.windows():
            if len(columns.slots):
                window = Window(int(columns.loaded_us.min()), int(columns.loaded_us.max()) + 1)
                sets = row_sets(columns, codes[columns.slots], files.rows(window))
                present |= {ranges[slot]: own for slot, own in zip(columns.slots.tolist(), sets, strict=True)}
    return present
