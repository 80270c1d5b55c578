"""A table in memory whose store fails by chance: it loses answers, delays writes, is full, or cannot be read.

It has other writers too: they merge files, delete rows, set features and properties, and clean up the log.

Like deltalake it promises one thing: an entry lands directly after the newest entry of its snapshot, or not at all.
`tests/simulation/test_contract.py` tests this for both.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, NamedTuple

import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from pipelines.fetch.fetch_task import FetchTask
from pipelines.layout.columns import NO_COLUMNS
from pipelines.layout.layout import EVENT_DAY, LOADED, TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import TAKING_OUT, CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table.exact_sets import ExactSets, inline_exact
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown, TableSnapshot
from resources.errors import (
    CommitUnknown,
    FileRefused,
    LakeUnavailable,
    LogTorn,
    RewindRefused,
    TableForeign,
    TableReplaced,
)
from tests.fakes.open_table import FakeOpenTable
from tests.simulation.scheduler import Scheduler


class Row(NamedTuple):
    """A row: the columns that identify it, and its payload.

    In a typed table `cells` has the columns that hold its value and are not null, in the order of their names.
    """

    id: BrokerPartition
    offset: int
    loaded_at_us: int
    payload: int
    cells: tuple[tuple[str, object], ...] = ()


Files = Mapping[str, tuple[Row, ...]]
"""The rows of each data file of a version, by path."""
_DELETION_VECTORS = "deletionVectors"
_LOG_CLEANUP = "delta.enableExpiredLogCleanup"
_DELETED_OFFSETS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the log; `entry` is None if the commit is not from Penstock.

    Housekeeping may delete the files that no version from `cleaned` on contains. `lost` are the rows that other writers
    have deleted. `columns` are those for the fields of the values.
    """

    entry: LedgerEntry | None
    files: Files
    cleaned: int = 0
    lost: frozenset[Row] = frozenset()
    columns: pa.Schema = NO_COLUMNS


_EMPTY = Version(entry=None, files={})
"""The first version of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A write that may still land after its caller got an error."""

    number: int
    version: Version


@dataclass(kw_only=True)
class SimStore:
    """A TableStore in memory.

    Args:
        is_typed: whether the table has columns for the fields of the values.
        is_by_day: whether the files are in folders of event days.
        staged: all data files that were ever written, committed or not.
        file_columns: the columns for fields that these files have.
        late: delayed writes, oldest first.
        deleted: the paths of the data files that housekeeping deleted.
        shown: the version that the current run saw last.
        tables: how many tables there were; the id of the present one.
        created: the tick at which the present table was created.
        foreign: what other writers set, so that Penstock must not use the table: a feature or a property.
        log_begins: the first version whose entry is still in the log.
        quarantine: the bytes of skipped records, by path.
        landed: called with each new version.
        removed: called when somebody has removed the table.

    `compares` makes commits safe: a stale snapshot is a conflict. `knows_tables` too: a snapshot of another table is
    refused. `refuses` refuses foreign features and properties, and `misses` a log that lacks entries. A test removes
    them to see that the laws then break.
    """

    scheduler: Scheduler
    uri: str = "memory://lake/clicks"
    is_typed: bool = False
    is_by_day: bool = False
    staged: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    file_columns: dict[str, pa.Schema] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=lambda: [_EMPTY])
    late: list[Late] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    full: bool = False
    shown: int = 0
    tables: int = 1
    created: int = 0
    foreign: set[str] = field(default_factory=set)
    log_begins: int = 0
    quarantine: dict[str, bytes] = field(default_factory=dict)
    compares: ClassVar[bool] = True
    knows_tables: ClassVar[bool] = True
    refuses: ClassVar[bool] = True
    misses: ClassVar[bool] = True
    landed: Callable[[int], None] = lambda _version: None
    removed: Callable[[], None] = lambda: None

    def stage(self, rows: Sequence[Row], columns: pa.Schema | None = None, folder: str = "date=2026-01-01") -> str:
        """Write a data file with these columns, or with those of the newest version; returns its path."""
        path = f"{folder}/{len(self.staged):08d}.parquet"
        self.staged[path] = tuple(rows)
        self.file_columns[path] = self.versions[-1].columns if columns is None else columns
        return path

    def staged_files(self, rows: Sequence[Row]) -> tuple[DataFile, ...]:
        """Write a data file, if there are rows, and return what a worker reports of it."""
        return (DataFile(path=self.stage(rows), size=len(rows), rows=len(rows)),) if rows else ()

    @property
    def rows(self) -> list[Row]:
        """The rows that a reader of the newest version sees."""
        return [row for rows in self.versions[-1].files.values() for row in rows]

    def remove(self) -> None:
        """Somebody removes the table with its log. The next load creates a table again."""
        self.versions, self.late = [_EMPTY], []
        self.foreign, self.log_begins = set(), 0
        self.tables += 1
        self.created = self.scheduler.tick
        self.scheduler.note("the table is removed")
        self.removed()

    def compact(self) -> None:
        """Merge all files into one, in a commit without an entry of Penstock."""
        files = self.versions[-1].files
        self._land(self._next({self.stage(self.rows): tuple(self.rows)} if files else {}))

    def delete_rows(self) -> None:
        """A compaction of another writer loses some neighbouring rows. The log does not show it."""
        if self.rows:
            first = self.scheduler.rng.choice(self.rows)
            self.delete(lambda row: row.id == first.id and 0 <= row.offset - first.offset < _DELETED_OFFSETS)

    def delete(self, matches: Callable[[Row], bool]) -> None:
        """A compaction of another writer loses the rows that match."""
        deleted = frozenset(filter(matches, self.rows))
        version = self._next(self._rewritten(lambda row: row not in deleted))
        self.scheduler.note(f"a compaction of another writer loses {len(deleted)} rows")
        self._land(replace(version, lost=version.lost | deleted))

    def add_deletion_vectors(self) -> None:
        """Another writer deletes rows with deletion vectors, which only readers that know this feature understand."""
        self._set(_DELETION_VECTORS)
        self.delete_rows()

    def allow_log_cleanup(self) -> None:
        """Another writer sets the property with which every writer deletes old entries of the log."""
        self._set(_LOG_CLEANUP)

    def _set(self, name: str) -> None:
        self.foreign.add(name)
        self.scheduler.note(f"another writer sets {name}")
        self._land(self._next())

    def clean_log(self) -> None:
        """Somebody deletes the entries of the log that are older than a checkpoint at a random version."""
        self.delete_entries(self.scheduler.rng.randint(self.log_begins, len(self.versions) - 1))

    def delete_entries(self, before: int) -> None:
        """Somebody deletes the entries of the log before a version."""
        self.log_begins = before
        self.scheduler.note(f"the log begins at version {self.log_begins}")

    def repair(self) -> None:
        """The user removes the foreign feature and sets the properties back, as the error says."""
        self.foreign = set()
        self.scheduler.note("the foreign features and properties are removed")
        self._land(self._next())

    def unneeded(self, before: int) -> set[str]:
        """The files that no version from `before` on contains, and that were not deleted yet."""
        kept = {path for version in self.versions[before:] for path in version.files}
        return {path for version in self.versions[:before] for path in version.files} - kept - self.deleted

    def announce_clean(self, before: int) -> None:
        """Announce that housekeeping deletes what no version from `before` on contains."""
        if self.versions[-1].cleaned < before:
            self._land(replace(self._next(), cleaned=before))

    def keep(self, _task: FetchTask, offsets: OffsetRange, data: bytes) -> str:
        """Keep the bytes of skipped records; returns their path."""
        path = f"_quarantine/{len(self.quarantine)}-{offsets.start}-{offsets.stop}.bytes"
        self.quarantine[path] = data
        return path

    def _next(self, files: Files | None = None) -> Version:
        """A version without an entry of Penstock, with the newest version's files or with others of the same rows."""
        return replace(self.versions[-1], entry=None, files=self.versions[-1].files if files is None else files)

    def check_restorable(self, snapshot: TableSnapshot, target: int) -> None:
        """See TableStore."""
        self._read()
        self._check_table(snapshot)
        self._check_entry(target)
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
        """See TableStore."""
        self._read()
        return self._newest()

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """See TableStore."""
        self._read()
        self._check_table(snapshot)
        return self._newest()

    def _newest(self) -> TableSnapshot:
        """The newest version, if Penstock may use the table and its newest entry is in the log."""
        if self.refuses and self.foreign:
            raise TableForeign(f"the table uses {' and '.join(sorted(self.foreign))}")
        self.shown = len(self.versions) - 1
        entry = next((entry for _, entry in self._kept_entries(self.shown)), None)
        return replace(self.peek(), entry=entry)

    def _check_table(self, snapshot: TableSnapshot) -> None:
        if self.knows_tables and snapshot.table_id != str(self.tables):
            raise TableReplaced("the table was removed")

    def peek(self) -> TableSnapshot:
        """The newest version, without simulated failures."""
        newest = next((version.entry for version in reversed(self.versions) if version.entry), None)
        return TableSnapshot(
            version=len(self.versions) - 1,
            entry=newest,
            table_id=str(self.tables),
            layout=TableLayout(is_typed=self.is_typed, values=self.versions[-1].columns).partitioned_by(
                EVENT_DAY if self.is_by_day else LOADED
            ),
            open_table=FakeOpenTable(read=partial(_tables, self.versions[-1].files), uri=self.uri),
        )

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """See TableStore."""
        self._read()
        return self._kept_entries(upto.version, after=after)

    def _kept_entries(self, newest: int, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        for version in range(min(newest, len(self.versions) - 1), after, -1):
            if version < self.log_begins and not self.misses:
                return
            self._check_entry(version)
            entry = self.versions[version].entry
            if entry is not None:
                yield version, entry

    def _check_entry(self, version: int) -> None:
        if self.misses and version < self.log_begins:
            raise LogTorn(f"the log entry {version} is missing")

    def commits(self, version: int, *, after: int = -1) -> Iterator[TableCommit]:
        """See LakeTable: the newest commit comes first. A compaction of another writer hides which rows it loses."""
        self._read()
        for number in range(min(version, len(self.versions) - 1), after, -1):
            entry = self.versions[number].entry
            yield TableCommit(
                version=number,
                time=self.scheduler.now(),
                operation="WRITE",
                entry=entry,
                changed_rows=entry is not None and entry.kind is not CommitKind.LOAD,
            )

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

    def discard(self, files: Sequence[SliceFacts]) -> None:
        """See TableStore."""
        self.deleted |= {file.path for facts in files for file in facts.files}

    def check(self, files: Sequence[SliceFacts]) -> None:
        """See TableStore. A file's size is the number of its rows."""
        self._read()
        for file in (file for slice_facts in files for file in slice_facts.files):
            if len(self.staged.get(file.path, ())) != file.size:
                raise FileRefused(f"the data file {file.path} is not what its worker wrote")

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """See TableStore."""

        def build() -> Version:
            self._check_table(snapshot)
            if self.compares and snapshot.version != len(self.versions) - 1:
                raise CommitConflict(f"version {snapshot.version} is not the newest")
            if entry.target is not None:
                target = self.versions[entry.target]
                return replace(target, entry=entry, cleaned=0)

            # A redecode replaces the rows of its new files.
            decoded_again = [facts.range for facts in new_slices if entry.kind is CommitKind.REDECODE]
            ranges = [*replaced, *decoded_again]

            def stays(row: Row) -> bool:
                return not any(_is_of(row, committed) for committed in ranges)

            files = {file.path: self.staged[file.path] for facts in new_slices for file in facts.files}
            newest = self.versions[-1]
            columns = snapshot.layout.with_columns(entry.columns).values
            if entry.kind in TAKING_OUT:
                removed = {path for committed in replaced for path in committed.paths}
                assert removed <= newest.files.keys(), "files are taken out that the table does not have"
                left = {path: rows for path, rows in newest.files.items() if path not in removed}
                return Version(entry=entry, files={**left, **files}, lost=newest.lost, columns=columns)
            if not ranges:
                return Version(entry=entry, files={**newest.files, **files}, lost=newest.lost, columns=columns)
            lost = newest.lost if decoded_again else frozenset(filter(stays, newest.lost))
            return Version(entry=entry, files={**self._rewritten(stays), **files}, lost=lost, columns=columns)

        return self._write(build)

    def _rewritten(self, stays: Callable[[Row], bool]) -> Files:
        """The newest version's files with the rows that stay. A file that loses rows is written again."""
        files: dict[str, tuple[Row, ...]] = {}
        for path, rows in self.versions[-1].files.items():
            kept = tuple(filter(stays, rows))
            if kept:
                files[path if len(kept) == len(rows) else self.stage(kept)] = kept
        return files

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """See TableStore."""
        self._read()
        rows = self._all_rows(snapshot)
        return [sum(_is_of(row, committed) for row in rows) for committed in ranges]

    def files_of(self, snapshot: TableSnapshot) -> Files:
        """The files of a version, with their rows."""
        self._check_table(snapshot)
        return self.versions[min(snapshot.version, len(self.versions) - 1)].files

    def _all_rows(self, snapshot: TableSnapshot) -> list[Row]:
        return [row for rows in self.files_of(snapshot).values() for row in rows]

    def rows_of(self, snapshot: TableSnapshot, committed: CommittedRange) -> list[Row]:
        """The rows of a range, in the order of their offsets."""
        return sorted((row for row in self._all_rows(snapshot) if _is_of(row, committed)), key=lambda row: row.offset)

    def exact_sets(self, committed: CommittedRange) -> Mapping[ExactCause, ExactOffsets]:
        """See TableStore."""
        return self.sets.within(committed)

    @property
    def sets(self) -> ExactSets:
        """See TableStore. A set that is in the ledger needs no answer of the store."""

        def read(path: str) -> bytes:
            self._read()
            return self.quarantine[path]

        return ExactSets(read)

    def store_exact(self, offsets: ExactOffsets) -> StoredSet:
        """See TableStore."""
        if inline := inline_exact(offsets):
            return inline
        self._read()
        data = offsets.encode()
        path = f"_offsets/{len(self.quarantine):032x}.offsets"
        self.quarantine[path] = data
        return StoredSet(sha256=hashlib.sha256(data).hexdigest(), size=len(data), path=path)

    def row_offsets(self, snapshot: TableSnapshot, committed: CommittedRange) -> list[int]:
        """See TableStore."""
        return [row.offset for row in self.rows_of(snapshot, committed)]

    def message(self, snapshot: TableSnapshot, committed: CommittedRange, offset: int) -> LastMessage:
        """See TableStore."""
        [row] = [row for row in self.rows_of(snapshot, committed) if row.offset == offset]
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
        """See TableStore."""
        del after
        if self.scheduler.harmed(0.1):
            raise CommitUnknown("the commit landed, but could not be forced to disk")


def _tables(files: Files) -> Mapping[str, pa.Table]:
    """The rows of each file, as readers see them."""
    schema = pa.schema([FILE_SCHEMA.field(name) for name in ("broker", "partition", "offset", "loaded_at")])

    def table(rows: Sequence[Row]) -> pa.Table:
        places = [(row.id.broker, row.id.partition, row.offset, row.loaded_at_us) for row in rows]
        return pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(zip(*places, strict=True), schema, strict=True)],
            schema=schema,
        )

    return {path: table(rows) for path, rows in files.items()}


def _is_of(row: Row, committed: CommittedRange) -> bool:
    offsets = committed.offsets
    same_load = row.loaded_at_us == committed.loaded_at_us
    return same_load and row.id == offsets.partition and offsets.start <= row.offset < offsets.stop
