"""Hypothesis looks for a story of two runs, planning, fetching, committing and crashing as it likes, that breaks a law.

No rewinds, cuts or new lives here: whatever happens, a cursor never moves back, and what is covered is whole.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.loading.commit import LoadChange, commit, committable
from pipelines.loading.incarnations import incarnations
from pipelines.loading.ledger import Coverage, TopicIdentity
from pipelines.loading.load import EXPIRED
from pipelines.loading.plan import plan, plan_backfill
from pipelines.loading.slices import SliceSizes
from pipelines.loading.table_log import CommitConflict, CommitOutcomeUnknown, TableSnapshot, table_state
from pipelines.loading.window import OffsetWindow
from pipelines.loading.work import SliceFacts, SliceFailure
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
class ToldStore(SimStore):
    """A store with given fates for its next writes."""

    fates: list[str] = field(default_factory=list)

    def _write(self, made: Callable[[], Version]) -> int:
        fate = self.fates.pop(0) if self.fates else "lands"
        if fate == "lands":
            return self._land(made())
        if fate == "landed":
            self._land(made())
        if fate == "late":
            self.late.append(Late(number=len(self.versions), version=made()))
        if fate == "clash":
            raise CommitConflict(fate)
        raise CommitOutcomeUnknown(fate)


@dataclass(slots=True)
class Begun:
    """A run between its steps: what it saw, what it is to fetch, and what came of that."""

    at: TableSnapshot
    slices: list[OffsetRange]
    skipped: list[OffsetRange]
    facts: list[SliceFacts] | None = None


class TwoRuns(RuleBasedStateMachine):
    """Two runs of one topic with two partitions, a message per offset."""

    def __init__(self) -> None:
        super().__init__()
        scheduler = Scheduler(rng=random.Random(0), odds=Odds.calm())
        self.store = ToldStore(scheduler=scheduler)
        self.logs = dict.fromkeys(PARTITIONS, (0, 0))
        self.begun: dict[str, Begun] = {}
        self.times = 0
        self.cursors: Coverage = {}

    @rule(id_=st.sampled_from(PARTITIONS), count=st.integers(1, 6))
    def records_arrive(self, id_: BrokerPartition, count: int) -> None:
        """The log grows."""
        earliest, latest = self.logs[id_]
        self.logs[id_] = (earliest, latest + count)

    @rule(id_=st.sampled_from(PARTITIONS), count=st.integers(1, 6))
    def records_expire(self, id_: BrokerPartition, count: int) -> None:
        """The log's beginning goes."""
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
        """A run begins, whose window may have a start and an end."""
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
        self.begun[run] = Begun(snapshot, list(planned.slices), list(planned.skipped))

    @rule(run=RUNS, size=st.sampled_from([1, 3, 100]), most=st.sampled_from([None, 4]), start=st.integers(0, 20))
    def plans_a_backfill(self, run: str, size: int, most: int | None, start: int) -> None:
        """A run begins that backfills offsets before the table's start."""
        snapshot = self.store.snapshot()
        starts = dict.fromkeys(PARTITIONS, start)
        sizes = SliceSizes(slice=size, run=most)
        slices = plan_backfill(
            table_state(snapshot, TOPIC).covered, self._bounds(), OffsetWindow(starts=starts, ends={}), sizes
        )
        self.begun[run] = Begun(snapshot, slices, [])

    @precondition(lambda self: self.begun)
    @rule(run=RUNS, fails=st.sets(st.integers(0, 6), max_size=2))
    def fetches(self, run: str, fails: set[int]) -> None:
        """A run fetches, and some of its slices fail."""
        if run in self.begun:
            begun = self.begun[run]
            self.times += 1
            facts = [self._fetched(piece, number in fails) for number, piece in enumerate(begun.slices)]
            gone = [replace(self._facts(piece), gaps={EXPIRED: piece.size}) for piece in begun.skipped]
            begun.facts = sorted([*gone, *facts], key=lambda slice_facts: slice_facts.offsets)

    def _fetched(self, piece: OffsetRange, fails: bool) -> SliceFacts:
        if fails or piece.start < self.logs[piece.partition][0]:
            return replace(self._facts(piece), failure=SliceFailure(kind="NetworkError", reason="no answer"))
        rows = [Row(piece.partition, offset, self.times, offset) for offset in range(piece.start, piece.stop)]
        path = self.store.stage(rows) if rows else None
        return replace(self._facts(piece), rows=len(rows), path=path, size=len(rows))

    def _facts(self, piece: OffsetRange) -> SliceFacts:
        return SliceFacts(offsets=piece, loaded_at_us=self.times)

    @precondition(lambda self: self.begun)
    @rule(run=RUNS, fates=FATES)
    def commits(self, run: str, fates: list[str]) -> None:
        """A run commits, and the writes have the given fates."""
        begun = self.begun.get(run)
        if begun is None or begun.facts is None:
            return
        stands = table_state(begun.at, TOPIC)
        complete = committable(begun.facts, stands.covered)
        if complete:
            self._commit(begun, LoadChange(state=stands, facts=tuple(complete), run=run), fates)
        del self.begun[run]

    def _commit(self, one: Begun, change: LoadChange, fates: list[str]) -> None:
        self.store.fates = fates
        late, clashed = "late" in fates, bool(fates)
        try:
            result = commit(self.store, one.at, change, sleep=lambda _: self.store.arrive())
        except CommitRefused:
            assert self._landed(change) == []
        except LakeUnavailable:
            assert clashed
            assert late or self._landed(change) == []
        else:
            assert self._landed(change) == ([] if result.done_by else [result.version])
        self.store.fates = []

    def _landed(self, change: LoadChange) -> list[int]:
        return [
            version
            for version, entry in self.store.logged_entries(len(self.store.versions) - 1)
            if entry.commit == change.commit
        ]

    @rule(run=RUNS)
    def crashes(self, run: str) -> None:
        """A run ends where it is."""
        self.begun.pop(run, None)

    @rule()
    def what_was_late_arrives(self) -> None:
        """A write arrives after its caller got an error."""
        self.store.arrive()

    @rule()
    def small_files_are_compacted(self) -> None:
        """Somebody else commits."""
        self.store.compact()

    @invariant()
    def no_cursor_moves_back(self) -> None:
        """Both ends of what is covered only grow apart."""
        entry = self.store.peek().entry
        covered: Coverage = entry.covered if entry else {}
        for id_, (start, cursor) in self.cursors.items():
            assert covered[id_][0] <= start
            assert cursor <= covered[id_][1]
        self.cursors = covered

    @invariant()
    def what_is_covered_is_whole(self) -> None:
        """Ranges follow each other from start to cursor, and have each of their rows once."""
        result = incarnations(self.store.logged_entries(len(self.store.versions) - 1))
        rows = sorted((row.id, row.offset) for row in self.store.rows)
        present = []
        for life in result:
            assert not life.problems
            for committed, after in pairwise(life.ranges):
                assert committed.partition != after.partition or committed.offsets.stop == after.offsets.start
            present += [
                (committed.partition, offset)
                for committed in life.ranges
                if not committed.gaps
                for offset in range(committed.offsets.start, committed.offsets.stop)
            ]
            for id_, (start, cursor) in self.cursors.items():
                own = [committed for committed in life.ranges if committed.partition == id_]
                assert (own[0].offsets.start, own[-1].offsets.stop) == (start, cursor)
        assert rows == sorted(present)


TestTwoRuns = TwoRuns.TestCase
TestTwoRuns.settings = settings(
    derandomize=True,
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
