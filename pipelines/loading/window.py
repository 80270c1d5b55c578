"""What part of a topic's logs a run is to load, and the offsets that it means.

Times are those of the records. Brokers before 0.10 know only when a segment of their log was last written to: there a
time means the start of the newest segment that was not written to since. That loses nothing: a window may begin with
older records, and what it leaves out before its end is the next run's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Covered, Standing
from pipelines.points import Edge, Named, Time, offsets_of, parse_point
from resources.settings import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A run loads from `since` on, and nothing from `until` on. Of what is covered there is never a hole.

    Args:
        since: where a table begins that is new; one that exists is filled in with what the brokers hold from before its
            first offsets, down to there. Without it nothing is filled in, and a new table begins as the settings say.
        until: where the run ends; the next one goes on from there. What is filled in reaches up to the table's first
            offsets all the same. Without it the run ends where the logs do when it begins.
    """

    since: Edge | None = None
    until: Edge | None = None

    @classmethod
    def parse(cls, since: str | None, until: str | None, *, now: datetime) -> Self:
        """From words as `parse_point` knows them.

        Raises:
            ValueError: one of them is none, or an offset; or nothing lies between them.
        """
        made = cls(since=_edge(since, now), until=_edge(until, now))
        if made.until is Named.EARLIEST:
            raise ValueError("nothing ends at earliest: give latest or a time")
        match made.since, made.until:
            case (Named.LATEST, Time()):
                raise ValueError(f"nothing lies between latest and {until}")
            case (Time(first), Time(last)) if last <= first:
                raise ValueError(f"nothing lies between {since} and {until}")
        return made

    def reach(
        self, cluster: Cluster, stands: Standing, bounds: Mapping[BrokerPartition, Bounds], *, start: Start
    ) -> "Reach":
        """The window in offsets, for the table as it stands beside the logs. `start` is the settings'.

        Brokers are asked for times only where these decide something: not for what is empty, or has no news.
        """
        covered, since = stands.covered, self.since
        if stands.replaced:
            since = None  # a new life is new data as a whole (B10)
        elif since is None and not covered and start == "latest":
            since = Named.LATEST
        below = {id_: one for id_, one in bounds.items() if one.earliest < _first_of(id_, one, covered)}
        filled = below if since else {}
        above = {id_: one for id_, one in bounds.items() if id_ in filled or _cursor_of(id_, one, covered) < one.latest}
        starts, unknown = _offsets(since, cluster, stands, below)
        ends, endless = _offsets(self.until, cluster, stands, above)
        failed = {**unknown, **endless}
        known = {id_: one for id_, one in bounds.items() if id_ not in failed}
        begun = {id_: one.earliest for id_, one in known.items()} if since and not covered else {}
        return Reach(
            starts={**begun, **{id_: at for id_, at in starts.items() if id_ in known}},
            ends={id_: ends.get(id_, one.latest) for id_, one in known.items()},
            failed=failed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """A window in offsets of each partition; those that `failed` could not be told, and are not to be loaded.

    A partition without a start is not filled in. Where the table is new and the window says where it begins, all have
    one.
    """

    starts: Mapping[BrokerPartition, int]
    ends: Mapping[BrokerPartition, int]
    failed: Mapping[BrokerPartition, KafkaIOError]

    def warnings(self, covered: Covered) -> Iterator[str]:
        """That more is filled in than lies in the window, as a table has no holes."""
        beyond = sorted(
            id_ for id_, start in self.starts.items() if id_ in covered and max(start, self.ends[id_]) < covered[id_][0]
        )
        if beyond:
            told = (
                f"partition {beyond[0]} up to {covered[beyond[0]][0]}, beyond the window's end {self.ends[beyond[0]]}"
            )
            others = f" (and {len(beyond) - 1} more)" if beyond[1:] else ""
            yield f"filled in to where the table begins: {told}{others}"


def _edge(text: str | None, now: datetime) -> Edge | None:
    point = None if text is None else parse_point(text, now=now)
    if point is None or isinstance(point, Edge):
        return point
    raise ValueError(f"an offset is one of a single partition, a window is of all: {text} has no meaning here")


def _first_of(id_: BrokerPartition, bound: Bounds, covered: Covered) -> int:
    """Up to where a table may be filled in: its first offset; a new one up to the log's end."""
    if id_ in covered:
        return covered[id_][0]
    return bound.earliest if covered else bound.latest  # a partition that came later is loaded as a whole (B10)


def _cursor_of(id_: BrokerPartition, bound: Bounds, covered: Covered) -> int:
    return covered[id_][1] if id_ in covered else bound.earliest


def _offsets(
    edge: Edge | None, cluster: Cluster, stands: Standing, bounds: Mapping[BrokerPartition, Bounds]
) -> tuple[dict[BrokerPartition, int], dict[BrokerPartition, KafkaIOError]]:
    """What the edge means where it can be told, and why it cannot elsewhere."""
    if edge is None or not bounds:
        return {}, {}
    sure: dict[BrokerPartition, int] = {}
    failed: dict[BrokerPartition, KafkaIOError] = {}
    for id_, told in offsets_of(edge, cluster, stands.topic.name, bounds).items():
        if isinstance(told, KafkaIOError):
            failed[id_] = told
        else:  # the logs may have moved since their bounds were told
            sure[id_] = max(bounds[id_].earliest, min(told, bounds[id_].latest))
    return sure, failed
