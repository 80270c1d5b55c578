"""Hypothesis searches for a sequence of steps of two runs that breaks a law: plan, fetch, commit or crash.

There are no rewinds, cuts or new incarnations. So a cursor never moves back, and all covered offsets are in the table.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.commit.commit import LoadChange, commit, committable
from pipelines.identity.identity import table_state
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.ledger import Coverage, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.plan.plan import plan, plan_backfill
from pipelines.plan.slices import SliceSizes
from pipelines.plan.window import OffsetWindow
from pipelines.table.table_store import CommitConflict, CommitOutcomeUnknown, TableSnapshot
from resources.errors import CommitRefused, LakeUnavailable
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.store import Late, Row, SimStore, Version

TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="1")
PARTITIONS = (BrokerPartition(None, 0), BrokerPartition(None, 1))
RUNS = st.sampled_from("AB")
_FAR = 1_000_000
FATES = st.lists(st.sampled_from(["lands", "landed", "lost", "late", "clash"]), max_size=4)
"""The fates of the next writes; all later writes land."""


@dataclass(kw_only=True)
class ScriptedStore(SimStore):
    """A store whose next writes have the given `fates`."""

    fates: list[str] = field(default_factory=list)

    def _write(self, build: Callable[[], Version]) -> int:
        fate = self.fates.pop(0) if self.fates else "lands"
        if fate == "lands":
            return self._land(build())
        if fate == "landed":
            self._land(build())
        if fate == "late":
            self.late.append(Late(number=len(self.versions), version=build()))
        if fate == "clash":
            raise CommitConflict(fate)
        raise CommitOutcomeUnknown(fate)


@dataclass(slots=True)
class UnfinishedRun:
    """A run between its steps: its snapshot, the ranges to fetch, the expired ranges, and the facts after the fetch."""

    snapshot: TableSnapshot
    slices: list[OffsetRange]
    skipped: list[OffsetRange]
    facts: list[SliceFacts] | None = None


class TwoRuns(RuleBasedStateMachine):
    """Two runs of a topic with two partitions, which have one message per offset."""

    def __init__(self) -> None:
        super().__init__()
        scheduler = Scheduler(rng=random.Random(0), odds=Odds.calm())
        self.store = ScriptedStore(scheduler=scheduler)
        self.logs = dict.fromkeys(PARTITIONS, (0, 0))
        self.unfinished: dict[str, UnfinishedRun] = {}
        self.times = 0
        self.cursors: Coverage = {}

    @rule(id_=st.sampled_from(PARTITIONS), count=st.integers(1, 6))
    def records_arrive(self, id_: BrokerPartition, count: int) -> None:
        """A log grows at its end."""
        earliest, latest = self.logs[id_]
        self.logs[id_] = (earliest, latest + count)

    @rule(id_=st.sampled_from(PARTITIONS), count=st.integers(1, 6))
    def records_expire(self, id_: BrokerPartition, count: int) -> None:
        """The first offsets of a log expire."""
        earliest, latest = self.logs[id_]
        self.logs[id_] = (min(earliest + count, latest), latest)

    def _bounds(self) -> dict[BrokerPartition, Bounds]:
        return {id_: Bounds(earliest=earliest, latest=latest) for id_, (earliest, latest) in self.logs.items()}

    @rule(
        run=RUNS,
        size=st.sampled_from([1, 3, 100]),
        start=st.none() | st.integers(0, 20),
        end=st.integers(0, 20) | st.just(_FAR),
    )
    def plans(self, run: str, size: int, start: int | None, end: int) -> None:
        """A run plans a load; its window may have a start and an end."""
        snapshot = self.store.snapshot()
        ends = {id_: min(end, latest) for id_, (_, latest) in self.logs.items()}
        starts = {} if start is None else {id_: min(start, latest) for id_, (_, latest) in self.logs.items()}
        planned = plan(
            table_state(snapshot, TOPIC),
            self._bounds(),
            OffsetWindow(starts=starts, ends=ends),
            SliceSizes(slice=size),
            skip_expired=True,
        )
        self.unfinished[run] = UnfinishedRun(snapshot, list(planned.slices), list(planned.skipped))

    @rule(run=RUNS, size=st.sampled_from([1, 3, 100]), most=st.sampled_from([None, 4]), start=st.integers(0, 20))
    def plans_a_backfill(self, run: str, size: int, most: int | None, start: int) -> None:
        """A run plans a backfill of offsets before the start of the table."""
        snapshot = self.store.snapshot()
        starts = dict.fromkeys(PARTITIONS, start)
        sizes = SliceSizes(slice=size, run=most)
        slices = plan_backfill(
            table_state(snapshot, TOPIC).covered, self._bounds(), OffsetWindow(starts=starts, ends={}), sizes
        )
        self.unfinished[run] = UnfinishedRun(snapshot, slices, [])

    @precondition(lambda self: self.unfinished)
    @rule(run=RUNS, fails=st.sets(st.integers(0, 6), max_size=2))
    def fetches(self, run: str, fails: set[int]) -> None:
        """A run fetches its slices, and some of them fail."""
        if run in self.unfinished:
            unfinished = self.unfinished[run]
            self.times += 1
            facts = [self._fetched(offsets, number in fails) for number, offsets in enumerate(unfinished.slices)]
            expired = [self._facts(offsets, gaps={EXPIRED: offsets.size}) for offsets in unfinished.skipped]
            unfinished.facts = sorted([*expired, *facts], key=lambda slice_facts: slice_facts.offsets)

    def _fetched(self, offsets: OffsetRange, fails: bool) -> SliceFacts:
        if fails or offsets.start < self.logs[offsets.partition][0]:
            return replace(self._facts(offsets), failure=SliceFailure(kind="NetworkError", reason="no answer"))
        rows = [Row(offsets.partition, offset, self.times, offset) for offset in range(offsets.start, offsets.stop)]
        return replace(self._facts(offsets, rows=len(rows)), files=self.store.staged_files(rows))

    def _facts(self, offsets: OffsetRange, **counts: Any) -> SliceFacts:
        return SliceFacts(range=CommittedRange(offsets=offsets, loaded_at_us=self.times, **counts))

    @precondition(lambda self: self.unfinished)
    @rule(run=RUNS, fates=FATES)
    def commits(self, run: str, fates: list[str]) -> None:
        """A run commits; its writes have the given fates."""
        unfinished = self.unfinished.get(run)
        if unfinished is None or unfinished.facts is None:
            return
        state = table_state(unfinished.snapshot, TOPIC)
        facts = committable(unfinished.facts, state.covered)
        if facts:
            self._commit(unfinished, LoadChange(state=state, facts=tuple(facts), run=run), fates)
        del self.unfinished[run]

    def _commit(self, run: UnfinishedRun, change: LoadChange, fates: list[str]) -> None:
        self.store.fates = fates
        late, disturbed = "late" in fates, bool(fates)
        try:
            result = commit(self.store, run.snapshot, change, sleep=lambda _: self.store.arrive())
        except CommitRefused:
            assert self._landed(change) == []
        except LakeUnavailable:
            assert disturbed
            assert late or self._landed(change) == []
        else:
            assert self._landed(change) == ([] if result.overtaken_by else [result.version])
        self.store.fates = []

    def _landed(self, change: LoadChange) -> list[int]:
        return [
            version
            for version, entry in self.store.logged_entries(len(self.store.versions) - 1)
            if entry.commit == change.commit
        ]

    @rule(run=RUNS)
    def crashes(self, run: str) -> None:
        """A run is killed between two steps."""
        self.unfinished.pop(run, None)

    @rule()
    def writes_land_late(self) -> None:
        """A delayed write arrives, after its caller got an error."""
        self.store.arrive()

    @rule()
    def small_files_are_compacted(self) -> None:
        """Another writer commits a compaction."""
        self.store.compact()

    @invariant()
    def no_cursor_moves_back(self) -> None:
        """The start of the covered offsets never moves forward, and the cursor never moves back."""
        entry = self.store.peek().entry
        covered: Coverage = entry.covered if entry else {}
        for id_, (start, cursor) in self.cursors.items():
            assert covered[id_][0] <= start
            assert cursor <= covered[id_][1]
        self.cursors = covered

    @invariant()
    def ranges_are_complete(self) -> None:
        """The ranges of a partition are adjacent from start to cursor, and have each of their rows once."""
        result = incarnations(self.store.logged_entries(len(self.store.versions) - 1))
        rows = sorted((row.id, row.offset) for row in self.store.rows)
        expected = []
        for incarnation in result:
            assert not incarnation.problems
            for committed, after in pairwise(incarnation.ranges):
                assert committed.partition != after.partition or committed.offsets.stop == after.offsets.start
            expected += [
                (committed.partition, offset)
                for committed in incarnation.ranges
                if not committed.gaps
                for offset in range(committed.offsets.start, committed.offsets.stop)
            ]
            for id_, (start, cursor) in self.cursors.items():
                ranges = [committed.offsets for committed in incarnation.ranges if committed.partition == id_]
                assert (ranges[0].start, ranges[-1].stop) == (start, cursor)
        assert rows == sorted(expected)


TestTwoRuns = pytest.mark.slow(TwoRuns.TestCase)
TestTwoRuns.settings = settings(
    derandomize=True,
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
