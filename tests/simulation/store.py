"""A table in memory whose store loses answers, lets writes land late, is full at times, and cannot always be read.

It keeps the one promise that deltalake gives (`tests/simulation/test_contract.py` holds both to the same): an entry
lands on top of the newest entry that its snapshot has seen, or not at all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Entry, Range
from pipelines.loading.table_log import Clash, NoAnswer, Snapshot
from pipelines.loading.work import Facts
from resources.errors import CommitUnknown, FileRefused, LakeUnavailable
from tests.simulation.scheduler import Scheduler


class Row(NamedTuple):
    """A row, by the columns that tell it from others, and its payload."""

    id: BrokerPartition
    offset: int
    loaded_at_us: int
    payload: int


Files = Mapping[str, tuple[Row, ...]]
"""The rows of each file that a version names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One entry of the log; `entry` is None of what is not Penstock's."""

    entry: Entry | None
    files: Files


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A write that is still under way after its caller was told that it failed."""

    number: int
    version: Version


@dataclass(kw_only=True)
class SimStore:
    """A TableLog. `staged` are all files that were ever written, whether a version names them or not.

    `shown` is the version that the run at work saw last. `compares` is what makes commits safe; a test takes it away to
    see that it is missed.
    """

    scheduler: Scheduler
    uri: str = "memory://lake/clicks"
    staged: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=lambda: [Version(entry=None, files={})])
    late: list[Late] = field(default_factory=list)
    full: bool = False
    shown: int = 0
    compares: ClassVar[bool] = True
    landed: Callable[[int], None] = lambda _version: None

    def stage(self, rows: Sequence[Row]) -> str:
        """Write a data file; its path."""
        path = f"date=2026-01-01/{len(self.staged):08d}.parquet"
        self.staged[path] = tuple(rows)
        return path

    @property
    def rows(self) -> list[Row]:
        """What any reader of the newest version sees."""
        return [row for rows in self.versions[-1].files.values() for row in rows]

    def compact(self) -> None:
        """Somebody writes the rows of all small files into one, in a commit without an entry."""
        files = self.versions[-1].files
        self._land(Version(entry=None, files={self.stage(self.rows): tuple(self.rows)} if files else {}))

    def arrive(self) -> None:
        """The oldest write that is under way arrives; it lands if its place in the log is free still."""
        if self.late:
            one = self.late.pop(0)
            if one.number == len(self.versions):
                self.scheduler.tell(f"version {one.number} lands late")
                self._land(one.version)

    def _land(self, version: Version) -> int:
        self.versions.append(version)
        self.landed(len(self.versions) - 1)
        return len(self.versions) - 1

    def snapshot(self) -> Snapshot:
        """See TableLog."""
        self._read()
        self.shown = len(self.versions) - 1
        return self.peek()

    def peek(self) -> Snapshot:
        """The newest version, which nothing keeps from being seen."""
        newest = next((one.entry for one in reversed(self.versions) if one.entry), None)
        return Snapshot(version=len(self.versions) - 1, entry=newest)

    def entries(self, upto: Snapshot, *, after: int = -1) -> Iterator[tuple[int, Entry]]:
        """See TableLog."""
        self._read()
        return self.told(upto.version, after=after)

    def told(self, newest: int, *, after: int = -1) -> Iterator[tuple[int, Entry]]:
        """The entries, which nothing keeps from being read."""
        for version in range(newest, after, -1):
            entry = self.versions[version].entry
            if entry is not None:
                yield version, entry

    def _read(self) -> None:
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise LakeUnavailable("the store gives no answer")

    def check(self, files: Sequence[Facts]) -> None:
        """See TableLog. A file's size is the number of its rows."""
        self._read()
        for one in files:
            if one.path is not None and len(self.staged.get(one.path, ())) != one.size:
                raise FileRefused(f"the data file {one.path} is not what its worker wrote")

    def append(self, at: Snapshot, entry: Entry, files: Sequence[Facts]) -> int:
        """See TableLog. What is not Penstock's may lie between."""

        def made() -> Version:
            if self.compares and self.peek().next_sequence != at.next_sequence:
                raise Clash(f"version {at.version} is not the newest")
            new = {one.path: self.staged[one.path] for one in files if one.path}
            return Version(entry=entry, files={**self.versions[-1].files, **new})

        return self._write(made)

    def held(self, at: Snapshot, pieces: Sequence[Range]) -> list[int]:
        """See TableLog."""
        self._read()
        rows = [row for rows in self.versions[at.version].files.values() for row in rows]
        return [sum(_is_of(row, piece) for row in rows) for piece in pieces]

    def replace(self, at: Snapshot, entry: Entry, pieces: Sequence[Range], files: Sequence[Facts]) -> int:
        """See TableLog. It writes files anew, so nothing at all may lie between."""

        def made() -> Version:
            self._check_newest(at)
            kept: dict[str, tuple[Row, ...]] = {}
            for path, rows in self.versions[-1].files.items():
                left = tuple(row for row in rows if not any(_is_of(row, piece) for piece in pieces))
                if left:
                    kept[path if len(left) == len(rows) else self.stage(left)] = left
            new = {one.path: self.staged[one.path] for one in files if one.path}
            return Version(entry=entry, files={**kept, **new})

        return self._write(made)

    def restore(self, at: Snapshot, entry: Entry) -> int:
        """See TableLog."""

        def made() -> Version:
            self._check_newest(at)
            assert entry.target is not None
            return Version(entry=entry, files=self.versions[entry.target].files)

        return self._write(made)

    def _check_newest(self, at: Snapshot) -> None:
        if self.compares and at.version != len(self.versions) - 1:
            raise Clash(f"version {at.version} is not the newest")

    def _write(self, made: Callable[[], Version]) -> int:
        """What `made` gives lands, or does not, and is answered or not; by chance."""
        self.scheduler.seam()
        if self.full:
            raise NoAnswer("no space left on device")
        if self.scheduler.harmed(2):
            fate = self.scheduler.rng.choice([self._lost_before, self._lost_after, self._clashed_after, self._delayed])
            fate(made)
        return self._land(made())

    def _lost_before(self, _made: Callable[[], Version]) -> None:
        self.scheduler.tell("a write is lost")
        raise NoAnswer("connection reset by peer")

    def _lost_after(self, made: Callable[[], Version]) -> None:
        self._land(made())
        self.scheduler.tell("a write's answer is lost")
        raise NoAnswer("connection reset by peer")

    def _clashed_after(self, made: Callable[[], Version]) -> None:
        """The store's client tries by itself once more, and runs into its own write."""
        self._land(made())
        self.scheduler.tell("a write clashes with itself")
        raise Clash("the version is there already")

    def _delayed(self, made: Callable[[], Version]) -> None:
        self.late.append(Late(number=len(self.versions), version=made()))
        self.scheduler.tell("a write is under way, and is told as lost")
        raise NoAnswer("deadline exceeded")

    def sync(self, *, after: int) -> None:
        """See TableLog."""
        del after
        if self.scheduler.harmed(0.1):
            raise CommitUnknown("the commit landed, but could not be forced to disk")


def _is_of(row: Row, piece: Range) -> bool:
    return row.loaded_at_us == piece.loaded_at_us and row.id == piece.id and piece.start <= row.offset < piece.stop
