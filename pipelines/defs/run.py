"""One run of a group: its config, the order in which its topics load, their results, and how the run ends."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

import dagster as dg
from pydantic import Field
from pyspark.sql import SparkSession

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import LocatedError
from pipelines.defs.group_status import group_status
from pipelines.defs.metadata import Metadata, load_metadata, log_progress
from pipelines.defs.partitions import key_of, topic_of
from pipelines.defs.topic_group import TopicGroup
from pipelines.loading.ledger import TableState
from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.window import LoadWindow
from pipelines.status.status import TopicStatus, now_ms
from resources.choices import Choices
from resources.penstock import PenstockResource
from resources.settings import Retries
from resources.spark import ui_of

SINCE_TAG, UNTIL_TAG = "penstock/since", "penstock/until"
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

    def window(self, tags: Mapping[str, str]) -> LoadWindow:
        """The part of the logs that the run loads. Where the config says nothing, the run's tags decide."""
        since, until = self.since or tags.get(SINCE_TAG), self.until or tags.get(UNTIL_TAG)
        return LoadWindow.parse(since, until, now=datetime.now(UTC))

    def choices(self) -> dict[str, str]:
        """The choices that replace those of the settings, by name."""
        return {name: value for name in Choices.model_fields if (value := getattr(self, name)) != _FROM_SETTINGS}


@dataclass(kw_only=True)
class GroupRun:
    """A run over topics of a group, and what it has done so far, by partition key.

    Args:
        context: the context of the asset's step.
        penstock: opens the cluster and starts Spark.
        group: the group.
        stack: closes the cluster at the end of the run.
        loads: the results.
        late_s: how long the oldest record without a row had waited when the run began, in seconds; None if unknown.
        after: the status of the topics after their loads, if it is known.
    """

    context: dg.AssetExecutionContext
    penstock: PenstockResource
    group: TopicGroup
    stack: ExitStack
    loads: dict[str, TopicLoad] = field(default_factory=dict)
    late_s: dict[str, float | None] = field(default_factory=dict)
    after: dict[str, TopicStatus] = field(default_factory=dict)

    @cached_property
    def cluster(self) -> Cluster:
        """The group's cluster. One connection serves the whole run: the status before, the loads, the status after."""
        return self.stack.enter_context(self.penstock.cluster(self.group.cluster))

    @property
    def errors(self) -> dict[str, str]:
        """The errors of the topics that could not be loaded completely."""
        return {key: load.error for key, load in self.loads.items() if load.error}

    def load(self, config: LoadConfig) -> None:
        """Load the run's topics; first those whose records will be lost first.

        An error that concerns the whole group, such as a cluster that does not answer, is the result of each topic.
        """
        topics: dict[str, str] = {}
        for key in self.context.partition_keys:
            try:
                topics[topic_of(key)] = key
            except ValueError as error:
                self._add(key, _failed(key, error))
        try:
            statuses = self._statuses(topics)
            began_ms = now_ms()
            loader = self._loader(config)
        except (LocatedError, ValueError) as error:
            for key in topics.values():
                self._add(key, _failed(key, error))
            return
        for topic in dict.fromkeys((*statuses, *topics)):
            status = statuses.get(topic)
            reason = self._reason_to_skip(topic, status)
            self.late_s[topics[topic]] = status.late_s(began_ms) if status else None
            self._add(topics[topic], _skipped(loader, topic, reason) if reason else loader.load(topic))

    def _statuses(self, topics: Collection[str]) -> dict[str, TopicStatus]:
        statuses = group_status(self.penstock.settings(), self.cluster, self.group, topics)
        return {status.topic: status for status in statuses}

    def _loader(self, config: LoadConfig) -> Loader:
        settings = self.penstock.settings()
        loader = Loader.of(
            settings,
            self.cluster,
            self._session,
            choices=settings.choices_of(self.group.cluster).with_overrides(config.choices()),
            window=config.window(self.context.run.tags),
            run_id=self.context.run.run_id,
            on_progress=lambda topic: log_progress(self.context.log, key_of(topic)),
        )
        if loader.new_lake:
            self.context.log.warning(loader.new_lake)
        return replace(loader, evidence=(*loader.evidence, self._materialized))

    def _materialized(self, state: TableState) -> str | None:
        """See Evidence: Dagster remembers the newest commit to the topic's table."""
        of_topic = dg.AssetRecordsFilter(asset_key=self.group.tables, asset_partitions=[key_of(state.topic.name)])
        for record in self.context.instance.fetch_materializations(of_topic, limit=1).records:
            materialization = record.asset_materialization
            version = materialization.metadata.get("table_version") if materialization else None
            if version is not None and version.value:  # version 0 is an empty table
                return (
                    f"Dagster has a materialization of this topic, with version {version.value} of its table, but the "
                    "lake has no rows of it: check `lake` in the settings"
                )
        return None

    def _session(self) -> SparkSession:
        """Start Spark when the first topic needs it, and show the address of its UI.

        The UI ends with the run (decision D13).
        """
        session = self.penstock.session()
        page = ui_of(session)
        if page:
            self.context.log.info("Spark's UI, while this run lasts: %s", page)
            self.context.add_output_metadata({"spark_ui": dg.MetadataValue.url(page)})
        return session

    def _reason_to_skip(self, topic: str, status: TopicStatus | None) -> str | None:
        """Why this run must not load a topic that is a partition of its group; None if it may. Its table stays."""
        if status is not None:
            return "the cluster no longer has the topic" if status.incarnation is None else None
        settings, cluster = self.penstock.settings(), self.group.cluster
        if not settings.rules(cluster).allows(topic):
            return "the settings no longer allow the topic"
        current_group = settings.group_of(cluster, topic)
        return None if current_group == self.group.name else f"the topic belongs to the group {current_group} now"

    def _add(self, key: str, load: TopicLoad) -> None:
        """Remember the result of one topic and write it into the run's log."""
        self.loads[key] = load
        self.context.log.info("%s: %d rows, version %s, %.1f s", key, load.rows, load.version, load.seconds)
        for warning in load.warnings:
            self.context.log.warning("%s: %s", key, warning)
        if load.error:
            self.context.log.error("%s: %s", key, load.error)
        for failure in load.failures:
            self.context.log.debug("%s: %s", key, failure.trace)

    def ask_statuses_after(self) -> None:
        """Ask for the status of the loaded topics. If it cannot be determined, the run's log says why."""
        try:
            statuses = self._statuses({load.topic for load in self.loads.values()})
        except (LocatedError, ValueError) as error:
            self.context.log.warning("the status of the topics after this run is unknown: %s", error)
            return
        self.after = {key_of(topic): status for topic, status in statuses.items()}

    def metadata(self, key: str) -> Metadata:
        """The metadata of the result of one topic."""
        return load_metadata(self.loads[key], late_before_s=self.late_s.get(key), after=self.after.get(key))

    def events(self) -> Iterator[dg.AssetMaterialization | dg.AssetObservation]:
        """The events of a step that fails: a materialization per loaded topic, an observation per failed one.

        The step yields them and does not log them: Dagster drops logged events when the step raises.
        """
        for key, load in self.loads.items():
            event = dg.AssetObservation if load.error else dg.AssetMaterialization
            yield event(asset_key=self.context.asset_key, partition=key, metadata=self.metadata(key))

    def failure(self, retries: Retries) -> Exception:
        """The exception that ends a run in which a topic failed.

        It asks Dagster for a retry if an error is temporary and attempts are left; otherwise it fails the run for good.
        """
        errors = [f"{key}: {error}" for key, error in self.errors.items()]
        summary = f"{len(errors)} of {len(self.loads)} topics were not loaded completely: {errors[0]}"
        retry_number = self.context.retry_number
        if any(load.retriable for load in self.loads.values()) and retry_number < retries.most:
            wait_s = retries.wait_s * 2**retry_number
            self.context.log.warning("%s; the next attempt starts in %.0f s", summary, wait_s)
            return dg.RetryRequested(max_retries=retries.most, seconds_to_wait=wait_s)
        return dg.Failure(summary, metadata={"errors": dg.MetadataValue.json(errors)}, allow_retries=False)


def _skipped(loader: Loader, topic: str, reason: str) -> TopicLoad:
    return TopicLoad(topic=topic, table=loader.tables(topic).uri, warnings=(f"not loaded: {reason}",))


def _failed(key: str, error: Exception) -> TopicLoad:
    is_temporary = isinstance(error, LocatedError) and error.retriable
    return TopicLoad(topic=key, table="", error=f"{type(error).__name__}: {error}", retriable=is_temporary)
