"""Where a tail begins and ends: any point of the logs, or where the lake's table goes on."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError, OffsetOutOfRange, PlacedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines import points

_OUT_OF_RANGE = 1  # the code with which a broker would refuse to read there


class TailRefused(PlacedError):
    """What was asked for does not fit the topic."""


class Cursor(StrEnum):
    """The point that the lake has: the cursor of the topic's table."""

    COMMITTED = "committed"


Point = points.Point | Cursor
Cursors = Callable[[TopicEntry], Mapping[BrokerPartition, int]]
"""Where the lake's table of a topic goes on, as far as it knows its partitions."""


def parse_point(text: str, *, now: datetime) -> Point:
    """`committed`, or what `pipelines.points` knows.

    Raises:
        ValueError: it is none of these.
    """
    return Cursor.COMMITTED if text == Cursor.COMMITTED else points.parse_point(text, now=now)


def offsets_of(
    point: Point, cluster: Cluster, topic: TopicEntry, bounds: Mapping[BrokerPartition, Bounds], *, cursors: Cursors
) -> Mapping[BrokerPartition, int | KafkaIOError]:
    """The offset that `point` means in each of the partitions whose bounds are given.

    Raises:
        PlacedError: the lake's table cannot be read, or is of another life of the topic.
    """
    if isinstance(point, Cursor):
        known = cursors(topic)
        return {id_: known.get(id_, bound.earliest) for id_, bound in bounds.items()}
    return points.offsets_of(point, cluster, topic.name, bounds)


def check_held(offset: int, bounds: Bounds, where: Where) -> None:
    """Whether the broker has what reading from there needs.

    Raises:
        OffsetOutOfRange: it has not.
    """
    if not bounds.earliest <= offset <= bounds.latest:
        raise OffsetOutOfRange(
            f"the broker holds [{bounds.earliest}, {bounds.latest}), which offset {offset} is out of",
            where,
            _OUT_OF_RANGE,
        )
