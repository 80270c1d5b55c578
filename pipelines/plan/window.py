"""The part of a topic's logs that a run loads, as the user writes it and as offsets.

Times are those of the records. Brokers before 0.10 only know when a segment of their log was last written to: there a
window begins and ends with whole segments. It may have records from outside of the interval, but it has all records
of the interval.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition
from pipelines.ledger.ledger import Coverage, StartTimes, TableState
from pipelines.plan.positions import (
    NamedPosition,
    OffsetsOfTime,
    TimePosition,
    WindowEdge,
    offsets_of,
    parse_position,
)
from resources.settings.settings import Start

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

    @property
    def has_time(self) -> bool:
        """Whether the user gave a time as an edge of the window."""
        return isinstance(self.since, TimePosition) or isinstance(self.until, TimePosition)

    @classmethod
    def parse(cls, since: str | None, until: str | None, *, now: datetime) -> Self:
        """Parse the texts that `parse_position` takes.

        Raises:
            ValueError: a text is not a position or is an offset; or nothing is between the two.
        """
        window = cls(since=_parse_edge(since, now), until=_parse_edge(until, now))
        if window.until is NamedPosition.EARLIEST:
            raise ValueError("nothing ends at earliest: give latest or a time")
        if isinstance(window.since, TimePosition) and window.since.ms > now.timestamp() * 1000:
            raise ValueError(
                f"{since} is in the future, so no record is there to load; latest begins at the next record"
            )
        match window.since, window.until:
            case (NamedPosition.LATEST, TimePosition()):
                raise ValueError(f"nothing is between latest and {until}")
            case (TimePosition(first), TimePosition(last)) if last <= first:
                raise ValueError(f"nothing is between {since} and {until}")
        return window

    def in_offsets(
        self, cluster: Cluster, state: TableState, bounds: AllBounds, *, start: Start, now_ms: int
    ) -> "OffsetWindow":
        """The window in offsets of each partition, for a table in this state. `start` is the setting for new tables.

        Brokers are asked for the offset of a time only if the answer matters: not for partitions that have nothing to
        load.
        """
        since = self._since(state, start)
        below = {id_: bound for id_, bound in bounds.items() if bound.earliest < _backfill_end(id_, bound, state)}
        backfilled = below if since else {}
        above = {
            id_: bound
            for id_, bound in bounds.items()
            if id_ in backfilled or max(state.cursor(id_) or 0, bound.earliest) < bound.latest
        }
        starts, start_errors = _offsets(since, cluster.offsets_at, state, below)
        chosen, chosen_errors = _chosen_starts(cluster, state, bounds)
        ends, end_errors = _offsets(self.until, cluster.ends_at, state, above)
        errors = {**start_errors, **chosen_errors, **end_errors}
        # A partition whose time could not be asked gets no end, and without an end it gets no slice in any step. If the
        # table begins now, the user's start is stored for it (fault P02).
        known = {id_: bound for id_, bound in bounds.items() if id_ not in errors}
        return OffsetWindow(
            starts={id_: offset for id_, offset in starts.items() if id_ in known and id_ in state.covered},
            begins={
                id_: first_offset(state, bound, chosen.get(id_), starts.get(id_))
                for id_, bound in known.items()
                if id_ not in state.covered
            },
            begins_ms=None if state.begun else _time_of(since, now_ms),
            ends={id_: ends.get(id_, bound.latest) for id_, bound in known.items()},
            errors=errors,
        )

    def _since(self, state: TableState, start: Start) -> WindowEdge | None:
        """The start of the window; None if it says nothing about partitions that have a cursor."""
        if state.findings.replaced:
            return None  # all of a recreated topic is new (fault B10)
        if self.since is None and not state.begun and start == "latest":
            return NamedPosition.LATEST
        return self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWindow:
    """A window in offsets of each partition. Partitions with an error have no offsets, and are not loaded.

    Args:
        starts: where backfills begin; a partition without a start is not backfilled.
        begins: the first offset of each partition that the table does not cover.
        begins_ms: the time, in ms since 1970, that stands for the user's choice of where a new table begins; None if it
            begins at the earliest offsets, or has begun.
        ends: where the run ends.
        errors: the partitions whose offsets could not be found.
    """

    starts: Mapping[BrokerPartition, int] = field(default_factory=dict)
    begins: Mapping[BrokerPartition, int] = field(default_factory=dict)
    begins_ms: int | None = None
    ends: Mapping[BrokerPartition, int]
    errors: Mapping[BrokerPartition, KafkaIOError] = field(default_factory=dict)

    def without(self, partitions: Collection[BrokerPartition]) -> Self:
        """The window of the other partitions."""
        return replace(self, ends={id_: end for id_, end in self.ends.items() if id_ not in partitions})

    def start_times(self, unknown: Iterable[BrokerPartition]) -> StartTimes:
        """The times at which partitions begin whose first offset is unknown while their table begins (fault P02)."""
        return {} if self.begins_ms is None else dict.fromkeys(unknown, self.begins_ms)

    def warnings(self, covered: Coverage) -> Iterator[str]:
        """Warnings for partitions where the load fetches more than the requested window.

        A table has no holes: offsets between the window and the table's first offset are loaded as well.
        """
        partitions_past_end = sorted(
            id_ for id_, start in self.starts.items() if id_ in covered and max(start, self.ends[id_]) < covered[id_][0]
        )
        if partitions_past_end:
            first = partitions_past_end[0]
            and_more = f" (and {len(partitions_past_end) - 1} more)" if partitions_past_end[1:] else ""
            yield (
                f"the backfill reaches up to the table's first offset: partition {first} up to {covered[first][0]}, "
                f"beyond the window's end {self.ends[first]}{and_more}"
            )


def _parse_edge(text: str | None, now: datetime) -> WindowEdge | None:
    position = None if text is None else parse_position(text, now=now)
    if position is None or isinstance(position, WindowEdge):
        return position
    raise ValueError(f"{text}: an offset belongs to a single partition, but a window applies to all; give a time")


def first_offset(state: TableState, bound: Bounds, chosen: int | None, since: int | None) -> int:
    """The first offset of a partition that the table does not cover (faults P01, P02).

    A table that has begun takes a later partition from offset 0, so that expired records are noticed. `chosen` is
    the offset of the start that the user chose for a partition that could not be asked then. `since` is the start of
    the window.
    """
    if not state.begun:
        return bound.earliest if since is None else since
    # Not the earliest offset of the log: then records that expired before the first load would be missing without a
    # word (fault P01).
    begin = chosen or 0
    return begin if since is None else min(begin, since)


def _backfill_end(partition: BrokerPartition, bound: Bounds, state: TableState) -> int:
    """The end of a backfill: the table's first offset, or the log's end if the partition may begin anywhere."""
    if partition in state.covered:
        return state.covered[partition][0]
    # A partition that came later is loaded as a whole (fault B10).
    return bound.earliest if state.cursor(partition) is not None else bound.latest


def _time_of(since: WindowEdge | None, now_ms: int) -> int | None:
    match since:
        case NamedPosition.LATEST:
            return now_ms
        case TimePosition(ms):
            return ms
    return None


_ANY_TIME = TimePosition(0)


def _chosen_starts(
    cluster: Cluster, state: TableState, bounds: AllBounds
) -> tuple[dict[BrokerPartition, int], dict[BrokerPartition, KafkaIOError]]:
    """The first offsets of partitions that could not be asked when the table began, and the errors of others.

    A partition is left out if its records from the chosen time on may have expired: it then begins at offset 0.
    """
    chosen: dict[BrokerPartition, int] = {}
    errors: dict[BrokerPartition, KafkaIOError] = {}
    waiting = {
        id_: bound for id_, bound in bounds.items() if id_ in state.start_times and bound.earliest < bound.latest
    }
    for time_ms in sorted({state.start_times[id_] for id_ in waiting}):
        of_time = {id_: bound for id_, bound in waiting.items() if state.start_times[id_] == time_ms}
        offsets, of_errors = _offsets(TimePosition(time_ms), cluster.offsets_at, state, of_time)
        errors.update(of_errors)
        # The logs may lose records while they are asked for the time. So only an older record that is found after the
        # answer shows that no newer one has expired. The first offset of the log does not show it, because compaction
        # may have removed its record.
        oldest, of_errors = _offsets(_ANY_TIME, cluster.offsets_at, state, {id_: waiting[id_] for id_ in offsets})
        errors.update(of_errors)
        chosen.update((id_, offsets[id_]) for id_ in oldest if oldest[id_] < offsets[id_])
    return chosen, errors


def _offsets(
    edge: WindowEdge | None, of_time: OffsetsOfTime, state: TableState, bounds: AllBounds
) -> tuple[dict[BrokerPartition, int], dict[BrokerPartition, KafkaIOError]]:
    """The offset of the edge in each partition, and the error where it is not known."""
    if edge is None or not bounds:
        return {}, {}
    offsets: dict[BrokerPartition, int] = {}
    errors: dict[BrokerPartition, KafkaIOError] = {}
    for partition, answer in offsets_of(edge, state.topic.kafka_topic, bounds, of_time=of_time).items():
        if isinstance(answer, KafkaIOError):
            errors[partition] = answer
        else:  # the log may have changed since its bounds were read
            offsets[partition] = max(bounds[partition].earliest, min(answer, bounds[partition].latest))
    return offsets, errors
