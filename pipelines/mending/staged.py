"""Files fetched for a replay. They lie where no reader of the table looks, until their rows are in it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from pipelines.loading.ledger import Range
from pipelines.loading.pieces import Interval
from pipelines.loading.table import LakeTable
from pipelines.loading.work import Facts
from resources.lake import filesystem

FOLDER = "_replays"
"""Inside a table; vacuum passes over names with an underscore in front."""


def folder(run: str) -> str:
    """Where a run's files lie, as the front of their paths."""
    return f"{FOLDER}/{run}/"


class Staged:
    """The files that `facts` name, in order of partition and offset, all `below` one folder."""

    def __init__(self, table: LakeTable, below: str, facts: Sequence[Facts]) -> None:
        self.facts = facts
        self._below = below
        self._store = filesystem(table.uri, table.lake.options)

    def batches(self, interval: Interval) -> Iterator[pa.RecordBatch]:
        """The rows of the interval, which slices make up whole, in order of offset."""
        for one in self.facts:
            if one.id == interval.id and one.path:
                with self._store.open_input_file(one.path) as file:
                    yield from pq.ParquetFile(file).iter_batches()

    def rows(self, piece: Range) -> int:
        """How many rows there are with the offsets of `piece`."""
        paths = [one.path for one in self.facts if one.id == piece.id and one.path]
        offset = pads.field("offset")
        files = pads.dataset(paths, filesystem=self._store, format="parquet")
        return int(files.count_rows(filter=(offset >= piece.start) & (offset < piece.stop))) if paths else 0

    def remove(self) -> None:
        """Delete the files: they are this run's own, and in no log. What is left is for housekeeping."""
        with suppress(OSError):
            self._store.delete_dir(self._below.rstrip("/"))
