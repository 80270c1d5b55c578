"""History: every commit of a table, and which of them a rewind has cancelled."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.loading.ledger import CommittedRange, LedgerEntry
from pipelines.loading.log_commits import LogCommit
from pipelines.loading.table import LakeTable
from resources.errors import TableMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One commit. `undone_by` is the version of the rewind that cancelled it.

    The numbers are sums over the ranges of the commit's entry. A replay or a cut lists again what remains of the ranges
    that it replaces in part.
    """

    commit: LogCommit
    undone_by: int | None = None

    @property
    def entry(self) -> LedgerEntry | None:
        """Penstock's entry; None if somebody else made the commit."""
        return self.commit.entry

    @property
    def ranges(self) -> tuple[CommittedRange, ...]:
        """The ranges of the entry."""
        return self.entry.ranges if self.entry else ()

    @property
    def rows(self) -> int:
        """The number of rows in the ranges."""
        return sum(committed.rows for committed in self.ranges)

    @property
    def bytes(self) -> int:
        """The bytes that were read for the ranges (see SliceFacts)."""
        return sum(committed.bytes for committed in self.ranges)

    @property
    def files(self) -> int:
        """The number of files that hold the ranges."""
        return len({committed.path for committed in self.ranges if committed.path})

    @property
    def partitions(self) -> int:
        """The number of partitions of the ranges."""
        return len({committed.partition for committed in self.ranges})

    @property
    def gaps(self) -> Mapping[str, int]:
        """The number of offsets without a row, by cause."""
        return dict(sum((Counter(committed.gaps) for committed in self.ranges), Counter()))

    @property
    def sources(self) -> tuple[str, ...]:
        """The brokers that the ranges were read from."""
        return tuple(sorted({committed.source for committed in self.ranges if committed.source}))

    @property
    def what(self) -> str:
        """What the commit did, in a word or two."""
        if self.entry is None:
            return self.commit.operation
        return f"rewind to {self.entry.target}" if self.entry.target is not None else str(self.entry.kind)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a person should know about the commit."""
        undone = (f"cancelled by version {self.undone_by}",) if self.undone_by is not None else ()
        restored = (f"version {self.commit.restored}",) if self.commit.restored is not None else ()
        choices = map(str, self.entry.choices) if self.entry else ()
        sources = (f"from {', '.join(self.sources)}",) if self.sources else ()
        code = (f"by {self.entry.code}",) if self.entry else ()
        return (*undone, *restored, *choices, *sources, *code)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock history --json`; a commit of others has fewer."""
        commit, entry = self.commit, self.entry
        common = {
            "version": commit.version,
            "time": commit.time.isoformat(),
            "operation": commit.operation,
            "restored": commit.restored,
            "undone_by": self.undone_by,
            "kind": None,
        }
        if entry is None:
            return common
        names = ("kind", "run", "commit", "sequence", "code", "target")
        return {
            **common,
            **{name: getattr(entry, name) for name in names},
            "incarnation": entry.topic.incarnation,
            "rows": self.rows,
            "bytes": self.bytes,
            "files": self.files,
            "gaps": self.gaps,
            "sources": list(self.sources),
            "choices": [asdict(choice) for choice in entry.choices],
            "covered": {str(partition): list(offsets) for partition, offsets in sorted(entry.covered.items())},
            "ranges": [committed.as_dict() for committed in entry.ranges],
        }


def history(table: LakeTable) -> Iterator[HistoryEntry]:
    """The table's commits, newest first; the log is read only as far as the caller reads on.

    Raises:
        TableMissing: there is no table.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    snapshot = table.newest()
    if snapshot is None:
        raise TableMissing(f"there is no table {table.uri}", table.where)
    return with_rewinds(table.commits(snapshot.version))


def with_rewinds(commits: Iterable[LogCommit]) -> Iterator[HistoryEntry]:
    """Commits, newest first, each with the rewind that cancelled it; `effective_entries` leaves out the same ones."""
    rewind, target = 0, None
    for commit in commits:
        if target is not None and commit.version > target:
            yield HistoryEntry(commit=commit, undone_by=rewind)
            continue
        yield HistoryEntry(commit=commit)
        if commit.entry is not None:
            rewind, target = commit.version, commit.entry.target
