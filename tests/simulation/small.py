"""A small table in memory with the same methods as `SmallTable`, which is a Delta table."""

from collections.abc import Callable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import SliceFacts
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Row, SimStore
from tests.small_table import Small


class SmallStore(Small):
    """A small table in memory."""

    table: SimStore

    def __init__(self, scheduler: Scheduler, *, store: Callable[..., SimStore] = SimStore) -> None:
        super().__init__()
        self.table = store(scheduler=scheduler)

    def write(self, start: int, stop: int, *, partition: int = 0, rows: int | None = None) -> SliceFacts:
        """Write the data file of a slice, with one row per ten bytes; `rows` is the most rows that it gets."""
        self._loaded_at += 1
        id_ = BrokerPartition(0, partition)
        present = [Row(id_, offset, self._loaded_at, offset) for offset in list(range(start, stop, 10))[:rows]]
        return SliceFacts(
            range=CommittedRange(
                offsets=OffsetRange(id_, start, stop),
                rows=len(present),
                bytes=stop - start,
                loaded_at_us=self._loaded_at,
            ),
            files=self.table.staged_files(present),
        )

    def rows(self) -> int:
        """The number of rows that a reader sees."""
        return len(self.table.rows)

    def compact(self) -> None:
        """Merge the small files, in a commit without an entry of Penstock."""
        self.table.compact()

    def delete_row(self, offset: int) -> None:
        """A broken compaction of another writer loses the rows with this offset."""
        self.table.delete(lambda row: row.offset == offset)

    def add_deletion_vectors(self) -> None:
        """Another writer sets the feature of deletion vectors."""
        self.table.add_deletion_vectors()

    def allow_log_cleanup(self) -> None:
        """Another writer sets the property with which every writer deletes old entries of the log."""
        self.table.allow_log_cleanup()

    def repair(self) -> None:
        """Set this property back."""
        self.table.repair()

    def delete_entries(self, before: int) -> None:
        """Delete the entries of the log before a version."""
        self.table.delete_entries(before)

    def remove(self) -> None:
        """Remove the table with its log."""
        self.table.remove()
