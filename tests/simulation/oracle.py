"""What must be true of a table at every moment, whatever happened before; the oracle knows what was really there.

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
from pipelines.loading.ledger import CommitKind, CommittedRange, Coverage, LedgerEntry
from pipelines.loading.load import EXPIRED
from pipelines.loading.outcome import TopicLoad
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
            self._judge_entry(entry, next(self.store.told(version - 1), (-1, None))[1])
        self._lives = incarnations(self.store.told(version))
        rows = self._by_loading(self.store.versions[version].files)
        outside = len(self.store.rows) - sum(self._judge_life(life, rows) for life in self._lives)
        _demand(outside == 0, f"{outside} rows lie outside of every live range")
        if self._lives:
            self._judge_cursors(self._lives[0], next(self.store.told(version))[1])

    def _by_loading(self, files: Files) -> Rows:
        found: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
        for path, rows in files.items():
            if path not in self._parts:  # a file never changes once a version names it
                self._parts[path] = _parts(rows)
            for key, part in self._parts[path].items():
                _demand(not part.keys() & found[key].keys(), f"{path} holds rows that are there already")
                found[key].update(part)
        return found

    def _judge_entry(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a cursor moves back, or the incarnation changes, only if the run's choices allow it."""
        _demand(entry.sequence == (before.sequence + 1 if before else 1), "commits are counted up")
        choices = self.choices[entry.run]
        told = {one.setting for one in entry.choices}
        covered: Coverage = before.covered if before else {}
        if before and before.topic != entry.topic and entry.kind is not CommitKind.REWIND:
            _demand(choices.on_recreated == "restart" and "on_recreated" in told, "a new life begins by choice")
            covered = {}
        if entry.kind is CommitKind.CUT:
            _demand(choices.on_truncated == "rewind" and "on_truncated" in told, "a cut is made by choice")
        if entry.kind in {CommitKind.LOAD, CommitKind.REPLAY}:
            for id_, (start, cursor) in covered.items():
                now = entry.covered.get(id_, (0, -1))
                _demand(now[0] <= start and cursor <= now[1], f"{id_} went from {(start, cursor)} to {now}")
        if any(EXPIRED in one.gaps for one in entry.ranges) and entry.kind is CommitKind.LOAD:
            _demand(choices.on_expired == "skip" and "on_expired" in told, "a hole is left by choice")

    def _judge_life(self, life: IncarnationRanges, rows: Rows) -> int:
        """Check that each offset of the ranges has one row, equal to the brokers', or is in a gap; returns the rows."""
        _demand(not life.problems, "; ".join(life.problems))
        for one, after in pairwise(life.ranges):
            if one.partition == after.partition and one.offsets.stop != after.offsets.start:
                raise Broken(f"{after} does not follow {one}")
        return sum(self._judge_range(life.topic.incarnation, one, rows) for one in life.ranges)

    def _judge_range(self, incarnation: str, one: CommittedRange, rows: Rows) -> int:
        held = _within(one, rows.get((one.partition, one.loaded_at_us), {}))
        truth: dict[int, int] = {}
        for read in self._reads(one):
            if read.incarnation != incarnation:
                raise Broken(f"{one} of {incarnation} was read in {read.incarnation}")
            truth.update(_within(one, read.payloads))
        if held != truth:
            raise Broken(f"{one} holds {held}, the broker had {truth}")
        gaps, size = sum(one.gaps.values()), one.offsets.stop - one.offsets.start
        all_told = one.partition.broker is None or EXPIRED in one.gaps
        if one.rows != len(held) or (all_told and one.rows + gaps != size):
            raise Broken(f"{one} counts {one.rows} rows and {gaps} offsets without one, and holds {len(held)}")
        return len(held)

    def _reads(self, one: CommittedRange) -> list[Read]:
        """What the workers read of a range: all of it, unless it expired."""
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
        """Ranges reach from the start to the cursor, and logs that were written anew below it are told as such."""
        reach: dict[BrokerPartition, list[CommittedRange]] = defaultdict(list)
        for one in life.ranges:
            reach[one.partition].append(one)
        for id_, (start, cursor) in entry.covered.items():
            mine = reach.get(id_)
            ends = (mine[0].offsets.start, mine[-1].offsets.stop) if mine else (start, start)
            _demand(ends == (start, cursor), f"{id_} covers {(start, cursor)}, its ranges {ends}")
        _demand(reach.keys() <= entry.covered.keys(), "ranges are of partitions that are covered")
        self.judge_partings()

    def judge_partings(self) -> None:
        """What the table holds of a log that is no longer that log can be told, and nothing else is taken for it.

        It is told by the leaders' epochs that the ledger keeps (faults B03, B04); below 2.1 there are none.
        """
        version = len(self.store.versions) - 1
        found = next(self.store.told(version), None)
        if found is None or found[1].topic.incarnation != self.cluster.incarnation:
            return
        entry, [life, *_] = found[1], self._lives
        read = {id_: (entry.covered[id_][1], epoch) for id_, epoch in entry.epochs.items()}
        told = self.cluster.parted(read)
        for id_ in entry.covered if self.cluster.era.has_epochs else ():
            if id_ not in self.cluster.logs:
                continue
            log = self.cluster.logs[id_]
            mine = [one for one in life.ranges if one.partition == id_]
            gone = [at for one in mine for at in self._dead(one) if at >= log.earliest]
            if gone:
                _demand(told.get(id_, log.latest) <= min(gone), f"{id_} is another from {min(gone)} on: told {told}")
            doubtful = not mine or any(self._doubtful(one) for one in mine)  # a cursor alone may be cut below, too
            _demand(doubtful or id_ not in told, f"{id_} is what it was, and told as another from {told.get(id_)} on")

    def _dead(self, one: CommittedRange) -> Iterator[int]:
        """The offsets from which on a log that was read has been truncated since."""
        for read in self.workers.reads.get((one.partition, one.loaded_at_us), ()):
            start, stop = max(one.offsets.start, read.start), min(one.offsets.stop, read.stop)
            for cut in self.cluster.logs[one.partition].cuts if start < stop else ():
                if cut.tick > read.tick and cut.offset < stop:
                    yield max(start, cut.offset)

    def _doubtful(self, one: CommittedRange) -> bool:
        """Whether the log was cut below the range, or told as another than it is, after the range's load began."""
        began, log = self.workers.scheduler.ticks[one.loaded_at_us], self.cluster.logs[one.partition]
        cut = any(cut.tick > began and cut.offset < one.offsets.stop for cut in log.cuts)
        return cut or one.offsets.stop > log.latest or any(tick > began for tick in log.lies)

    def judge_load(self, run: str, since: int, load: TopicLoad, wanted: Mapping[BrokerPartition, int]) -> None:
        """What a load told is what it did; without an error it left nothing behind of what it was to load.

        Args:
            run: the run's id.
            since: the newest version when it began.
            load: what it told.
            wanted: where the logs ended as the brokers told this load; empty if its caps may have left some of it.
        """
        new = [one for _, one in self.store.told(len(self.store.versions) - 1, after=since)]
        mine = [one for one in new if one.run == run and one.kind is CommitKind.LOAD]
        rows = sum(one.rows for entry in mine for one in entry.ranges)
        known = load.error is None or not load.error.startswith(_UNSURE)
        _demand(load.rows <= rows if not known else load.rows == rows, f"{run} told of {load.rows} rows of {rows}")
        _demand(not any(f"run {run} " in one for one in load.warnings), f"{run} was told that it came before itself")
        if load.error is None and all(one.kind is CommitKind.LOAD for one in new):
            assert load.version is not None
            covered = next((one.covered for _, one in self.store.told(load.version)), {})
            for id_, end in wanted.items():
                cursor = covered.get(id_, (0, 0))[1]
                _demand(cursor >= end, f"{run} ended well and left {id_} at {cursor}, the log ended at {end}")

    def judge_refusal(self, ranges: Mapping[BrokerPartition, tuple[int, int]], error: str) -> None:
        """Check that a run was not refused although all `ranges` that it read were in the table when it last looked."""
        covered: Coverage = next((one.covered for _, one in self.store.told(self.store.shown)), {})
        held = all(
            id_ in covered and covered[id_][0] <= start and stop <= covered[id_][1]
            for id_, (start, stop) in ranges.items()
        )
        _demand(not (ranges and held), f"all of it is in the table, and it was refused: {error}")


def _parts(rows: Sequence[Row]) -> Rows:
    found: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
    for row in rows:
        mine = found[row.id, row.loaded_at_us]
        if row.offset in mine:
            raise Broken(f"{row} is there twice")
        mine[row.offset] = row.payload
    return found


def _within(one: CommittedRange, payloads: Mapping[int, int]) -> dict[int, int]:
    return {at: payload for at, payload in payloads.items() if one.offsets.start <= at < one.offsets.stop}


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
