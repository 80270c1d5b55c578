"""The query of a tail: the topic, its partitions, start and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from kafka_io.model import BrokerPartition
from pipelines.loading.positions import (
    NamedPosition,
    TableCursor,
    TopicPosition,
    parse_partition,
    parse_topic_position,
)


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
