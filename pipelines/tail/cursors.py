"""The offsets where a tail begins and ends: positions in the logs, or the cursors of the topic's table."""

from collections.abc import Callable, Mapping

from kafka_io.cluster.cluster import Cluster
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import KafkaIOError, LocatedError, OffsetOutOfRange, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading import positions
from pipelines.loading.positions import TableCursor, TopicPosition
from resources.settings import Settings


class TailRefused(LocatedError):
    """The query does not fit the topic."""


TailCursors = Callable[[TopicEntry], Mapping[BrokerPartition, int]]
"""A function that returns the cursors of a topic's table, for the partitions that the table knows."""


def offsets_of(
    position: TopicPosition,
    cluster: Cluster,
    topic: TopicEntry,
    bounds: Mapping[BrokerPartition, Bounds],
    *,
    cursors: TailCursors,
) -> Mapping[BrokerPartition, int | KafkaIOError]:
    """The offset that `position` means in each of the partitions whose bounds are given.

    Raises:
        LocatedError: the topic's table cannot be read, or holds another incarnation of the topic.
    """
    if isinstance(position, TableCursor):
        table_cursors = cursors(topic)
        return {id_: table_cursors.get(id_, bound.earliest) for id_, bound in bounds.items()}
    return positions.offsets_of(position, cluster, topic.name, bounds)


def check_held(offset: int, bounds: Bounds, where: Where) -> None:
    """Check that the log can be read from this offset.

    Raises:
        OffsetOutOfRange: the offset is outside the log.
    """
    if not bounds.earliest <= offset <= bounds.latest:
        raise OffsetOutOfRange(
            f"offset {offset} is outside the broker's log, which is [{bounds.earliest}, {bounds.latest})",
            where,
            ErrorCode.OFFSET_OUT_OF_RANGE,
        )


def table_cursors(settings: Settings, cluster: str, topic: TopicEntry) -> dict[BrokerPartition, int]:
    """The next offset of each partition that the topic's table knows; empty if there is no table.

    Raises:
        TopicRecreated: the table holds another incarnation of the topic.
        LoadError: the table cannot be read, or was not created by Penstock.
    """
    # Imported here, because Delta is slow to import and only tails from the committed offsets need it.
    from pipelines.loading.ledger import TopicIdentity  # noqa: PLC0415
    from pipelines.loading.table import LakeTable  # noqa: PLC0415
    from pipelines.loading.table_log import table_state  # noqa: PLC0415
    from resources.lake import Lake  # noqa: PLC0415

    snapshot = LakeTable.of(Lake.of(settings), cluster, topic.name).existing()
    if snapshot is None:
        return {}
    identity = TopicIdentity(cluster=cluster, name=topic.name, incarnation=topic.incarnation)
    return {id_: cursor for id_, (_, cursor) in table_state(snapshot, identity, topic.also).covered.items()}
