"""Load one topic: find it, plan, fetch, commit. This is the only entry point for the command line and for Dagster."""

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import LocatedError, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry
from pipelines.commit.bad_records import check_bad_records
from pipelines.commit.commit import CommitResult, LoadChange, commit, committable
from pipelines.commit.replacement import CutChange
from pipelines.delta.delta_table import LakeTable
from pipelines.fetch.decode_plan import check_format, check_partition_by, layout_of
from pipelines.fetch.decoding import Decoding, OpenRegistry, no_registry
from pipelines.fetch.execute import FetchRunner, SliceFetcher, microseconds
from pipelines.fetch.unreadable import GAPS
from pipelines.identity.divergence import Divergence, DivergenceSearch, check_expired, check_same_logs
from pipelines.identity.earlier_loads import Evidence, FormerName, MirroredOffsets
from pipelines.identity.holes import Refusal
from pipelines.identity.identity import check_divergence, check_epochs, table_state, with_topic_id
from pipelines.identity.truncation import (
    check_incarnation,
    compare_logs,
    lost_offsets,
    take_back,
    vanished_partitions,
)
from pipelines.layout.columns import NO_COLUMNS
from pipelines.ledger.coverage import begun_earlier
from pipelines.ledger.ledger import (
    Coverage,
    LedgerEntry,
    RecordedChoice,
    TableState,
    TopicIdentity,
    skip_choices,
)
from pipelines.ledger.work import EXPIRED, DecodedCounts, SliceFacts, SliceFailure
from pipelines.load.discovery import TopicAnswers, discover, with_errors_apart
from pipelines.load.sharing import once
from pipelines.plan.day_cuts import day_cuts
from pipelines.plan.plan import UNCUT, Plan, PlannedStep, RunTarget, plan_step, steps_after
from pipelines.plan.slices import SliceSizes
from pipelines.plan.valid_through import TimesOfLoad, log_answers
from pipelines.plan.window import AllBounds, LoadWindow, OffsetWindow
from pipelines.reports.group_mirror import GroupMirror, Mirror
from pipelines.reports.held_back import held_back_warnings
from pipelines.reports.last_error import LastError, LastErrors, Remember
from pipelines.reports.load_reports import LoadReports, OnEnd, OnStart
from pipelines.reports.outcome import RunRecord, TopicLoad
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import TableLost, TopicUnknown
from resources.extras import has_extra
from resources.failpoints import failpoint
from resources.kafka import open_schema_registry
from resources.progress import Progress, no_progress
from resources.settings.choices import Choices
from resources.settings.settings import Settings, Start
from resources.settings.topic_formats import RAW_FORMAT, TopicFormat
from resources.stores.lake import Lake
from resources.stores.lake_marker import use_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEW_LAKE = "the lake {lake} is new: it has no table, so every topic begins a new one"
_STEP_SLICES = 32
"""The number of full slices in a step of a run, if Spark has no more cores than that."""
_STEPS_AHEAD = 3
"""How many steps are begun in Spark before the step in front of them is committed."""


@dataclass(frozen=True, kw_only=True)
class Loader(SliceFetcher):
    """Loads topics of one cluster in one run; see also SliceFetcher.

    Args:
        tables: gives the table of a topic.
        formats: gives the format of a topic.
        registries: gives the client of a schema registry; needed for formats with schemas.
        start: where a new table begins, if the window does not say.
        choices: how to continue where the cursor and the log are inconsistent.
        window: the part of the logs to load.
        run_id: the run's id in the ledger.
        on_progress: gives, for a topic, the callback that is called with how many of how many offsets are fetched.
        mirror: copies a topic's cursors after each commit, and returns warnings.
        evidence: functions that can show that a topic without a table was loaded before.
        new_lake: a warning if this run is the first one that uses the lake; empty otherwise.
        remember: keeps why the load of a topic failed, until one succeeds, and returns warnings.
        announce: publishes that the load of a topic begins in this run, and returns warnings.
        report: publishes the result of a load, and returns warnings.
        now: the time, in UTC.
        abandon: ends the fetches of a topic that were begun for steps to come.
        cores: gives the number of slices that are fetched at once, as far as it is known.
        first_answers: what brokers said about a topic before its load; see FirstAnswers.
        keeping_readers: lets the fetches of a run use each other's connections, while a `with` block runs.
    """

    tables: Callable[[str], TableStore]
    start: Start
    formats: Callable[[str], TopicFormat] = lambda _topic: RAW_FORMAT
    registries: OpenRegistry = no_registry
    choices: Choices = field(default_factory=Choices)
    window: LoadWindow = field(default_factory=LoadWindow)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    on_progress: Callable[[str], Progress] = lambda _: lambda _done, _total: None
    mirror: Mirror = lambda _topic, _cursors: ()
    evidence: tuple[Evidence, ...] = ()
    new_lake: str = ""
    remember: Remember = lambda _topic, _error: ()
    announce: OnStart = lambda _topic, _run: ()
    report: OnEnd = lambda _load: ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    abandon: Callable[[str], None] = lambda _topic: None
    cores: Callable[[], int] = lambda: 0
    first_answers: Callable[[str], TopicAnswers | None] = lambda _topic: None
    keeping_readers: Callable[[], AbstractContextManager[None]] = nullcontext

    @classmethod
    def of(cls, settings: Settings, cluster: Cluster, spark: Callable[[], "SparkSession"], **overrides: Any) -> Self:
        """A loader with the values of the settings. The first load that needs more than one Spark task starts Spark.

        Raises:
            LoadError: the lake's store does not answer, or cannot hold commits (fault P13).
        """
        lake = Lake.of(settings)
        marker, mirror_group = use_lake(lake), settings.clusters[cluster.name].mirror_group
        # Without the package, one process loads everything, step by step. Settings for Spark ask for it.
        runner = FetchRunner(once(spark) if has_extra("spark") or settings.spark else None)
        reports = LoadReports.of(settings, cluster.name)
        values = {
            "tables": lambda topic: LakeTable.of(lake, cluster.name, topic, layout_of(settings.format_of(topic))),
            "formats": settings.format_of,
            "registries": once(partial(open_schema_registry, settings)),
            "fetch": runner.fetch,
            "abandon": runner.abandon,
            "cores": lambda: runner.cores,
            "keeping_readers": runner.keeping_readers,
            "caps": settings.caps,
            "start": settings.start_of(cluster.name),
            "choices": settings.choices_of(cluster.name),
            "options": lake.options,
            "parquet_codec": settings.parquet_codec,
            "mirror": GroupMirror(cluster, mirror_group),
            "evidence": (FormerName(lake, settings.clusters), MirroredOffsets(cluster, mirror_group)),
            "new_lake": NEW_LAKE.format(lake=lake.root) if marker.is_new else "",
            "remember": LastErrors(lake, cluster.name),
            "announce": reports.started,
            "report": reports.ended,
            **overrides,
        }
        return cls(cluster=cluster, **values)

    def load(self, name: str) -> TopicLoad:
        """Load what is new of topic `name`. An error is in the result; only interruptions are raised.

        What the brokers hold at the beginning is loaded in steps, each with its own commit. After an interruption the
        next run continues from the last commit, and other runs of the topic can commit between the steps. A partition
        that fails is left out of the later steps (fault N07).
        """
        began, table = self.now(), self.tables(name)
        record = RunRecord(topic=name, table=table.uri)
        target: RunTarget | None = None
        record.warnings += self.announce(name, self.run_id)
        try:
            while target is None or not target.reached:
                target = self._load_step(table, target, record)
        except Exception as error:  # noqa: BLE001 - whatever fails belongs to this topic, and others are loaded
            record.failures.append(SliceFailure.of(error, Where(cluster=self.cluster.name, topic=name)))
        finally:
            self.abandon(name)
        now_ms = microseconds(self.now()) // 1000
        record.warnings += held_back_warnings(self.cluster, name, record.bounds, now_ms=now_ms)
        self._remember(record)
        load = record.outcome(seconds=(self.now() - began).total_seconds())
        return replace(load, warnings=(*load.warnings, *self.report(load)))

    def _remember(self, record: RunRecord) -> None:
        """Keep why the load failed, or remove what an earlier load left. A topic that does not exist has no status."""
        if any(failure.kind == TopicUnknown.__name__ for failure in record.failures):
            return
        time_ms = microseconds(self.now()) // 1000
        error = LastError.of(record.failures, run=self.run_id, time_ms=time_ms) if record.failures else None
        record.warnings += self.remember(record.topic, error)

    def _load_step(self, table: TableStore, target: RunTarget | None, record: RunRecord) -> RunTarget:
        """Load one step of the run and add it to the record; returns the target after the step."""
        first = self.first_answers(record.topic) if target is None else None
        open_table = partial(self._open_table, table, record)
        wanted_only = target.window.ends if target else None
        discovery = discover(self.cluster, record.topic, open_table, self.now, first=first, wanted=wanted_only)
        began, topic, wanted, snapshot, state, bounds, errors = discovery
        failpoint("bounds known")
        state, divergences = self.check_logs(table, snapshot, state, bounds, errors)
        topic = topic.with_ids(state.ids.learned(topic.ids))
        # Another run may have begun a newer incarnation since this run read the topic, or a broker has old metadata.
        if state.replaced:
            check_incarnation(self.cluster, topic, bounds)
        warnings = vanished_partitions(state.covered, topic, self.choices)
        lost, truncated = lost_offsets(self.cluster, state, bounds, self.choices, divergences)
        cut_choices = tuple(RecordedChoice.of("on_truncated", self.choices.on_truncated, offsets) for offsets in lost)
        if lost:
            # The logs of another incarnation are no reason to take rows back.
            check_incarnation(self.cluster, topic, [offsets.partition for offsets in lost])
            cut = CutChange(state=state, ranges=lost, run=self.run_id, choices=cut_choices)
            snapshot, state = take_back(table, snapshot, cut)
        record.begin_step(wanted, bounds, state)
        bounds = {partition: bound for partition, bound in bounds.items() if partition not in truncated}
        if target is None:
            target = self._run_target(snapshot, state, bounds, began)
            errors |= target.window.errors
            warnings += self._window_warnings(target, state)
        target = self._planned(topic, snapshot.entry, state, bounds, target)
        step = target.ahead[0].plan
        errors |= {**truncated, **step.errors}
        failpoint("planned")
        progress = target.progress(step, self.on_progress(record.topic))
        decoding = Decoding(self.formats(record.topic), snapshot, self.registries)
        facts = self._facts(topic, table.uri, state, target.ahead, began=began, progress=progress, decoding=decoding)
        self._check_facts(state, bounds, step, facts, record.decoded)
        times = self._times(topic, bounds, step, target, began)
        change = self._change(state, bounds, target, step, facts, decoding=decoding, times=times)
        result = self._commit(table, snapshot, change)
        failpoint("loaded")
        if result.overtaken_by and change.facts:
            warnings.append(f"run {result.overtaken_by} committed the same offsets first")
        warnings += decoding.event_time_warnings()
        record.warnings += warnings + list(map(str, (*decoding.warnings, *cut_choices, *change.choices)))
        record.failures += [
            *(SliceFailure.of(error, state.topic.where) for error in errors.values()),
            *(slice_facts.failure for slice_facts in facts if slice_facts.failure),
        ]
        covered = self._add_commit(record, result, state)
        return target.after(
            step,
            overtaken=result.overtaken(change.facts),
            more=sum(begun_earlier(change.fetched_ranges, state.covered, covered, target.window.ends)),
            failed=errors.keys() | {slice_facts.offsets.partition for slice_facts in facts if slice_facts.failure},
        )

    def _check_facts(
        self, state: TableState, bounds: AllBounds, step: Plan, facts: Sequence[SliceFacts], earlier: DecodedCounts
    ) -> None:
        """Check that the logs are still those of the table, and that the records decode; see the functions."""
        if any(slice_facts.offsets.size for slice_facts in facts):
            check_same_logs(self.cluster, state, {id_: bounds[id_] for id_ in bounds.keys() - step.errors.keys()})
        check_expired(self.cluster, state, step.skipped)
        failpoint("fetched")
        check_bad_records(self.formats(state.topic.name), facts, state.topic.where, earlier=earlier)

    def _add_commit(self, record: RunRecord, result: CommitResult, state: TableState) -> Coverage:
        """Add the result of a commit to the record and copy the cursors; returns what the table covers now."""
        covered = result.covered_after(state)
        record.warnings += self.mirror(record.topic, {partition: cursor for partition, (_, cursor) in covered.items()})
        failpoint("mirrored")
        record.add(result.committed, covered)
        record.version = result.version
        return covered

    def _open_table(self, table: TableStore, record: RunRecord, topic: TopicEntry) -> tuple[TableSnapshot, TableState]:
        """The value that `read_table` returns for the next step of the run.

        Raises:
            TableLost: the topic was loaded before, but the table is new (fault N17).
            LoadError: no load can continue from the table.
        """
        failpoint("discovered")
        snapshot, state = self.read_table(table, topic, after=record.snapshot)
        record.snapshot = snapshot
        failpoint("table opened")
        if snapshot.entry is None and self.window.since is None:
            reasons = (evidence(state) for evidence in self.evidence)
            reason = next((reason for reason in reasons if reason), None)
            if reason and table.newer(snapshot).entry is None:  # another run may just have begun the table
                raise TableLost(
                    f"{reason}; `--from earliest` (in Dagster, `since: earliest`) loads all of it into a new table",
                    state.topic.where,
                )
        return snapshot, state

    def read_table(
        self, table: TableStore, topic: TopicEntry, *, after: TableSnapshot | None = None
    ) -> tuple[TableSnapshot, TableState]:
        """The newest snapshot of the topic's table, and its state. Only without a snapshot before, a table is created.

        Raises:
            LoadError: no load can continue from it.
        """
        snapshot = table.newer(after) if after else table.snapshot()
        if after:
            after.check_layout(snapshot, Where(cluster=self.cluster.name, topic=topic.name))
        check_format(self.formats(topic.name), snapshot, table.uri)
        check_partition_by(self.formats(topic.name), snapshot, table.uri)
        identity = TopicIdentity.of(self.cluster, topic)
        return snapshot, table_state(snapshot, identity, topic.also, self.choices)

    def check_logs(
        self,
        table: TableStore,
        snapshot: TableSnapshot,
        state: TableState,
        bounds: dict[BrokerPartition, Bounds],
        errors: dict[BrokerPartition, LocatedError],
    ) -> tuple[TableState, Mapping[BrokerPartition, Divergence]]:
        """The state, if the logs are those of the table, and where logs diverged from it.

        Partitions whose log cannot be compared are removed from `bounds`, and their errors are added to `errors`.

        Raises:
            TopicRecreated: a log is another one, and the user made no choice.
            KafkaIOError: a log may be another one, and cannot be searched.
        """
        checked = check_epochs(snapshot, state, bounds, self.choices)
        search = DivergenceSearch(cluster=self.cluster, table=table, snapshot=snapshot, state=checked)
        # An idle log proves an event time only if it is the log of the table.
        with_idle, loads_older = self.formats(state.topic.name).event_time is not None, self.window.since is not None
        comparison = compare_logs(search, bounds, self.choices, loads_older=loads_older, with_idle=with_idle)
        for partition, error in comparison.errors.items():
            del bounds[partition]
            errors[partition] = error
        if comparison.all_same:
            checked = with_topic_id(checked, bounds)
        checked = check_divergence(snapshot, checked, comparison.divergences, self.choices)
        return checked, {} if checked.replaced or checked.adopted else comparison.divergences

    def bounds(
        self, topic: TopicEntry, wanted: Collection[BrokerPartition] | None = None
    ) -> tuple[dict[BrokerPartition, Bounds], dict[BrokerPartition, LocatedError]]:
        """The bounds of the topic's partitions, or of the wanted ones, and the errors where brokers do not report them.

        An error makes the load fail in the end, but the other partitions are loaded.
        """
        requested_partitions = [partition for partition in topic.partitions if wanted is None or partition in wanted]
        return with_errors_apart(self.cluster.bounds(topic.name, requested_partitions))

    def _run_target(self, snapshot: TableSnapshot, state: TableState, bounds: AllBounds, began: datetime) -> RunTarget:
        """The offsets that this run loads within its window and its caps."""
        now_ms = microseconds(began) // 1000
        window = self.window.in_offsets(self.cluster, state, bounds, start=self.start, now_ms=now_ms)
        uncut = self._plan(state, bounds, window, UNCUT)
        name, is_by_day = state.topic.name, snapshot.layout.is_by_day
        cuts = day_cuts(self.cluster, name, uncut.slices, now_ms=now_ms) if is_by_day else {}
        in_bytes = any(partition.broker is not None for partition in bounds)
        cap = self.caps.bytes_per_run if in_bytes else self.caps.records_per_run
        total = uncut.size if cap is None else min(uncut.size, cap)
        return RunTarget(window=window, total=total, cap=cap, cuts=cuts, answers=log_answers(bounds, now_ms))

    def _times(
        self, topic: TopicEntry, bounds: AllBounds, step: Plan, target: RunTarget, asked: datetime
    ) -> TimesOfLoad:
        """The answers from which this step computes the event time; `asked` is a time before the first question."""
        answers = log_answers(bounds, microseconds(asked) // 1000)
        without = {*step.errors, *(offsets.partition for offsets in step.skipped)}
        format_ = self.formats(topic.name)
        return TimesOfLoad.of(format_, topic.partitions, target.answers, answers, without=without)

    def _window_warnings(self, target: RunTarget, state: TableState) -> Iterator[str]:
        """The warnings about the window of the run."""
        yield from target.window.warnings(state.covered)
        if not target.total and self.window.has_time:
            yield (
                "nothing is loaded, because the brokers have no records in the given interval that are not in the table"
            )

    def _planned(
        self, topic: TopicEntry, entry: LedgerEntry | None, state: TableState, bounds: AllBounds, target: RunTarget
    ) -> RunTarget:
        """The target with its next step, and the steps behind it whose slices can be fetched already.

        The next step was planned while the step before it was fetched. It is planned again if something came between
        them: another run has committed, a slice failed, or a broker does not answer.
        """
        known = target.ahead
        if not (known and known[0].fits(state.covered, bounds)):
            self.abandon(topic.name)
            known = (self._plan_step(topic, entry, state, bounds, target),)
        behind = replace(target, taken=target.taken + sum(step.plan.size for step in known[:-1]))
        later = steps_after(known[-1], state, bounds, behind, 1 + _STEPS_AHEAD - len(known))
        return replace(target, ahead=(*known, *later))

    def _plan_step(
        self, topic: TopicEntry, entry: LedgerEntry | None, state: TableState, bounds: AllBounds, target: RunTarget
    ) -> PlannedStep:
        """The next step of the run."""
        wanted = [offsets for offsets in self._plan(state, bounds, target.window, UNCUT).slices if offsets.size]
        sizes = self.slice_sizes(topic, wanted, entry)
        sizes = replace(sizes, run=target.remaining, step=max(_STEP_SLICES, self.cores()), cuts=target.cuts)
        return PlannedStep.of(self._plan(state, bounds, target.window, sizes), sizes, state, bounds)

    def _plan(self, state: TableState, bounds: AllBounds, window: OffsetWindow, sizes: SliceSizes) -> Plan:
        return plan_step(state, bounds, window, sizes, skip_expired=self.choices.on_expired == "skip")

    def _facts(
        self,
        topic: TopicEntry,
        table_uri: str,
        state: TableState,
        steps: Sequence[PlannedStep],
        *,
        began: datetime,
        progress: Progress,
        decoding: Decoding,
    ) -> list[SliceFacts]:
        """The facts of the first step's slices, which are fetched, and of the expired ranges that it skips.

        The other steps are those that probably come next.
        """
        step = steps[0].plan
        if step.skipped:  # the bounds of another incarnation are no reason for a gap
            check_incarnation(self.cluster, topic, [offsets.partition for offsets in step.skipped])
        skip = tuple(name for name in GAPS if getattr(self.choices, name) == "skip")
        fetch = partial(
            self.fetch_decoded,
            topic,
            table_uri,
            decoding=decoding,
            began=began,
            sizes=steps[0].sizes,
            skip=skip,
            to_message=step.to_message,
        )
        fetched = fetch(slices=step.slices, on_progress=progress, ahead=steps[1:])
        fetched = self._without_missing(fetched, state, partial(fetch, on_progress=no_progress))
        return sorted([*_expired(step, began), *fetched], key=lambda slice_facts: slice_facts.offsets)

    def _without_missing(
        self, fetched: list[SliceFacts], state: TableState, fetch: Callable[[Sequence[OffsetRange]], list[SliceFacts]]
    ) -> list[SliceFacts]:
        """The facts without slices whose offsets are missing from the log, unless the user chose to skip those offsets.

        What lies between the missing offsets and the table is fetched again, as slices of its own, so that it can be
        committed.
        """
        if self.choices.on_missing == "skip":
            return fetched
        refusal = Refusal.of(fetched, state.covered, state.topic.where)
        refetched = Refusal.of(fetch(refusal.intact), state.covered, state.topic.where)
        return [*refusal.facts, *refetched.facts]

    @staticmethod
    def _commit(table: TableStore, snapshot: TableSnapshot, change: LoadChange) -> CommitResult:
        """Commit the change, if it has slices, the topic was adopted by choice, or the event time advances."""
        if change.facts or change.state.adopted or change.times.is_due(change.state):
            return commit(table, snapshot, change)
        return CommitResult(version=snapshot.version)

    def _change(
        self,
        state: TableState,
        bounds: AllBounds,
        target: RunTarget,
        step: Plan,
        facts: Sequence[SliceFacts],
        *,
        decoding: Decoding,
        times: TimesOfLoad,
    ) -> LoadChange:
        """The commit of the facts that adjoin what is covered."""
        ready = committable(facts, state.covered)
        loaded = {slice_facts.offsets.partition for slice_facts in ready if slice_facts.offsets.size}
        # Where a slice is committed, no empty one has to record where the partition begins.
        committed = tuple(part for part in ready if part.offsets.size or part.offsets.partition not in loaded)
        partitions = {slice_facts.offsets.partition for slice_facts in committed}
        unknown = [id_ for id_ in times.partitions if id_ not in target.window.begins or id_ in step.errors]
        return LoadChange(
            state=state,
            facts=committed,
            epochs={partition: bounds[partition].epoch for partition in partitions if bounds[partition].epoch >= 0},
            start_times=target.window.start_times(unknown),
            choices=(*step.choices(state), *_missing_choices(committed), *skip_choices(committed)),
            run=self.run_id,
            columns=decoding.plan.stored if decoding.plan else NO_COLUMNS,
            schemas=decoding.schema_ids,
            key_schemas=decoding.key_schema_ids,
            times=times,
        )


def _expired(step: Plan, began: datetime) -> list[SliceFacts]:
    """The facts of offsets that expired before they were loaded, and are skipped by choice."""
    loaded_at_us = microseconds(began)
    return [
        SliceFacts(offsets=offsets, loaded_at_us=loaded_at_us, gaps={EXPIRED: offsets.size}) for offsets in step.skipped
    ]


def _missing_choices(committed: Sequence[SliceFacts]) -> Iterator[RecordedChoice]:
    """The choices by which missing offsets are skipped."""
    for slice_facts in committed:
        if slice_facts.holes:
            yield RecordedChoice.of("on_missing", "skip", slice_facts.holes)
