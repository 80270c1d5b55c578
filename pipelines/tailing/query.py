"""What a tail is asked to show."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from kafka_io.model import BrokerPartition
from pipelines.points import Named
from pipelines.tailing.points import Cursor, Point, parse_point


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to show: of these partitions, or all; on and on without `until`."""

    topic: str
    since: Point = Named.LATEST
    until: Point | None = None
    partitions: frozenset[BrokerPartition] = frozenset()

    @classmethod
    def parse(cls, topic: str, since: str, until: str | None, partitions: Sequence[str] = (), *, now: datetime) -> Self:
        """From the words of a command line.

        Raises:
            ValueError: one of them has no meaning there.
        """
        end = None if until is None else parse_point(until, now=now)
        if end in {Named.EARLIEST, Cursor.COMMITTED}:
            raise ValueError(f"nothing ends at {until}: give latest, an offset or a time")
        return cls(
            topic=topic,
            since=parse_point(since, now=now),
            until=end,
            partitions=frozenset(map(parse_partition, partitions)),
        )


def parse_partition(text: str) -> BrokerPartition:
    """A partition as a command line names it.

    Raises:
        ValueError: it is none.
    """
    try:
        return BrokerPartition.parse(text)
    except ValueError:
        raise ValueError(f"{text!r} is no partition: give a number, or <broker>-<number> of a cluster of 0.7") from None
