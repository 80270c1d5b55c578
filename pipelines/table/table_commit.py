"""One commit of a table, made by Penstock or by anybody else, and what the newest commits say together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from pipelines.ledger.ledger import SEQUENCE, LedgerEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """The commit that made a version.

    Args:
        version: the version's number.
        time: when it was committed.
        operation: the format's word for what the commit did.
        entry: Penstock's entry; None if somebody else made the commit.
        is_restore: whether the commit brought an old version back.
        restored: the version whose files a restore without an entry brought back, if it says.
        added: the paths of the data files that the commit added to the table.
        changed_rows: whether the commit took rows out of the table or replaced some. A compaction does neither.
        writer: what made the commit, as it says of itself.
        by_others: whether another program added rows to the table, or took some out.
        foreign_files: the statistics of each file that another program has filled with rows, as the format stores them;
            empty without any.
        transactions: the cursors that the commit stored beside its entry, by their application id.
        digest: a digest of what the commit says. No two commits of a table have the same.
    """

    version: int
    time: datetime
    operation: str
    entry: LedgerEntry | None = None
    is_restore: bool = False
    restored: int | None = None
    added: tuple[str, ...] = ()
    changed_rows: bool = False
    writer: str = ""
    by_others: bool = False
    foreign_files: tuple[str, ...] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""

    @property
    def time_ms(self) -> int:
        """When it was committed, in ms since 1970."""
        return round(self.time.timestamp() * 1000)

    def restore_mismatch(self, topic: str | None) -> str:
        """The sentence that says how this restore broke the topic's cursor, and how to repair it."""
        source, arguments = "an old version", ""
        if self.restored is not None:
            source, arguments = f"version {self.restored}", f" {topic} --version {self.restored}"
        return (
            f"version {self.version} restored {source} of the table, but not its cursor: "
            f"`penstock rewind{arguments}` takes both back together"
        )

    def change_by_others(self, topic: str | None) -> str:
        """The sentence that says that this commit changed rows without the ledger, and how to repair it."""
        last = "" if self.foreign_files else f", or `penstock erase {topic} --missing` records that they are gone"
        return (
            f"version {self.version} changed rows of the table, and Penstock did not write it ({self.writer}): "
            f"`penstock rewind {topic} --version {self.version - 1}` takes this back,{'' if last else ' or'} `penstock "
            f"replay {topic} --from earliest --to latest` fetches the rows again{last}"
        )


class NewestCommits(NamedTuple):
    """The facts in the commits from Penstock's newest commit on.

    Args:
        entry: Penstock's newest entry; None if there is none.
        restore: the newest restore by others on top of it (fault L14).
        change: the oldest commit on top of it in which another program changed rows (fault A04).
        sequence: the newest version of the `txn` SEQUENCE in these commits; None if none of them sets it.
        digest: the digest of the newest commit.
        entry_ms: when Penstock's newest entry was committed, in ms since 1970.
    """

    entry: LedgerEntry | None = None
    restore: TableCommit | None = None
    sequence: int | None = None
    digest: str = ""
    entry_ms: int | None = None
    change: TableCommit | None = None


def newest_commits(commits: Iterable[TableCommit]) -> NewestCommits:
    """Read the newest commits down to the one with Penstock's newest entry.

    `commits` are in order of version, newest first; they are read only as far as needed.
    """
    restore, sequence, digest, change = None, None, None, None
    for commit in commits:
        digest = commit.digest if digest is None else digest
        sequence = commit.transactions.get(SEQUENCE) if sequence is None else sequence
        if commit.entry is not None:
            return NewestCommits(commit.entry, restore, sequence, digest, commit.time_ms, change)
        change = commit if commit.by_others else change
        if commit.is_restore and restore is None:
            restore = commit
    return NewestCommits(None, restore, sequence, digest or "", None, change)
