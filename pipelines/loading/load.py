"""Load one topic: find it, plan, fetch, commit. This is the only entry point for the command line and for Dagster."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Self

from pyspark.sql import SparkSession

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, LocatedError, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange
from pipelines.loading.bytes_per_offset import (
    SampleSizes,
    committed_bytes_per_offset,
    read_sample,
    sizes_by_bytes,
)
from pipelines.loading.commit import LoadChange, commit, committable
from pipelines.loading.execute import execute
from pipelines.loading.failpoints import failpoint
from pipelines.loading.group_mirror import Mirror, cursors_after, mirror_of, no_mirror
from pipelines.loading.ledger import LedgerEntry, RecordedChoice, TableState, TopicIdentity
from pipelines.loading.outcome import TopicLoad, outcome
from pipelines.loading.plan import Plan, RunTarget, plan, plan_backfill
from pipelines.loading.rows import PARTITION_COLUMN
from pipelines.loading.slices import SliceSizes, group_slices
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import TableLog, TableSnapshot, table_state
from pipelines.loading.truncation import check_incarnation, lost_offsets, take_back, vanished_partitions
from pipelines.loading.window import LoadWindow
from pipelines.loading.work import FetchTask, SliceFacts, SliceFailure
from resources.choices import Choices
from resources.errors import TopicUnknown
from resources.lake import Lake
from resources.settings import Caps, Settings, Start
from resources.spark import Progress

EXPIRED = "expired"
"""The cause of a gap whose records expired before a load could read them."""
_STEP_SLICES = 32
_UNCUT = SliceSizes(slice=2**63)

FetchSlices = Callable[[Sequence[FetchTask], Progress], list[SliceFacts]]
"""Fetches slices; returns the facts of each, in order of partition and offset."""
_AllBounds = Mapping[BrokerPartition, Bounds]


@dataclass(frozen=True, kw_only=True)
class Loader:
    """What the loads of one run share.

    Args:
        cluster: where the topics are.
        tables: gives the table of a topic.
        fetch: fetches slices; it is called only if there is something to fetch.
        caps: the limits for slices and runs.
        start: where a new table begins, if the window does not say.
        choices: how to continue where the cursor and the log are inconsistent.
        window: the part of the logs to load.
        options: what the lake's store needs.
        parquet_codec: the compression of new files.
        run_id: the run's id in the ledger.
        on_progress: gives, for a topic, the callback that is told how many of how many offsets are fetched.
        sample: reads the first records of a range to estimate how large they are.
        mirror: copies a topic's cursors after each commit, and returns warnings.
        now: the time, in UTC.
    """

    cluster: Cluster
    tables: Callable[[str], TableLog]
    fetch: FetchSlices
    caps: Caps
    start: Start
    choices: Choices = field(default_factory=Choices)
    window: LoadWindow = field(default_factory=LoadWindow)
    options: Mapping[str, str] = field(default_factory=dict)
    parquet_codec: str = "zstd"
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    on_progress: Callable[[str], Progress] = lambda _: lambda _done, _total: None
    sample: SampleSizes = read_sample
    mirror: Mirror = no_mirror
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @classmethod
    def of(cls, settings: Settings, cluster: Cluster, spark: Callable[[], SparkSession], **overrides: Any) -> Self:
        """A loader with the values of the settings. The first load that needs more than one Spark task starts Spark."""
        lake = Lake.of(settings)
        session = cache(spark)
        values = {
            "tables": lambda topic: LakeTable.of(lake, cluster.name, topic),
            "fetch": lambda tasks, on_progress: execute(session, tasks, on_progress),
            "caps": settings.caps,
            "start": settings.start_of(cluster.name),
            "choices": settings.choices_of(cluster.name),
            "options": lake.options,
            "parquet_codec": settings.parquet_codec,
            "mirror": mirror_of(cluster, settings.clusters[cluster.name].mirror_group),
            **overrides,
        }
        return cls(cluster=cluster, **values)

    def load(self, name: str) -> TopicLoad:
        """Load what is new of topic `name`. An error is in the result; only interruptions are raised.

        What the brokers hold at the beginning is loaded in steps, each with its own commit. After an interruption the
        next run continues from the last commit, and other runs of the topic can commit between the steps.
        """
        log, on_progress = self.tables(name), self.on_progress(name)
        load: TopicLoad | None = None
        target: RunTarget | None = None
        while True:
            step, target = self._step(name, log, target, on_progress)
            load = load.then(step) if load else step
            if step.error or target is None or target.reached:
                return load

    def _step(
        self, name: str, log: TableLog, target: RunTarget | None, on_progress: Progress
    ) -> tuple[TopicLoad, RunTarget | None]:
        """One step, and the target after it; None if it failed."""
        began = self.now()
        try:
            load, target = self._load_step(name, log, began, target, on_progress)
        except LocatedError as error:
            failure = SliceFailure.of(error, Where(cluster=self.cluster.name, topic=name), trace="")
            load, target = TopicLoad(topic=name, table=log.uri).failed([failure]), None
        return replace(load, seconds=round((self.now() - began).total_seconds(), 3)), target

    def _load_step(
        self, name: str, log: TableLog, began: datetime, target: RunTarget | None, on_progress: Progress
    ) -> tuple[TopicLoad, RunTarget]:
        topic = self.cluster.topic(name)
        if topic is None:
            raise TopicUnknown("the registry has no such topic")
        failpoint("discovered")
        snapshot, state = self.read_table(log, topic)
        failpoint("table opened")
        bounds, errors = self.bounds(topic)
        failpoint("bounds known")
        warnings = vanished_partitions(state.covered, topic, self.choices)
        lost = lost_offsets(self.cluster, state, bounds, self.choices)
        cut_choices = tuple(RecordedChoice.of("on_truncated", self.choices.on_truncated, offsets) for offsets in lost)
        if lost:
            check_incarnation(self.cluster, topic)  # the logs of another incarnation are no reason to take rows back
            snapshot, state = take_back(log, snapshot, state, lost, run=self.run_id, choices=cut_choices)
        if target is None:
            target, window_errors, window_warnings = self._run_target(state, bounds)
            errors, warnings = [*errors, *window_errors], [*warnings, *window_warnings]
        step, sizes = self._plan_step(topic, snapshot.entry, state, bounds, target)
        failpoint("planned")
        skipped = [_unread_facts(offsets, began, gaps={EXPIRED: offsets.size}) for offsets in step.skipped]
        progress = target.progress(step, on_progress)
        fetched = self.fetch_slices(topic, log.uri, step.slices, began, progress, sizes=sizes)
        failpoint("fetched")
        facts = sorted([*skipped, *fetched], key=lambda slice_facts: slice_facts.offsets)
        change = self._change(state, bounds, step, facts)
        version, committed, commit_warnings = _commit(log, snapshot, change)
        failpoint("loaded")
        warnings += [*commit_warnings, *map(str, (*cut_choices, *change.choices))]
        warnings += self.mirror(name, cursors_after(state.covered, committed))
        failpoint("mirrored")
        load = outcome(committed, bounds, state.covered, topic=name, table=log.uri, version=version, warnings=warnings)
        failures = [SliceFailure.of(error, state.topic.where, trace="") for error in errors]
        failures += [slice_facts.failure for slice_facts in facts if slice_facts.failure]
        return load.failed(failures), target.after(step)

    def read_table(self, log: TableLog, topic: TopicEntry) -> tuple[TableSnapshot, TableState]:
        """The newest snapshot of the topic's table, and its state.

        Raises:
            LoadError: no load can continue from it.
        """
        snapshot = log.snapshot()
        restart = self.choices.on_recreated == "restart"
        return snapshot, table_state(snapshot, self.identity(topic), topic.also, restart=restart)

    def identity(self, topic: TopicEntry) -> TopicIdentity:
        """The topic as the ledger names it."""
        return TopicIdentity(
            cluster=self.cluster.name,
            cluster_id=self.cluster.cluster_id() or "",
            name=topic.name,
            incarnation=topic.incarnation,
        )

    def bounds(self, topic: TopicEntry) -> tuple[dict[BrokerPartition, Bounds], list[KafkaIOError]]:
        """The bounds of the topic's partitions, and the errors of brokers that did not tell them.

        An error makes the load fail in the end, but the other partitions are loaded.
        """
        answers = self.cluster.bounds(topic.name, topic.partitions)
        bounds = {partition: answer for partition, answer in answers.items() if isinstance(answer, Bounds)}
        return bounds, [answer for answer in answers.values() if isinstance(answer, KafkaIOError)]

    def _run_target(self, state: TableState, bounds: _AllBounds) -> tuple[RunTarget, list[KafkaIOError], list[str]]:
        """What this run loads within its window and its caps, with errors and warnings about the window."""
        window = self.window.in_offsets(self.cluster, state, bounds, start=self.start)
        target = RunTarget(starts=window.starts, ends=window.ends, total=0)
        size = self._plan(state, bounds, target, _UNCUT).size
        in_bytes = any(partition.broker is not None for partition in bounds)
        cap = self.caps.bytes_per_run if in_bytes else self.caps.records_per_run
        target = replace(target, total=size if cap is None else min(size, cap))
        return target, list(window.errors.values()), list(window.warnings(state.covered))

    def _plan_step(
        self, topic: TopicEntry, entry: LedgerEntry | None, state: TableState, bounds: _AllBounds, target: RunTarget
    ) -> tuple[Plan, SliceSizes]:
        """The next step of the run, and the sizes of its slices."""
        sizes = self.slice_sizes(topic, self._plan(state, bounds, target, _UNCUT).slices, entry)
        return self._plan(state, bounds, target, replace(sizes, run=target.left, step=_STEP_SLICES)), sizes

    def _plan(self, state: TableState, bounds: _AllBounds, target: RunTarget, sizes: SliceSizes) -> Plan:
        older = plan_backfill(state.covered, bounds, starts=target.starts, sizes=sizes)
        newer = plan(
            state.covered,
            bounds,
            starts=target.starts,
            ends=target.ends,
            sizes=sizes,
            skip_expired=self.choices.on_expired == "skip",
            where=state.topic.where,
        )
        return replace(newer, slices=(*older, *newer.slices))

    def slice_sizes(self, topic: TopicEntry, wanted: Sequence[OffsetRange], entry: LedgerEntry | None) -> SliceSizes:
        """The sizes of slices for the wanted ranges; `entry` is the newest of the table.

        In 0.7 offsets are bytes, so that one size fits all; later the records' sizes are estimated.
        """
        if all(offsets.partition.broker is not None for offsets in wanted):
            return SliceSizes(slice=self.caps.slice_bytes)

        def sample(offsets: OffsetRange) -> float | None:
            planned = PlannedRange(topic=topic.name, offsets=offsets, incarnation=topic.incarnation)
            return self.sample(self.cluster.source(offsets.partition), planned)

        return sizes_by_bytes(self.caps, wanted, committed_bytes_per_offset(entry), sample)

    def fetch_slices(
        self,
        topic: TopicEntry,
        table_uri: str,
        slices: Sequence[OffsetRange],
        began: datetime,
        on_progress: Progress,
        *,
        sizes: SliceSizes,
        below: str = "",
    ) -> list[SliceFacts]:
        """The facts of `slices`, fetched into the table's folders, or into folders below the path `below` in it.

        Empty slices need no fetch.

        Raises:
            TopicRecreated: the topic may have been recreated meanwhile.
        """
        facts = [_unread_facts(offsets, began) for offsets in slices if not offsets.size]
        groups = group_slices([offsets for offsets in slices if offsets.size], sizes)
        tasks = [
            FetchTask(
                spark_task=number,
                source=self.cluster.source(offsets.partition),
                planned=PlannedRange(topic=topic.name, offsets=offsets, incarnation=topic.incarnation),
                table_uri=table_uri,
                folder=f"{below}{PARTITION_COLUMN}={began.date().isoformat()}",
                options=self.options,
                parquet_codec=self.parquet_codec,
                loaded_at_us=_microseconds(began),
            )
            for number, group in enumerate(groups)
            for offsets in group
        ]
        if tasks:
            facts += self.fetch(tasks, on_progress)
            check_incarnation(self.cluster, topic)
        return facts

    def _change(self, state: TableState, bounds: _AllBounds, step: Plan, facts: Sequence[SliceFacts]) -> LoadChange:
        """The commit of the facts that adjoin what is covered."""
        committed = tuple(committable(facts, state.covered))
        epochs = {
            slice_facts.offsets.partition: bounds[slice_facts.offsets.partition].epoch for slice_facts in committed
        }
        return LoadChange(
            state=state,
            facts=committed,
            epochs={partition: epoch for partition, epoch in epochs.items() if epoch >= 0},
            choices=tuple(step.choices(state)),
            run=self.run_id,
        )


def _commit(
    log: TableLog, snapshot: TableSnapshot, change: LoadChange
) -> tuple[int, Sequence[SliceFacts], Iterable[str]]:
    """Commit the change: the table's version, the slices that this run committed, and warnings."""
    if not change.facts:
        return snapshot.version, (), ()
    result = commit(log, snapshot, change)
    if isinstance(result.change, LoadChange):
        return result.version, result.change.facts, ()
    return result.version, (), (f"run {result.done_by} had committed the same before",)


def _unread_facts(offsets: OffsetRange, began: datetime, gaps: Mapping[str, int] | None = None) -> SliceFacts:
    """The facts of a slice that needs no fetch."""
    return SliceFacts(offsets=offsets, loaded_at_us=_microseconds(began), gaps=gaps or {})


def _microseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)
