"""The files that replays and redecodes write before their commit; no reader of the table finds them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_io.model import OffsetRange
from pipelines.layout.layout import TableLayout
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.lake_table import LakeTable
from resources.stores.lake import filesystem

STAGING_FOLDER = "_replays"
"""The folder inside a table. Delta's vacuum ignores names that begin with an underscore."""


def staging_folder(run: str) -> str:
    """The folder for the files of a run, as a prefix of their paths."""
    return f"{STAGING_FOLDER}/{run}/"


def remove_staged(table: LakeTable, folder: str) -> None:
    """Delete the files of a run. No log names them. Housekeeping deletes what remains."""
    with suppress(OSError):
        filesystem(table.uri, table.lake.options).delete_dir(folder.rstrip("/"))


class StagedFiles:
    """The files that `facts` name, all in `folder`. `facts` are in order of partition and offset."""

    def __init__(self, table: LakeTable, folder: str, facts: Sequence[SliceFacts], layout: TableLayout) -> None:
        self.facts = facts
        self._folder = folder
        self._offset = layout.name("offset")
        self._table = table
        self._store = filesystem(table.uri, table.lake.options)

    def batches(self, offsets: OffsetRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range that consists of whole slices, in order of offset."""
        for facts in self.facts:
            for staged in facts.files if facts.partition == offsets.partition else ():
                with self._store.open_input_file(staged.path) as file:
                    yield from pq.ParquetFile(file).iter_batches()

    def rows(self, part: CommittedRange) -> int:
        """The number of staged rows with the offsets of `part`."""
        paths = [file.path for facts in self.facts if facts.partition == part.partition for file in facts.files]
        if not paths:
            return 0
        import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas, which most processes do not need

        offset = pads.field(self._offset)
        files = pads.dataset(paths, filesystem=self._store, format="parquet")
        return int(files.count_rows(filter=(offset >= part.offsets.start) & (offset < part.offsets.stop)))

    def remove(self, *, committed: bool) -> None:
        """Delete the files: they belong to this run. So do skipped bytes, unless its commit names them."""
        remove_staged(self._table, self._folder)
        if not committed:
            self._remove_quarantined()

    def _remove_quarantined(self) -> None:
        for choice in (choice for facts in self.facts for choice in facts.observed.skipped if choice.path):
            with suppress(OSError):
                self._store.delete_file(choice.path)
