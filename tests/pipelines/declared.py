"""Dagster's side as tests see it: a resource with fixed topics, ticks and runs without a daemon."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from kafka_io.errors import RegistryUnavailable, Where
from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.definitions import defs
from pipelines.partitions import NAME, run_tags
from pipelines.sensors import new_topics
from resources.penstock import PenstockResource
from resources.settings import ClusterSettings, Settings

_TABLE = dg.AssetKey("topic_table")
_CHECK = dg.AssetSelection.checks(dg.AssetCheckKey(_TABLE, "offsets_covered"))
ALL = dg.Definitions.merge(
    defs,
    dg.Definitions(
        jobs=[
            dg.define_asset_job("check_alone", selection=_CHECK),
            dg.define_asset_job(
                "retrying", selection=dg.AssetSelection.assets(_TABLE), op_retry_policy=dg.RetryPolicy(max_retries=2)
            ),
        ]
    ),
)
"""Ours, and two jobs that users may have: the check by itself, and a load with a retry policy."""


class FixedTopics(PenstockResource):
    """Clusters whose registries say what the test says."""

    clusters: dict[str, list[str]]
    incarnation: str = "1"
    silent: list[str] = Field(default_factory=list)
    pending: list[str] = Field(default_factory=list)

    def settings(self) -> Settings:
        """Just the clusters."""
        return Settings(lake="/nowhere", clusters=dict.fromkeys(self.clusters, ClusterSettings(zookeeper="unused")))

    def topics(self, name: str) -> list[TopicEntry]:
        """The topics of a cluster, if it is not silent."""
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


def tick(instance: dg.DagsterInstance, penstock: PenstockResource) -> Any:
    """One evaluation of the sensor, as the daemon asks for it. Nothing of its answer is done."""
    with dg.build_sensor_context(instance=instance, definitions=defs, resources={"penstock": penstock}) as context:
        return new_topics.evaluate_tick(context)


def added(tick_data: Any) -> list[str]:
    """The partitions that a tick asks to add."""
    return [key for request in tick_data.dynamic_partitions_requests or [] for key in request.partition_keys]


def run(instance: dg.DagsterInstance, keys: Sequence[str], *, job: str = "load_topics") -> dg.ExecuteInProcessResult:
    """One run of a job over `keys`, which become partitions if they are not."""
    instance.add_dynamic_partitions(NAME, list(keys))
    resolved = ALL.resolve_job_def(job)
    return resolved.execute_in_process(instance=instance, tags=run_tags(list(keys)), raise_on_error=False)


def loaded(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The values of the metadata of what a run materialized, by partition key."""
    found = [event.materialization for event in result.get_asset_materialization_events()]
    return {str(one.partition): {name: value.value for name, value in one.metadata.items()} for one in found}


def observed(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """The values of the metadata of what a run observed of topics it could not load, by partition key."""
    events = [event for event in result.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    found = [event.asset_observation_data.asset_observation for event in events]
    return {str(one.partition): {name: value.value for name, value in one.metadata.items()} for one in found}


def failure(result: dg.ExecuteInProcessResult) -> Any:
    """What the asset's failed step says of itself: description and metadata."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data
