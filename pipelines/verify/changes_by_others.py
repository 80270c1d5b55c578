"""Finds the ranges whose rows another program may have changed, as the delta log shows it (fault A04).

A program that updates or overwrites rows commits files with new rows, and no entry of the ledger. Their number may be
right, so a count does not show it. The bounds of such a file say which ranges it may hold. A range that Penstock wrote
later is not in it. Commits that a rewind has cancelled do not count.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple, Self

from kafka_io.model import BrokerPartition
from pipelines.layout.layout import TableLayout
from pipelines.ledger.committed_range import CommittedRange, LoadedRange
from pipelines.ledger.incarnations import MAX_PROBLEMS, RangeFold
from pipelines.ledger.ledger import LedgerEntry
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.range_file import EARLIEST, LATEST

_MAX_NAMED = 5
_ROUNDED_US = 1_000
"""The loading times in the log may be in milliseconds."""


class _Bounds(NamedTuple):
    """The first and the last value of a column in a file."""

    first: int
    last: int

    def overlap(self, start: int, stop: int) -> bool:
        """Whether the file may have a value in `[start, stop)`."""
        return self.first < stop and start <= self.last


class _ForeignFile(NamedTuple):
    """What Delta's statistics say about a file that another program wrote."""

    brokers: _Bounds
    partitions: _Bounds
    offsets: _Bounds
    loaded_us: _Bounds

    @classmethod
    def of(cls, statistics: str, layout: TableLayout) -> Self:
        """The bounds of a file. A column without bounds may have every value."""
        bounds = (_bounds(statistics, layout.name(name)) for name in ("broker", "partition", "offset", "loaded_at"))
        return cls(*bounds)

    def may_hold(self, committed: CommittedRange) -> bool:
        """Whether rows of the range may be in the file."""
        broker, number = committed.partition.broker, committed.partition.partition
        offsets, loaded_us = committed.offsets, committed.loaded_at_us
        return (
            (broker is None or self.brokers.overlap(broker, broker + 1))
            and self.partitions.overlap(number, number + 1)
            and self.offsets.overlap(offsets.start, offsets.stop)
            and self.loaded_us.overlap(loaded_us - _ROUNDED_US, loaded_us + _ROUNDED_US)
        )


class _Change:
    """A commit of another program that changed rows, and the ranges that it may have changed."""

    def __init__(self, commit: TableCommit, layout: TableLayout, *, is_newest: bool) -> None:
        self.commit, self.is_newest = commit, is_newest
        self.ranges: dict[BrokerPartition, tuple[int, int]] = {}
        self._files = [_ForeignFile.of(statistics, layout) for statistics in commit.foreign_files]

    def compare(self, committed: CommittedRange) -> None:
        """Note an older range if the files of the commit may hold rows of it."""
        if committed.rows and any(file.may_hold(committed) for file in self._files):
            offsets = committed.offsets
            start, stop = self.ranges.get(offsets.partition, (offsets.start, offsets.stop))
            self.ranges[offsets.partition] = min(start, offsets.start), max(stop, offsets.stop)

    def problem(self, topic: str) -> str:
        """The change as a problem of the table."""
        named = [f"partition {number} [{start}, {stop})" for number, (start, stop) in sorted(self.ranges.items())]
        more = [f"{len(named) - _MAX_NAMED} more partitions"] if len(named) > _MAX_NAMED else []
        wrote = f"; it wrote rows of {', '.join([*named[:_MAX_NAMED], *more])}" if named else ""
        return f"{self.commit.change_by_others(topic)}{wrote}"


class ChangesByOthers:
    """The commits of other programs that changed rows of a table. They are found while its log is read once."""

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout
        self._changes: list[_Change] = []
        self._entry: LedgerEntry | None = None
        self._copied: list[CommittedRange] = []

    @classmethod
    def of(cls, table: LakeTable, snapshot: TableSnapshot) -> Self:
        """The changes in a version of a table."""
        changes = cls(snapshot.layout)
        commits = changes.watch(table.commits(snapshot.version))
        entries = ((commit.version, commit.entry) for commit in commits if commit.entry is not None)
        for _, committed in RangeFold().effective(entries):
            changes.compare(committed)
        return changes

    @property
    def any(self) -> bool:
        """Whether another program has written rows of a range that counts."""
        return any(change.ranges for change in self._changes)

    def watch(self, commits: Iterable[TableCommit]) -> Iterator[TableCommit]:
        """All commits of a log, newest first. Each is looked at before it is given."""
        target: int | None = None
        for commit in commits:
            if target is None or commit.version <= target:
                if commit.entry is not None:
                    self._entry, target = commit.entry, commit.entry.target
                elif commit.by_others:
                    self._note(_Change(commit, self._layout, is_newest=self._entry is None))
            yield commit

    def _note(self, change: _Change) -> None:
        self._changes.append(change)
        for committed in self._copied:
            change.compare(committed)

    def compare(self, committed: CommittedRange) -> None:
        """Compare a range that counts, of the entry that was given last, with all newer changes.

        A replay or a cut also names ranges whose rows it only copied: these are compared with older changes too.
        """
        for change in self._changes:
            change.compare(committed)
        entry = self._entry
        if entry and entry.replaces_rows and LoadedRange.of(committed) not in entry.written:
            self._copied.append(committed)

    def of_written_rows(self, topic: str) -> Iterator[str]:
        """A problem for each change that wrote rows of a range: nobody can see which of them are the right ones."""
        yield from (change.problem(topic) for change in self._changes if change.ranges)

    def problems(self, topic: str, *, named: bool) -> Iterator[str]:
        """A problem for each change that matters, or for all of them if they are to be `named`.

        A change matters if it wrote rows of a range, or if no load continues from it.
        """
        chosen = [change for change in self._changes if named or change.ranges or change.is_newest]
        yield from (change.problem(topic) for change in chosen[:MAX_PROBLEMS])


def _bounds(statistics: str, name: str) -> _Bounds:
    try:
        stored = json.loads(statistics)
        return _Bounds(
            _number(stored["minValues"][name], -_ROUNDED_US), _number(stored["maxValues"][name], _ROUNDED_US)
        )
    except (KeyError, TypeError, ValueError):  # the file has no statistics, or none of the column
        return _Bounds(EARLIEST, LATEST)


def _number(bound: int | str, rounded_us: int) -> int:
    """A bound as a number: an integer, or a time in microseconds since 1970, made wider by what was rounded."""
    if isinstance(bound, int):
        return bound
    return round(datetime.fromisoformat(bound).timestamp() * 1_000_000) + rounded_us
