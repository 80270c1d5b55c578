"""Ten thousand writes whose answer is lost: each run reports correctly whether its commit landed."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import LoadChange, commit
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.table_store import CommitOutcomeUnknown, TableSnapshot, TableStore
from resources.errors import LakeUnavailable, LoadError
from tests.simulation.scheduler import Odds, Scheduler, hooked
from tests.simulation.small import SmallStore
from tests.simulation.store import Late, SimStore, Version
from tests.small_table import SmallTable

pytestmark = pytest.mark.crash
A = BrokerPartition(0, 0)
_LOST = 1_000
_LOST_IN_DELTA = 40
_COMMITS_IN_A_TABLE = 25


Kinds = Counter[str]
"""The number of lost answers, or of verdicts, by kind."""


@dataclass(kw_only=True)
class LossyStore(SimStore):
    """A store that loses most answers: the write lands, does not land, or lands late. A rival may commit before it.

    `lost` counts the lost answers. In a `calm` store nothing of this happens.
    """

    lost: Kinds
    rival: Callable[[], None] = lambda: None
    calm: bool = False

    def _write(self, build: Callable[[], Version]) -> int:
        if self.calm:
            return self._land(build())
        rng = self.scheduler.rng
        if rng.random() < 0.2:
            self.run_calmly(self.rival)
        fate = rng.choice(("landed", "landed", "not landed", "not landed", "late", "answered"))
        if fate == "answered":
            return self._land(build())
        if fate == "late":
            self.late.append(Late(number=len(self.versions), version=build()))
        if fate == "landed":
            self._land(build())
        self.lost[fate] += 1
        raise CommitOutcomeUnknown(fate)

    def run_calmly(self, action: Callable[[], None]) -> None:
        """Run an action of another run, without failures."""
        self.calm = True
        action()
        self.calm = False

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The newest version; a delayed write may arrive before it, and sometimes the store does not answer."""
        if not self.calm and self.scheduler.rng.random() < 0.3:
            self.arrive()
        if not self.calm and self.scheduler.rng.random() < 0.03:
            raise LakeUnavailable("no answer")
        return super().newer(snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyTable(DeltaLakeTable):
    """A Delta table that loses most answers; `lost` counts them."""

    rng: random.Random
    lost: Kinds

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """Write or do not write, and in most cases lose the answer."""
        fate = self.rng.choice(("landed", "not landed", "answered"))
        if fate != "not landed":
            version = DeltaLakeTable.write(self, snapshot, entry, new_slices, replaced)
            if fate == "answered":
                return version
        self.lost[fate] += 1
        raise CommitOutcomeUnknown(fate)


def commit_verdict(table: TableStore, snapshot: TableSnapshot, change: LoadChange) -> str:
    """Commit, and return the outcome as the run reports it."""
    try:
        result = commit(table, snapshot, change, sleep=lambda _: None)
    except LoadError as error:
        return type(error).__name__
    return "overtaken" if result.overtaken_by else f"version {result.version}"


def check(verdict: str, change: LoadChange, entries: Sequence[tuple[int, LedgerEntry]]) -> None:
    """Check that the verdict matches the table; `entries` are its entries, newest first."""
    landed = [f"version {version}" for version, entry in entries if entry.commit == change.commit]
    if verdict.startswith("version"):
        assert landed == [verdict]
    elif verdict != "CommitUnknown":
        assert landed == []
        assert verdict in {"overtaken", "LakeUnavailable"}
    if verdict == "overtaken":  # the table holds the first slice, or ends inside of it
        start, cursor = entries[0][1].covered[A]
        assert start <= change.facts[0].offsets.start < cursor


def check_complete(entries: Sequence[tuple[int, LedgerEntry]], offsets: Sequence[int]) -> None:
    """Check that no cursor moved back, and that every offset below it is in the table once."""
    cursors = [entry.covered[A][1] for _, entry in entries]
    assert cursors == sorted(cursors, reverse=True)
    assert sorted(offsets) == list(range(0, cursors[0], 10))
    [incarnation] = incarnations(entries)
    assert not incarnation.problems


def write_slices(small: SmallStore | SmallTable, rng: random.Random, cursor: int) -> list[SliceFacts]:
    """Write one to three slices that start at the cursor."""
    ends = [cursor, *sorted(cursor + 10 * offset for offset in rng.sample(range(1, 8), rng.randint(1, 3)))]
    return [small.write(start, stop) for start, stop in pairwise(ends)]


def commit_with_lost_answers(seed: int, lost: Kinds, verdicts: Kinds) -> None:
    """Commit many times to one table in memory. Snapshots may be stale, and rivals commit in between."""
    scheduler = Scheduler(rng=random.Random(seed), odds=Odds.calm())
    rng = scheduler.rng
    small = SmallStore(scheduler, store=lambda **options: LossyStore(lost=lost, **options))
    store = small.table
    assert isinstance(store, LossyStore)

    def rival() -> None:
        newest = store.peek().entry
        cursor = newest.covered[A][1] if newest else 0
        if rng.random() < 0.2:
            store.compact()
        else:
            small.commit(small.write(cursor, cursor + rng.choice((10, 20, 30))), run="rival")

    store.rival = rival
    for _ in range(_COMMITS_IN_A_TABLE):
        snapshot = store.peek()
        facts = write_slices(small, rng, snapshot.entry.covered[A][1] if snapshot.entry else 0)
        for _ in range(rng.choice((0, 0, 0, 1, 5))):
            store.run_calmly(rival)
        change = small.loading(*facts, snapshot=snapshot, run="tested")
        verdict = commit_verdict(store, snapshot, change)
        check(verdict, change, list(store.logged_entries(len(store.versions) - 1)))
        verdicts[verdict.partition(" ")[0]] += 1
        if rng.random() < 0.5:
            store.arrive()
    check_complete(list(store.logged_entries(len(store.versions) - 1)), [row.offset for row in store.rows])


def lose_answers(count: int, seed: int) -> Kinds:
    """Commit until so many answers of each kind are lost; returns the verdicts."""
    lost: Kinds = Counter()
    verdicts: Kinds = Counter()
    with hooked(Scheduler(rng=random.Random(seed), odds=Odds.calm())):
        while min(lost["landed"], lost["not landed"]) < count:
            commit_with_lost_answers(seed, lost, verdicts)
            seed += 1
    return verdicts


def test_a_run_learns_whether_its_commit_landed() -> None:  # faults L03, L05, L06
    """`make simulate` loses ten times as many answers."""
    verdicts = lose_answers(_LOST, 0)
    assert min(verdicts[verdict] for verdict in ("version", "overtaken", "CommitUnknown", "LakeUnavailable")) > 10


def test_a_run_on_a_delta_table_learns_whether_its_commit_landed(tmp_path: Path) -> None:  # faults L03, L05
    lost: Kinds = Counter()
    rng = random.Random(7)
    while min(lost["landed"], lost["not landed"]) < _LOST_IN_DELTA:
        small = SmallTable(tmp_path / str(lost.total()))
        table = LossyTable(lake=small.lake, uri=small.uri, where=small.table.where, rng=rng, lost=lost)
        for _ in range(20):
            snapshot = table.snapshot()
            cursor = snapshot.entry.covered[A][1] if snapshot.entry else 0
            change = small.loading(*write_slices(small, rng, cursor), snapshot=snapshot, run="tested")
            if rng.random() < 0.3:
                small.commit(small.write(cursor, cursor + rng.choice((10, 20, 30))), run="rival")
            verdict = commit_verdict(table, snapshot, change)
            check(verdict, change, list(table.entries(table.snapshot())))
        offsets = small.handle().to_pyarrow_table().column("offset").to_pylist()
        check_complete(list(table.entries(table.snapshot())), offsets)


@pytest.mark.parametrize("newer", [1, 3, 50])
@pytest.mark.parametrize("crosses", [False, True], ids=["before the cursor", "across the cursor"])
def test_a_stale_committer_never_moves_the_cursor_back(newer: int, crosses: bool) -> None:  # faults L06, S05
    small = SmallStore(Scheduler(rng=random.Random(1), odds=Odds.calm()))
    small.commit(small.write(0, 10))
    stale = small.table.snapshot()
    change = small.loading(small.write(10, 10 + 10 * newer + 5 if crosses else 20), snapshot=stale, run="stale")
    for number in range(1, newer + 1):
        small.commit(small.write(10 * number, 10 * number + 10))
    assert commit_verdict(small.table, stale, change) == "overtaken"
    entries = list(small.table.logged_entries(len(small.table.versions) - 1))
    check_complete(entries, [row.offset for row in small.table.rows])
    assert entries[0][1].covered == {A: (0, 10 + 10 * newer)}
