"""The law of rows that are taken out on purpose: nothing goes with them, and none of them is a row again.

A cut may bring erased rows back, and then a load says so (fault Y11). A rewind may bring retired rows back.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.incarnations import IncarnationRanges
from pipelines.ledger.ledger import TAKING_OUT, CommitKind, LedgerEntry
from pipelines.reports.outcome import TopicLoad
from pipelines.table.exact_sets import ExactSets
from tests.simulation.broken import require
from tests.simulation.store import Row, SimStore

Condition = Callable[[Row], bool]
Removed = Mapping[tuple[str, BrokerPartition], Mapping[int, ExactCause]]
"""Why offsets have no row any more, by the incarnation of the ledger and partition."""
Place = tuple[str, BrokerPartition, int]
"""An offset, with the incarnation of the ledger and the partition."""
_CAUSES = {CommitKind.ERASE: ExactCause.ERASED, CommitKind.RETIRE: ExactCause.RETIRED}
_WARNING = re.compile(r"erased rows of partition (\S+) \[(\d+), (\d+)\): \d+; the log may still have them")


@dataclass(slots=True, kw_only=True)
class RemovalLaw:
    """Checks erasures and retirements, and all that happens after them.

    Args:
        conditions: what each erasure erases, by its run.
        limits: for each retirement, the loading time from which on rows stay.
        removed: the offsets that were taken out, at each version.
        payloads: the records that were erased.
        cut_by: the offsets that were erased and then cut, with the run that cut them. They may be rows again.
        warned: those of them that a load has named.
        returned: those that a run made rows again, although no load had named them.
        ended: the runs that have ended.
        counts: how often each part of the law had something to check.
    """

    store: SimStore
    conditions: dict[str, Condition] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    removed: dict[int, Removed] = field(default_factory=lambda: {0: {}})
    payloads: set[int] = field(default_factory=set)
    cut_by: dict[Place, str] = field(default_factory=dict)
    warned: set[Place] = field(default_factory=set)
    returned: dict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    ended: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def begin_table(self) -> None:
        """Take note that the table was removed. Another one has all that the brokers have."""
        self.removed, self.payloads, self.cut_by, self.warned = {0: {}}, set(), {}, set()
        self.returned.clear()

    def check(self, version: int, before: LedgerEntry | None, of_table: Sequence[IncarnationRanges]) -> None:
        """Check a version that has just landed; `of_table` are the incarnations before it.

        Raises:
            Broken: the law is broken.
        """
        entry, known = self.store.versions[version].entry, self.removed[version - 1]
        if entry is not None and entry.kind in TAKING_OUT:
            known = self._taken_out(version, entry, before, of_table)
        elif entry is not None and entry.kind is CommitKind.CUT:
            known = self._after_cut(entry, known)
        elif entry is not None and entry.target is not None:
            entries = self.store.logged_entries(version - 1, after=entry.target)
            erasures = [other.run for _, other in entries if other.kind is CommitKind.ERASE]
            require(not erasures, f"{entry.run} brings back what {erasures} erased")
            known = self.removed[entry.target]
        elif entry is not None and entry.kind is CommitKind.REDECODE:
            same = _rows(self.store.versions[version].files) == _rows(self.store.versions[version - 1].files)
            require(same, f"{entry.run} wrote other rows than it has read")
            self.counts[entry.kind] += 1
        elif entry is not None and entry.kind is CommitKind.LOAD and self.cut_by:
            self._note_returned(version, entry)
        self.removed[version] = known

    def _taken_out(
        self, version: int, entry: LedgerEntry, before: LedgerEntry | None, of_table: Sequence[IncarnationRanges]
    ) -> Removed:
        files, files_before = self.store.versions[version].files, self.store.versions[version - 1].files
        rows, rows_before = _rows(files), _rows(files_before)
        taken = rows_before - rows
        self.counts[entry.kind] += len(taken)
        require(rows <= rows_before, f"{entry.run} added rows")
        if entry.kind is CommitKind.ERASE:
            wanted = set(filter(self.conditions[entry.run], rows_before))
            require(taken == wanted, f"{entry.run} took out {taken}, and should take out {wanted}")
            self.payloads |= {row.payload for row in taken}
        else:
            require(files.items() <= files_before.items(), f"{entry.run} wrote files")
            young = [row for row in taken if row.loaded_at_us >= self.limits[entry.run]]
            require(not young, f"{entry.run} took out rows that stay: {young}")
        assert before is not None
        state, state_before = entry.state, before.state
        is_same = (state.covered, state.epochs, state.last_messages, state.ids) == (
            state_before.covered,
            state_before.epochs,
            state_before.last_messages,
            state_before.ids,
        )
        require(is_same, f"{entry.run} changed {state_before} to {state}")
        known = {key: dict(own) for key, own in self.removed[version - 1].items()}
        for row in taken:
            # An erasure also takes out rows of former topics of the same name.
            topics = of_table if entry.kind is CommitKind.ERASE else of_table[:1]
            owner = next((own.topic for own in topics if any(_has(committed, row) for committed in own.ranges)), None)
            require(owner is not None, f"{entry.run} took out {row}, which no range counts")
            assert owner is not None
            known.setdefault((owner.incarnation, row.id), {})[row.offset] = _CAUSES[entry.kind]
        return known

    def _after_cut(self, entry: LedgerEntry, known: Removed) -> Removed:
        after: dict[tuple[str, BrokerPartition], Mapping[int, ExactCause]] = dict(known)
        for (incarnation, id_), own in known.items():
            if incarnation == entry.topic.incarnation:
                cursor = entry.covered.get(id_, (0, 0))[1]
                after[incarnation, id_] = {offset: cause for offset, cause in own.items() if offset < cursor}
                for offset in (offset for offset in own if offset >= cursor and own[offset] is ExactCause.ERASED):
                    self.counts["cut"] += 1
                    self.cut_by[incarnation, id_, offset] = entry.run
                    self.warned.discard((incarnation, id_, offset))
        return after

    def _note_returned(self, version: int, entry: LedgerEntry) -> None:
        before = self.store.versions[version - 1].files
        for path, rows in self.store.versions[version].files.items():
            for row in rows if path not in before else ():
                place = (entry.topic.incarnation, row.id, row.offset)
                if row.payload in self.payloads and place in self.cut_by:
                    self.counts["returned"] += 1
                    self.returned[entry.run].add(place)

    def check_load(self, run: str, load: TopicLoad) -> None:
        """Check that a load which has ended names the erased rows that it brought back."""
        for id_, start, stop in (match.groups() for warning in load.warnings if (match := _WARNING.match(warning))):
            named = {
                place
                for place in self.cut_by
                if place[1] == BrokerPartition.parse(id_) and int(start) <= place[2] < int(stop)
            }
            require(bool(named), f"{run} warns about [{start}, {stop}) of {id_}, where nothing was erased")
            self.warned |= named
        self._end(run)

    def note_killed(self, run: str) -> None:
        """Take note that a load was killed. What it would have said after its commit, also of others, nobody learns."""
        if any(entry.run == run and entry.kind is CommitKind.LOAD for entry in self._entries()):
            self.warned |= self.cut_by.keys()
            self.returned.pop(run, None)
        self._end(run)

    def _entries(self) -> Iterator[LedgerEntry]:
        return (entry for _, entry in self.store.logged_entries(len(self.store.versions) - 1))

    def _end(self, run: str) -> None:
        self.ended.add(run)
        for place in sorted(self.returned.pop(run, set()) - self.warned, key=str):
            cutter = self.cut_by[place]
            require(cutter not in self.ended, f"{run} made {place} a row again, which was erased, and no load says so")
            self.returned[cutter].add(place)

    def hides_log(self, entry: LedgerEntry, id_: BrokerPartition, ranges: Iterable[CommittedRange]) -> bool:
        """Whether the incarnation of an entry has no row of a partition left that a log could be compared with.

        Then a topic without an id that was created again looks like a truncated one. `ranges` are the incarnation's.
        """
        version = len(self.store.versions) - 1
        removed = self.removed[version].get((entry.topic.incarnation, id_))
        return bool(removed) and not any(committed.rows for committed in ranges if committed.partition == id_)

    def within(self, version: int, incarnation: str, committed: CommittedRange) -> Mapping[int, ExactCause]:
        """The offsets of a range that were taken out, at a version.

        Raises:
            Broken: the ledger says otherwise.
        """
        own = self.removed[version].get((incarnation, committed.partition), {})
        removed = {offset: own[offset] for offset in own if committed.offsets.start <= offset < committed.offsets.stop}
        sets = ExactSets(self.store.quarantine.__getitem__).within(committed)
        for cause in _CAUSES.values():
            offsets = sorted(offset for offset in removed if removed[offset] is cause)
            stored = _offsets(sets[cause]) if cause in sets else []
            require(stored == offsets, f"{committed} has the set {stored} of {cause} rows, and should have {offsets}")
            counted = committed.gaps.get(cause, 0)
            require(counted == len(offsets), f"{committed} counts {counted} {cause} rows, and should count {offsets}")
        return removed


def _rows(files: Mapping[str, tuple[Row, ...]]) -> set[Row]:
    return {row for rows in files.values() for row in rows}


def _has(committed: CommittedRange, row: Row) -> bool:
    offsets = committed.offsets
    is_own = committed.partition == row.id and committed.loaded_at_us == row.loaded_at_us
    return is_own and offsets.start <= row.offset < offsets.stop


def _offsets(stored: ExactOffsets) -> list[int]:
    runs = zip(stored.firsts.tolist(), stored.stops.tolist(), strict=True)
    return [offset for start, stop in runs for offset in range(start, stop)]
