"""Loads one topic, in steps of five stages: discovered, reconciled, planned, fetched, committed.

This is the only entry point for the command line and for Dagster. Each stage is a value that the next one receives
(see the files of these names), and `Loader` adds what happened to the record of the run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import LocatedError, Where
from kafka_io.model import BrokerPartition
from pipelines.fetch.slice_fetcher import microseconds
from pipelines.identity.earlier_loads import Evidence, FormerName, MirroredOffsets
from pipelines.ledger.failure import SliceFailure
from pipelines.load.committed import Committed, commit_step
from pipelines.load.discovered import Discovery
from pipelines.load.fetched import fetch
from pipelines.load.first_answers import FirstAnswers
from pipelines.load.planned import plan_next
from pipelines.load.reconciled import reconcile
from pipelines.load.run import ALL_NEW, Run
from pipelines.plan.plan import RunTarget
from pipelines.plan.window import LoadWindow
from pipelines.reports.last_error import LastError
from pipelines.reports.outcome import RunRecord, TopicLoad
from pipelines.reports.run_reports import OnProgress, Reports, RunReports
from pipelines.routes.router import MAIN_ROUTE
from pipelines.table.table_store import TableStore
from resources.errors import TopicUnknown
from resources.failpoints import failpoint
from resources.settings.choices import Choices
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from resources.stores.lake_marker import use_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEW_LAKE = "the lake {lake} is new: it has no table, so every topic begins a new one"
_NO_REPORTS = Reports()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Loads topics of one cluster in one run.

    Args:
        run: what the run loads with.
        reports: what the run tells others.
        evidence: functions that can show that a topic without a table was loaded before.
        first_answers: what brokers said about many topics at the beginning of the run; None if each load asks itself.
        new_lake: a warning if this run is the first one that uses the lake; empty otherwise.
    """

    run: Run
    reports: Reports = _NO_REPORTS
    evidence: tuple[Evidence, ...] = ()
    first_answers: FirstAnswers | None = None
    new_lake: str = ""

    @classmethod
    def of(
        cls,
        settings: Settings,
        cluster: Cluster,
        spark: Callable[[], "SparkSession"],
        *,
        choices: Choices | None = None,
        window: LoadWindow = ALL_NEW,
        run_id: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Self:
        """A loader with the values of the settings; `choices` take the place of those in the settings.

        Raises:
            LoadError: the lake's store does not answer, or cannot hold commits (fault P13).
        """
        lake = Lake.of(settings)
        marker, mirror_group = use_lake(lake), settings.clusters[cluster.name].mirror_group
        return cls(
            run=Run.of(settings, cluster, lake, spark, choices=choices, window=window, run_id=run_id),
            reports=RunReports.of(settings, cluster, lake, on_progress),
            evidence=(FormerName(lake, settings.clusters), MirroredOffsets(cluster, mirror_group)),
            new_lake=NEW_LAKE.format(lake=lake.root) if marker.is_new else "",
        )

    def load(self, name: str) -> TopicLoad:
        """Load what is new of topic `name`. An error is in the result; only interruptions are raised.

        What the brokers hold at the beginning is loaded in steps, each with its own commit. After an interruption the
        next run continues from the last commit, and other runs of the topic can commit between the steps. A partition
        that fails is left out of the later steps (fault N07).
        """
        run, table = self.run, self.run.tables.of(name)
        began = run.now()
        record = RunRecord(topic=name, table=table.uri)
        records = {MAIN_ROUTE: record}
        record.warnings += self.reports.started(name, run.id)
        try:
            self._load_steps(table, records)
        except Exception as error:  # noqa: BLE001 - whatever fails belongs to this topic, and others are loaded
            record.failures += [SliceFailure.of(error, Where(cluster=run.cluster.name, topic=name))]
        finally:
            run.fetcher.runner.abandon(name)
        now_ms = microseconds(run.now()) // 1000
        record.warnings += self.reports.held_back(name, record.bounds, now_ms)
        self._report_failures(record)
        seconds = (run.now() - began).total_seconds()
        load, *others = (records[route].outcome(seconds=seconds) for route in sorted(records))
        load = replace(load, tables=tuple(others))
        return replace(load, warnings=(*load.warnings, *self.reports.ended(load)))

    def _load_steps(self, table: TableStore, records: dict[str, RunRecord]) -> None:
        """Load all steps of the run, and add each to the records, which are those of the tables by their routes."""
        discovery = Discovery(run=self.run, table=table, evidence=self.evidence)
        topic = records[MAIN_ROUTE].topic
        first = self.first_answers.of(topic) if self.first_answers else None
        discovered, target = discovery.of(topic, first=first), None
        while True:
            reconciled = reconcile(self.run, discovered)
            for own in reconciled.tables:
                state = own.state if own.route else reconciled.state
                record = records.setdefault(own.route, RunRecord(topic=state.topic.name, table=own.table.uri))
                record.begin_step(discovered.wanted, reconciled.known_bounds, state)
            # Rows may have been taken back already, so this is said also if a later stage fails (fault Y11).
            records[MAIN_ROUTE].warnings += [*discovered.warnings, *reconciled.warnings]
            planned = plan_next(self.run, reconciled, target)
            failpoint("planned")
            decoded = {route: record.decoded for route, record in records.items()}
            fetched = fetch(self.run, planned, self.reports.progress(topic), decoded)
            committed = commit_step(self.run, fetched)
            target = self._add(committed, records)
            if target.reached:
                return
            discovered = discovery.of(topic, after=discovered.tables, wanted=target.window.ends)

    def _add(self, committed: Committed, records: Mapping[str, RunRecord]) -> RunTarget:
        """Add a step to the records of the run, and copy the cursors; returns what is left for the next steps."""
        fetched, record = committed.fetched, records[MAIN_ROUTE]
        planned = fetched.planned
        reconciled = planned.reconciled
        errors: dict[BrokerPartition, LocatedError] = {}
        for stage in (reconciled.discovered, reconciled, planned, fetched, committed):
            errors |= stage.errors
        for stage in (planned, fetched, committed):
            record.warnings += stage.warnings
        record.failures += [SliceFailure.of(error, reconciled.state.topic.where) for error in errors.values()]
        record.failures += fetched.failures
        cursors = {partition: cursor for partition, (_, cursor) in committed.covered.items()}
        record.warnings += self.reports.committed(record.topic, cursors)
        failpoint("mirrored")
        for own in committed.tables:
            covered = own.covered if own.table.route else committed.covered
            records[own.table.route].add(own.result.committed, covered)
            records[own.table.route].version = own.result.version
        return committed.next_target(errors.keys() | fetched.failed)

    def _report_failures(self, record: RunRecord) -> None:
        """Report why the load failed, or that it did not. A topic that does not exist has no status."""
        if any(failure.kind == TopicUnknown.__name__ for failure in record.failures):
            return
        time_ms = microseconds(self.run.now()) // 1000
        error = LastError.of(record.failures, run=self.run.id, time_ms=time_ms) if record.failures else None
        record.warnings += self.reports.failed(record.topic, error)
