"""Points of a topic's logs: as they are written, and the offsets that they mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition

_AGO = re.compile(r"-(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LARGEST_OFFSET = 2**63 - 1


class Named(StrEnum):
    """Points that have a name."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Time:
    """A point in time, in milliseconds since 1970."""

    ms: int


Edge = Named | Time
"""A point that all partitions have."""
Point = Edge | int
"""The int is an offset, which is of one partition."""


def parse_point(text: str, *, now: datetime) -> Point:
    """`earliest`, `latest`, an offset, a time in ISO 8601 (UTC if it has no zone), or `-15m` before `now`.

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
    point: Point, cluster: Cluster, topic: str, bounds: Mapping[BrokerPartition, Bounds]
) -> Mapping[BrokerPartition, int | KafkaIOError]:
    """The offset that `point` means in each of the partitions whose bounds are given; for times see Cluster."""
    match point:
        case Named.EARLIEST:
            return {id_: bound.earliest for id_, bound in bounds.items()}
        case Named.LATEST:
            return {id_: bound.latest for id_, bound in bounds.items()}
        case Time(ms):
            return cluster.offsets_at(topic, bounds, ms)
        case offset:
            return dict.fromkeys(bounds, offset)
