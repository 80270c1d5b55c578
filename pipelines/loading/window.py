"""The part of a topic's logs that a run loads, as the user writes it and as offsets.

Times are those of the records. Brokers before 0.10 only know when a segment of their log was last written to: there a
window begins and ends with whole segments. It may have records from outside of the interval, but it has all records
of the interval.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Coverage, TableState, cursor_of
from pipelines.loading.positions import (
    NamedPosition,
    OffsetsOfTime,
    TimePosition,
    WindowEdge,
    offsets_of,
    parse_position,
)
from resources.settings import Start

AllBounds = Mapping[BrokerPartition, Bounds]
"""The bounds of a topic's partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWindow:
    """A run loads what is between `since` and `until`, without leaving a hole in what the table covers.

    Args:
        since: where a new table begins. A table that exists is backfilled: it loads what the brokers hold between
            `since` and the table's first offsets. If None, nothing is backfilled, and a new table begins as the
            settings say.
        until: where the run ends; the next run continues there. A backfill reaches up to the table's first offsets
            even if these are later. If None, the run ends where the logs end when it begins.
    """

    since: WindowEdge | None = None
    until: WindowEdge | None = None

    @classmethod
    def parse(cls, since: str | None, until: str | None, *, now: datetime) -> Self:
        """Parse the texts that `parse_position` takes.

        Raises:
            ValueError: a text is not a position or is an offset; or nothing is between the two.
        """
        window = cls(since=_parse_edge(since, now), until=_parse_edge(until, now))
        if window.until is NamedPosition.EARLIEST:
            raise ValueError("nothing ends at earliest: give latest or a time")
        match window.since, window.until:
            case (NamedPosition.LATEST, TimePosition()):
                raise ValueError(f"nothing is between latest and {until}")
            case (TimePosition(first), TimePosition(last)) if last <= first:
                raise ValueError(f"nothing is between {since} and {until}")
        return window

    def in_offsets(self, cluster: Cluster, state: TableState, bounds: AllBounds, *, start: Start) -> "OffsetWindow":
        """The window in offsets of each partition, for a table in this state. `start` is the setting for new tables.

        Brokers are asked for the offset of a time only if the answer matters: not for partitions that have nothing to
        load.
        """
        covered, since = state.covered, self.since
        if state.replaced:
            since = None  # all of a recreated topic is new (fault B10)
        elif since is None and not covered and start == "latest":
            since = NamedPosition.LATEST
        below = {id_: bound for id_, bound in bounds.items() if bound.earliest < _backfill_end(id_, bound, covered)}
        backfilled = below if since else {}
        above = {
            id_: bound
            for id_, bound in bounds.items()
            if id_ in backfilled or cursor_of(covered, id_, bound) < bound.latest
        }
        starts, start_errors = _offsets(since, cluster.offsets_at, state, below)
        ends, end_errors = _offsets(self.until, cluster.ends_at, state, above)
        errors = {**start_errors, **end_errors}
        known = {id_: bound for id_, bound in bounds.items() if id_ not in errors}
        first_starts = {id_: bound.earliest for id_, bound in known.items()} if since and not covered else {}
        return OffsetWindow(
            starts={**first_starts, **{id_: offset for id_, offset in starts.items() if id_ in known}},
            ends={id_: ends.get(id_, bound.latest) for id_, bound in known.items()},
            errors=errors,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWindow:
    """A window in offsets of each partition. Partitions with an error have no offsets, and are not loaded.

    A partition without a start is not backfilled. If the table is new and the window says where it begins, every
    partition has a start.
    """

    starts: Mapping[BrokerPartition, int] = field(default_factory=dict)
    ends: Mapping[BrokerPartition, int]
    errors: Mapping[BrokerPartition, KafkaIOError] = field(default_factory=dict)

    def warnings(self, covered: Coverage) -> Iterator[str]:
        """Warnings for partitions where the load fetches more than the requested window.

        A table has no holes: offsets between the window and the table's first offset are loaded as well.
        """
        beyond = sorted(
            id_ for id_, start in self.starts.items() if id_ in covered and max(start, self.ends[id_]) < covered[id_][0]
        )
        if beyond:
            first = beyond[0]
            others = f" (and {len(beyond) - 1} more)" if beyond[1:] else ""
            yield (
                f"the backfill reaches up to the table's first offset: partition {first} up to {covered[first][0]}, "
                f"beyond the window's end {self.ends[first]}{others}"
            )


def _parse_edge(text: str | None, now: datetime) -> WindowEdge | None:
    position = None if text is None else parse_position(text, now=now)
    if position is None or isinstance(position, WindowEdge):
        return position
    raise ValueError(f"{text}: an offset belongs to a single partition, but a window applies to all; give a time")


def _backfill_end(partition: BrokerPartition, bound: Bounds, covered: Coverage) -> int:
    """The end of a backfill: the table's first offset, or the log's end for a new table."""
    if partition in covered:
        return covered[partition][0]
    return bound.earliest if covered else bound.latest  # a partition that came later is loaded as a whole (fault B10)


def _offsets(
    edge: WindowEdge | None, of_time: OffsetsOfTime, state: TableState, bounds: AllBounds
) -> tuple[dict[BrokerPartition, int], dict[BrokerPartition, KafkaIOError]]:
    """The offset of the edge in each partition, and the error where it is not known."""
    if edge is None or not bounds:
        return {}, {}
    offsets: dict[BrokerPartition, int] = {}
    errors: dict[BrokerPartition, KafkaIOError] = {}
    for partition, answer in offsets_of(edge, state.topic.name, bounds, of_time=of_time).items():
        if isinstance(answer, KafkaIOError):
            errors[partition] = answer
        else:  # the log may have changed since its bounds were read
            offsets[partition] = max(bounds[partition].earliest, min(answer, bounds[partition].latest))
    return offsets, errors
