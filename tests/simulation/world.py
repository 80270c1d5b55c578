"""A simulated world: a topic, its brokers, the store of its table, and the runs that load the topic every day."""

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from kafka_io.errors import LocatedError
from kafka_io.model import BrokerPartition
from pipelines.fetch import unreadable
from pipelines.fetch.decoding import no_registry
from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.slice_fetcher import microseconds
from pipelines.layout.layout import EVENT_DAY, LOADED
from pipelines.ledger.ledger import TableState
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.discovered import TopicAnswers
from pipelines.load.first_answers import FirstAnswers
from pipelines.load.load import Loader
from pipelines.load.run import LoadSettings
from pipelines.plan.positions import NamedPosition, TimePosition
from pipelines.plan.window import LoadWindow
from pipelines.reports.outcome import TopicLoad
from pipelines.table import exact_sets
from resources.progress import Progress
from resources.settings.choices import Choices
from resources.settings.settings import Caps, Start
from resources.settings.topic_formats import RAW_FORMAT
from tests.fakes.loaders import FixedSettings, simple_loader
from tests.simulation.ahead import SimSpark
from tests.simulation.begin_law import BeginLaw, RunStart
from tests.simulation.brokers import TOPIC, Answers, SimCluster
from tests.simulation.columns_law import ColumnsLaw
from tests.simulation.content_law import ContentLaw
from tests.simulation.cut_law import CutLaw
from tests.simulation.event_times import SimTimes
from tests.simulation.events import Events
from tests.simulation.identity_law import IdentityLaw
from tests.simulation.oracle import Oracle
from tests.simulation.removal_law import RemovalLaw
from tests.simulation.removals import Removals
from tests.simulation.scheduler import Killed, Odds, Scheduler, hooked
from tests.simulation.sim_log import ERAS, Era
from tests.simulation.store import SimStore
from tests.simulation.user_actions import UserActions
from tests.simulation.valid_through_law import ValidThroughLaw
from tests.simulation.workers import SimWorkers

DAYS = 20
"""The number of days of a world. It is so small that the complete log can be checked after every commit."""
_CALM_LOADS = 5
_TYPED_EVERY = 5
"""One of this number of worlds has a typed table."""
_BY_DAY_EVERY = 7
"""One of this number of worlds has a table with folders of event days."""
_TIMES_EVERY, _STEPS_EVERY, _FIRST_ANSWERS_EVERY, _REMOVALS_EVERY = 2, 4, 3, 3
"""One of so many worlds has event times, loads with many steps, first answers, or erasures, if the seed decides."""
_REBUILT_EVERY = 6
"""One of this number of worlds has an address behind which the cluster changes."""
_RARE = 8
"""One of this number of worlds has disks that are put back, one has deposed leaders, and one has skewed clocks."""
_TAIL = 60
_ALL = Choices(
    on_expired="skip",
    on_missing="skip",
    on_corrupt="skip",
    on_too_large="skip",
    on_truncated="rewind",
    on_recreated="restart",
    on_cluster_changed="adopt",
    on_vanished="wait",
)


def _typed(kind: type[LocatedError]) -> Iterator[str]:
    yield kind.__name__
    for below in kind.__subclasses__():
        yield from _typed(below)


TYPED = frozenset(_typed(LocatedError))
"""The names of all errors that a load may meet. Any other error in its result is a bug, or a law that was broken."""


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
    """A world that a seed determines.

    `store` creates the store; a test may pass one with a deliberate fault. `is_typed` says whether the table is typed,
    and `is_by_day` whether it has folders of event days. `has_times` says whether the settings of the topic ask for its
    event time. With `has_steps`, loads have many steps, which are begun ahead in Spark. With `has_first_answers`, loads
    ask the brokers before they read the table, as a run over many topics does. `is_rebuilt` says whether the cluster
    behind the address changes, and `is_restored` whether disks are put back to older copies. `is_deposed` says whether
    deposed leaders still answer, and `is_skewed` whether the clocks of loaders are hours apart. Wherever one of these
    is None, the seed decides, and nothing else: a world is the same in each run that simulates it.

    A test of one rule can make the events more frequent that the rule needs. The brokers are of one of the `eras`, and
    new tables begin at `start`; if it is None, the seed decides. `favours` multiplies the weights of events by name,
    and with the name "others" how often something happens during a run.
    """

    def __init__(
        self,
        seed: int,
        *,
        store: Callable[..., SimStore] = SimStore,
        is_typed: bool | None = None,
        is_by_day: bool | None = None,
        has_times: bool | None = False,
        has_steps: bool | None = False,
        has_first_answers: bool | None = False,
        has_removals: bool | None = False,
        is_rebuilt: bool | None = None,
        is_restored: bool | None = None,
        is_deposed: bool | None = None,
        is_skewed: bool | None = None,
        eras: Collection[Era] = ERAS,
        start: Start | None = None,
        favours: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.seed = seed
        has_times = _is_chosen(seed, "times", _TIMES_EVERY) if has_times is None else has_times
        has_steps = _is_chosen(seed, "steps", _STEPS_EVERY) if has_steps is None else has_steps
        if has_first_answers is None:
            has_first_answers = _is_chosen(seed, "first answers", _FIRST_ANSWERS_EVERY)
        self.has_first_answers = has_first_answers
        self.has_removals = _is_chosen(seed, "removals", _REMOVALS_EVERY) if has_removals is None else has_removals
        is_by_day = seed % _BY_DAY_EVERY == 1 if is_by_day is None else is_by_day
        is_typed = seed % _TYPED_EVERY == 0 if is_typed is None else is_typed
        self.rng = random.Random(seed)
        self.favours = favours
        self.scheduler = Scheduler(rng=self.rng, meanwhile=self._meanwhile)
        self.scheduler.odds.others *= favours.get("others", 1)
        era = self.rng.choice(list(eras))
        self.cluster = SimCluster(scheduler=self.scheduler, era=era, compacts=self.rng.random() < 0.5)
        self.store = store(scheduler=self.scheduler, landed=self._landed, is_typed=is_typed, is_by_day=is_by_day)
        self.workers = SimWorkers(cluster=self.cluster, store=self.store, scheduler=self.scheduler)
        self.spark = SimSpark(workers=self.workers, rng=random.Random(seed)) if has_steps else None
        content = ContentLaw(cluster=self.cluster, store=self.store, reads=self.workers.reads)
        self.identity = IdentityLaw(cluster=self.cluster, store=self.store, content=content)
        self.begins = BeginLaw(cluster=self.cluster, store=self.store, identity=self.identity)
        self.columns = ColumnsLaw(cluster=self.cluster, store=self.store, answers=self.identity.answers)
        self.oracle = Oracle(
            cluster=self.cluster,
            store=self.store,
            workers=self.workers,
            identity=self.identity,
            begins=self.begins,
            columns=self.columns,
            removals=RemovalLaw(store=self.store),
            cuts=CutLaw(cluster=self.cluster, store=self.store, identity=self.identity, reads=self.workers.reads),
        )
        if has_times:
            self.cluster.times = SimTimes(seed)
            self.oracle.times = ValidThroughLaw(
                cluster=self.cluster, store=self.store, times=self.cluster.times, answers=self.identity.answers
            )
        if is_typed:
            self.cluster.begin_values()
            # The bytes of values are not in a typed table, so only ids show there that a log is the same.
            self.cluster.era = self.rng.choice([with_ids for with_ids in ERAS if with_ids.has_ids])
        self.cluster.table_version, self.cluster.on_bounds = lambda: self.store.shown, self.identity.note_bounds
        self.identity.choices = self.oracle.choices
        self.store.removed, self.workers.on_read = self.oracle.begin_table, self.identity.note_read
        actors: dict[str, Any] = {"cluster": self.cluster, "store": self.store, "scheduler": self.scheduler}
        cleaners: list[Iterator[str]] = []
        is_rebuilt = seed % _REBUILT_EVERY == 0 if is_rebuilt is None else is_rebuilt
        self.rebuilds = is_rebuilt and not self.cluster.era.in_bytes
        # Each of these worlds is one of eight. Without epochs, nothing shows an older copy that lacks the last message.
        has_epochs = self.cluster.era.has_epochs
        self.is_skewed = (seed % _RARE == 7 and not has_times) if is_skewed is None else is_skewed
        self.events = Events(
            **actors,
            cleaners=cleaners,
            rebuilds=self.rebuilds,
            restores=has_epochs and (seed % _RARE == 3 if is_restored is None else is_restored),
            deposes=has_epochs and (seed % _RARE == 5 if is_deposed is None else is_deposed),
            favours=favours,
        )
        self.user_actions = UserActions(**actors, cleaners=cleaners)
        self.removals = Removals(store=self.store, scheduler=self.scheduler, law=self.oracle.removals)
        self.choices = Choices()
        chosen: Start = self.rng.choice(("earliest", "earliest", "latest")) if start is None else start
        # A table that begins at "latest" or at a time begins at one of the clock of its loader.
        self.start: Start = "earliest" if self.is_skewed else chosen
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
            spark = self.spark.running() if self.spark else nullcontext()
            inline = patch.object(exact_sets, "_MAX_INLINE_BYTES", 0 if self.seed % 2 else 256)
            with hooked(self.scheduler), patch.object(unreadable, "_kept", self.store.keep), inline, spark:
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
            self._event()
        for _ in range(self.rng.randint(1, 3)):
            self._load()
            self._event()
        if self.rng.random() < 0.3:
            self.rng.choice((self._rewind, self._replay, self._replay, self._clean))()
        if self.has_removals:
            self.rng.choice((self._erase, self._erase, self._retire, self._replay, self._redecode))()

    def _random_choices(self) -> Choices:
        """Random choices of the user, for one day or for one run."""
        pick = self.rng.choice
        return Choices(
            on_expired=pick(("fail", "skip")),
            on_missing=pick(("fail", "skip")),
            on_corrupt=pick(("fail", "skip")),
            on_too_large=pick(("fail", "skip")),
            on_truncated=pick(("fail", "rewind")),
            on_recreated=pick(("fail", "restart")),
            on_vanished=pick(("fail", "wait")),
            on_cluster_changed=pick(("fail", "adopt")) if self.rebuilds else "fail",
        )

    def _event(self) -> None:
        self.events.happen()
        self.oracle.check_truncations()
        self.oracle.check_files()

    def _meanwhile(self) -> None:
        """Let other actors do something while a run is in progress."""
        turns: dict[Callable[[], object], float] = {
            self._event: 10,
            self._load: 8,
            self._rewind: 0.5,
            self._replay: 1,
            self._clean: 0.3,
            self._erase: 1 if self.has_removals else 0,
            self._retire: 0.5 if self.has_removals else 0,
            self._redecode: 0.5 if self.has_removals else 0,
        }
        weights = [weight * self.favours.get(turn.__name__.strip("_"), 1) for turn, weight in turns.items()]
        for turn in self.rng.choices(list(turns), weights=weights, k=self.rng.choice((1, 1, 1, 3))):
            turn()

    def _rewind(self) -> None:
        run = self._begin_run("rewind", Choices())
        self._run_user_action(run, lambda: self.user_actions.rewind(run))

    def _clean(self) -> None:
        run = self._begin_run("clean", Choices())
        self._run_user_action(run, self.user_actions.clean)
        self.oracle.check_files()

    def _erase(self) -> None:
        run = self._begin_run("erase", Choices())
        self._run_user_action(run, lambda: self.removals.erase(run))

    def _redecode(self) -> None:
        run = self._begin_run("redecode", Choices())
        self._run_user_action(run, lambda: self.user_actions.redecode(run))

    def _retire(self) -> None:
        run = self._begin_run("retire", Choices())
        self._run_user_action(run, lambda: self.removals.retire(run))

    def _replay(self) -> None:
        run = self._begin_run("replay", Choices())
        self._run_user_action(run, lambda: self.user_actions.replay(self._loader(run, FetchedRanges())))

    def _run_user_action(self, run: str, action: Callable[[], str]) -> None:
        with self._separate_answers(run):
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
        self.oracle.choices[run] = loader.run.choices
        since, incarnation, table = len(self.store.versions) - 1, self.cluster.incarnation, self.store.tables
        window, tick, time_ms = loader.run.window, self.scheduler.tick, self.scheduler.now_ms
        choices, slice_records = _choices_text(loader.run.choices), loader.run.fetcher.caps.slice_records
        self.scheduler.note(f"{run} has {choices}, {slice_records} records per slice, {window}")
        with self._separate_answers(run):
            self.begins.runs[run] = RunStart(
                tick=tick,
                time_ms=time_ms,
                since=NamedPosition.LATEST if window.since is None and self.start == "latest" else window.since,
                has_window=window.since is not None,
                asked=self.cluster.answers.asked,
            )
            try:
                load = loader.load(TOPIC)
            except Killed as killed:
                self.scheduler.note(f"{run} is killed at {killed}")
                self.oracle.removals.note_killed(run)
                return None
            untyped = [failure.trace or str(failure) for failure in load.failures if failure.kind not in TYPED]
            assert not untyped, untyped[0]
            self.scheduler.note(f"{run} ends at version {load.version} with {load.rows} rows: {load.error}")
            if table != self.store.tables:  # nobody can read the log of a removed table
                return load
            if (load.error or "").startswith("TopicRecreated"):
                self.oracle.check_recreated(run)
            capped = (
                loader.run.fetcher.caps.records_per_run
                or loader.run.window.until
                or incarnation != self.cluster.incarnation
            )
            self.oracle.check_load(run, since, load, {} if capped else self._wanted())
            lost = load.error is not None and "committed first (partition" in load.error
            if (
                lost and loader.run.choices.on_expired == "fail"
            ):  # with "skip" a run also covers ranges that it does not fetch
                self.oracle.check_refusal(fetched.ranges, str(load.error))
        return load

    def _loader(self, run: str, fetched: FetchedRanges) -> Loader:
        def fetch(
            works: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]]
        ) -> list[SliceFacts]:
            facts = runner.fetch(works, on_progress, ahead) if runner else self.workers.fetch(works, on_progress)
            fetched.note(works, facts)
            self.columns.note_fetch(run, works, facts)
            return facts

        rng, runner = self.rng, self.spark.runner() if self.spark else None
        calm = not self.scheduler.odds.harm
        slice_records, run_limit = rng.choice((5, 20, 1000)), None if calm else rng.choice((None, None, 10, 50))
        loader = simple_loader(
            self.cluster,
            self.store,
            fetch,
            caps=Caps(
                slice_records=slice_records,
                slice_bytes=slice_records * 20,
                driver_slices=1,
                records_per_run=run_limit,
                bytes_per_run=run_limit,
            ),
            choices=self._random_choices() if not calm and rng.random() < 0.3 else self.choices,
            window=self._window(calm=calm),
            id=run,
            now=self._clock() if self.is_skewed else self.scheduler.now,
            topics=self._topic_settings(run, calm=calm),
            abandon=runner.abandon if runner else lambda _topic: None,
        )
        return replace(loader, first_answers=self._first_answers() if self.has_first_answers else None)

    def _clock(self) -> Callable[[], datetime]:
        """The clock of a loader, which is hours ahead or behind. Each time of it belongs to one run."""
        skew = timedelta(hours=self.rng.randint(-6, 6), microseconds=self._runs)
        scheduler = self.scheduler

        def now() -> datetime:
            time = scheduler.now()
            shown = time + skew
            scheduler.ticks[microseconds(shown)] = scheduler.ticks[microseconds(time)]
            return shown

        return now

    def _first_answers(self) -> FirstAnswers:
        """What the brokers say before the table is read. The laws learn whether the load uses it."""
        cluster, store = self.cluster, self.store

        class NotedAnswers(TopicAnswers):
            def agree_with(self, state: TableState) -> bool:
                agree = super().agree_with(state)
                if agree:
                    answers = cluster.answers
                    answers.bounds[-1] = answers.bounds[-1]._replace(version=store.shown)
                    answers.before_table = False
                    cluster.on_bounds()
                return agree

        class NotedFirstAnswers(FirstAnswers):
            def of(self, topic: str) -> TopicAnswers | None:
                answers = super().of(topic)
                cluster.answers.before_table = True
                return answers and NotedAnswers(asked=answers.asked, topic=answers.topic, bounds=answers.bounds)

        return NotedFirstAnswers(self.cluster, [TOPIC], self.scheduler.now)

    def _topic_settings(self, run: str, *, calm: bool) -> LoadSettings:
        """Where a new table begins, and how a run decodes values."""
        values, times = self.cluster.values, self.cluster.times
        format_ = RAW_FORMAT if values is None else values.format(lenient=calm)
        format_ = format_.model_copy(update={"partition_by": EVENT_DAY if self.store.is_by_day else LOADED})
        if values is not None:
            self.columns.formats[run] = format_
        if times is not None:
            format_ = times.format(format_)
        registry = no_registry if values is None else lambda _: values.registry
        return FixedSettings(start=self.start, format=format_, registry=registry)

    def _window(self, *, calm: bool) -> LoadWindow:
        """A random window for a run; most runs have none."""
        if self.is_skewed:
            return LoadWindow()
        written = [time_ms for log in self.cluster.logs.values() for time_ms in log.written_ms.values()]
        times = [TimePosition(self.rng.choice([*written, self.scheduler.now_ms])) for _ in range(2)]
        since = self.rng.choices((None, NamedPosition.EARLIEST, NamedPosition.LATEST, times[0]), weights=(10, 7, 1, 2))[
            0
        ]
        return LoadWindow(since=since, until=None if calm or self.rng.random() < 0.9 else times[1])

    @contextmanager
    def _separate_answers(self, run: str) -> Iterator[None]:
        """Keep the brokers' and the store's answers to the run in this block apart from those to other runs."""
        answers, shown = self.cluster.answers, self.store.shown
        own = Answers(through_zookeeper=self.cluster.through_zookeeper, restores=self.cluster.restores)
        self.cluster.answers = self.identity.answers[run] = own
        try:
            yield
        finally:
            self.cluster.answers, self.store.shown = answers, shown

    def _wanted(self) -> dict[BrokerPartition, int]:
        """The smallest end of each log that the brokers answered to this run; only logs that were never empty."""
        steps = [answered.bounds for answered in self.cluster.answers.bounds]
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
        error = None
        for _ in range(_CALM_LOADS):
            last = self._load()
            error = last.error if last else "it was killed"
            self._follow(error or "")
        assert error is None, f"a load failed in a calm world: {error}"
        entry = self.store.peek().entry
        for id_, log in self.cluster.logs.items():
            loaded = entry is not None and id_ in entry.covered
            is_same = entry is not None and (self.oracle.is_of_cluster(entry, id_) or self.oracle.hides_log(entry, id_))
            cursor = entry.covered[id_][1] if entry and loaded and is_same else log.earliest
            assert cursor == log.latest, (
                f"partition {id_} was loaded to {cursor} in a calm world, but its log ends at {log.latest}"
            )

    def _follow(self, error: str) -> None:
        """Do what an error asks of the user, if no choice continues."""
        if error.startswith("LogTorn"):  # nobody has the lost entries any more
            self.store.remove()
        elif "rows are missing outside of" in error:
            run = self._begin_run("rewind", Choices())
            self._run_user_action(run, lambda: self.user_actions.restore_rows(run))


def _is_chosen(seed: int, kind: str, every: int) -> bool:
    """Whether a world is one of `every` worlds of a kind. Two kinds choose independently of each other."""
    return random.Random(f"{kind} {seed}").randrange(every) == 0


def _choices_text(choices: Choices) -> str:
    return "/".join(choices.model_dump().values())


def _line(kind: str, run: str, ranges: Sequence[object]) -> str:
    return f"{kind} of {run}: {', '.join(map(str, ranges))}"
