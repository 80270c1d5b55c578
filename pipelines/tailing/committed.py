"""Where the lake's tables go on."""

from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.loading.ledger import Topic
from pipelines.loading.standing import standing
from pipelines.loading.table import LakeTable
from resources.lake import Lake


def cursors(lake: Lake, cluster: str, topic: TopicEntry) -> dict[BrokerPartition, int]:
    """The next offset of each partition that the topic's table knows; none where there is no table.

    Raises:
        TopicRecreated: the table holds another incarnation of the topic.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    at = LakeTable.of(lake, cluster, topic.name).existing()
    if at is None:
        return {}
    asked = Topic(cluster=cluster, name=topic.name, incarnation=topic.incarnation)
    return {id_: cursor for id_, (_, cursor) in standing(at, asked, topic.also).covered.items()}
