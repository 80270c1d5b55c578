"""Faults that the simulation found, each as the shortest test that shows it."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.loading.commit import CommitResult, LoadChange, commit
from pipelines.loading.ledger import CommitKind, TopicIdentity
from pipelines.loading.load import Loader
from pipelines.loading.offset_ranges import with_counts
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.replacement import CutChange
from pipelines.loading.table_log import TableSnapshot, table_state
from pipelines.loading.work import CommittedRange, FetchTask, SliceFacts
from pipelines.maintenance.replay import ReplayChange
from pipelines.maintenance.rewind import RewindChange
from resources.choices import Choices
from resources.errors import CommitRefused, CommitUnknown, LakeUnavailable
from resources.settings import Caps
from resources.spark import Progress
from tests.simulation.brokers import ERAS, TOPIC, Era, SimCluster, SimLog
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.store import SimStore, Version
from tests.simulation.workers import SimWorkers

A = BrokerPartition(None, 0)
CLICKS = TopicIdentity(cluster="main", name=TOPIC, incarnation="life-1")


def calm() -> Scheduler:
    return Scheduler(rng=random.Random(1), odds=Odds.calm())


def fact(start: int, stop: int) -> SliceFacts:
    return SliceFacts(offsets=OffsetRange(BrokerPartition(None, 0), start, stop), gaps={"compacted": stop - start})


def loading(at: TableSnapshot, facts: list[SliceFacts], epoch: int) -> LoadChange:
    epochs = {slice_facts.offsets.partition: epoch for slice_facts in facts}
    return LoadChange(state=table_state(at, CLICKS), facts=tuple(facts), epochs=epochs, run="run")


def land(store: SimStore, at: TableSnapshot, facts: list[SliceFacts], epoch: int) -> CommitResult:
    return commit(store, at, loading(at, facts, epoch), sleep=lambda _: None)


def test_a_backfill_keeps_the_epoch_of_the_run_that_moved_the_cursor() -> None:  # fault B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(50, 60)], 5)
    snapshot = store.snapshot()
    land(store, snapshot, [fact(60, 70)], 6)
    land(store, snapshot, [fact(0, 50)], 5)
    entry = store.snapshot().entry
    assert entry is not None
    assert (entry.covered[A], entry.epochs[A]) == ((0, 70), 6)


def test_a_run_is_refused_where_another_moved_the_cursor_under_another_leader() -> None:  # faults B02, B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    land(store, snapshot, [fact(50, 60)], 6)
    with pytest.raises(CommitRefused, match="partition 0 has another leader since"):
        land(store, snapshot, [fact(50, 60), fact(60, 70)], 5)
    land(store, snapshot, [fact(50, 60), fact(60, 70)], 6)
    entry = store.snapshot().entry
    assert entry is not None
    assert (entry.covered[A], entry.epochs[A]) == ((0, 70), 6)


def test_a_load_does_not_continue_after_offsets_that_were_cut_and_loaded_again_meanwhile() -> None:  # fault B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    lost = (OffsetRange(A, 30, 50),)
    commit(
        store, snapshot, CutChange(state=table_state(snapshot, CLICKS), ranges=lost, run="rival"), sleep=lambda _: None
    )
    land(store, store.snapshot(), [fact(30, 50)], 6)
    with pytest.raises(CommitRefused, match="has another leader since"):
        land(store, snapshot, [fact(50, 80)], 5)


def test_a_replay_of_offsets_that_were_cut_and_loaded_again_meanwhile_is_refused() -> None:  # fault B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    change = ReplayChange(
        state=table_state(snapshot, CLICKS), ranges=(OffsetRange(A, 30, 50),), facts=(fact(30, 50),), run="replay"
    )
    commit(
        store,
        snapshot,
        CutChange(state=table_state(snapshot, CLICKS), ranges=(OffsetRange(A, 30, 50),), run="rival"),
        sleep=lambda _: None,
    )
    land(store, store.snapshot(), [fact(30, 50)], 6)
    with pytest.raises(CommitRefused, match="was loaded from another leader since"):
        change.rebased(store.snapshot())


class Blind(SimStore):
    """A store whose first write lands after its caller has looked for it, and which cannot be read afterwards."""

    def _write(self, made: Callable[[], Version]) -> int:
        self._delayed(made)
        return 0

    def check(self, files: Sequence[SliceFacts]) -> None:
        """Fails the second time."""
        super().check(files)
        if self.late:
            raise LakeUnavailable("no answer")


def test_a_commit_that_may_still_land_is_not_reported_as_failed() -> None:  # fault L03
    store = Blind(scheduler=calm())
    with pytest.raises(CommitUnknown, match="deadline exceeded"):
        land(store, store.snapshot(), [fact(0, 50)], 5)
    store.arrive()
    assert store.snapshot().entry is not None


@dataclass
class Place:
    """A topic, its table and a loader of it."""

    era: Era
    scheduler: Scheduler = field(default_factory=calm)

    def __post_init__(self) -> None:
        self.cluster = SimCluster(scheduler=self.scheduler, era=self.era)
        self.cluster.recreate(1)
        [self.id] = self.cluster.logs
        self.store = SimStore(scheduler=self.scheduler)
        self.workers = SimWorkers(cluster=self.cluster, store=self.store, scheduler=self.scheduler)

    def load(self, choices: Choices, *, planned: Callable[[], None] = lambda: None) -> TopicLoad:
        """Run a load; `planned` is called just before it fetches."""

        def fetch(works: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
            planned()
            return self.workers.fetch(works, on_progress)

        loader = Loader(
            cluster=self.cluster,
            tables=lambda _: self.store,
            fetch=fetch,
            caps=Caps(),
            start="earliest",
            choices=choices,
            now=self.scheduler.now,
        )
        return loader.load(TOPIC)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_rows_of_a_topic_that_is_recreated_during_a_load_are_not_committed(era: Era) -> None:  # fault B06
    place = Place(era)
    place.cluster.send(place.id, 10)

    def recreated() -> None:
        place.cluster.recreate(1)
        place.cluster.send(place.id, 200)

    error = place.load(Choices(), planned=recreated).error or ""
    assert error.startswith(("TopicRecreated", "TopicReplaced"))
    assert place.store.snapshot().entry is None


def test_impossible_bounds_take_no_rows_back(monkeypatch: pytest.MonkeyPatch) -> None:  # fault B14
    place = Place(ERAS[-1])
    place.cluster.send(place.id, 100)
    rewinds = Choices(on_truncated="rewind")
    assert place.load(rewinds).error is None
    lie = Bounds(earliest=100, latest=0)
    monkeypatch.setattr(SimLog, "bounds", lambda _: lie)
    error = place.load(rewinds).error or ""
    assert "the broker reports a log that ends before it begins: [100, 0)" in error
    entry = place.store.snapshot().entry
    assert entry is not None
    assert entry.covered[place.id][0] == 0
    assert entry.covered[place.id][1] >= 100


@pytest.mark.parametrize("first", [True, False], ids=["before the cut", "after the cut"])
def test_a_load_does_not_continue_from_a_rewind_just_before_or_after_its_cut(
    first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # faults B04, L14
    place = Place(ERAS[-1])
    place.cluster.send(place.id, 100)
    place.load(Choices())
    before = place.store.snapshot()
    assert before.entry is not None
    restored = table_state(before, before.entry.topic)
    place.cluster.logs[place.id].cut(40, tick=place.scheduler.tick)
    place.cluster.send(place.id, 200)

    def take_back(kind: CommitKind) -> None:
        now = place.store.snapshot()
        if now.entry and now.entry.kind is kind:
            change = RewindChange(target=before.version, state=restored, seen=now.entry.commit, run="rewind")
            commit(place.store, now, change)

    parted = place.cluster.parted

    def truncations(_topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        take_back(CommitKind.LOAD)
        return parted(read)

    if first:
        monkeypatch.setattr(place.cluster, "truncations", truncations)
    else:
        place.store.landed = lambda _: take_back(CommitKind.CUT)
    error = place.load(Choices(on_truncated="rewind")).error or ""
    assert "another run committed meanwhile" in error
    place.store.landed = lambda _: None
    assert place.load(Choices(on_truncated="rewind")).error is None
    assert {row.offset: row.payload for row in place.store.rows} == place.cluster.logs[place.id].records


def test_a_recreated_topic_is_not_taken_for_a_truncated_one(monkeypatch: pytest.MonkeyPatch) -> None:  # fault B05
    place = Place(ERAS[0])
    place.cluster.send(place.id, 100)
    place.load(Choices())
    before = place.store.rows
    bounds = place.cluster.bounds

    def recreated(topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        place.cluster.recreate(1)
        place.cluster.send(place.id, 10)
        return bounds(topic, partitions)

    monkeypatch.setattr(place.cluster, "bounds", recreated)
    error = place.load(Choices(on_truncated="rewind")).error or ""
    assert error.startswith("TopicRecreated")
    assert place.store.rows == before


def test_a_part_of_an_expired_range_is_still_a_gap() -> None:  # fault B07
    hole = CommittedRange(
        offsets=OffsetRange(BrokerPartition(0, 0), 0, 100), rows=0, bytes=0, loaded_at_us=1, gaps={"expired": 100}
    )
    store = SimStore(scheduler=calm())
    [left] = with_counts(store, store.snapshot(), [(replace(hole, offsets=replace(hole.offsets, stop=40)), hole)])
    assert left.gaps == {"expired": 40}
