"""Load one topic: discover, plan, fetch, commit. The command line and the Dagster asset both call this alone."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError, PlacedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading import ledger
from pipelines.loading.commit import commit, committable, spans
from pipelines.loading.execute import execute
from pipelines.loading.ledger import Covered, Entry, Range, Standing, Topic
from pipelines.loading.plan import Sizes, Slice, into_tasks, plan, plan_backfill
from pipelines.loading.rows import PARTITION_COLUMN, TABLE_SCHEMA
from pipelines.loading.steps import step
from pipelines.loading.work import Facts, Work
from resources.errors import LogTruncated, TopicUnknown
from resources.lake import Lake
from resources.settings import Caps, Settings, Start
from resources.spark import Progress

_LEAST_TASKS = 4  # a task costs about 50 ms: more than one core can be busy with a small load


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """What a load did to one partition: `[start, end)` was committed, empty where nothing was new.

    `lag` is what the broker had beyond the cursor when the load was planned, and the load did not take.
    """

    broker: int | None
    partition: int
    start: int
    end: int
    rows: int
    gaps: Mapping[str, int]
    lag: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """What a load did to one topic's table. `error` is None when everything that was planned is committed.

    `version` is the table's after the load; `rows`, `bytes` (see Facts) and `files` are what this load added.
    `warnings` tell of partitions that had to wait.
    """

    topic: str
    table: str
    version: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    error: str | None = None
    partitions: tuple[PartitionLoad, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    trace: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """As `penstock load --json` prints it."""
        names = ("topic", "table", "version", "rows", "bytes", "files", "error", "seconds")
        parts = ("broker", "partition", "start", "end", "rows", "gaps", "lag", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "warnings": list(self.warnings),
            "partitions": [{name: getattr(one, name) for name in parts} for one in self.partitions],
        }


@dataclass(frozen=True, kw_only=True)
class Loader:
    """All that the loads of one run share. Spark is started by the first load that has something to fetch.

    `backfill` also loads what the brokers hold from before a table's first offsets.
    """

    cluster: Cluster
    lake: Lake
    caps: Caps
    start: Start
    backfill: bool = False
    spark: Callable[[], SparkSession]
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    on_progress: Callable[[str], Progress] = lambda _: lambda _done, _total: None

    @classmethod
    def of(cls, settings: Settings, cluster: Cluster, spark: Callable[[], SparkSession], **rest: Any) -> "Loader":
        """A loader as the settings say."""
        start = rest.pop("start", None) or settings.start_of(cluster.name)
        return cls(cluster=cluster, lake=Lake.of(settings), caps=settings.caps, start=start, spark=spark, **rest)

    @cached_property
    def session(self) -> SparkSession:
        """The run's Spark session."""
        return self.spark()

    def load(self, name: str) -> TopicLoad:
        """Load what is new of topic `name`. A failure is told in the result; only interruptions are raised."""
        uri = self.lake.table_uri(self.cluster.name, name)
        began = datetime.now(UTC)
        try:
            return self._load(name, uri, began)
        except PlacedError as error:
            placed = error.placed(Where(cluster=self.cluster.name, topic=name))
            return TopicLoad(topic=name, table=uri, error=f"{type(error).__name__}: {placed}", seconds=_since(began))

    def _load(self, name: str, uri: str, began: datetime) -> TopicLoad:
        found = self.cluster.topic(name)
        if found is None:
            raise TopicUnknown("the registry has no such topic")
        topic = Topic(cluster=self.cluster.name, name=name, incarnation=found.incarnation)
        table = self.lake.open(uri) or self.lake.create(
            uri, TABLE_SCHEMA, partition_by=[PARTITION_COLUMN], configuration=ledger.CONFIGURATION
        )
        standing = ledger.standing(self.lake, table, topic, found.also)
        topic, covered = standing.topic, standing.covered
        bounds, failures = self._bounds(found)
        self._check_unparted(standing, bounds)
        slices = self._plan(topic, covered, bounds)
        step("planned")
        facts = self._fetch(found, uri, slices, began)
        step("fetched")
        good = committable(facts, covered)
        version = self._commit(table, standing, bounds, good) if good else table.version()
        step("loaded")
        failures += [str(one.failure) for one in facts if one.failure]
        return TopicLoad(
            topic=name,
            table=uri,
            version=version,
            rows=sum(one.rows for one in good),
            bytes=sum(one.bytes for one in good),
            files=sum(one.path is not None for one in good),
            error=_first_of(failures),
            partitions=tuple(_by_partition(good, bounds, covered)),
            warnings=tuple(_absent(covered, found)),
            seconds=_since(began),
            trace=next((one.failure.trace for one in facts if one.failure), None),
        )

    def _plan(self, topic: Topic, covered: Covered, bounds: Mapping[BrokerPartition, Bounds]) -> list[Slice]:
        sizes = self._sizes(bounds)
        older = plan_backfill(covered, bounds, sizes=sizes) if self.backfill else []
        return older + plan(covered, bounds, start=self.start, sizes=sizes, where=topic.where)

    def _sizes(self, partitions: Iterable[BrokerPartition]) -> Sizes:
        """The caps that hold for offsets of bytes, which are those of partitions with a broker, or of records."""
        if any(one.broker is None for one in partitions):
            return Sizes(slice=self.caps.slice_records, run=self.caps.records_per_run)
        return Sizes(slice=self.caps.slice_bytes, run=self.caps.bytes_per_run)

    def _bounds(self, found: TopicEntry) -> tuple[dict[BrokerPartition, Bounds], list[str]]:
        """What the brokers hold, and why some could not say: that is a failure, but the others go on."""
        answers = self.cluster.bounds(found.name, found.partitions)
        bounds = {id_: answer for id_, answer in answers.items() if isinstance(answer, Bounds)}
        errors = [answer for answer in answers.values() if isinstance(answer, KafkaIOError)]
        return bounds, [f"{type(error).__name__}: {error}" for error in errors]

    def _fetch(self, topic: TopicEntry, uri: str, slices: Sequence[Slice], began: datetime) -> list[Facts]:
        """Empty slices are facts at once; Spark is asked for the others only."""
        facts = [
            Facts(broker=one.id.broker, partition=one.id.partition, start=one.start, stop=one.stop)
            for one in slices
            if not one.size
        ]
        fetched = [one for one in slices if one.size]
        if not fetched:
            return facts
        size = self._sizes(one.id for one in fetched).slice
        tasks = into_tasks(fetched, size=size, at_least=_LEAST_TASKS)
        works = [self._work(task, one, topic, uri, began) for task, group in enumerate(tasks) for one in group]
        return facts + execute(self.session, works, self.on_progress(topic.name))

    def _work(self, task: int, one: Slice, topic: TopicEntry, uri: str, began: datetime) -> Work:
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
            folder=f"{PARTITION_COLUMN}={began.date().isoformat()}",
            options=self.lake.options,
            loaded_at_us=int(began.timestamp() * 1_000_000),
        )

    def _check_unparted(self, standing: Standing, bounds: Mapping[BrokerPartition, Bounds]) -> None:
        """What is covered is still what the logs hold. Within one leader's epoch no log is cut.

        Raises:
            LogTruncated: it is not, from the offset on that is told (B03, B04).
        """
        read = {
            id_: (standing.covered[id_][1], epoch)
            for id_, epoch in standing.epochs.items()
            if id_ in bounds and bounds[id_].epoch != epoch
        }
        for id_, at in self.cluster.partings(standing.topic.name, read).items():
            raise LogTruncated(
                f"offsets [{at}, {read[id_][0]}) are in the table, but the log was cut at {at} and written anew",
                standing.topic.where.within(Where(partition=str(id_), offset=at)),
            )

    def _commit(
        self,
        table: DeltaTable,
        standing: Standing,
        bounds: Mapping[BrokerPartition, Bounds],
        facts: Sequence[Facts],
    ) -> int:
        told = {one.id: bounds[one.id].epoch for one in facts if bounds[one.id].epoch >= 0}
        entry = Entry(
            commit=uuid.uuid4().hex,
            run=self.run_id,
            code=metadata.version("penstock"),
            topic=standing.topic,
            ranges=tuple(Range.of(one) for one in facts),
            covered=spans(standing.covered, facts),
            epochs={**standing.epochs, **told},
        )
        return commit(self.lake, table, entry, facts)


def _since(began: datetime) -> float:
    return round((datetime.now(UTC) - began).total_seconds(), 3)


def _first_of(failures: Sequence[str]) -> str | None:
    if len(failures) > 1:
        return f"{failures[0]} (and {len(failures) - 1} more)"
    return failures[0] if failures else None


def _by_partition(
    facts: Sequence[Facts], bounds: Mapping[BrokerPartition, Bounds], covered: Covered
) -> Iterator[PartitionLoad]:
    """Every partition that was looked at. Slices of one follow each other, so their ranges add up to one."""
    grouped: dict[BrokerPartition, list[Facts]] = defaultdict(list)
    for one in facts:
        grouped[one.id].append(one)
    for id_, bound in sorted(bounds.items()):
        mine = grouped[id_]
        before = covered[id_][1] if id_ in covered else bound.earliest
        end = max((one.stop for one in mine), default=before)
        yield PartitionLoad(
            broker=id_.broker,
            partition=id_.partition,
            start=min((one.start for one in mine), default=before),
            end=end,
            rows=sum(one.rows for one in mine),
            gaps=dict(sum((Counter(one.gaps) for one in mine), Counter())),
            lag=bound.latest - max(before, end),
            seconds=round(sum(one.seconds for one in mine), 3),
        )


def _absent(covered: Covered, found: TopicEntry) -> list[str]:
    """Partitions the table knows and the registry does not: their broker is away. They go on when it is back."""
    away = sorted(covered.keys() - set(found.partitions))
    return [f"partition {id_} is not registered: its broker is away; it goes on at {covered[id_][1]}" for id_ in away]
