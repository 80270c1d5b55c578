"""The files of a replay: they are staged where no reader of the table finds them, until their rows are in the table."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from kafka_io.model import OffsetRange
from pipelines.loading.table import LakeTable
from pipelines.loading.work import CommittedRange, SliceFacts
from resources.lake import filesystem

STAGING_FOLDER = "_replays"
"""The folder inside a table. Delta's vacuum ignores names that begin with an underscore."""


def staging_folder(run: str) -> str:
    """The folder for the files of a run, as a prefix of their paths."""
    return f"{STAGING_FOLDER}/{run}/"


class StagedFiles:
    """The files that `facts` name, all in `folder`. `facts` are in order of partition and offset."""

    def __init__(self, table: LakeTable, folder: str, facts: Sequence[SliceFacts]) -> None:
        self.facts = facts
        self._folder = folder
        self._store = filesystem(table.uri, table.lake.options)

    def batches(self, offsets: OffsetRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range that consists of whole slices, in order of offset."""
        for facts in self.facts:
            if facts.offsets.partition == offsets.partition and facts.path:
                with self._store.open_input_file(facts.path) as file:
                    yield from pq.ParquetFile(file).iter_batches()

    def rows(self, part: CommittedRange) -> int:
        """The number of staged rows with the offsets of `part`."""
        paths = [facts.path for facts in self.facts if facts.offsets.partition == part.partition and facts.path]
        if not paths:
            return 0
        offset = pads.field("offset")
        files = pads.dataset(paths, filesystem=self._store, format="parquet")
        return int(files.count_rows(filter=(offset >= part.offsets.start) & (offset < part.offsets.stop)))

    def remove(self) -> None:
        """Delete the files. They belong to this run, and no log names them. Housekeeping deletes what remains."""
        with suppress(OSError):
            self._store.delete_dir(self._folder.rstrip("/"))
