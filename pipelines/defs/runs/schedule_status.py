"""The status of the topics of a schedule compared with their tables, for ticks, checks, observations and runs."""

from collections.abc import Collection

from kafka_io.cluster.cluster import Cluster
from pipelines.defs.catalog.catalog import TopicSchedule
from pipelines.status.collect import statuses_of, watched, with_refusals
from pipelines.status.status import TopicStatus, now_ms
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from resources.table_names import topic_of


def ask_schedule_status(
    penstock: PenstockResource, schedule: TopicSchedule, wanted: Collection[str]
) -> list[TopicStatus]:
    """Open the cluster of a schedule with a short timeout, and return the status of its wanted topics and tables.

    Raises:
        LocatedError: the cluster does not answer.
        SettingsError: the settings have no such cluster.
    """
    with penstock.cluster_with_short_timeout(schedule.cluster) as cluster:
        return schedule_status(penstock.settings(), cluster, schedule, wanted)


def schedule_status(
    settings: Settings, cluster: Cluster, schedule: TopicSchedule, wanted: Collection[str]
) -> list[TopicStatus]:
    """The status of those topics and tables of a schedule that the cluster or the lake has, the most urgent first.

    Args:
        settings: say which topics belong to the schedule.
        cluster: its cluster, open.
        schedule: whose topics.
        wanted: the names of the wanted topics, and of tables such as `events/orders`.

    Raises:
        LocatedError: the cluster does not answer.
    """
    tables, listing = Lake.of(settings).topics(cluster.name), cluster.topics()
    topics = {
        topic: entry
        for topic, entry in watched(listing.entries, tables, settings.rules(cluster.name)).items()
        if topic in wanted and settings.schedule_of(cluster.name, topic_of(topic)) == schedule.name
    }
    now = now_ms()
    statuses = with_refusals(statuses_of(cluster, settings, topics, now_ms=now), listing)
    return sorted(statuses, key=lambda status: status.urgency(now))
