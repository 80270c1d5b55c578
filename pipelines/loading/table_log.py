"""What a commit needs of a table: a snapshot to build on, and a write that lands on that very snapshot or not at all.

`LakeTable` is the real one. Simulations put one in its place whose store loses answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipelines.loading.ledger import Entry, Range
from pipelines.loading.work import Facts


class Clash(Exception):
    """Another writer was first; nothing of this write is visible."""


class NoAnswer(Exception):
    """The write failed, and whether it landed is not known (L03)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table as one version has it. `entry` is the newest of Penstock, None before the first.

    `handle` is what the table needs to write on top of this very version. `strayed` says why the rows are not those
    that the entry's cursors tell of: no load goes on from there.
    """

    version: int
    entry: Entry | None
    strayed: str | None = None
    handle: Any = field(default=None, repr=False, compare=False)

    @property
    def next_sequence(self) -> int:
        """The number of a commit on top of it."""
        return self.entry.sequence + 1 if self.entry else 1


class TableLog(Protocol):
    """One topic's table."""

    @property
    def uri(self) -> str:
        """Where it is."""
        ...

    def snapshot(self) -> Snapshot:
        """The newest version. A table that is not there yet is made.

        Raises:
            LoadError: it cannot be read, or must not be written to.
        """
        ...

    def entries(self, upto: Snapshot, *, after: int = -1) -> Iterator[tuple[int, Entry]]:
        """Version and entry of Penstock's commits in `(after, upto.version]`, newest first."""
        ...

    def check(self, files: Sequence[Facts]) -> None:
        """Every file that `files` name is there, and is what its worker wrote.

        Raises:
            FileRefused: one is not.
        """
        ...

    def append(self, at: Snapshot, entry: Entry, files: Sequence[Facts]) -> int:
        """Write `entry` and the files on top of `at`; the version they became.

        Raises:
            Clash: another commit is on top of it already.
            NoAnswer: it is not known whether they landed.
        """
        ...

    def held(self, at: Snapshot, pieces: Sequence[Range]) -> list[int]:
        """How many rows of each piece the table has: rows of its partition, offsets and loading time."""
        ...

    def replace(self, at: Snapshot, entry: Entry, pieces: Sequence[Range], files: Sequence[Facts]) -> int:
        """Write `entry` on top of `at`, with the rows of `files` instead of those of `pieces`; the version.

        The files themselves are read, and not named by the log. Raises what `append` does.
        """
        ...

    def restore(self, at: Snapshot, entry: Entry) -> int:
        """Write `entry` on top of `at`, with the files that its target had; the version. Raises what `append` does."""
        ...

    def sync(self, *, after: int) -> None:
        """Make the versions above `after` outlast a loss of power.

        Raises:
            CommitUnknown: they may not.
        """
        ...
