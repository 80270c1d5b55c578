"""Faults that the simulation found, each as the shortest test that shows it."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition, EpochEnd, OffsetRange
from pipelines.commit.commit import CommitResult, LoadChange, commit
from pipelines.commit.offset_ranges import with_counts
from pipelines.commit.replacement import CutChange
from pipelines.fetch.fetch_task import FetchTask
from pipelines.identity.identity import table_state
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.maintenance.rewind import RewindChange
from pipelines.plan.window import LoadWindow
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay import ReplayChange
from pipelines.table.table_store import CommitOutcomeUnknown, TableSnapshot
from resources.errors import CommitRefused, CommitUnknown, LakeUnavailable, TableReplaced
from resources.progress import Progress
from resources.settings.choices import Choices
from resources.settings.settings import Caps
from tests.fakes.loaders import simple_loader
from tests.pipelines.ledger.test_event_time import times
from tests.simulation.brokers import TOPIC, SimCluster
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.sim_log import ERAS, Era, SimLog
from tests.simulation.store import SimStore, Version
from tests.simulation.workers import SimWorkers

A = BrokerPartition(None, 0)
CLICKS = TopicIdentity(cluster="main", name=TOPIC, incarnation="incarnation-1")


def calm() -> Scheduler:
    return Scheduler(rng=random.Random(1), odds=Odds.calm())


def fact(start: int, stop: int) -> SliceFacts:
    return compacted(OffsetRange(BrokerPartition(None, 0), start, stop))


def compacted(offsets: OffsetRange) -> SliceFacts:
    return SliceFacts(range=CommittedRange(offsets=offsets, gaps={"compacted": offsets.size}))


def load_change(snapshot: TableSnapshot, facts: list[SliceFacts], epoch: int) -> LoadChange:
    epochs = {slice_facts.offsets.partition: epoch for slice_facts in facts}
    return LoadChange(state=table_state(snapshot, CLICKS), facts=tuple(facts), epochs=epochs, run="run")


def land(store: SimStore, snapshot: TableSnapshot, facts: list[SliceFacts], epoch: int) -> CommitResult:
    return commit(store, snapshot, load_change(snapshot, facts, epoch), sleep=lambda _: None)


def test_a_backfill_keeps_the_epoch_of_the_run_that_moved_the_cursor() -> None:  # fault B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(50, 60)], 5)
    snapshot = store.snapshot()
    land(store, snapshot, [fact(60, 70)], 6)
    land(store, snapshot, [fact(0, 50)], 5)
    entry = store.snapshot().entry
    assert entry is not None
    assert (entry.covered[A], entry.state.epochs[A]) == ((0, 70), 6)


def test_a_run_is_refused_if_another_run_moved_the_cursor_under_another_leader() -> None:  # faults B02, B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    land(store, snapshot, [fact(50, 60)], 6)
    with pytest.raises(CommitRefused, match="partition 0 has another leader since"):
        land(store, snapshot, [fact(50, 60), fact(60, 70)], 5)
    land(store, snapshot, [fact(50, 60), fact(60, 70)], 6)
    entry = store.snapshot().entry
    assert entry is not None
    assert (entry.covered[A], entry.state.epochs[A]) == ((0, 70), 6)


def test_a_load_does_not_continue_after_offsets_that_were_cut_and_loaded_again_meanwhile() -> None:  # fault B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    truncated = (OffsetRange(A, 30, 50),)
    commit(
        store,
        snapshot,
        CutChange(state=table_state(snapshot, CLICKS), ranges=truncated, run="rival"),
        sleep=lambda _: None,
    )
    land(store, store.snapshot(), [fact(30, 50)], 6)
    with pytest.raises(CommitRefused, match="has another leader since"):
        land(store, snapshot, [fact(50, 80)], 5)


def test_a_replay_of_offsets_that_were_cut_and_loaded_again_meanwhile_is_refused() -> None:  # fault B04
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    change = ReplayChange(
        fetched_rows=lambda part: part.rows,
        state=table_state(snapshot, CLICKS),
        ranges=(OffsetRange(A, 30, 50),),
        facts=(fact(30, 50),),
        run="replay",
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


def test_an_older_answer_about_the_end_of_a_log_does_not_take_the_place_of_a_newer_one() -> None:  # fault U20
    """A broker lied to a run whose load was shorter. Nobody knows that the other answer is right, and it is older."""
    store = SimStore(scheduler=calm())
    snapshot = store.snapshot()
    older = replace(load_change(snapshot, [fact(0, 5), fact(5, 12)], 5), times=times(114, A, p0=12))
    newer = replace(load_change(snapshot, [fact(0, 5)], 5), times=times(130, A, p0=45))
    for change in (newer, older):
        commit(store, snapshot, change, sleep=lambda _: None)
    entry = store.snapshot().entry
    assert entry is not None
    assert entry.event_time is not None
    newest = entry.event_time.partitions[A]
    assert (newest.asked_ms, newest.end, newest.at_end, newest.proven_ms) == (130, 45, False, 114)


def loaded_from(cluster_id: str, snapshot: TableSnapshot, facts: Sequence[SliceFacts], epoch: int) -> LoadChange:
    """A load from a cluster, which by choice continues the table of another cluster."""
    topic, choices = replace(CLICKS, cluster_id=cluster_id), Choices(on_cluster_changed="adopt")
    state = table_state(snapshot, topic, choices=choices)
    return LoadChange(
        state=state, facts=tuple(facts), epochs={part.offsets.partition: epoch for part in facts}, run="r"
    )


def test_a_load_that_adopts_a_cluster_sees_that_another_run_moved_the_cursor_under_another_leader() -> None:
    store = SimStore(scheduler=calm())  # faults B04, N17
    commit(store, store.snapshot(), loaded_from("one", store.snapshot(), [fact(0, 50)], 5), sleep=lambda _: None)
    snapshot = store.snapshot()
    change = loaded_from("two", snapshot, [fact(50, 60), fact(60, 70)], 5)
    commit(store, snapshot, loaded_from("one", snapshot, [fact(50, 60)], 6), sleep=lambda _: None)
    with pytest.raises(CommitRefused, match="partition 0 has another leader since"):
        commit(store, snapshot, change, sleep=lambda _: None)


def test_a_load_that_adopts_a_cluster_forgets_the_epochs_of_rows_that_were_taken_back_meanwhile() -> None:
    store = SimStore(scheduler=calm())  # faults B04, N17
    empty = store.snapshot()
    begun = compacted(OffsetRange(BrokerPartition(None, 2), 0, 10))
    commit(store, empty, loaded_from("one", empty, [begun], 5), sleep=lambda _: None)
    target = store.snapshot()
    commit(store, target, loaded_from("one", target, [fact(0, 50)], 5), sleep=lambda _: None)
    snapshot = store.snapshot()
    other = compacted(OffsetRange(BrokerPartition(None, 1), 0, 10))
    change = loaded_from("two", snapshot, [other], 5)
    assert snapshot.entry is not None
    restored = table_state(target, replace(CLICKS, cluster_id="one"))
    rewind = RewindChange(target=target.version, state=restored, known_commit=snapshot.entry.commit, run="rewind")
    commit(store, snapshot, rewind, sleep=lambda _: None)
    commit(store, snapshot, change, sleep=lambda _: None)
    entry = store.snapshot().entry
    assert entry is not None
    assert entry.state.epochs.keys() == entry.covered.keys() == {BrokerPartition(None, 1), BrokerPartition(None, 2)}


class DelayingStore(SimStore):
    """A store that delays its first write and reports it as lost. `check` fails as long as the write is delayed."""

    def _write(self, build: Callable[[], Version]) -> int:
        self._delayed(build)
        return 0

    def check(self, files: Sequence[SliceFacts]) -> None:
        """See TableStore."""
        super().check(files)
        if self.late:
            raise LakeUnavailable("no answer")


def test_a_commit_that_may_still_land_is_not_reported_as_failed() -> None:  # fault L03
    store = DelayingStore(scheduler=calm())
    with pytest.raises(CommitUnknown, match="deadline exceeded"):
        land(store, store.snapshot(), [fact(0, 50)], 5)
    store.arrive()
    assert store.snapshot().entry is not None


class RefusedStore(SimStore):
    """A store whose first write lands without an answer. Then another program makes the table one that we refuse."""

    def _write(self, build: Callable[[], Version]) -> int:
        super()._write(build)
        self.foreign.add("deletion vectors")
        raise CommitOutcomeUnknown("the connection was closed")


def test_a_commit_in_a_table_that_became_unusable_is_not_reported_as_failed() -> None:  # fault L03
    store = RefusedStore(scheduler=calm())
    with pytest.raises(CommitUnknown, match="to see whether it landed: the table uses deletion vectors"):
        land(store, store.snapshot(), [fact(0, 50)], 5)
    assert store.peek().entry is not None


@dataclass
class SimTopic:
    """A simulated topic with its cluster, its table and its workers."""

    era: Era
    scheduler: Scheduler = field(default_factory=calm)

    def __post_init__(self) -> None:
        self.cluster = SimCluster(scheduler=self.scheduler, era=self.era)
        self.cluster.recreate(1)
        [self.id] = self.cluster.logs
        self.store = SimStore(scheduler=self.scheduler)
        self.workers = SimWorkers(cluster=self.cluster, store=self.store, scheduler=self.scheduler)

    def load(
        self,
        choices: Choices,
        *,
        planned: Callable[[], None] = lambda: None,
        window: LoadWindow | None = None,
        slice_records: int = 1000,
    ) -> TopicLoad:
        """Run a load; it calls `planned` just before it fetches."""

        def fetch(works: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
            planned()
            return self.workers.fetch(works, on_progress)

        loader = simple_loader(
            self.cluster,
            self.store,
            fetch,
            choices=choices,
            caps=Caps(slice_records=slice_records, driver_slices=1),
            window=window or LoadWindow(),
            now=self.scheduler.now,
        )
        return loader.load(TOPIC)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_rows_of_a_topic_that_is_recreated_during_a_load_are_not_committed(era: Era) -> None:  # fault B06
    sim = SimTopic(era)
    sim.cluster.send(sim.id, 10)

    def recreated() -> None:
        sim.cluster.recreate(1)
        sim.cluster.send(sim.id, 200)

    error = sim.load(Choices(), planned=recreated).error or ""
    assert error.startswith(("TopicRecreated", "TopicReplaced"))
    assert sim.store.snapshot().entry is None


def test_a_recreated_topic_is_recognised_by_an_id_that_only_the_table_knew_at_the_plan() -> None:  # fault B06
    """While brokers are upgraded, some of them do not show the id of a topic."""
    sim = SimTopic(ERAS[2])
    sim.cluster.answers.through_zookeeper = False
    sim.cluster.send(sim.id, 10)
    assert sim.load(Choices()).error is None
    rows = sim.store.rows
    sim.cluster.send(sim.id, 10)
    sim.cluster.era = ERAS[1]

    def recreated() -> None:
        sim.cluster.era = ERAS[2]
        sim.cluster.recreate(1)
        sim.cluster.send(sim.id, 200)

    error = sim.load(Choices(), planned=recreated).error or ""
    assert error.startswith("TopicRecreated: the topic was deleted and created again while it was read")
    assert sim.store.rows == rows


def test_impossible_bounds_remove_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:  # fault B14
    sim = SimTopic(ERAS[-1])
    sim.cluster.send(sim.id, 100)
    rewind = Choices(on_truncated="rewind")
    assert sim.load(rewind).error is None
    impossible = Bounds(earliest=100, latest=0)
    monkeypatch.setattr(SimLog, "bounds", lambda _: impossible)
    error = sim.load(rewind).error or ""
    assert "the broker reports a log that ends before it begins: [100, 0)" in error
    entry = sim.store.snapshot().entry
    assert entry is not None
    assert entry.covered[sim.id][0] == 0
    assert entry.covered[sim.id][1] >= 100


@pytest.mark.parametrize("before_cut", [True, False], ids=["before the cut", "after the cut"])
def test_a_load_does_not_continue_after_a_rewind_by_another_run_just_before_or_after_its_cut(
    before_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # faults B04, L14
    sim = SimTopic(ERAS[-1])
    sim.cluster.send(sim.id, 100)
    sim.load(Choices())
    before = sim.store.snapshot()
    assert before.entry is not None
    restored = table_state(before, before.entry.topic)
    sim.cluster.logs[sim.id].cut(40, tick=sim.scheduler.tick)
    sim.cluster.send(sim.id, 200)

    def rewind_after(kind: CommitKind) -> None:
        now = sim.store.snapshot()
        if now.entry and now.entry.kind is kind:
            change = RewindChange(target=before.version, state=restored, known_commit=now.entry.commit, run="rewind")
            commit(sim.store, now, change)

    true_truncations = sim.cluster.true_truncations

    def truncations(_topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, EpochEnd]:
        rewind_after(CommitKind.LOAD)
        return true_truncations(read)

    if before_cut:
        monkeypatch.setattr(sim.cluster, "truncations", truncations)
    else:
        sim.store.landed = lambda _: rewind_after(CommitKind.CUT)
    error = sim.load(Choices(on_truncated="rewind")).error or ""
    assert "another run committed meanwhile" in error
    sim.store.landed = lambda _: None
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert {row.offset: row.payload for row in sim.store.rows} == sim.cluster.logs[sim.id].records


def test_a_recreated_topic_is_not_taken_for_a_truncated_one(monkeypatch: pytest.MonkeyPatch) -> None:  # fault B05
    sim = SimTopic(ERAS[0])
    sim.cluster.send(sim.id, 100)
    sim.load(Choices())
    before = sim.store.rows
    bounds = sim.cluster.bounds

    def recreated(topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        sim.cluster.recreate(1)
        sim.cluster.send(sim.id, 10)
        return bounds(topic, partitions)

    monkeypatch.setattr(sim.cluster, "bounds", recreated)
    error = sim.load(Choices(on_truncated="rewind")).error or ""
    assert error.startswith("TopicRecreated")
    assert sim.store.rows == before


def test_a_cut_of_a_table_that_is_removed_meanwhile_is_refused() -> None:  # fault P07
    store = SimStore(scheduler=calm())
    land(store, store.snapshot(), [fact(0, 50)], 5)
    snapshot = store.snapshot()
    cut = CutChange(state=table_state(snapshot, CLICKS), ranges=(OffsetRange(A, 30, 50),), run="run")
    store.remove()
    with pytest.raises(TableReplaced):
        commit(store, snapshot, cut)


def test_a_part_of_an_expired_range_is_still_a_gap() -> None:  # fault B07
    hole = CommittedRange(
        offsets=OffsetRange(BrokerPartition(0, 0), 0, 100), rows=0, bytes=0, loaded_at_us=1, gaps={"expired": 100}
    )
    store = SimStore(scheduler=calm())
    [counted] = with_counts(store, store.snapshot(), [(replace(hole, offsets=replace(hole.offsets, stop=40)), hole)])
    assert counted.gaps == {"expired": 40}
