"""Where a table stands beside the topic that is to be loaded into it."""

from collections.abc import Collection

from pipelines.loading.ledger import Standing, Topic
from pipelines.loading.table_log import Snapshot
from resources.errors import ClusterChanged, TopicRecreated


def standing(at: Snapshot, topic: Topic, also: Collection[str] = (), *, restart: bool = False) -> Standing:
    """Where the table stands, as this very snapshot has it.

    `also` are other incarnations that mean the same (see `TopicEntry`). With `restart` a table of a former incarnation
    covers nothing of this one yet.

    Raises:
        ClusterChanged: the table's topic is of another cluster.
        TopicRecreated: the table holds another incarnation of the topic (B05, B06).
    """
    if at.entry is None:
        return Standing(topic=topic)
    held = at.entry.topic
    if held.cluster_id and topic.cluster_id and held.cluster_id != topic.cluster_id:
        raise ClusterChanged(
            f"the table holds a topic of the cluster {held.cluster_id}, the settings lead to {topic.cluster_id}",
            topic.where,
        )
    if held.incarnation in {topic.incarnation, *also}:
        return Standing.after(at.entry)
    if restart:
        return Standing(topic=topic, replaced=held.incarnation)
    raise TopicRecreated(
        f"the table holds incarnation {held.incarnation} of the topic, the cluster has {topic.incarnation}; "
        'on_recreated = "restart" loads it beside the rows of the former',
        topic.where,
    )
