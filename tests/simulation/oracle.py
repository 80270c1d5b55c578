"""The laws that a table must satisfy at every moment; the oracle knows what the logs really contained.

It looks at the table from outside: at its log, its rows, what each fetch really read, and what every run was told to
let pass. It shares with the code under test only the folding of the ledger into live ranges, which has tests of its
own.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kafka_io.model import BrokerPartition
from pipelines.loading.incarnations import IncarnationRanges, incarnations
from pipelines.loading.ledger import CommitKind, Coverage, LedgerEntry
from pipelines.loading.load import EXPIRED
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.work import CommittedRange
from resources.choices import Choices
from tests.simulation.brokers import SimCluster
from tests.simulation.store import Files, Row, SimStore
from tests.simulation.workers import Read, SimWorkers

Rows = Mapping[tuple[BrokerPartition, int], Mapping[int, int]]
"""Payloads by offset, for each partition and loading time."""
_UNSURE = ("CommitUnknown", "LakeUnavailable")
"""After these errors a commit may have landed, or may still land."""


class Broken(Exception):
    """The table, or what a run reported about it, is wrong."""


@dataclass(slots=True, kw_only=True)
class Oracle:
    """Checks one table. `choices` are the choices of every run so far."""

    cluster: SimCluster
    store: SimStore
    workers: SimWorkers
    choices: dict[str, Choices] = field(default_factory=dict)
    seen: int = 0
    _lives: list[IncarnationRanges] = field(default_factory=list)
    _parts: dict[str, Rows] = field(default_factory=dict)

    def look(self, version: int) -> None:
        """Check the newest version, which was just written.

        Raises:
            Broken: it is not what it must be.
        """
        _demand(version == self.seen + 1, "every version is seen")
        self.seen = version
        entry = self.store.versions[version].entry
        if entry is not None:
            self._judge_entry(entry, next(self.store.logged_entries(version - 1), (-1, None))[1])
        self._lives = incarnations(self.store.logged_entries(version))
        rows = self._by_loading(self.store.versions[version].files)
        outside = len(self.store.rows) - sum(self._judge_life(life, rows) for life in self._lives)
        _demand(outside == 0, f"{outside} rows lie outside of every live range")
        if self._lives:
            self._judge_cursors(self._lives[0], next(self.store.logged_entries(version))[1])

    def _by_loading(self, files: Files) -> Rows:
        result: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
        for path, rows in files.items():
            if path not in self._parts:  # a file never changes once a version names it
                self._parts[path] = _parts(rows)
            for key, part in self._parts[path].items():
                _demand(not part.keys() & result[key].keys(), f"{path} holds rows that are there already")
                result[key].update(part)
        return result

    def _judge_entry(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a cursor moves back, or the incarnation changes, only if the run's choices allow it."""
        _demand(entry.sequence == (before.sequence + 1 if before else 1), "commits are counted up")
        choices = self.choices[entry.run]
        settings = {choice.setting for choice in entry.choices}
        covered: Coverage = before.covered if before else {}
        if before and before.topic != entry.topic and entry.kind is not CommitKind.REWIND:
            _demand(choices.on_recreated == "restart" and "on_recreated" in settings, "a new life begins by choice")
            covered = {}
        if entry.kind is CommitKind.CUT:
            _demand(choices.on_truncated == "rewind" and "on_truncated" in settings, "a cut is made by choice")
        if entry.kind in {CommitKind.LOAD, CommitKind.REPLAY}:
            for id_, (start, cursor) in covered.items():
                now = entry.covered.get(id_, (0, -1))
                _demand(now[0] <= start and cursor <= now[1], f"{id_} went from {(start, cursor)} to {now}")
        if any(EXPIRED in committed.gaps for committed in entry.ranges) and entry.kind is CommitKind.LOAD:
            _demand(choices.on_expired == "skip" and "on_expired" in settings, "a hole is left by choice")

    def _judge_life(self, life: IncarnationRanges, rows: Rows) -> int:
        """Check that each offset of the ranges has one row, equal to the brokers', or is in a gap; returns the rows."""
        _demand(not life.problems, "; ".join(life.problems))
        for committed, after in pairwise(life.ranges):
            if committed.partition == after.partition and committed.offsets.stop != after.offsets.start:
                raise Broken(f"{after} does not follow {committed}")
        return sum(self._judge_range(life.topic.incarnation, committed, rows) for committed in life.ranges)

    def _judge_range(self, incarnation: str, one: CommittedRange, rows: Rows) -> int:
        present = _within(one, rows.get((one.partition, one.loaded_at_us), {}))
        truth: dict[int, int] = {}
        for read in self._reads(one):
            if read.incarnation != incarnation:
                raise Broken(f"{one} of {incarnation} was read in {read.incarnation}")
            truth.update(_within(one, read.payloads))
        if present != truth:
            raise Broken(f"{one} holds {present}, the broker had {truth}")
        gaps, size = sum(one.gaps.values()), one.offsets.stop - one.offsets.start
        all_told = one.partition.broker is None or EXPIRED in one.gaps
        if one.rows != len(present) or (all_told and one.rows + gaps != size):
            raise Broken(f"{one} counts {one.rows} rows and {gaps} offsets without one, and holds {len(present)}")
        return len(present)

    def _reads(self, one: CommittedRange) -> list[Read]:
        """The reads of a range by the workers: together they cover it, unless it expired."""
        reads = [
            read
            for read in self.workers.reads.get((one.partition, one.loaded_at_us), ())
            if read.start < one.offsets.stop and one.offsets.start < read.stop
        ]
        size = sum(min(read.stop, one.offsets.stop) - max(read.start, one.offsets.start) for read in reads)
        if size != one.offsets.stop - one.offsets.start and EXPIRED not in one.gaps:
            raise Broken(f"{one} was not read in full, but {size} offsets of it")
        return reads

    def _judge_cursors(self, life: IncarnationRanges, entry: LedgerEntry) -> None:
        """Ranges reach from start to cursor, and logs that were written again below it are reported as truncated."""
        reach: dict[BrokerPartition, list[CommittedRange]] = defaultdict(list)
        for committed in life.ranges:
            reach[committed.partition].append(committed)
        for id_, (start, cursor) in entry.covered.items():
            own = reach.get(id_)
            ends = (own[0].offsets.start, own[-1].offsets.stop) if own else (start, start)
            _demand(ends == (start, cursor), f"{id_} covers {(start, cursor)}, its ranges {ends}")
        _demand(reach.keys() <= entry.covered.keys(), "ranges are of partitions that are covered")
        self.judge_partings()

    def judge_partings(self) -> None:
        """Rows of a log that was truncated are reported as such, and no others.

        The leader epochs in the ledger show it (faults B03, B04); below 2.1 there are none.
        """
        version = len(self.store.versions) - 1
        result = next(self.store.logged_entries(version), None)
        if result is None or result[1].topic.incarnation != self.cluster.incarnation:
            return
        entry, [life, *_] = result[1], self._lives
        read = {id_: (entry.covered[id_][1], epoch) for id_, epoch in entry.epochs.items()}
        truncated = self.cluster.parted(read)
        for id_ in entry.covered if self.cluster.era.has_epochs else ():
            if id_ not in self.cluster.logs:
                continue
            log = self.cluster.logs[id_]
            own = [committed for committed in life.ranges if committed.partition == id_]
            gone = [offset for committed in own for offset in self._dead(committed) if offset >= log.earliest]
            if gone:
                _demand(
                    truncated.get(id_, log.latest) <= min(gone),
                    f"{id_} differs from {min(gone)} on: reported {truncated}",
                )
            doubtful = not own or any(
                self._doubtful(committed) for committed in own
            )  # a cursor alone may be cut below, too
            _demand(
                doubtful or id_ not in truncated,
                f"{id_} has not changed, but is reported as different from {truncated.get(id_)} on",
            )

    def _dead(self, one: CommittedRange) -> Iterator[int]:
        """The offsets from which on a log that was read has been truncated since."""
        for read in self.workers.reads.get((one.partition, one.loaded_at_us), ()):
            start, stop = max(one.offsets.start, read.start), min(one.offsets.stop, read.stop)
            for cut in self.cluster.logs[one.partition].cuts if start < stop else ():
                if cut.tick > read.tick and cut.offset < stop:
                    yield max(start, cut.offset)

    def _doubtful(self, one: CommittedRange) -> bool:
        """Whether the log was truncated below the range, or a broker lied about it, after the range's load began."""
        began, log = self.workers.scheduler.ticks[one.loaded_at_us], self.cluster.logs[one.partition]
        cut = any(cut.tick > began and cut.offset < one.offsets.stop for cut in log.cuts)
        return cut or one.offsets.stop > log.latest or any(tick > began for tick in log.lies)

    def judge_load(self, run: str, since: int, load: TopicLoad, wanted: Mapping[BrokerPartition, int]) -> None:
        """The report of a load agrees with what it did; without an error it has loaded everything that it had to.

        Args:
            run: the run's id.
            since: the newest version when it began.
            load: the report.
            wanted: where the logs ended as the brokers answered this load; empty if its caps may have left some of it.
        """
        new = [ledger_entry for _, ledger_entry in self.store.logged_entries(len(self.store.versions) - 1, after=since)]
        own = [entry for entry in new if entry.run == run and entry.kind is CommitKind.LOAD]
        rows = sum(committed.rows for entry in own for committed in entry.ranges)
        known = load.error is None or not load.error.startswith(_UNSURE)
        _demand(load.rows <= rows if not known else load.rows == rows, f"{run} reported {load.rows} rows of {rows}")
        _demand(
            not any(f"run {run} " in warning for warning in load.warnings),
            f"{run} was reported to have committed before itself",
        )
        if load.error is None and all(entry.kind is CommitKind.LOAD for entry in new):
            assert load.version is not None
            covered = next((ledger_entry.covered for _, ledger_entry in self.store.logged_entries(load.version)), {})
            for id_, end in wanted.items():
                cursor = covered.get(id_, (0, 0))[1]
                _demand(cursor >= end, f"{run} ended well and left {id_} at {cursor}, the log ended at {end}")

    def judge_refusal(self, ranges: Mapping[BrokerPartition, tuple[int, int]], error: str) -> None:
        """Check that a run was not refused although all `ranges` that it read were in the table when it last looked."""
        covered: Coverage = next((entry.covered for _, entry in self.store.logged_entries(self.store.shown)), {})
        rows = all(
            id_ in covered and covered[id_][0] <= start and stop <= covered[id_][1]
            for id_, (start, stop) in ranges.items()
        )
        _demand(not (ranges and rows), f"all of it is in the table, and it was refused: {error}")


def _parts(rows: Sequence[Row]) -> Rows:
    result: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
    for row in rows:
        own = result[row.id, row.loaded_at_us]
        if row.offset in own:
            raise Broken(f"{row} is in the table twice")
        own[row.offset] = row.payload
    return result


def _within(one: CommittedRange, payloads: Mapping[int, int]) -> dict[int, int]:
    return {offset: payload for offset, payload in payloads.items() if one.offsets.start <= offset < one.offsets.stop}


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
