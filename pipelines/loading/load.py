"""Load one topic: discover, plan, fetch, commit. The command line and the Dagster asset both call this alone."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Self

from pyspark.sql import SparkSession

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError, PlacedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.commit import Loading, commit, committable
from pipelines.loading.execute import execute
from pipelines.loading.goal import Goal
from pipelines.loading.ledger import Choice, Covered, Standing, Topic
from pipelines.loading.outcome import TopicLoad, by_partition
from pipelines.loading.plan import Plan, Sizes, Slice, into_tasks, plan, plan_backfill
from pipelines.loading.replacing import cut
from pipelines.loading.rows import PARTITION_COLUMN
from pipelines.loading.standing import standing
from pipelines.loading.steps import step
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot, TableLog
from pipelines.loading.work import Facts, Work
from resources.choices import Choices
from resources.errors import CommitRefused, LogTruncated, PartitionsVanished, TopicRecreated, TopicUnknown
from resources.lake import Lake
from resources.settings import Caps, Settings, Start
from resources.spark import Progress

EXPIRED = "expired"
"""The cause of a gap that retention made before a load could take what was there."""
_LEAST_TASKS = 4  # a task costs about 50 ms: more than one core can be busy with a small load
_SHOWN_AWAY = 5
_STEP_SLICES = 32
_UNCUT = 2**63

Fetch = Callable[[Sequence[Work], Progress], list[Facts]]
"""Fetches slices, and tells of each what came of it, in order of partition and offset."""


@dataclass(frozen=True, kw_only=True)
class Loader:
    """All that the loads of one run share.

    Args:
        tables: where the table of a topic is.
        fetch: fetches slices; it is called when there is something to fetch.
        backfill: also load what the brokers hold from before a table's first offsets.
        options: what the lake's store needs.
        on_progress: given a topic, what is told how many of its offsets are fetched, and of how many.
        now: the time, in UTC.
    """

    cluster: Cluster
    tables: Callable[[str], TableLog]
    fetch: Fetch
    caps: Caps
    start: Start
    choices: Choices = field(default_factory=Choices)
    backfill: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    parquet_codec: str = "zstd"
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    on_progress: Callable[[str], Progress] = lambda _: lambda _done, _total: None
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
            "choices": settings.choices_of(cluster.name),
            "options": lake.options,
            "parquet_codec": settings.parquet_codec,
            **rest,
            "start": rest.get("start") or settings.start_of(cluster.name),
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
            return self._load(name, log, began, goal, tell)
        except PlacedError as error:
            placed = error.placed(Where(cluster=self.cluster.name, topic=name))
            told = f"{type(error).__name__}: {placed}"
            return TopicLoad(topic=name, table=log.uri, error=told, seconds=self._since(began)), None

    def _load(
        self, name: str, log: TableLog, began: datetime, goal: Goal | None, tell: Progress
    ) -> tuple[TopicLoad, Goal]:
        found = self.cluster.topic(name)
        if found is None:
            raise TopicUnknown("the registry has no such topic")
        step("discovered")
        at, stands = self.stands(log, found)
        step("table opened")
        bounds, failures = self.bounds(found)
        step("bounds known")
        warnings = self._absent(stands.covered, found)
        at, stands, choices = self._unparted(log, at, stands, found, bounds)
        goal = goal or self._goal(stands, bounds)
        planned = self._plan(stands, goal.within(bounds, stands.covered), goal)
        step("planned")
        skipped = [_skipped(one, began) for one in planned.skipped]
        facts = sorted(
            [*skipped, *self.fetched(found, log.uri, planned.slices, began, goal.progress(planned, tell))], key=_order
        )
        step("fetched")
        good = committable(facts, stands.covered)
        change = Loading(
            standing=stands,
            facts=tuple(good),
            epochs={one.id: bounds[one.id].epoch for one in good if bounds[one.id].epoch >= 0},
            choices=tuple(self._choices(stands, planned)),
            run=self.run_id,
        )
        version = at.version
        if good:
            done = commit(log, at, change)
            version = done.version
            good = list(done.change.facts) if isinstance(done.change, Loading) else []
            if done.done_by:
                warnings.append(f"run {done.done_by} had committed the same before")
        step("loaded")
        failures += [str(one.failure) for one in facts if one.failure]
        load = TopicLoad(
            topic=name,
            table=log.uri,
            version=version,
            rows=sum(one.rows for one in good),
            bytes=sum(one.bytes for one in good),
            files=sum(one.path is not None for one in good),
            error=_first_of(failures),
            partitions=tuple(by_partition(good, bounds, stands.covered)),
            warnings=(*warnings, *(str(one) for one in (*choices, *change.choices))),
            seconds=self._since(began),
            trace=next((one.failure.trace for one in facts if one.failure), None),
        )
        return load, goal.after(planned)

    def stands(self, log: TableLog, found: TopicEntry) -> tuple[Snapshot, Standing]:
        """The table as it is, and where it stands beside the topic that was found.

        Raises:
            LoadError: it cannot be gone on from.
        """
        topic = Topic(
            cluster=self.cluster.name,
            cluster_id=self.cluster.cluster_id() or "",
            name=found.name,
            incarnation=found.incarnation,
        )
        at = log.snapshot()
        return at, standing(at, topic, found.also, restart=self.choices.on_recreated == "restart")

    def _goal(self, stands: Standing, bounds: Mapping[BrokerPartition, Bounds]) -> Goal:
        """All that this run is to load: what there is now, as far as the caps of a run allow."""
        everything = self._planned(stands, bounds, Sizes(slice=_UNCUT))
        size = sum(one.size for one in everything.slices)
        most = self.sizes(bounds).run
        return Goal(
            ends={id_: bound.latest for id_, bound in bounds.items()},
            total=size if most is None else min(size, most),
        )

    def _plan(self, stands: Standing, bounds: Mapping[BrokerPartition, Bounds], goal: Goal) -> Plan:
        """The next step of the run."""
        sizes = self.sizes(bounds)
        return self._planned(stands, bounds, replace(sizes, run=min(goal.left, sizes.slice * _STEP_SLICES)))

    def _planned(self, stands: Standing, bounds: Mapping[BrokerPartition, Bounds], sizes: Sizes) -> Plan:
        older = plan_backfill(stands.covered, bounds, sizes=sizes) if self.backfill else []
        newer = plan(
            stands.covered,
            bounds,
            start="earliest" if stands.replaced else self.start,  # a new life is new data as a whole (B10)
            sizes=sizes,
            skip_expired=self.choices.on_expired == "skip",
            where=stands.topic.where,
        )
        return replace(newer, slices=(*older, *newer.slices))

    def _choices(self, stands: Standing, planned: Plan) -> Iterable[Choice]:
        """The choices that this plan follows."""
        if stands.replaced:
            for id_ in sorted({one.id for one in planned.slices}):
                yield Choice(setting="on_recreated", value="restart", partition=str(id_), start=0, stop=0)
        for one in planned.skipped:
            yield Choice(setting="on_expired", value="skip", partition=str(one.id), start=one.start, stop=one.stop)

    def sizes(self, partitions: Iterable[BrokerPartition]) -> Sizes:
        """The caps that hold for offsets of bytes, which are those of partitions with a broker, or of records."""
        if any(one.broker is None for one in partitions):
            return Sizes(slice=self.caps.slice_records, run=self.caps.records_per_run)
        return Sizes(slice=self.caps.slice_bytes, run=self.caps.bytes_per_run)

    def bounds(self, found: TopicEntry) -> tuple[dict[BrokerPartition, Bounds], list[str]]:
        """What the brokers hold, and why some could not say: that is a failure, but the others go on."""
        answers = self.cluster.bounds(found.name, found.partitions)
        bounds = {id_: answer for id_, answer in answers.items() if isinstance(answer, Bounds)}
        errors = [answer for answer in answers.values() if isinstance(answer, KafkaIOError)]
        return bounds, [f"{type(error).__name__}: {error}" for error in errors]

    def fetched(
        self, topic: TopicEntry, uri: str, slices: Sequence[Slice], began: datetime, tell: Progress, *, below: str = ""
    ) -> list[Facts]:
        """What came of fetching `slices` into the table's folders, or into those `below` a path in it.

        Empty slices are facts at once; only the others are fetched.

        Raises:
            TopicRecreated: the topic may be another since.
        """
        facts = [_facts(one, began) for one in slices if not one.size]
        fetched = [one for one in slices if one.size]
        if not fetched:
            return facts
        size = self.sizes(one.id for one in fetched).slice
        spread = sum(one.size for one in fetched) > size  # what one slice may hold is one task's work
        tasks = into_tasks(fetched, size=size, at_least=_LEAST_TASKS if spread else 1)
        works = [
            self._work(task, one, topic, uri, began, below=below) for task, group in enumerate(tasks) for one in group
        ]
        facts += self.fetch(works, tell)
        self._check_life(topic)
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

    def _unparted(
        self,
        log: TableLog,
        at: Snapshot,
        stands: Standing,
        found: TopicEntry,
        bounds: Mapping[BrokerPartition, Bounds],
    ) -> tuple[Snapshot, Standing, Sequence[Choice]]:
        """The table once it holds nothing that the logs have lost; taking that back is a commit of its own.

        Raises:
            LogTruncated: a log was cut and written anew, from the offset on that is told, and that is not to be taken
                back (B03, B04). A log that is merely shorter is refused by the plan.
        """
        chosen = self.choices.on_truncated
        partings = self.partings(stands, bounds)
        for id_, end in partings.items() if chosen == "fail" else ():
            raise LogTruncated(
                f"offsets [{end}, {stands.covered[id_][1]}) are in the table, but the log was cut at {end} and written "
                'anew; on_truncated = "rewind" takes them back',
                stands.topic.where.within(Where(partition=str(id_), offset=end)),
            )
        shorter = {
            id_: bound.latest
            for id_, bound in bounds.items()
            if id_ in stands.covered and bound.earliest <= bound.latest  # the plan refuses other bounds (B14)
        }
        ends = {
            id_: (end, stands.covered[id_][1])
            for id_, end in {**shorter, **partings}.items()
            if end < stands.covered[id_][1]
        }
        if not ends or chosen == "fail":
            return at, stands, ()
        choices = tuple(
            Choice(setting="on_truncated", value=chosen, partition=str(id_), start=end, stop=cursor)
            for id_, (end, cursor) in sorted(ends.items())
        )
        self._check_life(found)  # the logs of another are no reason to take back what was loaded of this one
        change = cut(stands, ends, run=self.run_id, choices=choices)
        commit(log, at, change)
        now = log.snapshot()
        if now.entry is None or (now.entry.commit, now.entry.sequence) != (change.commit, at.next_sequence):
            # As a rewind before the cut or behind it: what it brings back was not compared with the logs.
            raise CommitRefused("another run committed meanwhile; run again", stands.topic.where)
        return now, standing(now, stands.topic), choices

    def partings(self, stands: Standing, bounds: Mapping[BrokerPartition, Bounds]) -> dict[BrokerPartition, int]:
        """From where on logs are not what was loaded. Within one leader's epoch no log is cut."""
        read = {
            id_: (stands.covered[id_][1], epoch)
            for id_, epoch in stands.epochs.items()
            if id_ in bounds and bounds[id_].epoch != epoch
        }
        return self.cluster.partings(stands.topic.name, read)

    def _check_life(self, found: TopicEntry) -> None:
        """What brokers told since is of the topic that was found: before 3.1 none tells a reader (B05, B06).

        Raises:
            TopicRecreated: it may be of another.
        """
        now = self.cluster.topic(found.name)
        if now is None or not {found.incarnation, *found.also} & {now.incarnation, *now.also}:
            told = f"incarnation {now.incarnation} of it is there now" if now else "it is gone"
            raise TopicRecreated(f"the topic {found.incarnation} was deleted while it was read: {told}")

    def _absent(self, covered: Covered, found: TopicEntry) -> list[str]:
        """Partitions the table knows and the registry does not: in 0.7 their broker is away, and they wait for it.

        Raises:
            PartitionsVanished: later topics never lose one, and no choice lets it pass.
        """
        away = sorted(covered.keys() - set(found.partitions))
        if any(id_.broker is None for id_ in away) and self.choices.on_vanished == "fail":
            told = ", ".join(f"{id_} (loaded up to {covered[id_][1]})" for id_ in away[:_SHOWN_AWAY])
            raise PartitionsVanished(
                f"the topic has {len(found.partitions)} partitions, and not those the table holds: {told}; "
                'on_vanished = "wait" loads the others'
            )
        why = "is not registered: its broker is away; it goes on"
        return [f"partition {id_} {why} at {covered[id_][1]}" for id_ in away]

    def _since(self, began: datetime) -> float:
        return round((self.now() - began).total_seconds(), 3)


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


def _skipped(one: Slice, began: datetime) -> Facts:
    return _facts(one, began, gaps={EXPIRED: one.size})


def _order(one: Facts) -> tuple[BrokerPartition, int, int]:
    return one.id, one.start, one.stop


def _microseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)


def _first_of(failures: Sequence[str]) -> str | None:
    if len(failures) > 1:
        return f"{failures[0]} (and {len(failures) - 1} more)"
    return failures[0] if failures else None
