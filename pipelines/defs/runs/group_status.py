"""The status of a group's topics compared with their tables, for schedules, checks, observations and runs."""

from collections.abc import Collection

from kafka_io.cluster.cluster import Cluster
from pipelines.defs.catalog.catalog import TopicGroup
from pipelines.status.collect import statuses_of, watched
from pipelines.status.status import TopicStatus, now_ms
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from resources.stores.lake import Lake


def ask_group_status(penstock: PenstockResource, group: TopicGroup) -> list[TopicStatus]:
    """Open the group's cluster with a short timeout, and return the status of the known topics of the group.

    Raises:
        LocatedError: the cluster does not answer.
        SettingsError: the settings have no such cluster.
    """
    with penstock.cluster_with_short_timeout(group.cluster) as cluster:
        return group_status(penstock.settings(), cluster, group, group.specs)


def group_status(
    settings: Settings, cluster: Cluster, group: TopicGroup, only: Collection[str] | None = None
) -> list[TopicStatus]:
    """The status of the group's topics that the cluster or the lake has, the most urgent first.

    Args:
        settings: say which topics belong to the group.
        cluster: the group's cluster, open.
        group: whose topics.
        only: the names of the wanted topics; None means all.

    Raises:
        LocatedError: the cluster does not answer.
    """
    tables = Lake.of(settings).topics(cluster.name)
    topics = {
        topic: entry
        for topic, entry in watched(cluster.topics().entries, tables, settings.rules(cluster.name)).items()
        if settings.group_of(cluster.name, topic) == group.name and (only is None or topic in only)
    }
    now = now_ms()
    return sorted(statuses_of(cluster, settings, topics, now_ms=now), key=lambda status: status.urgency(now))
