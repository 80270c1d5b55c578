"""The interface of a table for commits: a snapshot, and a write that lands on exactly that snapshot or not at all.

`LakeTable` is the whole interface of a table. Simulations implement this part, with a store that loses answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from kafka_io.errors import Where
from kafka_io.records.last_message import LastMessage
from pipelines.layout.layout import RAW, TableLayout
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.exact_sets import ExactSets
from pipelines.table.open_table import OpenTable
from resources.errors import CommitRefused, TableNotProven


class CommitConflict(Exception):
    """Another writer was first; nothing of this write is visible."""


class CommitOutcomeUnknown(Exception):
    """The write failed, and whether it landed is not known (fault L03).

    If the store `refused` something, the same write would fail again.
    """

    def __init__(self, reason: str = "", *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSnapshot:
    """One version of a table, as a value: two are equal if their facts are.

    Args:
        version: the version's number.
        entry: Penstock's newest entry in the table; None before the first.
        table_id: the id that the table got when it was created.
        layout: the columns of the table.
        mismatch: why the rows do not agree with the cursors of that entry. No load continues from such a table.
        changed: how another program has changed rows since that entry; empty if none has. A replay or a rewind repairs
            it, and nothing else is written on top of it (fault A04).
        digest: the digest of the commit that made the version; empty if it is not known.
        entry_ms: when Penstock's newest entry was committed, in ms since 1970; None if it is not known.
        open_table: how the version is read; None if only its facts are needed. It is no part of the value.
    """

    version: int
    entry: LedgerEntry | None
    table_id: str = ""
    layout: TableLayout = RAW
    mismatch: str | None = None
    changed: str = ""
    digest: str = ""
    entry_ms: int | None = None
    open_table: OpenTable | None = field(default=None, repr=False, compare=False)

    @property
    def opened(self) -> OpenTable:
        """The version, open for reading. A store that gives a snapshot also says how to read it."""
        assert self.open_table is not None
        return self.open_table

    @property
    def rows(self) -> str:
        """The number of rows, for messages."""
        return f"{self.opened.count():,}"

    @property
    def next_sequence(self) -> int:
        """The sequence number of a commit on top of this version."""
        return self.entry.sequence + 1 if self.entry else 1

    def other_columns(self) -> list[pa.Field]:
        """The columns of a typed table that Penstock did not add."""
        schema = self.opened.schema()
        return [schema.field(name) for name in self.layout.others]

    def check_unchanged(self, where: Where) -> None:
        """Check that no other program has changed rows since Penstock's newest entry (fault A04).

        Raises:
            TableNotProven: one has.
        """
        if self.changed:
            raise TableNotProven(self.changed, where)

    def check_layout(self, now: "TableSnapshot", where: Where) -> None:
        """Check that the table did not become typed or raw since this version, while a run worked on it.

        Raises:
            CommitRefused: it did. Only another run can read the settings that belong to it.
        """
        if now.layout.is_typed != self.layout.is_typed:
            kind = "typed" if now.layout.is_typed else "raw"
            raise CommitRefused(f"the table became {kind} meanwhile; run again", where)


class TableStore(Protocol):
    """One topic's table."""

    @property
    def uri(self) -> str:
        """The table's URI."""

    def snapshot(self) -> TableSnapshot:
        """The newest version. A table that does not exist is created.

        Raises:
            LoadError: the table cannot be read, or must not be written to.
        """

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The newest version of the table of `snapshot`, which is never created again.

        Raises:
            TableReplaced: the table was removed, or another table is in its place.
            LoadError: the table cannot be read, or must not be written to.
        """

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """Version and entry of Penstock's commits in `(after, upto.version]`, newest first."""

    def check_restorable(self, snapshot: TableSnapshot, target: int) -> None:
        """Check that the data files of version `target` exist, and that no housekeeping may delete one of them.

        Raises:
            RewindRefused: a file is gone, or may be deleted at any time (fault P14).
        """

    def check(self, files: Sequence[SliceFacts]) -> None:
        """Check that every file of `files` exists with the content that its worker wrote.

        Raises:
            FileRefused: a file is missing or different.
        """

    def discard(self, files: Sequence[SliceFacts]) -> None:
        """Delete files that no commit names, and that none will name, where that makes room on a disk (fault E21)."""

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """The number of rows that the table has of each range: with its partition, offsets and loading time."""

    @property
    def sets(self) -> ExactSets:
        """Reads the exact sets of the table."""

    def exact_sets(self, committed: CommittedRange) -> Mapping[ExactCause, ExactOffsets]:
        """The sets of the exact causes of a range, without the offsets outside of it.

        Raises:
            ExactSetLost: a set is missing or damaged.
        """

    def store_exact(self, offsets: ExactOffsets) -> StoredSet:
        """Store an exact set, so that an entry can name it. It survives a loss of power."""

    def row_offsets(self, snapshot: TableSnapshot, committed: CommittedRange) -> Sequence[int]:
        """The offsets of the range's rows, ascending, each once."""

    def message(self, snapshot: TableSnapshot, committed: CommittedRange, offset: int) -> LastMessage:
        """The last message of the range's rows with this offset, as it was read from the log."""

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """Write `entry` on top of `snapshot`, with what its kind does to the rows; returns the version.

        The columns of the entry are added to the table in the same version. A load adds the files of the `new_slices`.
        A replay or a cut replaces the rows of the `replaced` ranges by those of the new slices: they are copied, and
        the log does not name these files. So does a redecode with the rows of its new files. A conversion replaces all
        files of the table by the new ones. An erasure replaces the files that the `replaced` ranges name, and a
        retirement takes them out. A rewind brings back the files and the columns of version `entry.target`.

        Raises:
            CommitConflict: another commit is on top of the snapshot already.
            CommitOutcomeUnknown: whether the entry landed is not known.
            TableReplaced: the table of the snapshot was removed, or another table is in its place.
            CommitRefused: the log was put back, and no longer has the version of the snapshot.
        """

    def sync(self, *, after: int) -> None:
        """Make the versions above `after` survive a loss of power.

        Raises:
            CommitUnknown: they may not survive it.
        """
