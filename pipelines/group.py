"""A group of topics of one cluster, as Dagster names all that belongs to it: one asset, its jobs, its schedules."""

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg

from resources.groups import Limits
from resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """Topics of one cluster that are loaded at the same times.

    Args:
        cluster: its name in the settings.
        name: the group's name in the settings, `topics` for the rest.
        cron: when its topics are loaded.
        limits: what the checks hold its tables to.
    """

    cluster: str
    name: str
    cron: str
    limits: Limits

    @property
    def tables(self) -> dg.AssetKey:
        """The asset: a Delta table per topic."""
        return dg.AssetKey(["lake", self.cluster, self.name])

    @property
    def topics(self) -> dg.AssetKey:
        """The source: the topics themselves."""
        return dg.AssetKey(["kafka", self.cluster, self.name])

    @property
    def partitions_name(self) -> str:
        """Under which Dagster keeps the partitions."""
        return f"{self.cluster}/{self.name}"

    @property
    def partitions(self) -> dg.DynamicPartitionsDefinition:
        """A partition per topic."""
        return dg.DynamicPartitionsDefinition(name=self.partitions_name)

    @property
    def pool(self) -> str:
        """What bounds how many runs read from the cluster at once."""
        return pool_of(self.cluster)

    @property
    def in_dagster(self) -> str:
        """What Dagster calls a group of assets: all of one cluster."""
        return _plain(self.cluster)

    def named(self, what: str) -> str:
        """The name of its job, schedule or op that does `what`."""
        return f"{what}__{_plain(self.cluster)}__{_plain(self.name)}"


def groups(settings: Settings) -> Iterator[TopicGroup]:
    """The groups of all clusters."""
    for cluster in sorted(settings.clusters):
        for name in settings.groups_of(cluster):
            timing = settings.timing_of(name)
            yield TopicGroup(cluster=cluster, name=name, cron=timing.cron, limits=timing.limits)


def cluster_named(what: str, cluster: str) -> str:
    """The name of what there is once for a cluster."""
    return f"{what}__{_plain(cluster)}"


def pool_of(cluster: str) -> str:
    """The pool of the ops that read from a cluster."""
    return f"kafka_{_plain(cluster)}"


def _plain(name: str) -> str:
    """Dagster's names have no dash. The settings refuse two names that differ by one alone."""
    return name.replace("-", "_")
