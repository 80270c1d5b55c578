"""Where the lake's tables go on."""

from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.loading import ledger
from resources.lake import Lake


def cursors(lake: Lake, cluster: str, topic: TopicEntry) -> dict[BrokerPartition, int]:
    """The next offset of each partition that the topic's table knows; none where there is no table.

    Raises:
        TopicRecreated: the table holds another incarnation of the topic.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    table = lake.open(lake.table_uri(cluster, topic.name))
    if table is None:
        return {}
    asked = ledger.Topic(cluster=cluster, name=topic.name, incarnation=topic.incarnation)
    covered = ledger.standing(lake, table, asked, topic.also).covered
    return {id_: cursor for id_, (_, cursor) in covered.items()}
