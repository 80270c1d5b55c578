"""The law of valid-through: a time is announced only if the table has every earlier record that is not late.

It is checked where a time is announced: against what the logs hold at that moment. So it does not matter whether a row
that is missing is ever loaded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition
from pipelines.ledger.committed_range import EXPIRED
from pipelines.ledger.event_time import EventTime
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from tests.simulation.broken import require
from tests.simulation.brokers import Answers, SimCluster
from tests.simulation.event_times import SimTimes
from tests.simulation.sim_log import SimLog
from tests.simulation.store import Row, SimStore

_REPLACING = {CommitKind.REPLAY, CommitKind.CUT}


@dataclass(slots=True, kw_only=True)
class ValidThroughLaw:
    """Checks the event time of each commit.

    Args:
        answers: what each run was answered, by its id.
        believed: for each commit, the partitions whose proof rests on a wrong answer of a broker.
        counts: how often each part of the law had something to check.
    """

    cluster: SimCluster
    store: SimStore
    times: SimTimes
    answers: Mapping[str, Answers]
    believed: dict[str, frozenset[BrokerPartition]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def check(self, entry: LedgerEntry, before: LedgerEntry | None, others: frozenset[BrokerPartition]) -> None:
        """Check a commit that has just landed; `others` are partitions of another incarnation than the present one.

        Raises:
            Broken: the law is broken.
        """
        self.believed[entry.commit] = self._believed(entry, before)
        if entry.kind is CommitKind.REWIND:
            self._check_rewind(entry, before)
        if entry.event_time is None:
            return
        if entry.kind is CommitKind.LOAD:
            self._check_kept_proofs(entry, before)
            self._check_backfill(entry, before)
            self._check_late(entry)
        if entry.kind in _REPLACING:
            self._check_changed_rows(entry)
        if entry.event_time.valid_through_ms is None:
            return
        mark_ms, now_ms = entry.event_time.valid_through_ms, self.cluster.scheduler.now_ms
        require(
            mark_ms <= now_ms - self.times.lateness_ms,
            f"{entry.run} announced {mark_ms}, but at {now_ms} earlier records can still arrive",
        )
        self._count("announced")
        for id_, log in self.cluster.logs.items():
            if id_ not in others and id_ not in self.believed[entry.commit] and not self._is_put_back(entry, id_, log):
                self._check_log(entry, mark_ms, id_, log)

    def _is_put_back(self, entry: LedgerEntry, id_: BrokerPartition, log: SimLog) -> bool:
        """Whether an older copy of a log was put back after its broker was asked last for the end of the log.

        The copy brings records back that were not in the log then. No answer could have shown them.
        """
        time = entry.event_time.partitions.get(id_) if entry.event_time else None
        if time is None or time.asked_ms is None or not log.restored:
            return False
        asked = self.cluster.scheduler.tick_of(time.asked_ms * 1000)
        return any(restored.tick > asked for restored in log.restored)

    def _check_log(self, entry: LedgerEntry, mark_ms: int, id_: BrokerPartition, log: SimLog) -> None:
        cursor = entry.covered[id_][1] if id_ in entry.covered else 0
        for offset, payload in log.records.items():
            if offset >= cursor and not self.times.is_late(payload):
                event_ms = self.times.event_ms[payload]
                require(
                    event_ms >= mark_ms,
                    f"{entry.run} announced {mark_ms}, but the table lacks offset {offset} of {id_} of {event_ms}",
                )

    def _believed(self, entry: LedgerEntry, before: LedgerEntry | None) -> frozenset[BrokerPartition]:
        """The partitions whose newest proof rests on a lie. An honest answer at the end of the log replaces it.

        A cut takes a partition back to an older proof, which can rest on a lie of that time.
        """
        base = before
        if entry.target is not None:
            base = next((restored for _, restored in self.store.logged_entries(entry.target)), None)
        known = self.believed.get(base.commit, frozenset()) if base else frozenset()
        if entry.kind is CommitKind.CUT:
            return known.union(*self.believed.values())
        answers, times = self.answers.get(entry.run), entry.event_time
        if answers is None or times is None or entry.kind is not CommitKind.LOAD:
            return known
        old = before.event_time.partitions if before and before.event_time else {}
        at_end = {
            id_
            for id_, time in times.partitions.items()
            if time.at_end and (id_ not in old or old[id_].asked_ms != time.asked_ms)
        }
        return (known - (at_end - answers.lied)) | answers.lied

    def _check_kept_proofs(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that partitions whose expired offsets are skipped keep their proof."""
        assert entry.event_time is not None
        skipped = {committed.partition for committed in entry.ranges if EXPIRED in committed.gaps}
        known = before.event_time if before and before.topic == entry.topic else None
        for id_ in skipped:
            old = known.partitions.get(id_) if known else None
            now = entry.event_time.partitions.get(id_)
            self._count("expired")
            rows = any(committed.partition == id_ and committed.rows for committed in entry.ranges)
            now_ms, old_ms = (time.proven_ms if time else None for time in (now, old))
            require(
                rows or now_ms is None or (old_ms is not None and now_ms <= old_ms),
                f"{entry.run} skipped expired offsets of {id_}, and its proof went from {old} to {now}",
            )

    def _check_backfill(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a commit with rows before the table's first offsets announces nothing."""
        assert entry.event_time is not None
        covered = before.covered if before and before.topic == entry.topic else {}
        if any(entry.covered[id_][0] < start for id_, (start, _) in covered.items()):
            self._count("backfill")
            require(
                entry.event_time.valid_through_ms is None,
                f"{entry.run} announced {entry.event_time.valid_through_ms}, and added older rows",
            )

    def _check_late(self, entry: LedgerEntry) -> None:
        """Check that the late rows of the commit are counted."""
        assert entry.event_time is not None
        answers = self.answers.get(entry.run)
        newest = len(self.store.versions) - 1
        added = list(self._rows_added(newest))
        marks = {self._mark_at(version) for version in range(answers.bounds[-1].version if answers else 0, newest)}
        expected = {sum(self.times.event_ms[row.payload] < (mark or 0) for row in added) for mark in marks}
        counted = sum(entry.event_time.late.values())
        self._count("late", counted)
        require(
            min(expected) <= counted <= max(expected),
            f"{entry.run} counted {counted} late rows, and not {expected}",
        )

    def _mark_at(self, version: int) -> int | None:
        entry = next((entry for _, entry in self.store.logged_entries(version)), None)
        return entry.event_time.valid_through_ms if entry and entry.event_time else None

    def _rows_added(self, version: int) -> Iterator[Row]:
        """The rows of the files that a load added. Other writers may have compacted the table just before."""
        before = set(self.store.versions[version - 1].files)
        for path, rows in self.store.versions[version].files.items():
            if path not in before:
                yield from rows

    def _check_changed_rows(self, entry: LedgerEntry) -> None:
        """Check that no row was replaced or taken back in an hour that is still announced."""
        mark_ms = entry.event_time.valid_through_ms if entry.event_time else None
        if mark_ms is None:
            return
        before, after = (set(_rows(self.store.versions[-number].files)) for number in (2, 1))
        same = [other for _, other in self.store.logged_entries(len(self.store.versions)) if _is_valid(other, mark_ms)]
        believed = frozenset[BrokerPartition]().union(*(self.believed[other.commit] for other in same))
        for row in (row for row in before ^ after if row.id not in believed):
            self._count("changed")
            require(
                self.times.is_late(row.payload) or self.times.event_ms[row.payload] >= mark_ms,
                f"{entry.run} changed {row} of {self.times.event_ms[row.payload]}, but {mark_ms} is announced",
            )

    def _check_rewind(self, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        """Check that a rewind restores what its target announced, and says so."""
        assert entry.target is not None
        restored = next((restored for _, restored in self.store.logged_entries(entry.target)), None)
        expected = _mark(restored.event_time if restored else None)
        require(_mark(entry.event_time) == expected, f"{entry.run} announces {entry.event_time}, and not {expected}")
        has_times = bool(before and before.event_time and restored and restored.topic == before.topic)
        says_so = entry.event_time is not None and entry.event_time.moved_back_by == "rewind"
        require(says_so or not has_times, f"{entry.run} does not say that it moved the valid-through")

    def _count(self, name: str, count: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + count


def _is_valid(entry: LedgerEntry, mark_ms: int) -> bool:
    return _mark(entry.event_time) == mark_ms


def _mark(event_time: EventTime | None) -> int | None:
    return event_time.valid_through_ms if event_time else None


def _rows(files: Mapping[str, tuple[Row, ...]]) -> Iterator[Row]:
    return (row for rows in files.values() for row in rows)
