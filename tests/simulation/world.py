"""A simulated world: a topic, its brokers, the store of its table, and the runs that load the topic every day."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from kafka_io.errors import LocatedError
from kafka_io.model import BrokerPartition
from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.positions import NamedPosition, TimePosition
from pipelines.loading.window import LoadWindow
from pipelines.loading.work import FetchTask, SliceFacts
from resources.choices import Choices
from resources.settings import Caps, Start
from resources.spark import Progress
from tests.simulation.brokers import ERAS, TOPIC, SimCluster
from tests.simulation.events import Events
from tests.simulation.oracle import Oracle, RunStart
from tests.simulation.scheduler import Killed, Odds, Scheduler, hooked
from tests.simulation.store import SimStore
from tests.simulation.user_actions import UserActions
from tests.simulation.workers import SimWorkers

DAYS = 20
"""The number of days of a world. It is so small that the complete log can be checked after every commit."""
_CALM_LOADS = 5
_TAIL = 60
_ALL = Choices(on_expired="skip", on_missing="skip", on_truncated="rewind", on_recreated="restart", on_vanished="wait")


class Failed(Exception):
    """A law was broken in a world. The text contains the end of the trace; `seed` reproduces the world."""

    def __init__(self, message: str, seed: int) -> None:
        super().__init__(message)
        self.seed = seed


Ranges = dict[BrokerPartition, tuple[int, int]]


@dataclass(slots=True)
class FetchedRanges:
    """The offset ranges of a run's last fetch, by partition; empty if a slice of this fetch failed."""

    ranges: Ranges = field(default_factory=dict)
    loaded_at_us: int = -1

    def note(self, works: Sequence[FetchTask], facts: Sequence[SliceFacts]) -> None:
        """Remember the ranges of these facts; none if a step fetches again, because other slices land with them."""
        self.ranges = {}
        again, self.loaded_at_us = works[0].loaded_at_us == self.loaded_at_us, works[0].loaded_at_us
        if again or any(slice_facts.failure for slice_facts in facts):
            return
        for slice_facts in facts:
            start, stop = self.ranges.get(
                slice_facts.offsets.partition, (slice_facts.offsets.start, slice_facts.offsets.stop)
            )
            self.ranges[slice_facts.offsets.partition] = (
                min(start, slice_facts.offsets.start),
                max(stop, slice_facts.offsets.stop),
            )


class World:
    """A world that a seed determines. `store` creates the store; a test may pass one with a deliberate fault."""

    def __init__(self, seed: int, *, store: Callable[..., SimStore] = SimStore) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.scheduler = Scheduler(rng=self.rng, meanwhile=self._meanwhile)
        self.cluster = SimCluster(scheduler=self.scheduler, era=self.rng.choice(ERAS), compacts=self.rng.random() < 0.5)
        self.store = store(scheduler=self.scheduler, landed=self._landed)
        self.workers = SimWorkers(cluster=self.cluster, store=self.store, scheduler=self.scheduler)
        self.oracle = Oracle(cluster=self.cluster, store=self.store, workers=self.workers)
        self.store.removed = self.oracle.begin_table
        self.events = Events(cluster=self.cluster, store=self.store, scheduler=self.scheduler)
        self.user_actions = UserActions(cluster=self.cluster, store=self.store, scheduler=self.scheduler)
        self.choices = Choices()
        self.start: Start = self.rng.choice(("earliest", "earliest", "latest"))
        self._runs = 0
        self.cluster.recreate(self.rng.randint(1, 4))
        if not self.cluster.era.in_bytes:
            self.cluster.leaderless = {id_ for id_ in self.cluster.logs if self.rng.random() < 0.2}
        self.scheduler.note(f"brokers of {self.cluster.era.name}")

    @property
    def trace(self) -> list[str]:
        """The events so far, one line each. The same seed gives the same trace."""
        return self.scheduler.trace

    def simulate(self, days: int = DAYS) -> None:
        """Simulate `days` days, and then a calm day, after which everything must be loaded.

        Raises:
            Failed: a law was broken.
        """
        try:
            with hooked(self.scheduler):
                for _ in range(days):
                    self._simulate_day()
                self._end()
        except Exception as error:
            tail = "\n".join(self.trace[-_TAIL:])
            summary = f"seed {self.seed}, day {self.scheduler.day}: {type(error).__name__}: {error}"
            raise Failed(f"{summary}\n{tail}\n{summary}", self.seed) from error

    def _simulate_day(self) -> None:
        self.scheduler.day += 1
        self.choices = self._random_choices()
        for _ in range(self.rng.randint(1, 4)):
            self._broker_event()
        for _ in range(self.rng.randint(1, 3)):
            self._load()
            self._broker_event()
        if self.rng.random() < 0.3:
            self.rng.choice((self._rewind, self._replay, self._replay, self._clean))()

    def _random_choices(self) -> Choices:
        """Random choices of the user, for one day or for one run."""
        pick = self.rng.choice
        return Choices(
            on_expired=pick(("fail", "skip")),
            on_missing=pick(("fail", "skip")),
            on_truncated=pick(("fail", "rewind")),
            on_recreated=pick(("fail", "restart")),
            on_vanished=pick(("fail", "wait")),
        )

    def _broker_event(self, *, in_a_run: bool = False) -> None:
        self.events.happen(in_a_run=in_a_run)
        self.oracle.check_truncations()

    def _meanwhile(self) -> None:
        """Let other actors do something while a run is in progress."""
        turns: dict[Callable[[], object], float] = {
            partial(self._broker_event, in_a_run=True): 10,
            self._load: 8,
            self._rewind: 0.5,
            self._replay: 1,
            self._clean: 0.3,
        }
        for turn in self.rng.choices(list(turns), weights=list(turns.values()), k=self.rng.choice((1, 1, 1, 3))):
            turn()

    def _rewind(self) -> None:
        run = self._begin_run("rewind", Choices())
        self._run_user_action(run, lambda: self.user_actions.rewind(run))

    def _clean(self) -> None:
        run = self._begin_run("clean", Choices())
        self._run_user_action(run, self.user_actions.clean)
        self.oracle.check_files()

    def _replay(self) -> None:
        run = self._begin_run("replay", Choices())
        self._run_user_action(run, lambda: self.user_actions.replay(self._loader(run, FetchedRanges())))

    def _run_user_action(self, run: str, action: Callable[[], str]) -> None:
        with self._separate_answers():
            try:
                self.scheduler.note(f"{run} ends: {action()}")
            except (LocatedError, Killed) as ended:
                self.scheduler.note(f"{run} ends: {type(ended).__name__}: {ended}")

    def _begin_run(self, kind: str, choices: Choices) -> str:
        self._runs += 1
        run = f"{kind}-{self._runs}"
        self.oracle.choices[run] = choices
        self.scheduler.note(f"{run} begins")
        return run

    def _landed(self, version: int) -> None:
        entry = self.store.versions[version].entry
        self.scheduler.note(
            f"version {version}: " + (_line(entry.kind, entry.run, entry.ranges) if entry else "compacted")
        )
        self.oracle.check_version(version)

    def _load(self) -> TopicLoad | None:
        """Run a load until it ends or is killed, and check its report."""
        run, fetched = self._begin_run("load", Choices()), FetchedRanges()
        loader = self._loader(run, fetched)
        self.oracle.choices[run] = loader.choices
        since, incarnation, table = len(self.store.versions) - 1, self.cluster.incarnation, self.store.tables
        window, tick, time_ms = loader.window, self.scheduler.tick, self.scheduler.now_ms
        self.scheduler.note(
            f"{run} has {_choices_text(loader.choices)}, {loader.caps.slice_records} records per slice, {loader.window}"
        )
        with self._separate_answers():
            self.oracle.runs[run] = RunStart(
                tick=tick,
                time_ms=time_ms,
                version=since,
                since=NamedPosition.LATEST if window.since is None and self.start == "latest" else window.since,
                has_window=window.since is not None,
                asked=self.cluster.asked,
            )
            try:
                load = loader.load(TOPIC)
            except Killed as killed:
                self.scheduler.note(f"{run} is killed at {killed}")
                return None
            if incarnation == self.cluster.incarnation and (load.error or "").startswith("TopicRecreated"):
                self.oracle.check_recreated(run, incarnation)
            self.scheduler.note(f"{run} ends at version {load.version} with {load.rows} rows: {load.error}")
            if table != self.store.tables:  # nobody can read the log of a removed table
                return load
            capped = loader.caps.records_per_run or loader.window.until or incarnation != self.cluster.incarnation
            self.oracle.check_load(run, since, load, {} if capped else self._wanted())
            lost = load.error is not None and "committed first (partition" in load.error
            if (
                lost and loader.choices.on_expired == "fail"
            ):  # with "skip" a run also covers ranges that it does not fetch
                self.oracle.check_refusal(fetched.ranges, str(load.error))
        return load

    def _loader(self, run: str, fetched: FetchedRanges) -> Loader:
        def fetch(works: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
            facts = self.workers.fetch(works, on_progress)
            fetched.note(works, facts)
            return facts

        rng = self.rng
        calm = not self.scheduler.odds.harm
        slice_records, run_limit = rng.choice((5, 20, 1000)), None if calm else rng.choice((None, None, 10, 50))
        return Loader(
            cluster=self.cluster,
            tables=lambda _: self.store,
            fetch=fetch,
            caps=Caps(
                slice_records=slice_records,
                slice_bytes=slice_records * 20,
                records_per_run=run_limit,
                bytes_per_run=run_limit,
            ),
            start=self.start,
            choices=self._random_choices() if not calm and rng.random() < 0.3 else self.choices,
            window=self._window(calm=calm),
            run_id=run,
            now=self.scheduler.now,
        )

    def _window(self, *, calm: bool) -> LoadWindow:
        """A random window for a run; most runs have none."""
        written = [time_ms for log in self.cluster.logs.values() for time_ms in log.written_ms.values()]
        times = [TimePosition(self.rng.choice([*written, self.scheduler.now_ms])) for _ in range(2)]
        since = self.rng.choices((None, NamedPosition.EARLIEST, NamedPosition.LATEST, times[0]), weights=(10, 7, 1, 2))[
            0
        ]
        return LoadWindow(since=since, until=None if calm or self.rng.random() < 0.9 else times[1])

    @contextmanager
    def _separate_answers(self) -> Iterator[None]:
        """Keep the brokers' and the store's answers to the run in this block apart from those to other runs."""
        answered, asked, shown = self.cluster.answered, self.cluster.asked, self.store.shown
        self.cluster.answered, self.cluster.asked = [], {}
        try:
            yield
        finally:
            self.cluster.answered, self.cluster.asked, self.store.shown = answered, asked, shown

    def _wanted(self) -> dict[BrokerPartition, int]:
        """The smallest end of each log that the brokers answered to this run; only logs that were never empty."""
        steps = self.cluster.answered
        always = set.intersection(*(set(bounds) for bounds in steps)) if steps else set()
        return {
            id_: min(bounds[id_].latest for bounds in steps)
            for id_ in sorted(always)
            if all(bounds[id_].earliest < bounds[id_].latest for bounds in steps)
        }

    def _end(self) -> None:
        """Check that a few loads without failures load everything that the brokers have."""
        self.scheduler.odds = Odds.calm()
        self.scheduler.day += 1
        self.events.calm()
        self.choices = _ALL
        loads = [self._load() for _ in range(_CALM_LOADS)]
        last = loads[-1]
        assert last is not None
        assert last.error is None, f"a load failed in a calm world: {last.error}"
        entry = self.store.peek().entry
        covered = entry.covered if entry and self.oracle.life(entry) in {None, self.cluster.incarnation} else {}
        for id_, log in self.cluster.logs.items():
            cursor = covered[id_][1] if id_ in covered else log.earliest
            assert cursor == log.latest, (
                f"partition {id_} was loaded to {cursor} in a calm world, but its log ends at {log.latest}"
            )


def _choices_text(choices: Choices) -> str:
    return "/".join(choices.model_dump().values())


def _line(kind: str, run: str, ranges: Sequence[object]) -> str:
    return f"{kind} of {run}: {', '.join(map(str, ranges))}"
