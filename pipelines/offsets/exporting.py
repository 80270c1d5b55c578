"""The cursors of tables, for other tools."""

from collections.abc import Iterable

from kafka_io.client.cluster import Cluster
from kafka_io.client.offsets import Storage, group_offsets
from kafka_io.model import BrokerPartition
from pipelines.loading.table import LakeTable
from pipelines.offsets.portable import Cursor
from resources.errors import TableMissing


def cursors_of(table: LakeTable, cluster: str, topic: str) -> list[Cursor]:
    """The cursors of a topic's table, in order of partitions; none before its first load.

    Raises:
        TableMissing: there is none.
        LoadError: it cannot be read.
    """
    at = table.existing()
    if at is None:
        raise TableMissing(f"there is no table {table.uri}", table.where)
    covered = at.entry.covered if at.entry else {}
    return [Cursor(cluster=cluster, topic=topic, id=id_, offset=end) for id_, (_, end) in sorted(covered.items())]


def write_cursors(cluster: Cluster, group: str, cursors: Iterable[Cursor], storage: Storage | None = None) -> None:
    """Commit the cursors as those of a group.

    Raises:
        KafkaIOError: see GroupOffsets.commit.
    """
    offsets: dict[str, dict[BrokerPartition, int]] = {}
    for one in cursors:
        offsets.setdefault(one.topic, {})[one.id] = one.offset
    group_offsets(cluster, storage).commit(group, offsets)
