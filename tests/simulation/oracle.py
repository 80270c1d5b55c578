"""The laws that a table must satisfy at every version. The oracle knows what the logs really contained.

It compares the log and the rows of the table with the reads of the workers and with the choices of each run. It shares
only `incarnations` and `effective_entries` with the code under test: these functions derive the live ranges from the
ledger, and have their own tests.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kafka_io.model import BrokerPartition
from pipelines.commit.offset_ranges import MIXED
from pipelines.identity.holes import MISSING
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.incarnations import IncarnationRanges, effective_entries, incarnations
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry
from pipelines.reports.outcome import TopicLoad
from resources.settings.choices import Choices
from tests.simulation.begin_law import BeginLaw
from tests.simulation.broken import Broken, require
from tests.simulation.brokers import Answers, SimCluster
from tests.simulation.columns_law import ColumnsLaw
from tests.simulation.cut_law import CutLaw
from tests.simulation.day_law import check_days
from tests.simulation.identity_law import IdentityLaw, shows_other_ids
from tests.simulation.order_law import check_order
from tests.simulation.removal_law import RemovalLaw
from tests.simulation.skip_law import check_skipped
from tests.simulation.store import Files, Row, SimStore
from tests.simulation.valid_through_law import ValidThroughLaw
from tests.simulation.workers import Read, SimWorkers

Rows = Mapping[tuple[BrokerPartition, int], Mapping[int, int]]
"""Payloads by offset, for each partition and loading time."""
_UNSURE = ("CommitUnknown", "LakeUnavailable")
"""After these errors the commit may have landed already, or may land later."""


_ONE_PARTITION = re.compile(
    r"(CursorExpired|CursorAheadOfLog|LogTruncated|Corrupt|TooLarge): [^(]*\(?.* partition=[\d-]+ offset=\d+\] "
    r"\(PS-3\d\d\)"
)
"""The error of a load in which one partition alone could not be loaded (fault N07)."""


@dataclass(slots=True, kw_only=True)
class Oracle:
    """Checks one table.

    Args:
        choices: the choices of every run so far.
        seen: the last version that was checked.
        reads: the reads of the ranges that count now, by the incarnation of the ledger and partition.
        reads_of: the same for each version.
    """

    cluster: SimCluster
    store: SimStore
    workers: SimWorkers
    identity: IdentityLaw
    begins: BeginLaw
    columns: ColumnsLaw
    cuts: CutLaw
    removals: RemovalLaw
    times: ValidThroughLaw | None = None
    choices: dict[str, Choices] = field(default_factory=dict)
    seen: int = 0
    reads: dict[str, dict[BrokerPartition, list[Read]]] = field(default_factory=dict)
    reads_of: dict[int, dict[str, dict[BrokerPartition, list[Read]]]] = field(default_factory=dict)
    _incarnations: list[IncarnationRanges] = field(default_factory=list)
    _parts: dict[str, Rows] = field(default_factory=dict)
    _without_epoch: set[tuple[BrokerPartition, int]] = field(default_factory=set)
    _merged: list[tuple[int, CommittedRange, Sequence[CommittedRange]]] = field(default_factory=list)
    _effective: set[int] = field(default_factory=set)

    def begin_table(self) -> None:
        """Take note that the table was removed: the next version is the first one of another table."""
        self.seen, self._incarnations, self.reads, self.reads_of = 0, [], {}, {}
        self._merged, self._effective = [], set()
        self.removals.begin_table()

    def check_version(self, version: int) -> None:
        """Check the newest version, which was just written.

        Raises:
            Broken: a law is broken.
        """
        require(version == self.seen + 1, f"version {version} was checked after version {self.seen}")
        self.seen = version
        self.check_files()
        entry = self.store.versions[version].entry
        before = next(self.store.logged_entries(version - 1), (-1, None))[1]
        self.removals.check(version, before, self._incarnations)
        if entry is not None:
            self._effective = {number for number, _ in effective_entries(self.store.logged_entries(version))}
            self._note_merged(version, entry)
            require(not self.store.foreign, f"a commit landed although the table uses {self.store.foreign}")
            self._check_entry(entry, before)
            check_skipped(entry, self.choices[entry.run], self._reads, self.store)
            self._check_identity(entry, before)
            self.begins.check(entry, before, self.seen)
            self.cuts.check(version)
            check_days(self.store, version)
        self.columns.check(version)
        self._incarnations = incarnations(self.store.logged_entries(version))
        self.reads = self.reads_of[version] = {}
        rows = self._by_loading(self.store.versions[version].files)
        outside = len(self.store.rows) - sum(
            self._check_incarnation(incarnation, rows) for incarnation in self._incarnations
        )
        require(outside == 0, f"{outside} rows are not in any live range")
        check_order(self.store.logged_entries(version), self._incarnations, self.reads)
        if self._incarnations:
            self._check_cursors(self._incarnations[0], next(self.store.logged_entries(version))[1])
        if self.times and entry is not None:
            others = {id_ for id_ in self.cluster.logs if not self.is_of_cluster(entry, id_)}
            self.times.check(entry, before, frozenset(others))

    def _check_identity(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a commit continues the table of its topic, or begins another one (faults B06, P11)."""
        old = {part.loaded_at_us for ranges in self._incarnations for part in ranges.ranges}
        reads: dict[BrokerPartition, list[Read]] = defaultdict(list)
        for committed in entry.ranges:
            if committed.loaded_at_us not in old:
                reads[committed.partition] += self._reads(committed)
                # A replay moves no cursor, so it does not record under which leader it has read.
                if entry.kind is CommitKind.REPLAY and committed.partition not in entry.state.epochs:
                    self._without_epoch.add((committed.partition, committed.loaded_at_us))
        reads_of_topic = self.reads.get(entry.topic.incarnation, {})
        lives = {id_: _newest(part).incarnation for id_, part in reads_of_topic.items() if part}
        self.identity.check(entry, before, reads, lives)
        if before and before.topic != entry.topic and entry.kind is CommitKind.LOAD:
            self._check_other_topic(entry, self.identity.answers[entry.run])

    def _lives(self, version: int, newest: LedgerEntry) -> set[str]:
        """The incarnations from which the table has offsets of its topic at a version, whose newest entry is given."""
        reads = self.reads_of.get(version, {}).get(newest.topic.incarnation, {})
        runs = {
            entry.run
            for _, entry in self.store.logged_entries(version)
            if entry.topic == newest.topic and any(EXPIRED in committed.gaps for committed in entry.ranges)
        }  # what expired has no rows that show where it comes from
        by_gaps = (self.identity.answers[run].incarnations for run in runs)
        return {read.incarnation for part in reads.values() for read in part}.union(*by_gaps)

    def _check_other_topic(self, entry: LedgerEntry, answers: Answers) -> None:
        """Check that a run which begins another incarnation saw another topic than the one of the table.

        Without a topic id, a log that was truncated so far that it has none of the table's rows looks like another one.
        So does the same topic if the ledger has the ids of a former one: a load that is shown no ids, and finds no
        message to compare, cannot see that the topic was recreated.
        """
        version = answers.bounds[-1].version
        planned_on = next((planned for _, planned in self.store.logged_entries(version)), None)
        if planned_on is None or planned_on.topic == entry.topic:
            return
        lives = self._lives(version, planned_on)
        is_same = bool(lives) and lives == answers.incarnations == {self.cluster.incarnation}
        by_loading = self._by_loading(self.store.versions[version].files)
        rows: dict[BrokerPartition, dict[int, int]] = defaultdict(dict)
        for of_topic in incarnations(self.store.logged_entries(version)):
            for part in of_topic.ranges if of_topic.topic == planned_on.topic else ():
                rows[part.partition] |= by_loading.get((part.partition, part.loaded_at_us), {})
        require(
            not is_same or shows_other_ids(answers, planned_on) or self.identity.has_nothing_in_common(rows, answers),
            f"{entry.run} begins {entry.topic.incarnation}, but the table holds the same topic already",
        )

    def check_files(self) -> None:
        """Check that all files of the newest version exist."""
        deleted = self.store.deleted & self.store.versions[-1].files.keys()
        require(not deleted, f"housekeeping deleted files of the newest version: {sorted(deleted)}")

    def _by_loading(self, files: Files) -> Rows:
        result: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
        for path, rows in files.items():
            if path not in self._parts:  # data files never change
                self._parts[path] = _parts(rows)
            for key, part in self._parts[path].items():
                require(not part.keys() & result[key].keys(), f"{path} contains rows that another file contains, too")
                result[key].update(part)
        return result

    def _check_entry(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a cursor moves back, or the incarnation changes, only if the run's choices allow it."""
        require(
            entry.sequence == (before.sequence + 1 if before else 1),
            f"the commit has number {entry.sequence}, which does not follow the one before",
        )
        choices = self.choices[entry.run]
        settings = {choice.setting for choice in entry.choices}
        covered: Coverage = before.covered if before else {}
        if before and before.topic != entry.topic and entry.kind is not CommitKind.REWIND:
            require(
                choices.on_recreated == "restart" and "on_recreated" in settings,
                "a new incarnation began without the choice",
            )
            covered = {}
        if entry.kind is CommitKind.CUT:
            require(choices.on_truncated == "rewind" and "on_truncated" in settings, "rows were cut without the choice")
        if entry.kind in {CommitKind.LOAD, CommitKind.REPLAY}:
            for id_, (start, cursor) in covered.items():
                now = entry.covered.get(id_, (0, -1))
                require(
                    now[0] <= start and cursor <= now[1], f"partition {id_} covered {(start, cursor)}, and now {now}"
                )
        if any(EXPIRED in committed.gaps for committed in entry.ranges) and entry.kind is CommitKind.LOAD:
            require(
                choices.on_expired == "skip" and "on_expired" in settings,
                "expired offsets were skipped without the choice",
            )

        if any(MISSING in committed.gaps for committed in entry.ranges) and entry.kind is CommitKind.LOAD:
            require(
                choices.on_missing == "skip" and "on_missing" in settings,
                "missing offsets were skipped without the choice",
            )

    def _check_incarnation(self, incarnation: IncarnationRanges, rows: Rows) -> int:
        """Check that each offset has one row with the broker's payload or is in a gap; returns the number of rows."""
        require(not incarnation.problems, "; ".join(incarnation.problems))
        for committed, after in pairwise(incarnation.ranges):
            if committed.partition == after.partition and committed.offsets.stop != after.offsets.start:
                raise Broken(f"{after} does not follow {committed}")
        return sum(
            self._check_range(incarnation.topic.incarnation, committed, rows) for committed in incarnation.ranges
        )

    def _check_range(self, incarnation: str, committed: CommittedRange, rows: Rows) -> int:
        key = (committed.partition, committed.loaded_at_us)
        present = _within(committed, rows.get(key, {}))
        deleted = {row.offset for row in self.store.versions[self.seen].lost if (row.id, row.loaded_at_us) == key}
        of_partition = self.reads.setdefault(incarnation, {}).setdefault(committed.partition, [])
        expected: dict[int, int] = {}
        lost: set[int] = set()
        removed = self.removals.within(self.seen, incarnation, committed)
        for read in self._reads(committed):
            require(
                read.tick > self.store.created,
                f"{committed} was read for a table that was removed before the present one was created",
            )
            of_partition.append(read)
            expected.update(_within(committed, read.payloads))
            lost |= read.lost.intersection(range(committed.offsets.start, committed.offsets.stop)) - removed.keys()
        expected = {offset: payload for offset, payload in expected.items() if offset not in removed}
        if present != {offset: payload for offset, payload in expected.items() if offset not in deleted}:
            raise Broken(f"{committed} contains {present}, but the broker had {expected}")
        # Compaction explains every hole of a compacted topic. The causes in a part of a range may be unknown (MIXED).
        known = committed.partition.broker is None and not self.cluster.compacts and MIXED not in committed.gaps
        if known and committed.gaps.get(MISSING, 0) != len(lost):
            raise Broken(f"{committed} has the gaps {committed.gaps}, but the log had lost {len(lost)} of its offsets")
        gaps, size = sum(committed.gaps.values()), committed.offsets.stop - committed.offsets.start
        # In 0.7 offsets count bytes, so rows and gaps do not add up to the size, unless the range expired.
        counts_offsets = committed.partition.broker is None or EXPIRED in committed.gaps
        # Rows that another writer deletes are still counted, so that `verify` misses them (fault P04).
        if committed.rows != len(expected) or (counts_offsets and committed.rows + gaps != size):
            raise Broken(
                f"{committed} states {committed.rows} rows and {gaps} offsets in gaps, but had {len(expected)} rows"
            )
        return len(present)

    def life(self, entry: LedgerEntry) -> str | None:
        """The incarnation that the entry's topic was read from last; None before the first read."""
        reads = [read for part in self.reads.get(entry.topic.incarnation, {}).values() for read in part]
        return _newest(reads).incarnation if reads else None

    def is_of_cluster(self, entry: LedgerEntry, id_: BrokerPartition) -> bool:
        """Whether the partition was read from the present incarnation last, or was never read."""
        reads = self.reads.get(entry.topic.incarnation, {}).get(id_)
        return not reads or _newest(reads).incarnation == self.cluster.incarnation

    def hides_log(self, entry: LedgerEntry, id_: BrokerPartition) -> bool:
        """Whether nothing is left of a partition that a log could be compared with; see RemovalLaw."""
        return self.removals.hides_log(entry, id_, self._incarnations[0].ranges)

    def _reads(self, committed: CommittedRange) -> list[Read]:
        """The reads of the workers for a range. Unless the range expired, the reads must cover it."""
        reads = [
            read.within(part.offsets)
            for part in self._parts_of(committed)
            for read in self.workers.reads.get((part.partition, part.loaded_at_us), ())
            if read.start < part.offsets.stop and part.offsets.start < read.stop
        ]
        size = sum(min(read.stop, committed.offsets.stop) - max(read.start, committed.offsets.start) for read in reads)
        if size != committed.offsets.stop - committed.offsets.start and EXPIRED not in committed.gaps:
            raise Broken(f"of {committed} the workers read only {size} offsets")
        return reads

    def _parts_of(self, committed: CommittedRange) -> Sequence[CommittedRange]:
        """The ranges of which a retirement made this range, or the range itself."""
        place = committed.partition, committed.loaded_at_us
        for version, whole, parts in reversed(self._merged):
            is_own = (whole.partition, whole.loaded_at_us) == place and version in self._effective
            if is_own and whole.offsets.intersection(committed.offsets) == committed.offsets:
                common = ((part, committed.offsets.intersection(part.offsets)) for part in parts)
                return [replace(part, offsets=offsets) for part, offsets in common if offsets]
        return [committed]

    def _note_merged(self, version: int, entry: LedgerEntry) -> None:
        """Remember of which ranges a retirement made others: they were read at different times."""
        of_topic = self._incarnations[0].ranges if entry.kind is CommitKind.RETIRE else ()
        for committed in entry.ranges if of_topic else ():
            wholes = [whole for whole in of_topic if whole.offsets.intersection(committed.offsets)]
            if len(wholes) > 1:
                parts = [part for whole in wholes for part in self._parts_of(whole)]
                self._merged.append((version, committed, parts))

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
            require(ends == (start, cursor), f"partition {id_} covers {(start, cursor)}, but its ranges cover {ends}")
        require(ranges.keys() <= entry.covered.keys(), "a partition has ranges, but no cursor")
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
        read = {id_: (entry.covered[id_][1], epoch) for id_, epoch in entry.state.epochs.items()}
        truncated = self.cluster.true_truncations(read)
        knows_topic_id = bool(entry.state.ids.topic_id)
        for id_ in entry.covered if self.cluster.era.has_epochs else ():
            # Where no topic id is known, the last messages of partitions without an epoch show truncations to a load.
            if id_ not in self.cluster.logs or (not knows_topic_id and id_ not in entry.state.epochs):
                continue
            if not self.is_of_cluster(entry, id_):
                continue
            log = self.cluster.logs[id_]
            if log.restored:  # epochs of two histories say nothing; see IdentityLaw._check_content
                continue
            wholes = [committed for committed in incarnation.ranges if committed.partition == id_]
            ranges = [part for whole in wholes for part in self._parts_of(whole)]
            offsets = [offset for committed in ranges for offset in self._truncated_offsets(committed)]
            offsets = [offset for offset in offsets if offset >= log.earliest]
            if offsets:
                end = truncated[id_].end if id_ in truncated else log.latest  # None: the leader does not say it
                require(
                    end is None or end <= min(offsets),
                    f"partition {id_} was truncated at {min(offsets)}, but the report is {truncated}",
                )
            # A partition without records has a cursor, and its log may have been truncated below it. A leader that is
            # deposed may have said where it begins, and nobody has read from that leader.
            reads = self.reads.get(entry.topic.incarnation, {}).get(id_, ())
            may_differ = not any(committed.offsets.start < committed.offsets.stop for committed in ranges)
            may_differ |= any(self._may_differ(committed) for committed in ranges)
            may_differ |= any(read.incarnation != self.cluster.incarnation for read in reads)
            require(
                may_differ or id_ not in truncated,
                f"partition {id_} was not truncated, but is reported as truncated at {truncated.get(id_)}",
            )

    def _truncated_offsets(self, committed: CommittedRange) -> Iterator[int]:
        """The first truncated offset in the range, for each truncation after the range was read."""
        for read in self.workers.reads.get((committed.partition, committed.loaded_at_us), ()):
            start, stop = max(committed.offsets.start, read.start), min(committed.offsets.stop, read.stop)
            of_log = read.has_epoch and read.incarnation == self.cluster.incarnation
            of_log &= (committed.partition, committed.loaded_at_us) not in self._without_epoch
            for cut in self.cluster.logs[committed.partition].cuts if start < stop and of_log else ():
                if cut.tick > read.shown and cut.offset < stop:
                    yield max(start, cut.offset)

    def _may_differ(self, committed: CommittedRange) -> bool:
        """Whether the log was truncated below the end of the range, or a broker lied, after the range's load began."""
        log = self.cluster.logs[committed.partition]
        load_began = self.workers.scheduler.tick_of(committed.loaded_at_us)
        was_cut = any(cut.tick > load_began and cut.offset < committed.offsets.stop for cut in log.cuts)
        was_cut |= any(read.deposed is not None for read in self._reads(committed))
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
        require(
            load.rows <= rows if not known else load.rows == rows,
            f"{run} reported {load.rows} rows, but committed {rows}",
        )
        require(
            not any(f"run {run} " in warning for warning in load.warnings),
            f"{run} reports its own commit as one of another run",
        )
        self.columns.check_report(run, load)
        self.removals.check_load(run, load)
        if not all(entry.kind is CommitKind.LOAD for entry in entries):
            return
        one_incarnation = len({entry.topic for entry in entries}) <= 1
        # Two loads may have read a log before and after its truncation.
        may_be_truncated = any(reason in str(load.error) for reason in ("another leader since", "another log since"))
        overtaken = "committed first (partition" in str(load.error) and not may_be_truncated
        require(not (overtaken and one_incarnation), f"other loads made {run} fail: {load.error}")  # fault U05
        if load.error is None or _ONE_PARTITION.fullmatch(load.error):
            if load.version is None:
                raise Broken(f"{run} ended before its commit: {load.error}")
            covered = next((ledger_entry.covered for _, ledger_entry in self.store.logged_entries(load.version)), {})
            others = [committed for entry in entries if entry.run != run for committed in entry.ranges]
            self._check_loaded_before_unreadable(load, covered, others)
            # A run loads as many offsets as were new when it began. If another run then begins the table again, with
            # a topic that was created again, there is more to load than that: the next run does it.
            history = [entry for _, entry in self.store.logged_entries(newest, after=since - 1)]
            begun_again = any(entry.run != run and entry.topic != earlier.topic for entry, earlier in pairwise(history))
            for id_, end in () if begun_again else wanted.items():
                cursor = covered.get(id_, (0, 0))[1]
                require(
                    cursor >= end or f"partition={id_} " in str(load.error),
                    f"{run} ended with {load.error}, but loaded {id_} only to {cursor}, and the log ended at {end}",
                )

    @staticmethod
    def _check_loaded_before_unreadable(
        load: TopicLoad, covered: Coverage, of_others: Sequence[CommittedRange]
    ) -> None:
        """Check that what lies before a batch which cannot be read is loaded (faults N03, N04).

        `of_others` are the ranges that other runs committed during the load. A slice that one of them overlaps is left
        out, and the partition of the batch has no further step: the next run loads what lies between (fault U05).
        """
        if len(load.failures) == 1 and load.failures[0].kind in {"Corrupt", "TooLarge"}:
            [failure] = load.failures
            partition, offset = BrokerPartition.parse(str(failure.where["partition"])), int(failure.where["offset"])
            start, cursor = covered.get(partition, (0, offset))
            ends_of_others = {other.offsets.stop for other in of_others if other.partition == partition}
            require(
                cursor >= offset or offset < start or cursor in ends_of_others,
                f"{failure} ended a load that loaded only to {cursor}",
            )

    def check_recreated(self, run: str) -> None:
        """Check that a topic which a run reports as recreated is not the one that the table holds."""
        entry = next((entry for _, entry in self.store.logged_entries(self.store.shown)), None)
        reads = self.reads_of.get(self.store.shown, {}).get(entry.topic.incarnation, {}) if entry else {}
        answers = self.identity.answers[run]
        require(
            entry is None
            or not self._lives(self.store.shown, entry) == answers.incarnations == {self.cluster.incarnation}
            or self.identity.may_look_recreated(answers, entry, reads),
            f"{run} reports a recreated topic, but the table holds the same {self.cluster.incarnation}",
        )

    def check_refusal(self, ranges: Mapping[BrokerPartition, tuple[int, int]], error: str) -> None:
        """Check that the table did not contain all `ranges` of a refused run at the last version that this run saw."""
        covered: Coverage = next((entry.covered for _, entry in self.store.logged_entries(self.store.shown)), {})
        all_covered = all(
            id_ in covered and covered[id_][0] <= start and stop <= covered[id_][1]
            for id_, (start, stop) in ranges.items()
        )
        require(not (ranges and all_covered), f"a run was refused, but the table contains all its ranges: {error}")


def _parts(rows: Sequence[Row]) -> Rows:
    result: dict[tuple[BrokerPartition, int], dict[int, int]] = defaultdict(dict)
    for row in rows:
        payloads = result[row.id, row.loaded_at_us]
        if row.offset in payloads:
            raise Broken(f"{row} is in the table twice")
        payloads[row.offset] = row.payload
    return result


def _newest(reads: Sequence[Read]) -> Read:
    return max(reads, key=lambda read: read.tick)


def _within(committed: CommittedRange, payloads: Mapping[int, int]) -> dict[int, int]:
    return {
        offset: payload
        for offset, payload in payloads.items()
        if committed.offsets.start <= offset < committed.offsets.stop
    }
