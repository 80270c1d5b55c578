"""Positions in a topic's logs: how a user writes them, and the offsets that they stand for."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from kafka_io.cluster.cluster import PartitionResults
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition

_AGO = re.compile(r"-(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MAX_OFFSET = 2**63 - 1
_OFFSET_DIGITS = 19
_SHOWN = 60


class NamedPosition(StrEnum):
    """The two ends of a log."""

    EARLIEST = "earliest"
    LATEST = "latest"


class TableCursor(StrEnum):
    """The position at which the topic's table ends."""

    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class TimePosition:
    """A point in time, in milliseconds since 1970."""

    ms: int


WindowEdge = NamedPosition | TimePosition
"""A position that has a meaning in every partition."""
Position = WindowEdge | int
"""A position in a log. An int is an offset; it has a meaning in a single partition only."""
OffsetsOfTime = Callable[[str, Iterable[BrokerPartition], int], PartitionResults[int]]
"""Gives the offsets of a time in the partitions of a topic: `Cluster.offsets_at` for a start, `ends_at` for an end."""
TopicPosition = Position | TableCursor
"""A position in a log, or the cursor of the topic's table."""


def parse_position(text: str, *, now: datetime) -> Position:
    """Parse `earliest`, `latest`, an offset, a time in ISO 8601 (UTC if it has no zone), or `-15m` before `now`.

    Raises:
        ValueError: the text is none of these.
    """
    if text in set(NamedPosition):
        return NamedPosition(text)
    if text.isascii() and text.isdigit() and len(text) <= _OFFSET_DIGITS and int(text) <= _MAX_OFFSET:
        return int(text)
    try:
        ago = _AGO.fullmatch(text)
        time = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}) if ago else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text[:_SHOWN]!r} is not a position in a log: give a name, an offset, a time such as 2026-01-31T12:00Z, "
            "or -15m"
        ) from None
    return TimePosition(round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000))


def parse_topic_position(text: str, *, now: datetime) -> TopicPosition:
    """Parse `committed`, or what `parse_position` takes.

    Raises:
        ValueError: the text is neither.
    """
    return TableCursor.COMMITTED if text == TableCursor.COMMITTED else parse_position(text, now=now)


def parse_partition(text: str) -> BrokerPartition:
    """Parse a partition as the command line names it.

    Raises:
        ValueError: the text does not name a partition.
    """
    try:
        return BrokerPartition.parse(text)
    except ValueError:
        raise ValueError(
            f"{text[:_SHOWN]!r} is not a partition: give a number, or <broker>-<number> for a cluster of Kafka 0.7"
        ) from None


def offsets_of(
    position: Position, topic: str, bounds: Mapping[BrokerPartition, Bounds], *, of_time: OffsetsOfTime
) -> Mapping[BrokerPartition, int | KafkaIOError]:
    """The offset of `position` in each partition of `bounds`; `of_time` gives the offsets of a time."""
    match position:
        case NamedPosition.EARLIEST:
            return {id_: bound.earliest for id_, bound in bounds.items()}
        case NamedPosition.LATEST:
            return {id_: bound.latest for id_, bound in bounds.items()}
        case TimePosition(ms):
            return of_time(topic, bounds, ms)
        case offset:
            return dict.fromkeys(bounds, offset)
