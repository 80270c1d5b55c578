"""A run is done in steps, each with its own commit; it ends where the logs ended when it began."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock, patch

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.ledger import LedgerEntry, TableState, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load import discovered
from pipelines.load import planned as planning
from pipelines.load.discovered import Discovery
from pipelines.plan.plan import Plan, RunTarget
from pipelines.plan.positions import NamedPosition
from pipelines.plan.window import LoadWindow, OffsetWindow
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.progress import Progress
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import FakeCluster
from tests.fakes.loaders import loader_of, simple_loader
from tests.fakes.records import holding, numbered, table, values

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)


def no_spark() -> NoReturn:
    pytest.fail("these loads fetch by themselves")


def load(fake: FakeCluster, folder: Path, *, run: int | None = None, **overrides: Any) -> TopicLoad:
    """Load with slices of 5 records, two of them in a step."""
    settings = Settings(
        lake=str(folder),
        clusters={"main": ClusterSettings(bootstrap=",".join(broker.address for broker in fake.bootstrap))},
        caps=Caps(attempts=1, request_timeout_s=5, slice_records=5, records_per_run=run),
    )
    with open_cluster(settings, "main") as cluster, patch.object(planning, "_STEP_SLICES", 2):
        return loader_of(settings, cluster, no_spark, **{"fetch": fetch_here, **overrides}).load("clicks")


def entries(folder: Path) -> list[LedgerEntry]:
    of = table(folder)
    return [entry for _, entry in of.entries(of.snapshot())][::-1]


def test_brokers_are_asked_for_the_bounds_of_the_wanted_partitions_alone() -> None:  # fault N07
    topic = TopicEntry(name="clicks", incarnation="7", partitions=(A, B))
    cluster = Mock(bounds=lambda _topic, asked: dict.fromkeys(asked, Bounds(earliest=0, latest=9)))
    cluster.topic.return_value = topic
    run = simple_loader(cluster, Mock(), Mock()).run
    state = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))
    with patch.object(discovered, "open_table", lambda *_, **__: (Mock(), state)):
        found = [Discovery(run=run, table=Mock()).of("clicks", wanted=wanted) for wanted in (None, {B}, set())]
    assert [each.bounds.keys() for each in found] == [{A, B}, {B}, set()]
    assert [each.wanted for each in found] == [{A, B}, {B}, set()]


def test_each_step_is_a_commit_and_progress_is_of_the_whole_run(fake: FakeCluster, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    with fake:
        result = load(fake, tmp_path, on_progress=lambda _topic: lambda fetched, of: reported.append((fetched, of)))
    assert (result.error, result.rows, result.version) == (None, 30, 3)
    assert [
        (
            partition.offsets.partition.partition,
            partition.offsets.start,
            partition.offsets.stop,
            partition.rows,
            partition.lag,
        )
        for partition in result.partitions
    ] == [
        (0, 0, 20, 20, 0),
        (1, 0, 10, 10, 0),
    ]
    assert [entry.covered for entry in entries(tmp_path)] == [
        {A: (0, 5), B: (0, 5)},
        {A: (0, 10), B: (0, 10)},
        {A: (0, 20), B: (0, 10)},
    ]
    assert reported == sorted(reported)
    assert reported[-1] == (30, 30)
    assert verify(table(tmp_path)).problems == ()


class Stopped(BaseException):
    """Ends a load like a kill: no handler of `Exception` catches it."""


def test_the_run_after_an_interrupted_one_continues_at_its_last_commit(fake: FakeCluster, tmp_path: Path) -> None:
    fetches_left = [1, 1]

    def stopping(*args: Any) -> Any:
        if not fetches_left:
            raise Stopped
        fetches_left.pop()
        return fetch_here(*args)

    with fake:
        with pytest.raises(Stopped):
            load(fake, tmp_path, fetch=stopping)
        assert entries(tmp_path)[-1].covered == {A: (0, 10), B: (0, 10)}
        assert load(fake, tmp_path).rows == 10
    assert (values(tmp_path), values(tmp_path, 1)) == (numbered(0, 20), numbered(0, 10))


@dataclass
class NotedFetches:
    """Fetches slices, and notes the steps of a run and what was announced with them."""

    steps: list[list[OffsetRange]] = field(default_factory=list)
    announced: list[list[list[OffsetRange]]] = field(default_factory=list)
    abandoned: list[int] = field(default_factory=list)
    before: Callable[[int], object] = lambda _step: None

    def fetch(
        self, tasks: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]]
    ) -> list[SliceFacts]:
        """Fetch the tasks of a step."""
        self.steps.append([task.offsets for task in tasks])
        self.announced.append([[task.offsets for task in step] for step in ahead])
        self.before(len(self.steps))
        return fetch_here(tasks, on_progress)

    def abandon(self, topic: str) -> None:
        """Note in front of which step the announced steps are abandoned."""
        assert topic == "clicks"
        self.abandoned.append(len(self.steps))

    def load(self, fake: FakeCluster, folder: Path, **options: Any) -> TopicLoad:
        """Load with these fetches."""
        return load(fake, folder, fetch=self.fetch, abandon=self.abandon, **options)


@pytest.mark.parametrize("run", [None, 33])
def test_the_next_steps_are_announced_with_each_step(run: int | None, fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs[0] = holding(0, 53)
    fetches = NotedFetches()
    with fake:
        result = fetches.load(fake, tmp_path, run=run)
    assert (result.error, result.rows) == (None, run or 63)
    assert len(fetches.steps) > 2
    for number, announced in enumerate(fetches.announced, 1):
        assert announced == fetches.steps[number : number + 3]
    assert fetches.abandoned == [0, len(fetches.steps)]  # at the first plan and at the end


def test_a_backfill_announces_its_next_steps(fake: FakeCluster, tmp_path: Path) -> None:
    fetches = NotedFetches()
    with fake:
        load(fake, tmp_path, start="latest")
        assert fetches.load(fake, tmp_path, window=LoadWindow(since=NamedPosition.EARLIEST)).rows == 30
    assert len(fetches.steps) == 3
    assert fetches.announced == [fetches.steps[1:], fetches.steps[2:], []]


def test_steps_are_planned_again_after_the_commit_of_another_run(fake: FakeCluster, tmp_path: Path) -> None:
    def load_meanwhile(step: int) -> None:
        if step == 2:
            assert load(fake, tmp_path, run=12).rows == 12

    fetches = NotedFetches(before=load_meanwhile)
    with fake:
        result = fetches.load(fake, tmp_path)
    assert (result.error, result.rows) == (None, 18)
    assert fetches.abandoned[:2] == [0, 2]
    assert (values(tmp_path), values(tmp_path, 1)) == (numbered(0, 20), numbered(0, 10))


def test_steps_are_planned_again_without_a_partition_that_failed(fake: FakeCluster, tmp_path: Path) -> None:
    def lose_records(step: int) -> None:
        if step == 2:
            fake.logs[1] = holding(9, 10)

    fetches = NotedFetches(before=lose_records)
    with fake:
        result = fetches.load(fake, tmp_path)
    assert (result.rows, values(tmp_path)) == (25, numbered(0, 20))
    assert result.error
    assert fetches.abandoned == [0, 2, len(fetches.steps)]
    assert all(offsets.partition == A for step in fetches.steps[2:] for offsets in step)


def test_announced_steps_are_abandoned_when_the_run_is_interrupted(fake: FakeCluster, tmp_path: Path) -> None:
    def stop(_step: int) -> None:
        raise Stopped

    fetches = NotedFetches(before=stop)
    with fake, pytest.raises(Stopped):
        fetches.load(fake, tmp_path)
    assert fetches.abandoned == [0, 1]


def test_a_log_that_grows_meanwhile_does_not_keep_a_run_from_ending(fake: FakeCluster, tmp_path: Path) -> None:
    def growing(*args: Any) -> Any:
        fake.logs[0] = holding(0, fake.logs[0].end + 10)
        return fetch_here(*args)

    with fake:
        result = load(fake, tmp_path, fetch=growing)
    assert (result.error, result.rows) == (None, 30)
    assert (
        result.partitions[0].lag == fake.logs[0].end - 20 - 10
    )  # the run does not know of the records that the last fetch added


def test_a_backfill_loads_the_newest_of_the_older_offsets_first(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path, start="latest")
        result = load(fake, tmp_path, window=LoadWindow(since=NamedPosition.EARLIEST))
    assert (result.error, result.rows) == (None, 30)
    assert [entry.covered[A] for entry in entries(tmp_path)] == [(20, 20), (15, 20), (10, 20), (0, 20)]
    assert verify(table(tmp_path)).problems == ()


def test_a_load_can_commit_between_the_steps_of_a_backfill(fake: FakeCluster, tmp_path: Path) -> None:  # fault O03
    with fake:
        load(fake, tmp_path, start="latest")
        fake.logs[0] = holding(0, 24)
        others: list[TopicLoad] = []

        def load_meanwhile(*args: Any) -> Any:
            if not others:
                others.append(load(fake, tmp_path))
            return fetch_here(*args)

        result = load(fake, tmp_path, window=LoadWindow(since=NamedPosition.EARLIEST), fetch=load_meanwhile)
    assert (others[0].error, others[0].rows) == (None, 4)
    assert (result.error, result.rows) == (None, 30)
    assert entries(tmp_path)[-1].covered == {A: (0, 24), B: (0, 10)}
    assert verify(table(tmp_path)).problems == ()


def test_the_lag_is_that_after_the_commit_of_another_run(fake: FakeCluster, tmp_path: Path) -> None:  # fault U16
    others: list[TopicLoad] = []
    mirrored: list[dict[BrokerPartition, int]] = []

    def load_meanwhile(*args: Any) -> Any:
        if not others:
            others.append(load(fake, tmp_path))
        return fetch_here(*args)

    def mirror(_topic: str, cursors: Any) -> tuple[str, ...]:
        mirrored.append(dict(cursors))
        return ()

    with fake:
        result = load(fake, tmp_path, fetch=load_meanwhile, reports={"committed": mirror})
    assert (result.error, result.rows, result.lag_before, result.lag) == (None, 0, 30, 0)
    assert [partition.lag for partition in result.partitions] == [0, 0]
    assert all(cursors == {A: 20, B: 10} for cursors in mirrored)


def test_an_expired_range_has_its_lag_and_its_error(fake: FakeCluster, tmp_path: Path) -> None:  # fault U08
    with fake:
        load(fake, tmp_path, run=10)
        fake.logs[0] = holding(8, 20)
        result = load(fake, tmp_path)
    assert [failure.kind for failure in result.failures] == ["CursorExpired"]
    assert (result.rows, result.lag) == (5, 15)  # the other partition is loaded (fault N07)


def test_a_capped_run_ends_at_its_cap(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        assert [load(fake, tmp_path, run=10).rows for _ in range(4)] == [10, 10, 10, 0]


@pytest.mark.slow
@pytest.mark.parametrize("cap", [1, 3, 7])
def test_a_capped_run_loads_exactly_its_cap(cap: int, fake: FakeCluster, tmp_path: Path) -> None:  # fault U02
    with fake:
        loaded: list[int] = []
        while not loaded or loaded[-1] == cap:
            loaded.append(load(fake, tmp_path, run=cap).rows)
            assert len(entries(tmp_path)) >= len(loaded) - 1
    assert (sum(loaded), loaded[-1] < cap) == (30, True)
    assert (values(tmp_path), values(tmp_path, 1)) == (numbered(0, 20), numbered(0, 10))
    assert verify(table(tmp_path)).problems == ()


def test_a_cap_is_shared_by_older_and_newer_records(fake: FakeCluster, tmp_path: Path) -> None:  # fault U02
    everything = LoadWindow(since=NamedPosition.EARLIEST)
    with fake:
        load(fake, tmp_path, start="latest")
        fake.logs[0] = holding(0, 40)
        assert load(fake, tmp_path, run=9, window=everything).rows == 9
        assert entries(tmp_path)[-1].covered[A][0] < 20 < entries(tmp_path)[-1].covered[A][1]
        assert [load(fake, tmp_path, run=9, window=everything).rows for _ in range(5)] == [9, 9, 9, 9, 5]
    assert verify(table(tmp_path)).problems == ()


def test_a_step_without_offsets_ends_the_run() -> None:
    reported: list[tuple[int, int]] = []
    on_progress: Callable[[int, int], None] = lambda fetched, total: reported.append((fetched, total))  # noqa: E731
    goal = RunTarget(window=OffsetWindow(ends={A: 50}), total=50)
    half = Plan(slices=(OffsetRange(A, 0, 25),))
    later = goal.after(half)
    later.progress(half, on_progress)(1, 2)
    assert (later.taken, later.reached, reported) == (25, False, [(37, 50)])
    assert later.after(Plan(slices=())).reached
