"""One run of a schedule: its config, the order in which its topics load, their results, and how the run ends."""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg
from pydantic import Field

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import LocatedError
from pipelines.defs.catalog.catalog import TopicSchedule
from pipelines.defs.catalog.known_topics import ATTEMPT, TopicStorage, Waiting
from pipelines.defs.catalog.metadata import Metadata, load_metadata, log_progress, table_metadata
from pipelines.defs.catalog.table_facts import TableFacts, table_facts
from pipelines.defs.runs.run_tags import ATTEMPT_TAG
from pipelines.defs.runs.schedule_status import schedule_status
from pipelines.ledger.ledger import TableState
from pipelines.load.load import Loader
from pipelines.load.load_topics import TopicLoads
from pipelines.plan.window import LoadWindow
from pipelines.reports.last_error import LastErrors
from pipelines.reports.outcome import TopicLoad
from pipelines.status.status import TopicStatus, now_ms
from resources.explanations.codes import code_of, coded
from resources.machines.spark import ui_of
from resources.penstock import PenstockResource
from resources.settings.choices import Choices
from resources.table_names import route_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINCE_TAG, UNTIL_TAG = "penstock/since", "penstock/until"
FAILING = "failing"
"""The metadata of a failed run that says since when each topic fails, and with which kinds of errors. A topic that
another run tries again is not in it."""
_POLL_S = 2.0
_FROM_SETTINGS = "settings"
"""The value of a choice in the run config that keeps the choice of the settings."""


def _choice_field(name: str) -> Any:
    """A field of the run config that can replace a setting of Choices."""
    meaning = Choices.model_fields[name].description
    return Field(default=_FROM_SETTINGS, description=f"{_FROM_SETTINGS}: keep the value of the settings. {meaning}")


class LoadConfig(dg.Config):
    """What this run loads, and how. By default it continues at each table's cursor, up to the newest records."""

    # No default is None: the launchpad would not show its field.
    since: str = Field(
        default="",
        description="Also load older records that the brokers still hold from before a table's first offsets, back to "
        "this point: earliest, a time (2026-01-31T12:00Z), or a duration before now (-2h, -7d). A new table starts "
        f"there. The run tag {SINCE_TAG} has the same meaning.",
    )
    until: str = Field(
        default="",
        description="Load nothing from this point on; the next run continues there. The run tag "
        f"{UNTIL_TAG} has the same meaning.",
    )
    on_expired: Literal["settings", "fail", "skip"] = _choice_field("on_expired")
    on_missing: Literal["settings", "fail", "skip"] = _choice_field("on_missing")
    on_truncated: Literal["settings", "fail", "rewind"] = _choice_field("on_truncated")
    on_recreated: Literal["settings", "fail", "restart", "adopt"] = _choice_field("on_recreated")
    on_cluster_changed: Literal["settings", "fail", "adopt"] = _choice_field("on_cluster_changed")
    on_vanished: Literal["settings", "fail", "wait"] = _choice_field("on_vanished")
    on_corrupt: Literal["settings", "fail", "skip"] = _choice_field("on_corrupt")
    on_too_large: Literal["settings", "fail", "skip"] = _choice_field("on_too_large")
    on_schema_changed: Literal["settings", "fail", "adopt"] = _choice_field("on_schema_changed")

    def window(self, tags: Mapping[str, str]) -> LoadWindow:
        """The part of the logs that the run loads. Where the config says nothing, the run's tags decide."""
        since, until = self.since or tags.get(SINCE_TAG), self.until or tags.get(UNTIL_TAG)
        return LoadWindow.parse(since, until, now=datetime.now(UTC))

    def choices(self) -> dict[str, str]:
        """The choices that replace those of the settings, by name."""
        return {name: value for name in Choices.model_fields if (value := getattr(self, name)) != _FROM_SETTINGS}


@dataclass(kw_only=True)
class ScheduleRun:
    """A run over topics of a schedule, and what it has done so far, by topic.

    Args:
        context: the context of the step.
        penstock: opens the cluster and starts Spark.
        schedule: has the topics.
        stack: closes the cluster at the end of the run.
        loads: the results.
        before: the status of the topics when the run began, as far as it is known.
        after: the status of their tables after the loads, if it is known.
        spark_page: the address of Spark's UI, if Spark was started.
    """

    context: dg.AssetExecutionContext
    penstock: PenstockResource
    schedule: TopicSchedule
    stack: ExitStack
    loads: dict[str, TopicLoad] = field(default_factory=dict)
    before: dict[str, TopicStatus] = field(default_factory=dict)
    after: dict[str, TopicStatus] = field(default_factory=dict)
    began_ms: int = field(default_factory=now_ms)
    spark_page: str | None = None

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster of the schedule. One connection serves the statuses before and after, and the loads."""
        return self.stack.enter_context(self.penstock.cluster(self.schedule.cluster))

    @property
    def failed(self) -> dict[str, TopicLoad]:
        """The loads of the topics that could not be loaded completely."""
        return {topic: load for topic, load in self.loads.items() if load.error}

    def load(self, config: LoadConfig, topics: Collection[str]) -> None:
        """Load topics, several at a time; those whose records will be lost first begin first.

        An error that concerns the whole schedule, such as a cluster that does not answer, is the result of each topic.
        """
        try:
            self.before = self._statuses(topics)
            topic_loads = TopicLoads(self.cluster)
            loader = self._loader(config, topic_loads)
        except (LocatedError, ValueError) as error:
            for topic in topics:
                self._add(topic, _failed(topic, error))
            return
        ordered = list(dict.fromkeys((*self.before, *topics)))
        reasons = {topic: self._reason_to_skip(topic, self.before.get(topic)) for topic in ordered}
        wanted = [topic for topic in ordered if not reasons[topic]]
        for topic, reason in reasons.items():
            if reason:
                self._add(topic, _skipped(loader, topic, reason))
        topic_loads.load(loader, wanted, on_end=lambda load: self._add(load.topic, load))
        self.loads = {topic: self.loads[topic] for topic in ordered}

    def _statuses(self, topics: Collection[str]) -> dict[str, TopicStatus]:
        statuses = schedule_status(self.penstock.settings(), self.cluster, self.schedule, topics)
        return {status.topic: status for status in statuses}

    def _loader(self, config: LoadConfig, topic_loads: TopicLoads) -> Loader:
        settings = self.penstock.settings()
        loader = Loader.of(
            settings,
            topic_loads.cluster,
            topic_loads.called_here(self._session),
            choices=settings.choices_of(self.schedule.cluster).with_overrides(config.choices()),
            window=config.window(self.context.run.tags),
            run_id=self.context.run.run_id,
            on_progress=lambda topic: log_progress(self.context.log, topic),
        )
        for sentence in filter(None, (*settings.warnings, loader.new_lake)):
            self.context.log.warning(sentence)
        return replace(loader, evidence=(*loader.evidence, self._materialized))

    def _materialized(self, state: TableState) -> str | None:
        """Evidence: Dagster remembers the newest commit to the topic's table."""
        key = self.schedule.key(state.topic.name)
        event = self.context.instance.get_latest_materialization_event(key)
        materialization = event.asset_materialization if event else None
        version = materialization.metadata.get("table_version") if materialization else None
        if version is not None and version.value:  # version 0 is an empty table
            return (
                f"Dagster has a materialization of this topic, with version {version.value} of its table, but the "
                "lake has no rows of it: check `lake` in the settings"
            )
        return None

    def _session(self) -> "SparkSession":
        """Start Spark when the first topic needs it, and keep the address of its UI, which ends with the run."""
        session = self.penstock.session()
        page = ui_of(session)
        if page and page != self.spark_page:
            self.spark_page = page
            self.context.log.info("Spark's UI, while this run lasts: %s", page)
        return session

    def _reason_to_skip(self, topic: str, status: TopicStatus | None) -> str | None:
        """Why this run must not load a topic that belongs to its schedule; None if it may. The topic's table stays."""
        if status is not None:
            return "the cluster no longer has the topic" if status.incarnation is None else None
        settings, cluster = self.penstock.settings(), self.schedule.cluster
        if not settings.rules(cluster).allows(topic):
            return "the settings no longer allow the topic"
        current = settings.schedule_of(cluster, topic)
        return None if current == self.schedule.name else f"the topic belongs to the schedule {current} now"

    def _add(self, topic: str, load: TopicLoad) -> None:
        """Remember the result of one topic and write it into the run's log."""
        self.loads[topic] = load
        for own in load.of_tables:
            self.context.log.info("%s: %d rows, version %s, %.1f s", own.topic, own.rows, own.version, own.seconds)
            for warning in own.warnings:
                self.context.log.warning("%s: %s", own.topic, warning)
        if load.error:
            self.context.log.error("%s: %s", topic, load.error)
        for failure in load.failures:
            self.context.log.debug("%s: %s", topic, failure.trace)

    def ask_statuses_after(self) -> None:
        """Ask for the status of the loaded tables. If it cannot be determined, the run's log says why."""
        try:
            self.after = self._statuses({own.topic for load in self.loads.values() for own in load.of_tables})
        except (LocatedError, ValueError) as error:
            self.context.log.warning("the status of the topics after this run is unknown: %s", error)

    def facts(self, table: str) -> TableFacts | None:
        """The facts about the table of this name as it is now; None if it cannot be read."""
        try:
            options = self.penstock.settings().options_of(table)
            samples, personal = options.catalog.sample_rows, options.format.personal
            return table_facts(self.penstock.lake(), self.schedule.cluster, table, samples, personal)
        except LocatedError as error:
            self.context.log.warning("%s: the table cannot be described: %s", table, error)
            return None

    def metadata(self, load: TopicLoad) -> Metadata:
        """The metadata of what a load did to one table. What is about its topic is with the topic's own table."""
        if route_of(load.topic):
            return table_metadata(load)
        before = self.before.get(load.topic)
        late_s = before.late_s(self.began_ms) if before else None
        # Small loads do not use Spark, also in a run that has started it.
        with_spark = self.spark_page if load.rows else None
        return load_metadata(load, late_before_s=late_s, after=self.after.get(load.topic), spark_page=with_spark)

    def failure(self) -> Exception:
        """The exception that ends a run in which a topic failed.

        It asks Dagster for a retry if an error is temporary and attempts are left; otherwise it fails the run for good.
        The run waits before the retry only as long as no other run waits for its place (fault E26).
        """
        retries = self.schedule.catalog.settings.retries
        errors = {topic: str(load.error) for topic, load in self.failed.items()}
        first, sentence = next(iter(errors.items()))
        summary = f"{len(errors)} of {len(self.loads)} topics were not loaded completely: {first}: {sentence}"
        temporary = [topic for topic, load in self.failed.items() if load.retriable]
        attempt = self.context.retry_number + int(self.context.run.tags.get(ATTEMPT_TAG, 0))
        left: Sequence[str] = ()
        if temporary and attempt < retries.most:
            wait_s = retries.wait_s * 2**attempt
            self.context.log.warning("%s; the next attempt starts in %.0f s", summary, wait_s)
            if self._can_wait(wait_s):
                return dg.RetryRequested(max_retries=retries.most, seconds_to_wait=0)
            left = temporary
            self._leave(left, attempt + 1)
            summary += "; other runs wait for the place of this one, so a run of its own tries again"
        failing = self._failing([topic for topic in self.failed if topic not in left])
        metadata = {"errors": dg.MetadataValue.json(errors), FAILING: dg.MetadataValue.json(failing)}
        return dg.Failure(summary, metadata=metadata, allow_retries=False)

    def _can_wait(self, wait_s: float) -> bool:
        """Wait, and return whether no other run is in the queue of Dagster. With one, return at once."""
        queued, end = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]), time.monotonic() + wait_s
        while not self.context.instance.get_runs_count(queued):
            left_s = end - time.monotonic()
            if left_s <= 0:
                return True
            time.sleep(min(left_s, _POLL_S))
        return False

    def _leave(self, topics: Sequence[str], attempt: int) -> None:
        """Leave topics to a run that the sensor of new topics requests."""
        catalog = self.schedule.catalog
        storage = TopicStorage(instance=self.context.instance, prefix=catalog.name, cluster=self.schedule.cluster)
        since, run_id = f"{ATTEMPT}{attempt}", self.context.run.run_id
        storage.wait([str(Waiting(since=since, run_id=run_id, topic=topic)) for topic in topics])

    def _failing(self, topics: Sequence[str]) -> dict[str, Any]:
        """Since when failed topics fail, and with which kinds of errors. 0 means that nobody knows since when."""
        try:
            last_errors = LastErrors(self.penstock.lake(), self.schedule.cluster).read()
        except LocatedError:
            last_errors = {}
        return {
            f"{self.schedule.cluster}/{topic}": {
                "since_ms": last_errors[topic].since_ms if topic in last_errors and self.loads[topic].failures else 0,
                "kinds": sorted({failure.kind for failure in self.loads[topic].failures}),
            }
            for topic in topics
        }


def _skipped(loader: Loader, topic: str, reason: str) -> TopicLoad:
    return TopicLoad(topic=topic, table=loader.run.tables.of(topic).uri, warnings=(f"not loaded: {reason}",))


def _failed(topic: str, error: Exception) -> TopicLoad:
    is_temporary = isinstance(error, LocatedError) and error.retriable
    return TopicLoad(topic=topic, table="", error=_described(error), retriable=is_temporary)


def _described(error: Exception) -> str:
    return coded(f"{type(error).__name__}: {error}", code_of(type(error)))
