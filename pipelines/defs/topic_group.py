"""A group of topics of one cluster, and the names of its asset, jobs and schedules in Dagster."""

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg

from resources.groups import GroupLimits
from resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """Topics of one cluster that are loaded on the same schedule.

    Args:
        cluster: its name in the settings.
        name: the group's name in the settings; `topics` for all topics that no group takes.
        cron: when its topics are loaded.
        limits: the limits that the checks compare its tables with.
    """

    cluster: str
    name: str
    cron: str
    limits: GroupLimits

    @property
    def tables(self) -> dg.AssetKey:
        """The key of the asset that holds a Delta table per topic."""
        return dg.AssetKey(["lake", self.cluster, self.name])

    @property
    def topics(self) -> dg.AssetKey:
        """The key of the source asset: the Kafka topics."""
        return dg.AssetKey(["kafka", self.cluster, self.name])

    @property
    def partitions_name(self) -> str:
        """The name under which Dagster stores the group's dynamic partitions."""
        return f"{self.cluster}/{self.name}"

    @property
    def partitions(self) -> dg.DynamicPartitionsDefinition:
        """The partitions definition: one partition per topic."""
        return dg.DynamicPartitionsDefinition(name=self.partitions_name)

    @property
    def in_dagster(self) -> str:
        """Dagster's group name, which all assets of one cluster share."""
        return _without_dashes(self.cluster)

    def named(self, action: str) -> str:
        """The name of the group's job, schedule or op for an action such as `load`."""
        return f"{action}__{_without_dashes(self.cluster)}__{_without_dashes(self.name)}"


def groups(settings: Settings) -> Iterator[TopicGroup]:
    """The groups of all clusters."""
    for cluster in sorted(settings.clusters):
        for name in settings.groups_of(cluster):
            timing = settings.timing_of(name)
            yield TopicGroup(cluster=cluster, name=name, cron=timing.cron, limits=timing.limits)


def cluster_named(action: str, cluster: str) -> str:
    """The name of a definition that exists once per cluster."""
    return f"{action}__{_without_dashes(cluster)}"


def pool_of(cluster: str) -> str:
    """The pool that limits how many runs read from the cluster at once."""
    return f"kafka_{_without_dashes(cluster)}"


def _without_dashes(name: str) -> str:
    """Dagster's names cannot contain a dash. The settings refuse two names that differ only in that."""
    return name.replace("-", "_")
