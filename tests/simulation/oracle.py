"""The laws that a table must satisfy at every version. The oracle knows what the logs really contained.

It compares the log and the rows of the table with the reads of the workers and with the choices of each run. It shares
only `incarnations` with the code under test: this function derives the live ranges from the ledger, and has its own
tests.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kafka_io.model import BrokerPartition
from pipelines.loading.holes import MISSING
from pipelines.loading.incarnations import IncarnationRanges, incarnations
from pipelines.loading.ledger import CommitKind, Coverage, LedgerEntry
from pipelines.loading.load import EXPIRED
from pipelines.loading.offset_ranges import MIXED
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.positions import NamedPosition, TimePosition, WindowEdge
from pipelines.loading.work import CommittedRange
from resources.choices import Choices
from tests.simulation.brokers import Asked, SimCluster, SimLog
from tests.simulation.store import Files, Row, SimStore
from tests.simulation.workers import Read, SimWorkers

Rows = Mapping[tuple[BrokerPartition, int], Mapping[int, int]]
"""Payloads by offset, for each partition and loading time."""
_UNSURE = ("CommitUnknown", "LakeUnavailable")
"""After these errors the commit may have landed already, or may land later."""


_ONE_PARTITION = re.compile(r"(CursorExpired|CursorAheadOfLog|LogTruncated): [^(]*\(?.* partition=[\d-]+ offset=\d+\]")
"""The error of a load in which one partition alone could not be loaded (fault N07)."""
_EARLIEST = (None, NamedPosition.EARLIEST)


class Broken(Exception):
    """The table is wrong, or the report of a run does not match the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What a run was asked to do, and what the logs held when it asked the brokers.

    Args:
        tick: when the run began.
        time_ms: the same, in milliseconds since 1970.
        version: the newest version of the table then.
        since: where a new table begins.
        has_window: whether the user gave `since` for this run.
        asked: the true bounds of each partition when a broker first answered the run.
    """

    tick: int
    time_ms: int
    version: int
    since: WindowEdge | None
    has_window: bool
    asked: Mapping[BrokerPartition, Asked]

    def allows(self, start: int, id_: BrokerPartition, log: SimLog) -> bool:
        """Whether a table that this run began leaves out no record that a log held or got later, up to `start`."""
        asked = self.asked.get(id_)
        if self.since in _EARLIEST:
            return start <= (asked.earliest if asked else 0)
        if isinstance(self.since, TimePosition):
            return start <= max(log.first_written(self.since.ms), asked.earliest if asked else 0)
        if asked:
            return start <= asked.latest
        return start <= log.first_written(min(answer.time_ms for answer in self.asked.values()))

    def wants(self, start: int, log: SimLog) -> bool:
        """Whether a table that this run began holds no needless history: older records only if newer ones expired."""
        if self.since in _EARLIEST:
            return True
        time_ms = self.since.ms if isinstance(self.since, TimePosition) else self.time_ms
        return start >= log.sliceable(log.first_written(time_ms)) or start < log.earliest


@dataclass(slots=True, kw_only=True)
class Oracle:
    """Checks one table.

    Args:
        choices: the choices of every run so far.
        runs: how each load began.
        origins: for each commit, the run that began its table; None if the topic was recreated.
        seen: the last version that was checked.
        lives: for each incarnation of the ledger that has rows, the one that was really read.
    """

    cluster: SimCluster
    store: SimStore
    workers: SimWorkers
    choices: dict[str, Choices] = field(default_factory=dict)
    runs: dict[str, RunStart] = field(default_factory=dict)
    origins: dict[str, str | None] = field(default_factory=dict)
    seen: int = 0
    lives: dict[str, str] = field(default_factory=dict)
    _incarnations: list[IncarnationRanges] = field(default_factory=list)
    _lives_of_partitions: dict[tuple[str, BrokerPartition], str] = field(default_factory=dict)
    _parts: dict[str, Rows] = field(default_factory=dict)

    def begin_table(self) -> None:
        """Take note that the table was removed: the next version is the first one of another table."""
        self.seen, self._incarnations = 0, []

    def check_version(self, version: int) -> None:
        """Check the newest version, which was just written.

        Raises:
            Broken: a law is broken.
        """
        _require(version == self.seen + 1, f"version {version} was checked after version {self.seen}")
        self.seen = version
        self.check_files()
        entry = self.store.versions[version].entry
        if entry is not None:
            before = next(self.store.logged_entries(version - 1), (-1, None))[1]
            self._check_entry(entry, before)
            self._check_begins(entry, before)
        self._incarnations = incarnations(self.store.logged_entries(version))
        self.lives, self._lives_of_partitions = {}, {}
        rows = self._by_loading(self.store.versions[version].files)
        outside = len(self.store.rows) - sum(
            self._check_incarnation(incarnation, rows) for incarnation in self._incarnations
        )
        _require(outside == 0, f"{outside} rows are not in any live range")
        same = len(set(self.lives.values())) == len(self.lives)
        _require(same or self.cluster.truncated_without_ids, f"one incarnation has two names: {self.lives}")
        if self._incarnations:
            self._check_cursors(self._incarnations[0], next(self.store.logged_entries(version))[1])

    def check_files(self) -> None:
        """Check that all files of the newest version exist."""
        deleted = self.store.deleted & self.store.versions[-1].files.keys()
        _require(not deleted, f"housekeeping deleted files of the newest version: {sorted(deleted)}")

    def _by_loading(self, files: Files) -> Rows:
        result: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
        for path, rows in files.items():
            if path not in self._parts:  # data files never change
                self._parts[path] = _parts(rows)
            for key, part in self._parts[path].items():
                _require(not part.keys() & result[key].keys(), f"{path} contains rows that another file contains, too")
                result[key].update(part)
        return result

    def _check_entry(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a cursor moves back, or the incarnation changes, only if the run's choices allow it."""
        _require(
            entry.sequence == (before.sequence + 1 if before else 1),
            f"the commit has number {entry.sequence}, which does not follow the one before",
        )
        choices = self.choices[entry.run]
        settings = {choice.setting for choice in entry.choices}
        covered: Coverage = before.covered if before else {}
        if before and before.topic != entry.topic and entry.kind is not CommitKind.REWIND:
            _require(
                choices.on_recreated == "restart" and "on_recreated" in settings,
                "a new incarnation began without the choice",
            )
            covered = {}
        if entry.kind is CommitKind.CUT:
            _require(
                choices.on_truncated == "rewind" and "on_truncated" in settings, "rows were cut without the choice"
            )
        if entry.kind in {CommitKind.LOAD, CommitKind.REPLAY}:
            for id_, (start, cursor) in covered.items():
                now = entry.covered.get(id_, (0, -1))
                _require(
                    now[0] <= start and cursor <= now[1], f"partition {id_} covered {(start, cursor)}, and now {now}"
                )
        if any(EXPIRED in committed.gaps for committed in entry.ranges) and entry.kind is CommitKind.LOAD:
            _require(
                choices.on_expired == "skip" and "on_expired" in settings,
                "expired offsets were skipped without the choice",
            )

        if any(MISSING in committed.gaps for committed in entry.ranges) and entry.kind is CommitKind.LOAD:
            _require(
                choices.on_missing == "skip" and "on_missing" in settings,
                "missing offsets were skipped without the choice",
            )

    def _check_begins(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check where partitions begin that the table did not cover before (faults P01, P02)."""
        known: Coverage = before.covered if before else {}
        origin: str | None = entry.run
        if entry.target is not None:
            restored = next(self.store.logged_entries(entry.target), (-1, None))[1]
            origin = self.origins[restored.commit] if restored else None
        elif before is not None and before.topic != entry.topic:
            origin, known = None, {}
        elif before is not None and before.covered:
            origin = self.origins[before.commit]
        self.origins[entry.commit] = origin
        for id_ in entry.covered.keys() - known.keys() if entry.kind is CommitKind.LOAD else ():
            if entry.topic.incarnation == self.cluster.incarnation and id_ in self.cluster.logs:
                self._check_begin(id_, entry, origin)

    def _check_begin(self, id_: BrokerPartition, entry: LedgerEntry, origin: str | None) -> None:
        start, log = entry.covered[id_][0], self.cluster.logs[id_]
        if origin is None:
            _require(start == 0, f"partition {id_} of a recreated topic begins at {start}")
            return
        first, run = self.runs[origin], self.runs[entry.run]
        since = min(first.tick, run.tick)
        if any(cut.tick >= since for cut in log.cuts) or any(tick >= since for tick in log.lies):
            return
        # A run that saw no commit may begin partitions as if it were the first one.
        entries_before = list(self.store.logged_entries(min(run.version, self.seen)))
        starts = [first] if entries_before and entries_before[0][1].covered else [first, run]
        _require(
            any(run_start.allows(start, id_, log) for run_start in starts),
            f"partition {id_} begins at {start}, and leaves out older records: {starts}",
        )
        _require(
            run.has_window or any(run_start.wants(start, log) for run_start in starts),
            f"partition {id_} begins at {start}, before the user's start: {starts}",
        )

    def _check_incarnation(self, incarnation: IncarnationRanges, rows: Rows) -> int:
        """Check that each offset has one row with the broker's payload or is in a gap; returns the number of rows."""
        _require(not incarnation.problems, "; ".join(incarnation.problems))
        for committed, after in pairwise(incarnation.ranges):
            if committed.partition == after.partition and committed.offsets.stop != after.offsets.start:
                raise Broken(f"{after} does not follow {committed}")
        return sum(
            self._check_range(incarnation.topic.incarnation, committed, rows) for committed in incarnation.ranges
        )

    def _check_range(self, incarnation: str, committed: CommittedRange, rows: Rows) -> int:
        present = _within(committed, rows.get((committed.partition, committed.loaded_at_us), {}))
        expected: dict[int, int] = {}
        lost: set[int] = set()
        for read in self._reads(committed):
            _require(
                read.tick > self.store.created,
                f"{committed} was read for a table that was removed before the present one was created",
            )
            if not self.cluster.is_blind and not self._is_from(incarnation, committed.partition, read.incarnation):
                raise Broken(f"{committed} of {incarnation} was read from {read.incarnation}")
            expected.update(_within(committed, read.payloads))
            lost |= set(read.lost).intersection(range(committed.offsets.start, committed.offsets.stop))
        if present != expected:
            raise Broken(f"{committed} contains {present}, but the broker had {expected}")
        # Compaction explains every hole of a compacted topic. The causes in a part of a range may be unknown (MIXED).
        known = committed.partition.broker is None and not self.cluster.compacts and MIXED not in committed.gaps
        if known and committed.gaps.get(MISSING, 0) != len(lost):
            raise Broken(f"{committed} has the gaps {committed.gaps}, but the log had lost {len(lost)} of its offsets")
        gaps, size = sum(committed.gaps.values()), committed.offsets.stop - committed.offsets.start
        # In 0.7 offsets count bytes, so rows and gaps do not add up to the size, unless the range expired.
        counts_offsets = committed.partition.broker is None or EXPIRED in committed.gaps
        if committed.rows != len(present) or (counts_offsets and committed.rows + gaps != size):
            raise Broken(
                f"{committed} states {committed.rows} rows and {gaps} offsets in gaps, but contains {len(present)} rows"
            )
        return len(present)

    def _is_from(self, incarnation: str, partition: BrokerPartition, read_from: str) -> bool:
        """Whether a range of an incarnation of the ledger was read from the right one.

        If logs are created again under a node that stays, only the last message of each partition shows it. While the
        partitions that have one are away, a partition without one is loaded as part of the old topic.
        """
        same = read_from == self.lives.setdefault(incarnation, read_from)
        in_partition = read_from == self._lives_of_partitions.setdefault((incarnation, partition), read_from)
        return same or (self.cluster.has_replaced_logs and in_partition)

    def life(self, entry: LedgerEntry) -> str | None:
        """The incarnation that the entry's ranges were really read from; None before the first read."""
        return self.lives.get(entry.topic.incarnation)

    def _reads(self, committed: CommittedRange) -> list[Read]:
        """The reads of the workers for a range. Unless the range expired, the reads must cover it."""
        reads = [
            read
            for read in self.workers.reads.get((committed.partition, committed.loaded_at_us), ())
            if read.start < committed.offsets.stop and committed.offsets.start < read.stop
        ]
        size = sum(min(read.stop, committed.offsets.stop) - max(read.start, committed.offsets.start) for read in reads)
        if size != committed.offsets.stop - committed.offsets.start and EXPIRED not in committed.gaps:
            raise Broken(f"of {committed} the workers read only {size} offsets")
        return reads

    def _check_cursors(self, incarnation: IncarnationRanges, entry: LedgerEntry) -> None:
        """Check that ranges reach from start to cursor, and that truncations are reported (see `check_truncations`)."""
        ranges: dict[BrokerPartition, list[CommittedRange]] = defaultdict(list)
        for committed in incarnation.ranges:
            ranges[committed.partition].append(committed)
        for id_, (start, cursor) in entry.covered.items():
            partition_ranges = ranges.get(id_, [])
            ends = (start, start)
            if partition_ranges:
                ends = (partition_ranges[0].offsets.start, partition_ranges[-1].offsets.stop)
            _require(ends == (start, cursor), f"partition {id_} covers {(start, cursor)}, but its ranges cover {ends}")
        _require(ranges.keys() <= entry.covered.keys(), "a partition has ranges, but no cursor")
        self.check_truncations()

    def check_truncations(self) -> None:
        """Check that the leader epochs in the ledger show every truncation of loaded offsets, and no other.

        See faults B03, B04. Brokers before 2.1 do not report leader epochs, so this checks nothing for them.
        """
        version = len(self.store.versions) - 1
        result = next(self.store.logged_entries(version), None)
        if result is None or self.life(result[1]) != self.cluster.incarnation:
            return
        entry, [incarnation, *_] = result[1], self._incarnations
        read = {id_: (entry.covered[id_][1], epoch) for id_, epoch in entry.epochs.items()}
        truncated = self.cluster.true_truncations(read)
        for id_ in entry.covered if self.cluster.era.has_epochs else ():
            if id_ not in self.cluster.logs or (self.cluster.upgraded and id_ not in entry.epochs):
                continue
            log = self.cluster.logs[id_]
            ranges = [committed for committed in incarnation.ranges if committed.partition == id_]
            offsets = [offset for committed in ranges for offset in self._truncated_offsets(committed)]
            offsets = [offset for offset in offsets if offset >= log.earliest]
            if offsets:
                _require(
                    truncated.get(id_, log.latest) <= min(offsets),
                    f"partition {id_} was truncated at {min(offsets)}, but the report is {truncated}",
                )
            # A partition without ranges has a cursor, and its log may have been truncated below it.
            may_differ = not ranges or any(self._may_differ(committed) for committed in ranges)
            _require(
                may_differ or id_ not in truncated,
                f"partition {id_} was not truncated, but is reported as truncated at {truncated.get(id_)}",
            )

    def _truncated_offsets(self, committed: CommittedRange) -> Iterator[int]:
        """The first truncated offset in the range, for each truncation after the range was read."""
        for read in self.workers.reads.get((committed.partition, committed.loaded_at_us), ()):
            start, stop = max(committed.offsets.start, read.start), min(committed.offsets.stop, read.stop)
            for cut in self.cluster.logs[committed.partition].cuts if start < stop and read.has_epoch else ():
                if cut.tick > read.tick and cut.offset < stop:
                    yield max(start, cut.offset)

    def _may_differ(self, committed: CommittedRange) -> bool:
        """Whether the log was truncated below the end of the range, or a broker lied, after the range's load began."""
        log = self.cluster.logs[committed.partition]
        load_began = self.workers.scheduler.ticks[committed.loaded_at_us]
        was_cut = any(cut.tick > load_began and cut.offset < committed.offsets.stop for cut in log.cuts)
        return was_cut or committed.offsets.stop > log.latest or any(tick > load_began for tick in log.lies)

    def check_load(self, run: str, since: int, load: TopicLoad, wanted: Mapping[BrokerPartition, int]) -> None:
        """Check that a load reports what it committed, and that without an error it loaded everything that it had to.

        Args:
            run: the run's id.
            since: the newest version of the table when the run began.
            load: the report.
            wanted: the ends of the logs, as the brokers answered this load; empty if its caps or its window may have
                ended it before.
        """
        newest = len(self.store.versions) - 1
        entries = [entry for _, entry in self.store.logged_entries(newest, after=since)]
        run_entries = [entry for entry in entries if entry.run == run and entry.kind is CommitKind.LOAD]
        rows = sum(committed.rows for entry in run_entries for committed in entry.ranges)
        known = not any(failure.kind in _UNSURE for failure in load.failures)
        _require(
            load.rows <= rows if not known else load.rows == rows,
            f"{run} reported {load.rows} rows, but committed {rows}",
        )
        _require(
            not any(f"run {run} " in warning for warning in load.warnings),
            f"{run} reports its own commit as one of another run",
        )
        if not all(entry.kind is CommitKind.LOAD for entry in entries):
            return
        one_incarnation = len({entry.topic for entry in entries}) <= 1
        overtaken = "committed first (partition" in str(load.error) and "another leader" not in str(load.error)
        _require(not (overtaken and one_incarnation), f"other loads made {run} fail: {load.error}")  # fault U05
        if load.error is None or _ONE_PARTITION.fullmatch(load.error):
            if load.version is None:
                raise Broken(f"{run} ended before its commit: {load.error}")
            covered = next((ledger_entry.covered for _, ledger_entry in self.store.logged_entries(load.version)), {})
            for id_, end in wanted.items():
                cursor = covered.get(id_, (0, 0))[1]
                _require(
                    cursor >= end or f"partition={id_} " in str(load.error),
                    f"{run} ended with {load.error}, but loaded {id_} only to {cursor}, and the log ended at {end}",
                )

    def check_recreated(self, run: str, incarnation: str) -> None:
        """Check that a topic which a run reports as recreated is not the one that the table holds."""
        if self.cluster.truncated_without_ids:
            return  # nothing may be left of what was loaded
        if any(log.lies for log in self.cluster.logs.values()):
            return  # wrong bounds can make a log look like another one
        entry = next((entry for _, entry in self.store.logged_entries(self.store.shown)), None)
        _require(
            entry is None or self.life(entry) != incarnation,
            f"{run} reports a recreated topic, but the table holds the same {incarnation}",
        )

    def check_refusal(self, ranges: Mapping[BrokerPartition, tuple[int, int]], error: str) -> None:
        """Check that the table did not contain all `ranges` of a refused run at the last version that this run saw."""
        covered: Coverage = next((entry.covered for _, entry in self.store.logged_entries(self.store.shown)), {})
        all_covered = all(
            id_ in covered and covered[id_][0] <= start and stop <= covered[id_][1]
            for id_, (start, stop) in ranges.items()
        )
        _require(not (ranges and all_covered), f"a run was refused, but the table contains all its ranges: {error}")


def _parts(rows: Sequence[Row]) -> Rows:
    result: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
    for row in rows:
        payloads = result[row.id, row.loaded_at_us]
        if row.offset in payloads:
            raise Broken(f"{row} is in the table twice")
        payloads[row.offset] = row.payload
    return result


def _within(committed: CommittedRange, payloads: Mapping[int, int]) -> dict[int, int]:
    return {
        offset: payload
        for offset, payload in payloads.items()
        if committed.offsets.start <= offset < committed.offsets.stop
    }


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise Broken(message)
