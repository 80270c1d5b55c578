"""A resource with fixed topics, and ticks and runs without a daemon, for the tests of the Dagster definitions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field

from kafka_io.errors import RegistryUnavailable, Where
from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.defs.build import build_definitions
from pipelines.defs.partitions import key_of, run_tags
from pipelines.defs.topic_group import TopicGroup, groups
from resources.groups import TopicGroupSettings
from resources.penstock import PenstockResource
from resources.settings import ClusterSettings, Retries, Settings

CLUSTERS = {"main": ClusterSettings(zookeeper="unused")}
SETTINGS = Settings(lake="/nowhere", clusters=CLUSTERS, retries=Retries(most=2, wait_s=0.1))
"""One cluster, one group. Runs read the settings file that the environment names."""
(GROUP,) = groups(SETTINGS)
DEFS = build_definitions(SETTINGS)
ALL = dg.Definitions.merge(
    DEFS,
    dg.Definitions(
        jobs=[
            dg.define_asset_job(
                "retrying",
                selection=dg.AssetSelection.assets(GROUP.tables).without_checks(),
                op_retry_policy=dg.RetryPolicy(max_retries=2),
            )
        ]
    ),
)
"""The definitions of Penstock, and a job that a user may add: a load with a retry policy."""


class FixedTopics(PenstockResource):
    """A resource whose clusters have the topics that the test gives."""

    clusters: dict[str, list[str]]
    incarnation: str = "1"
    silent: list[str] = Field(default_factory=list)
    pending: list[str] = Field(default_factory=list)
    grouped: dict[str, str] = Field(default_factory=dict)
    later: list[str] = Field(default_factory=list)
    """Topics of the cluster `main` that appear while a tick waits."""
    per_tick: int = 500
    per_run: int = 50

    def settings(self) -> Settings:
        """Settings with the clusters and groups of the test."""
        return Settings(
            lake="/nowhere",
            clusters=dict.fromkeys(self.clusters, ClusterSettings(zookeeper="unused")),
            groups={name: TopicGroupSettings(topics=(pattern,)) for name, pattern in self.grouped.items()},
            new_topics_per_tick=self.per_tick,
            topics_per_run=self.per_run,
        )

    def topics(self, name: str) -> list[TopicEntry]:
        """The topics of a cluster. A silent cluster raises an error."""
        if name in self.silent:
            raise RegistryUnavailable("no ZooKeeper answers", Where(cluster=name))
        return [
            TopicEntry(
                name=topic,
                incarnation=self.incarnation,
                partitions=() if topic in self.pending else (BrokerPartition(0, 0),),
            )
            for topic in self.clusters[name]
        ]

    @contextmanager
    def topic_changes(self, name: str) -> Iterator[Callable[[float], bool]]:
        """A wait that ends at once. The topics of `later` appear during it."""

        def changed(_: float) -> bool:
            self.clusters[name].extend(self.later)
            return bool(self.later)

        yield changed


def tick(
    instance: dg.DagsterInstance, penstock: PenstockResource, cursor: str | None = None, *, cluster: str = "main"
) -> Any:
    """Evaluate the sensor once, as the daemon does. Its requests are not executed."""
    defs = build_definitions(penstock.settings(), penstock)
    with dg.build_sensor_context(
        instance=instance, definitions=defs, cursor=cursor, resources={"penstock": penstock}
    ) as context:
        return defs.resolve_sensor_def(f"new_topics__{cluster}").evaluate_tick(context)


def added(tick_data: Any) -> list[str]:
    """The partitions that a tick requests to add."""
    return [key for request in tick_data.dynamic_partitions_requests or [] for key in request.partition_keys]


def accept(instance: dg.DagsterInstance, tick_data: Any) -> None:
    """Add the partitions that a tick requests, as the daemon does before it starts runs."""
    for request in tick_data.dynamic_partitions_requests or []:
        instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))


def know(instance: dg.DagsterInstance, *topics: str, group: TopicGroup = GROUP) -> list[str]:
    """Add topics as partitions of a group, and return their keys."""
    keys = [key_of(topic) for topic in topics]
    instance.add_dynamic_partitions(group.partitions_name, keys)
    return keys


def run(
    instance: dg.DagsterInstance, keys: Sequence[str], *, job: str = "load__main__topics", **tags: str
) -> dg.ExecuteInProcessResult:
    """Run a job over `keys`, which become partitions if they are not yet."""
    instance.add_dynamic_partitions(GROUP.partitions_name, list(keys))
    resolved = ALL.resolve_job_def(job)
    all_tags = {**run_tags(list(keys)), **{f"penstock/{name}": value for name, value in tags.items()}}
    return resolved.execute_in_process(instance=instance, tags=all_tags, raise_on_error=False)


def loaded(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The metadata values of the materializations of a run, by partition key."""
    outcomes = [event.materialization for event in result.get_asset_materialization_events()]
    return {
        str(outcome.partition): {name: value.value for name, value in outcome.metadata.items()} for outcome in outcomes
    }


def observed(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The metadata values of the observations of a run (topics that it could not load), by partition key."""
    events = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    outcomes = [event.asset_observation_data.asset_observation for event in events]
    return {
        str(outcome.partition): {name: value.value for name, value in outcome.metadata.items()} for outcome in outcomes
    }


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """The failure of the asset's step: description and metadata."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data
