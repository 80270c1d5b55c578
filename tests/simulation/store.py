"""A table in memory whose store fails by chance: it loses answers, delays writes, is full, or cannot be read.

Like deltalake it promises one thing: an entry lands directly after the newest entry of its snapshot, or not at all.
`tests/simulation/test_contract.py` tests this for both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from kafka_io.model import BrokerPartition
from kafka_io.records.last_message import LastMessage
from pipelines.loading.ledger import CommitKind, LedgerEntry
from pipelines.loading.table_log import CommitConflict, CommitOutcomeUnknown, TableSnapshot
from pipelines.loading.work import CommittedRange, SliceFacts
from resources.errors import CommitUnknown, FileRefused, LakeUnavailable, RewindRefused, TableReplaced
from tests.simulation.scheduler import Scheduler


class Row(NamedTuple):
    """A row: the columns that identify it, and its payload."""

    id: BrokerPartition
    offset: int
    loaded_at_us: int
    payload: int


Files = Mapping[str, tuple[Row, ...]]
"""The rows of each data file of a version, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the log; `entry` is None if the commit is not from Penstock.

    Housekeeping may delete the files that no version from `cleaned` on contains.
    """

    entry: LedgerEntry | None
    files: Files
    cleaned: int = 0


_EMPTY = Version(entry=None, files={})
"""The first version of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A write that may still land after its caller got an error."""

    number: int
    version: Version


@dataclass(kw_only=True)
class SimStore:
    """A TableLog in memory.

    Args:
        staged: all data files that were ever written, committed or not.
        late: delayed writes, oldest first.
        deleted: the paths of the data files that housekeeping deleted.
        shown: the version that the current run saw last.
        tables: how many tables there were; the id of the present one.
        created: the tick at which the present table was created.
        landed: called with each new version.
        removed: called when somebody has removed the table.

    `compares` makes commits safe: a stale snapshot is a conflict. `knows_tables` too: a snapshot of another table is
    refused. A test removes them to see that the laws then break.
    """

    scheduler: Scheduler
    uri: str = "memory://lake/clicks"
    staged: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=lambda: [_EMPTY])
    late: list[Late] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    full: bool = False
    shown: int = 0
    tables: int = 1
    created: int = 0
    compares: ClassVar[bool] = True
    knows_tables: ClassVar[bool] = True
    landed: Callable[[int], None] = lambda _version: None
    removed: Callable[[], None] = lambda: None

    def stage(self, rows: Sequence[Row]) -> str:
        """Write a data file; returns its path."""
        path = f"date=2026-01-01/{len(self.staged):08d}.parquet"
        self.staged[path] = tuple(rows)
        return path

    @property
    def rows(self) -> list[Row]:
        """The rows that a reader of the newest version sees."""
        return [row for rows in self.versions[-1].files.values() for row in rows]

    def remove(self) -> None:
        """Somebody removes the table with its log. The next load creates a table again."""
        self.versions, self.late = [_EMPTY], []
        self.tables += 1
        self.created = self.scheduler.tick
        self.scheduler.note("the table is removed")
        self.removed()

    def compact(self) -> None:
        """Merge all files into one, in a commit without an entry of Penstock."""
        files = self.versions[-1].files
        self._land(Version(entry=None, files={self.stage(self.rows): tuple(self.rows)} if files else {}))

    def announce_clean(self, before: int) -> list[str]:
        """Announce that housekeeping deletes what no version from `before` on contains; returns these files."""
        newest = self.versions[-1]
        if newest.cleaned < before:
            self._land(Version(entry=None, files=newest.files, cleaned=before))
        kept = {path for version in self.versions[before:] for path in version.files}
        return sorted({path for version in self.versions[:before] for path in version.files} - kept - self.deleted)

    def check_restorable(self, snapshot: TableSnapshot, target: int) -> None:
        """See TableLog."""
        self._read()
        self._check_table(snapshot)
        newest = self.versions[snapshot.version]
        missing = self.versions[target].files.keys() - newest.files.keys()
        kept = self.versions[newest.cleaned].files.keys() if newest.cleaned > target else missing
        if missing & self.deleted or missing - kept:
            raise RewindRefused(f"files of version {target} are deleted, or may be at any time")

    def arrive(self) -> None:
        """Let the oldest delayed write arrive; it lands if its version is still free."""
        if self.late:
            late = self.late.pop(0)
            if late.number == len(self.versions):
                self.scheduler.note(f"version {late.number} lands late")
                self._land(late.version)

    def _land(self, version: Version) -> int:
        self.versions.append(replace(version, cleaned=max(version.cleaned, self.versions[-1].cleaned)))
        self.landed(len(self.versions) - 1)
        return len(self.versions) - 1

    def snapshot(self) -> TableSnapshot:
        """See TableLog."""
        self._read()
        self.shown = len(self.versions) - 1
        return self.peek()

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """See TableLog."""
        self._read()
        self._check_table(snapshot)
        self.shown = len(self.versions) - 1
        return self.peek()

    def _check_table(self, snapshot: TableSnapshot) -> None:
        if self.knows_tables and snapshot.table_id != str(self.tables):
            raise TableReplaced("the table was removed")

    def peek(self) -> TableSnapshot:
        """The newest version, without simulated failures."""
        newest = next((version.entry for version in reversed(self.versions) if version.entry), None)
        return TableSnapshot(
            version=len(self.versions) - 1, entry=newest, table_id=str(self.tables), count=lambda: len(self.rows)
        )

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """See TableLog."""
        self._read()
        return self.logged_entries(upto.version, after=after)

    def logged_entries(self, newest: int, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """The entries, without simulated failures."""
        for version in range(min(newest, len(self.versions) - 1), after, -1):
            entry = self.versions[version].entry
            if entry is not None:
                yield version, entry

    def _read(self) -> None:
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise LakeUnavailable("the store gives no answer")

    def check(self, files: Sequence[SliceFacts]) -> None:
        """See TableLog. A file's size is the number of its rows."""
        self._read()
        for slice_facts in files:
            if slice_facts.path is not None and len(self.staged.get(slice_facts.path, ())) != slice_facts.size:
                raise FileRefused(f"the data file {slice_facts.path} is not what its worker wrote")

    def write(
        self, snapshot: TableSnapshot, entry: LedgerEntry, new: Sequence[SliceFacts], replaced: Sequence[CommittedRange]
    ) -> int:
        """See TableLog. Between the snapshot and a load, somebody else may have compacted the table.

        A replay, a cut and a rewind rewrite or remove files, so no other commit at all may be between.
        """

        def build() -> Version:
            self._check_table(snapshot)
            stale = self.peek().next_sequence != snapshot.next_sequence
            if entry.kind is not CommitKind.LOAD:
                stale = snapshot.version != len(self.versions) - 1
            if self.compares and stale:
                raise CommitConflict(f"version {snapshot.version} is not the newest")
            if entry.target is not None:
                return Version(entry=entry, files=self.versions[entry.target].files)
            files = {facts.path: self.staged[facts.path] for facts in new if facts.path}
            return Version(entry=entry, files={**self._files_without(replaced), **files})

        return self._write(build)

    def _files_without(self, replaced: Sequence[CommittedRange]) -> Files:
        """The newest version's files without the rows of these ranges. A file that loses rows is written again."""
        files: dict[str, tuple[Row, ...]] = {}
        for path, rows in self.versions[-1].files.items():
            kept = tuple(row for row in rows if not any(_is_of(row, committed) for committed in replaced))
            if kept:
                files[path if len(kept) == len(rows) else self.stage(kept)] = kept
        return files

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """See TableLog."""
        self._read()
        rows = self._all_rows(snapshot)
        return [sum(_is_of(row, committed) for row in rows) for committed in ranges]

    def _all_rows(self, snapshot: TableSnapshot) -> list[Row]:
        self._check_table(snapshot)
        version = self.versions[min(snapshot.version, len(self.versions) - 1)]
        return [row for rows in version.files.values() for row in rows]

    def _rows_of(self, snapshot: TableSnapshot, committed: CommittedRange) -> list[Row]:
        return sorted((row for row in self._all_rows(snapshot) if _is_of(row, committed)), key=lambda row: row.offset)

    def row_offsets(self, snapshot: TableSnapshot, committed: CommittedRange) -> list[int]:
        """See TableLog."""
        return [row.offset for row in self._rows_of(snapshot, committed)]

    def message(self, snapshot: TableSnapshot, committed: CommittedRange, offset: int) -> LastMessage:
        """See TableLog."""
        [row] = [row for row in self._rows_of(snapshot, committed) if row.offset == offset]
        return LastMessage(offset=offset, digest=str(row.payload))

    def _write(self, build: Callable[[], Version]) -> int:
        """Write the version that `build` returns. By chance it lands or not, and its answer arrives or not."""
        self.scheduler.seam()
        if self.full:
            raise CommitOutcomeUnknown("no space left on device")
        if self.scheduler.harmed(2):
            fate = self.scheduler.rng.choice([self._lost_before, self._lost_after, self._clashed_after, self._delayed])
            fate(build)
        return self._land(build())

    def _lost_before(self, _build: Callable[[], Version]) -> None:
        self.scheduler.note("a write is lost")
        raise CommitOutcomeUnknown("connection reset by peer")

    def _lost_after(self, build: Callable[[], Version]) -> None:
        self._land(build())
        self.scheduler.note("a write's answer is lost")
        raise CommitOutcomeUnknown("connection reset by peer")

    def _clashed_after(self, build: Callable[[], Version]) -> None:
        """The write lands, but the store's client repeats it, and conflicts with its own entry."""
        self._land(build())
        self.scheduler.note("a write conflicts with itself")
        raise CommitConflict("the version exists already")

    def _delayed(self, build: Callable[[], Version]) -> None:
        self.late.append(Late(number=len(self.versions), version=build()))
        self.scheduler.note("a write is delayed, and reported as lost")
        raise CommitOutcomeUnknown("deadline exceeded")

    def sync(self, *, after: int) -> None:
        """See TableLog."""
        del after
        if self.scheduler.harmed(0.1):
            raise CommitUnknown("the commit landed, but could not be forced to disk")


def _is_of(row: Row, committed: CommittedRange) -> bool:
    offsets = committed.offsets
    same_load = row.loaded_at_us == committed.loaded_at_us
    return same_load and row.id == offsets.partition and offsets.start <= row.offset < offsets.stop
