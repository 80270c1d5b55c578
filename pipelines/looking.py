"""How the topics of a group stand beside their tables: what schedules, checks, observations and runs look at."""

import time
from collections.abc import Collection
from datetime import timedelta

from pipelines.group import TopicGroup
from pipelines.loading.table import LakeTable
from pipelines.watching.beside import statuses, watched
from pipelines.watching.status import TopicStatus
from resources.penstock import PenstockResource


def now_ms() -> int:
    """The time, in ms since 1970."""
    return time.time_ns() // 1_000_000


def look(penstock: PenstockResource, group: TopicGroup, only: Collection[str] | None = None) -> list[TopicStatus]:
    """The group's topics that are in the cluster or have a table, or `only` some of them; the most urgent first.

    Raises:
        PlacedError: the cluster gives no answer.
        SettingsError: it is not in the settings.
    """
    settings, lake, name = penstock.settings(), penstock.lake(), group.cluster
    with penstock.glimpse(name) as cluster:
        hours = settings.clusters[name].retention_hours
        known = watched(cluster.topics().found, lake.topics(name), settings.rules(name))
        mine = {
            topic: entry
            for topic, entry in known.items()
            if settings.group_of(name, topic) == group.name and (only is None or topic in only)
        }
        now = now_ms()
        found = statuses(
            cluster,
            lambda topic: LakeTable.of(lake, name, topic),
            mine,
            now_ms=now,
            fallback=None if hours is None else timedelta(hours=hours),
            choices=settings.choices_of(name),
        )
    return sorted(found, key=lambda one: one.urgency(now))
