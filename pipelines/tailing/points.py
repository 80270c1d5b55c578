"""Where a tail begins and ends: as it is written, and the offsets that it means."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError, OffsetOutOfRange, PlacedError, Where
from kafka_io.model import Bounds, BrokerPartition, TopicEntry

_AGO = re.compile(r"-(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_OUT_OF_RANGE = 1  # the code with which a broker would refuse to read there
_LARGEST_OFFSET = 2**63 - 1


class TailRefused(PlacedError):
    """What was asked for does not fit the topic."""


class Named(StrEnum):
    """Points that have a name; the committed one is the cursor of the topic's table in the lake."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class Time:
    """A point in time, in milliseconds since 1970."""

    ms: int


Point = Named | Time | int
"""The int is an offset."""
Cursors = Callable[[TopicEntry], Mapping[BrokerPartition, int]]
"""Where the lake's table of a topic goes on, as far as it knows its partitions."""


def parse_point(text: str, *, now: datetime) -> Point:
    """`earliest`, `latest`, `committed`, an offset, a time in ISO 8601 (UTC if it has no zone), or `-15m` before `now`.

    Raises:
        ValueError: it is none of these.
    """
    if text in set(Named):
        return Named(text)
    if text.isascii() and text.isdigit() and int(text) <= _LARGEST_OFFSET:
        return int(text)
    try:
        ago = _AGO.fullmatch(text)
        when = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}) if ago else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no point of a log: give a name, an offset, a time such as 2026-01-31T12:00Z, or -15m"
        ) from None
    return Time(round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000))


def offsets_of(
    point: Point, cluster: Cluster, topic: TopicEntry, bounds: Mapping[BrokerPartition, Bounds], *, cursors: Cursors
) -> Mapping[BrokerPartition, int | KafkaIOError]:
    """The offset that `point` means in each of the partitions whose bounds are given.

    Raises:
        PlacedError: the lake's table cannot be read, or is of another life of the topic.
    """
    match point:
        case Named.EARLIEST:
            return {id_: bound.earliest for id_, bound in bounds.items()}
        case Named.LATEST:
            return {id_: bound.latest for id_, bound in bounds.items()}
        case Named.COMMITTED:
            known = cursors(topic)
            return {id_: known.get(id_, bound.earliest) for id_, bound in bounds.items()}
        case Time(ms):
            return cluster.offsets_at(topic.name, bounds, ms)
        case offset:
            return dict.fromkeys(bounds, offset)


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
