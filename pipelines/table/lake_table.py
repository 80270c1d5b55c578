"""The interface of a topic's table for all that reads or changes it: loads, proofs, housekeeping, increments, pages.

Rooms above know a table only by this interface, whatever its format is. `pipelines.formats` opens tables.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol, Self

from kafka_io.errors import Where
from pipelines.table.open_table import OpenTable
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.stores.lake import Lake

DAMAGED = "_damaged"
"""The folder for damaged data files inside a table. Names with an underscore are hidden from readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubResult:
    """The result of removing values from the metadata of a table.

    Args:
        columns: the personal columns of the table.
        commits: the number of commits that had bounds of them and have none now.
        others: the number of other objects of the metadata that were deleted or replaced.
        unsupported: why nothing was done although the table has personal columns; empty if all was done.
    """

    columns: tuple[str, ...] = ()
    commits: int = 0
    others: int = 0
    unsupported: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The result of merging small files.

    Args:
        merged: the number of small files that were merged.
        larger: the number of files that they became.
        busy: whether another writer was first, so that the rest was not merged.
    """

    merged: int = 0
    larger: int = 0
    busy: bool = False

    def plus(self, merged: int, larger: int) -> Self:
        """The result with more merged files."""
        return replace(self, merged=self.merged + merged, larger=self.larger + larger)

    def interrupted(self) -> Self:
        """The result if another writer was first with the next step."""
        return replace(self, busy=True)


class LakeTable(TableStore, Protocol):
    """One topic's table in a lake."""

    @property
    def lake(self) -> Lake:
        """The lake of the table."""

    @property
    def where(self) -> Where:
        """The cluster and the topic, for messages."""

    def even_if_mismatched(self) -> Self:
        """The same table, which also opens if its cursors do not match its rows."""

    def existing(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """The newest version; None if there is no table. Of the version `after` of a table only newer entries are read.

        Raises:
            LakeUnavailable: the store does not answer.
            LogTorn: a commit of the table cannot be read.
            TableForeign: the table has commits, but none of Penstock; or it uses a feature that changes what its files
                mean; or its cursors expire, so that one could be lost (fault L15).
            CursorMismatch: the stored cursor is not where the newest entry left it, or somebody restored an old
                version (fault L14).
        """

    def newest(self, *, after: TableSnapshot | None = None) -> TableSnapshot | None:
        """The newest version, even if its cursors do not match, to show or repair it; None if there is no table.

        Raises:
            LoadError: see `existing`, except CursorMismatch.
        """

    def open_newest(self) -> OpenTable | None:
        """The newest version, even if no load can continue from it; None if there is no table.

        Raises:
            LakeUnavailable: the store does not answer.
            LogTorn: a commit of the table cannot be read.
            TableForeign: the table uses a feature that Penstock does not know.
        """

    def check_loadable(self, opened: OpenTable) -> None:
        """Check that a load could continue from the version that `open_newest` gave.

        Raises:
            LoadError: see `existing`.
        """

    def commits(self, newest: int, *, after: int = -1) -> Iterator[TableCommit]:
        """Every commit of the versions in `(after, newest]`, newest first.

        Raises:
            LogTorn: a commit is missing or damaged.
            LakeUnavailable: the store does not answer.
        """

    def commits_of(self, opened: OpenTable) -> Iterator[TableCommit]:
        """Every commit of the table up to an opened version, newest first; those that were read are not read again.

        Raises:
            LogTorn, LakeUnavailable: see `commits`.
        """

    def opened_at(self, version: int) -> OpenTable:
        """An older version of the table, which exists."""

    def oldest(self, version: int) -> int:
        """The oldest version from this one on whose files are known."""

    def paths(self, version: int) -> set[str]:
        """The paths of the data files of a version, relative to the table."""

    def written_ns(self, version: int) -> int | None:
        """When the newest version was written, in ns since 1970; None if the newest is not this version.

        Raises:
            LakeUnavailable: the store does not answer.
        """

    def damaged(self, opened: OpenTable) -> frozenset[str]:
        """The data files of the version that are missing, or have another size than the table says."""

    def drop(self, snapshot: TableSnapshot, damaged: Collection[str]) -> TableSnapshot:
        """Take damaged files out of the table, in a commit of its own; returns the table after it.

        Raises:
            LakeUnavailable: that failed, for example because another writer was first.
        """

    def cleaned_before(self, snapshot: TableSnapshot) -> int:
        """The version before which housekeeping deletes files: those that no version from it on contains."""

    def announce_clean(self, snapshot: TableSnapshot, before: int) -> None:
        """Announce that housekeeping deletes the files that no version from `before` on contains (fault P14).

        Raises:
            CommitConflict: another writer was first.
            LakeRefused: the table takes no such commit.
        """

    def compact(self, days: Sequence[date | None] | None, target_bytes: int) -> Compaction:
        """Merge the small files of these days, or of all folders if `days` is None; the rows stay the same.

        Raises:
            LakeRefused: the table takes no such commit.
        """

    def checkpoint(self) -> None:
        """Make the newest version cheap to open, and make it survive a loss of power."""

    def forget(self, before: int) -> None:
        """Let go of metadata that only versions before this one need. The ledger stays complete."""

    def scrub(self, names: Collection[str] = (), *, deleted: Collection[str] = (), after: int = -1) -> ScrubResult:
        """Remove bounds of personal columns and of deleted files from the metadata, and put wrong ones right."""

    def objects_with_bounds(self, names: Collection[str] = (), *, deleted: Collection[str] = ()) -> int:
        """The number of objects of the metadata from which `scrub` would remove bounds."""
