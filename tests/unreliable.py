"""A table whose writes raise errors, although some of them are committed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_io.records.last_message import LastMessage
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.exact_sets import ExactSets
from pipelines.table.table_store import CommitOutcomeUnknown, TableSnapshot, TableStore
from resources.errors import LakeUnavailable


@dataclass(slots=True)
class Unreliable:
    """A table whose first writes raise an error. `commits` says for each of them whether it is committed nevertheless.

    If `blind` is true, the table cannot be read.
    """

    table: TableStore
    commits: list[bool]
    error: type[Exception] = CommitOutcomeUnknown
    blind: bool = False
    synced: list[int] = field(default_factory=list)
    read_after: list[int] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """See TableStore."""
        return self.table.uri

    def snapshot(self) -> TableSnapshot:
        """The table's snapshot. Raises an error if the table cannot be read."""
        if self.blind:
            raise LakeUnavailable("no answer")
        return self.table.snapshot()

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The table's newest snapshot. Raises an error if the table cannot be read."""
        if self.blind:
            raise LakeUnavailable("no answer")
        return self.table.newer(snapshot)

    def discard(self, files: Sequence[SliceFacts]) -> None:
        """See TableStore."""
        self.table.discard(files)

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """The table's entries. The requested first versions are stored in `read_after`."""
        self.read_after.append(after)
        return self.table.entries(upto, after=after)

    def check_restorable(self, snapshot: TableSnapshot, target: int) -> None:
        """See TableStore."""
        self.table.check_restorable(snapshot, target)

    def check(self, files: Sequence[SliceFacts]) -> None:
        """See TableStore."""
        self.table.check(files)

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """Write the entry or not, and raise the error instead of returning the version."""
        if not self.commits:
            return self.table.write(snapshot, entry, new_slices, replaced)
        if self.commits.pop(0):
            self.table.write(snapshot, entry, new_slices, replaced)
        raise self.error("connection reset by peer")

    @property
    def sets(self) -> ExactSets:
        """See TableStore."""
        return self.table.sets

    def exact_sets(self, committed: CommittedRange) -> Mapping[ExactCause, ExactOffsets]:
        """See TableStore."""
        return self.table.exact_sets(committed)

    def store_exact(self, offsets: ExactOffsets) -> StoredSet:
        """See TableStore."""
        return self.table.store_exact(offsets)

    def row_offsets(self, snapshot: TableSnapshot, committed: CommittedRange) -> Sequence[int]:
        """See TableStore."""
        return self.table.row_offsets(snapshot, committed)

    def message(self, snapshot: TableSnapshot, committed: CommittedRange, offset: int) -> LastMessage:
        """See TableStore."""
        return self.table.message(snapshot, committed, offset)

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """See TableStore."""
        return self.table.count_rows(snapshot, ranges)

    def sync(self, *, after: int) -> None:
        """Sync the table, and store the version in `synced`."""
        self.synced.append(after)
        self.table.sync(after=after)
