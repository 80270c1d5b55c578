"""History: every commit of a table, and which of them a rewind has cancelled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self

from pipelines.layout.delta_schema import type_text
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.event_time import utc_text
from pipelines.ledger.ledger import Coverage, LedgerEntry, totals
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from resources.errors import TableMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOfOthers:
    """The JSON of a commit of another program."""

    version: int
    time: datetime
    operation: str
    restored: int | None
    undone_by: int | None
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCommit(CommitOfOthers):
    """A result of `penstock history`. A commit of another program has only the fields up to `kind`."""

    run: str = ""
    commit: str = ""
    sequence: int = 0
    code: str = ""
    target: int | None = None
    incarnation: str = ""
    rows: int = 0
    bytes: int = 0
    files: int = 0
    gaps: Mapping[str, int] = field(default_factory=dict)
    sources: Sequence[str] = ()
    choices: Sequence[Mapping[str, Any]] = ()
    """The ledger stores them in this form."""
    covered: Coverage = field(default_factory=dict)
    ranges: Sequence[Mapping[str, Any]] = ()
    """The ledger stores them in this form."""
    columns: Sequence[Mapping[str, Any]] = ()
    """The columns that the commit added to a typed table, as fields of Delta's schema."""
    request: str = ""
    """The request for which an erasure was made; empty for other commits."""
    former: Sequence[Mapping[str, Any]] = ()
    """The ranges of former topics of the same name from which an erasure took rows, as the ledger stores them."""
    event_time: Mapping[str, Any] | None = None
    """The event time after the commit, as the ledger stores it; None if the settings do not ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One commit, with sums over the ranges of its entry.

    A replay or a cut lists again what remains of the ranges that it replaces in part.

    Args:
        commit: the commit.
        undone_by: the version of the rewind that cancelled it.
        rows: the number of rows in the ranges.
        bytes: the bytes that were read for the ranges (see CommittedRange).
        files: the number of files that hold the ranges.
        gaps: the number of offsets without a row, by cause.
    """

    commit: TableCommit
    undone_by: int | None = None
    rows: int
    bytes: int
    files: int
    gaps: Mapping[str, int]

    @classmethod
    def of(cls, commit: TableCommit, undone_by: int | None) -> Self:
        """The entry of the commit."""
        return cls(commit=commit, undone_by=undone_by, **totals(commit.entry.all_ranges if commit.entry else ()))

    @property
    def entry(self) -> LedgerEntry | None:
        """Penstock's entry; None if somebody else made the commit."""
        return self.commit.entry

    @property
    def ranges(self) -> tuple[CommittedRange, ...]:
        """The ranges of the entry."""
        return self.entry.all_ranges if self.entry else ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The brokers that the ranges were read from."""
        return tuple(sorted({committed.source for committed in self.ranges if committed.source}))

    @property
    def what(self) -> str:
        """The kind of the commit in a word or two."""
        if self.entry is None:
            return self.commit.operation
        return f"rewind to {self.entry.target}" if self.entry.target is not None else str(self.entry.kind)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts about the commit, as sentences for people."""
        undone = (f"cancelled by version {self.undone_by}",) if self.undone_by is not None else ()
        restored = (f"version {self.commit.restored}",) if self.commit.restored is not None else ()
        choices = map(str, self.entry.choices) if self.entry else ()
        sources = (f"from {', '.join(self.sources)}",) if self.sources else ()
        code = (f"by {self.entry.code}",) if self.entry else ()
        request = (f"request {self.entry.erasure.request}",) if self.entry and self.entry.erasure.request else ()
        columns = [
            f"column {field['name']} {type_text(field['type'])}" for field in (self.entry.columns if self.entry else ())
        ]
        return (*undone, *restored, *request, *columns, *choices, *self._event_time_notes, *sources, *code)

    @property
    def _event_time_notes(self) -> Iterator[str]:
        """Sentences about the event time of the commit."""
        times = self.entry.event_time if self.entry else None
        if times and times.late:
            yield f"{sum(times.late.values()):,} late rows"
        if times and times.moved_back_by:
            through = "nothing" if times.valid_through_ms is None else utc_text(times.valid_through_ms)
            yield f"valid through {through}, moved back by {times.moved_back_by}"

    def printed(self) -> CommitOfOthers:
        """The JSON of the commit."""
        entry = self.entry
        common = {name: getattr(self.commit, name) for name in ("version", "time", "operation", "restored")}
        if entry is None:
            return CommitOfOthers(undone_by=self.undone_by, **common)
        names = ("kind", "run", "commit", "sequence", "code", "target", "columns")
        return PrintedCommit(
            **common,
            **{name: getattr(self, name) for name in ("undone_by", "rows", "bytes", "files", "gaps", "sources")},
            **{name: getattr(entry, name) for name in names},
            incarnation=entry.topic.incarnation,
            choices=[asdict(choice) for choice in entry.choices],
            covered=dict(sorted(entry.covered.items())),
            ranges=[committed.as_dict() for committed in entry.ranges],
            request=entry.erasure.request,
            former=[own.as_dict() for own in entry.erasure.former],
            event_time=entry.event_time.as_dict() if entry.event_time else None,
        )


def history(table: LakeTable) -> Iterator[HistoryEntry]:
    """The table's commits, newest first; the log is read only as far as the caller reads on.

    Raises:
        TableMissing: there is no table.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    return with_rewinds(table.commits(newest_version(table).version))


def newest_version(table: LakeTable) -> TableSnapshot:
    """The newest version, even if its cursors do not match its rows.

    Raises:
        TableMissing: there is no table.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    snapshot = table.newest()
    if snapshot is None:
        raise TableMissing(f"there is no table {table.uri}", table.where)
    return snapshot


def with_rewinds(commits: Iterable[TableCommit]) -> Iterator[HistoryEntry]:
    """Commits, newest first; a cancelled one has the version of its rewind. `effective_entries` leaves it out."""
    rewind, target = 0, None
    for commit in commits:
        is_undone = target is not None and commit.version > target
        yield HistoryEntry.of(commit, rewind if is_undone else None)
        if commit.entry is not None and not is_undone:
            rewind, target = commit.version, commit.entry.target
