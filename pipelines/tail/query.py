"""The query of a tail: the topic, its partitions, start and end; and the offsets that these stand for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, LocatedError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.plan import positions
from pipelines.plan.positions import (
    NamedPosition,
    TableCursor,
    TopicPosition,
    parse_partition,
    parse_topic_position,
)
from resources.settings.settings import Settings


class TailRefused(LocatedError):
    """The query does not fit the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailQuery:
    """What to read. No partitions means all of them; without `until` the tail has no end."""

    topic: str
    since: TopicPosition = NamedPosition.LATEST
    until: TopicPosition | None = None
    partitions: frozenset[BrokerPartition] = frozenset()

    @classmethod
    def parse(cls, topic: str, since: str, until: str | None, partitions: Sequence[str] = (), *, now: datetime) -> Self:
        """Parse the arguments of the command line.

        Raises:
            ValueError: an argument cannot be parsed, or cannot be an end.
        """
        end = None if until is None else parse_topic_position(until, now=now)
        if end in {NamedPosition.EARLIEST, TableCursor.COMMITTED}:
            raise ValueError(f"{until!r} cannot be the end; give latest, an offset or a time")
        return cls(
            topic=topic,
            since=parse_topic_position(since, now=now),
            until=end,
            partitions=frozenset(map(parse_partition, partitions)),
        )


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
    return positions.offsets_of(position, topic.name, bounds, of_time=cluster.offsets_at)


def table_cursors(settings: Settings, cluster: str, topic: TopicEntry) -> dict[BrokerPartition, int]:
    """The next offset of each partition that the topic's table knows; empty if there is no table.

    Raises:
        TopicRecreated: the table holds another incarnation of the topic.
        LoadError: the table cannot be read, or was not created by Penstock.
    """
    # Imported here, because Delta is slow to import and only tails from the committed offsets need it.
    from pipelines.formats.tables import lake_table  # noqa: PLC0415
    from pipelines.identity.identity import table_state  # noqa: PLC0415
    from pipelines.ledger.ledger import TopicIdentity  # noqa: PLC0415
    from resources.stores.lake import Lake  # noqa: PLC0415

    snapshot = lake_table(Lake.of(settings), cluster, topic.name).existing()
    if snapshot is None:
        return {}
    identity = TopicIdentity(cluster=cluster, name=topic.name, incarnation=topic.incarnation)
    return {id_: cursor for id_, (_, cursor) in table_state(snapshot, identity, topic.also).covered.items()}
