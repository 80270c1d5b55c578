"""A table whose writes fail, although some of them land."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.loading.ledger import CommittedRange, LedgerEntry
from pipelines.loading.table_log import CommitOutcomeUnknown, TableLog, TableSnapshot
from pipelines.loading.work import SliceFacts
from resources.errors import LakeUnavailable


@dataclass(slots=True)
class Unreliable:
    """A table whose first writes raise an error. `landing` says for each of them whether it lands nevertheless."""

    table: TableLog
    landing: list[bool]
    error: type[Exception] = CommitOutcomeUnknown
    blind: bool = False
    synced: list[int] = field(default_factory=list)
    looked_after: list[int] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """The URI of the table."""
        return self.table.uri

    def snapshot(self) -> TableSnapshot:
        """The table's snapshot, unless the table cannot be read."""
        if self.blind:
            raise LakeUnavailable("no answer")
        return self.table.snapshot()

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """The entries of the table. The version `after` is recorded."""
        self.looked_after.append(after)
        return self.table.entries(upto, after=after)

    def check(self, files: Sequence[SliceFacts]) -> None:
        """Check files as the table does."""
        self.table.check(files)

    def append(self, snapshot: TableSnapshot, entry: LedgerEntry, files: Sequence[SliceFacts]) -> int:
        """Append with an error, as `landing` says."""
        return self._answer(lambda: self.table.append(snapshot, entry, files))

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """The counts of the table."""
        return self.table.count_rows(snapshot, ranges)

    def replace(
        self, snapshot: TableSnapshot, entry: LedgerEntry, ranges: Sequence[CommittedRange], files: Sequence[SliceFacts]
    ) -> int:
        """Write with an error, as `append` does."""
        return self._answer(lambda: self.table.replace(snapshot, entry, ranges, files))

    def restore(self, snapshot: TableSnapshot, entry: LedgerEntry) -> int:
        """Write with an error, as `append` does."""
        return self._answer(lambda: self.table.restore(snapshot, entry))

    def sync(self, *, after: int) -> None:
        """Sync the table. The version `after` is recorded."""
        self.synced.append(after)
        self.table.sync(after=after)

    def _answer(self, write: Callable[[], int]) -> int:
        if not self.landing:
            return write()
        if self.landing.pop(0):
            write()
        raise self.error("connection reset by peer")
