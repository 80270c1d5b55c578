"""Load one topic: discover, plan, fetch, commit. The command line and the Dagster asset both call this alone."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Self

from pyspark.sql import SparkSession

from kafka_io.client.cluster import Cluster
from kafka_io.client.reading import Span
from kafka_io.errors import KafkaIOError, PlacedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.commit import Loading, commit, committable
from pipelines.loading.density import Sample, densities, read_sample, sizes_by_bytes
from pipelines.loading.execute import execute
from pipelines.loading.goal import Goal
from pipelines.loading.ledger import Choice, Entry, Standing, Topic
from pipelines.loading.mirror import Mirror, cursors_after, mirror_of, no_mirror
from pipelines.loading.outcome import TopicLoad, outcome
from pipelines.loading.parting import absent, check_life, lost, taken_back
from pipelines.loading.plan import Plan, plan, plan_backfill
from pipelines.loading.rows import PARTITION_COLUMN
from pipelines.loading.slices import Sizes, Slice
from pipelines.loading.standing import standing
from pipelines.loading.steps import step
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot, TableLog
from pipelines.loading.tasks import into_tasks
from pipelines.loading.window import Window
from pipelines.loading.work import Facts, Failure, Work
from resources.choices import Choices
from resources.errors import TopicUnknown
from resources.lake import Lake
from resources.settings import Caps, Settings, Start
from resources.spark import Progress

EXPIRED = "expired"
"""The cause of a gap that retention made before a load could take what was there."""
_STEP_SLICES = 32
_UNCUT = Sizes(slice=2**63)

Fetch = Callable[[Sequence[Work], Progress], list[Facts]]
"""Fetches slices, and tells of each what came of it, in order of partition and offset."""
_Held = Mapping[BrokerPartition, Bounds]


@dataclass(frozen=True, kw_only=True)
class Loader:
    """All that the loads of one run share.

    Args:
        tables: where the table of a topic is.
        fetch: fetches slices; it is called when there is something to fetch.
        start: where a new table begins, unless the window says.
        window: what part of the logs to load.
        options: what the lake's store needs.
        on_progress: given a topic, what is told how many of its offsets are fetched, and of how many.
        sample: looks at the first records of what is to be fetched.
        mirror: told of a topic's cursors when they are committed; gives what is to be told of that.
        now: the time, in UTC.
    """

    cluster: Cluster
    tables: Callable[[str], TableLog]
    fetch: Fetch
    caps: Caps
    start: Start
    choices: Choices = field(default_factory=Choices)
    window: Window = field(default_factory=Window)
    options: Mapping[str, str] = field(default_factory=dict)
    parquet_codec: str = "zstd"
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    on_progress: Callable[[str], Progress] = lambda _: lambda _done, _total: None
    sample: Sample = read_sample
    mirror: Mirror = no_mirror
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @classmethod
    def of(cls, settings: Settings, cluster: Cluster, spark: Callable[[], SparkSession], **rest: Any) -> Self:
        """A loader as the settings say. Spark is started by the first load that has more than one slice to fetch."""
        lake = Lake.of(settings)
        session = cache(spark)
        told = {
            "tables": lambda topic: LakeTable.of(lake, cluster.name, topic),
            "fetch": lambda works, on_progress: execute(session, works, on_progress),
            "caps": settings.caps,
            "start": settings.start_of(cluster.name),
            "choices": settings.choices_of(cluster.name),
            "options": lake.options,
            "parquet_codec": settings.parquet_codec,
            "mirror": mirror_of(cluster, settings.clusters[cluster.name].mirror_group),
            **rest,
        }
        return cls(cluster=cluster, **told)

    def load(self, name: str) -> TopicLoad:
        """Load what is new of topic `name`. A failure is told in the result; only interruptions are raised.

        What the brokers hold when it begins is loaded in steps, each with a commit of its own: what is interrupted
        goes on from the last of them, and other runs of the topic get their turn between.
        """
        log, tell = self.tables(name), self.on_progress(name)
        done: TopicLoad | None = None
        goal: Goal | None = None
        while True:
            load, goal = self._step(name, log, goal, tell)
            done = done.then(load) if done else load
            if load.error or goal is None or goal.reached:
                return done

    def _step(self, name: str, log: TableLog, goal: Goal | None, tell: Progress) -> tuple[TopicLoad, Goal | None]:
        began = self.now()
        try:
            load, goal = self._load(name, log, began, goal, tell)
        except PlacedError as error:
            failure = Failure.of(error, Where(cluster=self.cluster.name, topic=name), trace="")
            load, goal = TopicLoad(topic=name, table=log.uri).failed([failure]), None
        return replace(load, seconds=round((self.now() - began).total_seconds(), 3)), goal

    def _load(
        self, name: str, log: TableLog, began: datetime, goal: Goal | None, tell: Progress
    ) -> tuple[TopicLoad, Goal]:
        found = self.cluster.topic(name)
        if found is None:
            raise TopicUnknown("the registry has no such topic")
        step("discovered")
        at, stands = self.stands(log, found)
        step("table opened")
        bounds, errors = self.bounds(found)
        step("bounds known")
        warnings = absent(stands.covered, found, self.choices)
        taken = lost(self.cluster, stands, bounds, self.choices)
        if taken:
            check_life(self.cluster, found)  # another's logs are no reason to take back what was loaded of this one
            at, stands = taken_back(log, at, stands, taken, run=self.run_id)
        if goal is None:
            goal, unknown, told = self._goal(stands, bounds)
            errors, warnings = [*errors, *unknown], [*warnings, *told]
        planned, sizes = self._plan(found, at.entry, stands, bounds, goal)
        step("planned")
        skipped = [_facts(one, began, gaps={EXPIRED: one.size}) for one in planned.skipped]
        tells = goal.progress(planned, tell)
        facts = sorted([*skipped, *self.fetched(found, log.uri, planned.slices, began, tells, sizes=sizes)], key=_order)
        step("fetched")
        change = self._change(stands, bounds, planned, facts)
        version, good, same = _committed(log, at, change)
        step("loaded")
        warnings = [*warnings, *same, *map(str, (*taken, *change.choices))]
        warnings += self.mirror(name, cursors_after(stands.covered, good))
        step("mirrored")
        load = outcome(good, bounds, stands.covered, topic=name, table=log.uri, version=version, warnings=warnings)
        failures = [Failure.of(one, stands.topic.where, trace="") for one in errors]
        return load.failed([*failures, *(one.failure for one in facts if one.failure)]), goal.after(planned)

    def stands(self, log: TableLog, found: TopicEntry) -> tuple[Snapshot, Standing]:
        """The table as it is, and where it stands beside the topic that was found.

        Raises:
            LoadError: it cannot be gone on from.
        """
        topic = self.identity(found)
        at = log.snapshot()
        return at, standing(at, topic, found.also, restart=self.choices.on_recreated == "restart")

    def identity(self, found: TopicEntry) -> Topic:
        """Whose table one of this topic is."""
        return Topic(
            cluster=self.cluster.name,
            cluster_id=self.cluster.cluster_id() or "",
            name=found.name,
            incarnation=found.incarnation,
        )

    def bounds(self, found: TopicEntry) -> tuple[dict[BrokerPartition, Bounds], list[KafkaIOError]]:
        """What the brokers hold, and why some could not say: that is a failure, but the others go on."""
        answers = self.cluster.bounds(found.name, found.partitions)
        bounds = {id_: answer for id_, answer in answers.items() if isinstance(answer, Bounds)}
        return bounds, [answer for answer in answers.values() if isinstance(answer, KafkaIOError)]

    def _goal(self, stands: Standing, bounds: _Held) -> tuple[Goal, list[KafkaIOError], list[str]]:
        """All that this run is to load, as far as its window and its caps allow; and what is to be told of it."""
        reach = self.window.reach(self.cluster, stands, bounds, start=self.start)
        goal = Goal(starts=reach.starts, ends=reach.ends, total=0)
        size = self._planned(stands, bounds, goal, _UNCUT).size
        in_bytes = any(id_.broker is not None for id_ in bounds)
        most = self.caps.bytes_per_run if in_bytes else self.caps.records_per_run
        goal = replace(goal, total=size if most is None else min(size, most))
        return goal, list(reach.failed.values()), list(reach.warnings(stands.covered))

    def _plan(
        self, found: TopicEntry, entry: Entry | None, stands: Standing, bounds: _Held, goal: Goal
    ) -> tuple[Plan, Sizes]:
        """The next step of the run, and how it is cut."""
        sizes = self.sizes(found, self._planned(stands, bounds, goal, _UNCUT).slices, entry)
        return self._planned(stands, bounds, goal, replace(sizes, run=goal.left, step=_STEP_SLICES)), sizes

    def _planned(self, stands: Standing, bounds: _Held, goal: Goal, sizes: Sizes) -> Plan:
        older = plan_backfill(stands.covered, bounds, starts=goal.starts, sizes=sizes)
        newer = plan(
            stands.covered,
            bounds,
            starts=goal.starts,
            ends=goal.ends,
            sizes=sizes,
            skip_expired=self.choices.on_expired == "skip",
            where=stands.topic.where,
        )
        return replace(newer, slices=(*older, *newer.slices))

    def sizes(self, topic: TopicEntry, wanted: Sequence[Slice], entry: Entry | None) -> Sizes:
        """How large the slices of what is wanted are to be: bytes of the log in 0.7; see density for later ones.

        `entry` is the newest of the table.
        """
        if all(one.id.broker is not None for one in wanted):
            return Sizes(slice=self.caps.slice_bytes)

        def sample(one: Slice) -> float | None:
            span = Span(topic=topic.name, id=one.id, start=one.start, stop=one.stop, incarnation=topic.incarnation)
            return self.sample(self.cluster.source(one.id), span)

        return sizes_by_bytes(self.caps, wanted, densities(entry), sample)

    def fetched(
        self,
        topic: TopicEntry,
        uri: str,
        slices: Sequence[Slice],
        began: datetime,
        tell: Progress,
        *,
        sizes: Sizes,
        below: str = "",
    ) -> list[Facts]:
        """What came of fetching `slices` into the table's folders, or into those `below` a path in it.

        Empty slices are facts at once; only the others are fetched.

        Raises:
            TopicRecreated: the topic may be another since.
        """
        facts = [_facts(one, began) for one in slices if not one.size]
        tasks = into_tasks([one for one in slices if one.size], sizes)
        works = [
            self._work(task, one, topic, uri, began, below=below) for task, group in enumerate(tasks) for one in group
        ]
        if works:
            facts += self.fetch(works, tell)
            check_life(self.cluster, topic)
        return facts

    def _work(self, task: int, one: Slice, topic: TopicEntry, uri: str, began: datetime, *, below: str) -> Work:
        return Work(
            task=task,
            source=self.cluster.source(one.id),
            topic=topic.name,
            incarnation=topic.incarnation,
            broker=one.id.broker,
            partition=one.id.partition,
            start=one.start,
            stop=one.stop,
            table_uri=uri,
            folder=f"{below}{PARTITION_COLUMN}={began.date().isoformat()}",
            options=self.options,
            parquet_codec=self.parquet_codec,
            loaded_at_us=_microseconds(began),
        )

    def _change(self, stands: Standing, bounds: _Held, planned: Plan, facts: Sequence[Facts]) -> Loading:
        """The commit of what was fetched, as far as it adjoins what is covered."""
        good = committable(facts, stands.covered)
        return Loading(
            standing=stands,
            facts=tuple(good),
            epochs={one.id: bounds[one.id].epoch for one in good if bounds[one.id].epoch >= 0},
            choices=tuple(_choices(stands, planned)),
            run=self.run_id,
        )


def _committed(log: TableLog, at: Snapshot, change: Loading) -> tuple[int, Sequence[Facts], Sequence[str]]:
    """The table's version, what of the change landed as that, and what is to be told of it."""
    if not change.facts:
        return at.version, (), ()
    done = commit(log, at, change)
    if isinstance(done.change, Loading):
        return done.version, done.change.facts, ()
    return done.version, (), (f"run {done.done_by} had committed the same before",)


def _choices(stands: Standing, planned: Plan) -> Iterable[Choice]:
    """The choices that this plan follows."""
    if stands.replaced:
        for id_ in sorted({one.id for one in planned.slices}):
            yield Choice(setting="on_recreated", value="restart", partition=str(id_), start=0, stop=0)
    for one in planned.skipped:
        yield Choice(setting="on_expired", value="skip", partition=str(one.id), start=one.start, stop=one.stop)


def _facts(one: Slice, began: datetime, **rest: Any) -> Facts:
    """What is known of a slice that nobody fetched."""
    return Facts(
        broker=one.id.broker,
        partition=one.id.partition,
        start=one.start,
        stop=one.stop,
        loaded_at_us=_microseconds(began),
        **rest,
    )


def _order(one: Facts) -> tuple[BrokerPartition, int, int]:
    return one.id, one.start, one.stop


def _microseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)
