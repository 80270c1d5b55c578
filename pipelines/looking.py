"""How the topics of a group stand beside their tables: what schedules, checks, observations and runs look at."""

from collections.abc import Collection

from pipelines.group import TopicGroup
from pipelines.watching.beside import statuses_of, watched
from pipelines.watching.status import TopicStatus, now_ms
from resources.lake import Lake
from resources.penstock import PenstockResource


def look(penstock: PenstockResource, group: TopicGroup, only: Collection[str] | None = None) -> list[TopicStatus]:
    """The group's topics that are in the cluster or have a table, or `only` some of them; the most urgent first.

    Raises:
        PlacedError: the cluster gives no answer.
        SettingsError: it is not in the settings.
    """
    settings, name = penstock.settings(), group.cluster
    with penstock.glimpse(name) as cluster:
        known = watched(cluster.topics().found, Lake.of(settings).topics(name), settings.rules(name))
        mine = {
            topic: entry
            for topic, entry in known.items()
            if settings.group_of(name, topic) == group.name and (only is None or topic in only)
        }
        now = now_ms()
        found = statuses_of(cluster, settings, mine, now_ms=now)
    return sorted(found, key=lambda one: one.urgency(now))
