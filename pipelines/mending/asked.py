"""What a replay is asked for, and the intervals of offsets that it means."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self, TypeVar

from kafka_io.client.cluster import Cluster
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Standing
from pipelines.loading.pieces import Interval
from pipelines.mending.rows import LiveRows
from pipelines.points import Named, Time
from pipelines.tailing.points import Cursor, Point, parse_point
from pipelines.tailing.query import parse_partition
from resources.errors import ReplayRefused

T = TypeVar("T")
OnCompacted = Literal["fail", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to fetch again: of these partitions, or of all, what lies between two points.

    `earliest` is where the table begins, `latest` and `committed` are where it ends. `on_compacted` says what becomes
    of rows that a log from 0.8 on no longer has in the interval, as compaction took them: to fetch it again and not to
    have them would lose them.
    """

    topic: str
    since: Point
    until: Point
    partitions: frozenset[BrokerPartition] = frozenset()
    on_compacted: OnCompacted = "fail"

    @classmethod
    def parse(
        cls,
        topic: str,
        since: str,
        until: str,
        partitions: Sequence[str] = (),
        *,
        on_compacted: OnCompacted = "fail",
        now: datetime,
    ) -> Self:
        """From the words of a command line.

        Raises:
            ValueError: one of them has no meaning there.
        """
        made = cls(
            topic=topic,
            since=parse_point(since, now=now),
            until=parse_point(until, now=now),
            partitions=frozenset(map(parse_partition, partitions)),
            on_compacted=on_compacted,
        )
        if any(isinstance(point, int) for point in (made.since, made.until)) and len(made.partitions) != 1:
            raise ValueError("an offset is one of a single partition: name it")
        if not _may_lie_between(made.since, made.until):
            raise ValueError(f"nothing lies between {since} and {until}")
        return made


def _may_lie_between(since: Point, until: Point) -> bool:
    match since, until:
        case (Named.LATEST | Cursor.COMMITTED, _) | (_, Named.EARLIEST):
            return False
        case (Time(first), Time(last)) | (int(first), int(last)):
            return first < last
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What points are looked up in: the table, whose rows of a partition `rows` tells, and the brokers' logs."""

    cluster: Cluster
    standing: Standing
    bounds: Mapping[BrokerPartition, Bounds]
    rows: Callable[[BrokerPartition], LiveRows]

    def intervals(self, asked: Asked) -> list[Interval]:
        """What is asked for, of each partition that has some; every one is covered, and held by its broker in full.

        Times and names mean no more than what is covered. In 0.7 an interval has whole messages: a point inside one
        takes all of it, and times are those of segments, which are taken whole.

        Raises:
            ReplayRefused: an offset is not covered, or brokers do not hold it all; nothing has changed.
            KafkaIOError: a broker does not answer.
        """
        starts, stops = self._offsets(asked.since, self._first), self._offsets(asked.until, self._last)
        found = []
        for id_ in sorted(self.bounds):
            start, stop = starts[id_], stops[id_]
            if id_.broker is not None and start < stop:
                start, stop = self.rows(id_).start_before(start), self.rows(id_).start_after(stop)
            if start < stop:
                one = Interval(id=id_, start=start, stop=stop)
                self._check_held(one)
                found.append(one)
        return found

    def _offsets(
        self, point: Point, of_time: Callable[[BrokerPartition, int, int], int]
    ) -> Mapping[BrokerPartition, int]:
        covered = {id_: self.standing.covered[id_] for id_ in self.bounds}
        match point:
            case Named.EARLIEST:
                return {id_: start for id_, (start, _) in covered.items()}
            case Named.LATEST | Cursor.COMMITTED:
                return {id_: cursor for id_, (_, cursor) in covered.items()}
            case Time(ms):
                told = self.cluster.offsets_at(self.standing.topic.name, covered, ms)
                return {
                    id_: min(max(of_time(id_, _sure(told[id_]), ms), start), cursor)
                    for id_, (start, cursor) in covered.items()
                }
            case offset:
                for id_, (start, cursor) in covered.items():
                    if not start <= offset <= cursor:
                        told_range = f"the table covers [{start}, {cursor}), which offset {offset} is out of"
                        raise ReplayRefused(told_range, self._place(id_))
                return dict.fromkeys(covered, offset)

    def _first(self, id_: BrokerPartition, told: int, time_ms: int) -> int:
        """Where a time begins. A broker tells of what it holds; of what it no longer does the table's rows tell."""
        earliest = self.bounds[id_].earliest
        if told > earliest:
            return told
        older = self.rows(id_).first_since(time_ms, below=earliest)
        return told if older is None else older

    def _last(self, id_: BrokerPartition, told: int, time_ms: int) -> int:
        """Where a time ends; in 0.7, which tells where the segment of that time begins, where that ends."""
        del time_ms
        if id_.broker is None:
            return told
        return min((cut for cut in self.bounds[id_].cuts if cut > told), default=self.bounds[id_].latest)

    def _check_held(self, one: Interval) -> None:
        bounds = self.bounds[one.id]
        if one.start < bounds.earliest:
            gone, why = (one.start, min(one.stop, bounds.earliest)), f"the log begins at {bounds.earliest}"
        elif bounds.latest < one.stop:
            gone, why = (max(one.start, bounds.latest), one.stop), f"the log ends at {bounds.latest}"
        else:
            return
        raise ReplayRefused(f"the brokers no longer hold offsets [{gone[0]}, {gone[1]}): {why}", self._place(one.id))

    def _place(self, id_: BrokerPartition) -> Where:
        return self.standing.topic.where.within(Where(partition=str(id_)))


def bounds_of(
    cluster: Cluster, standing: Standing, chosen: Collection[BrokerPartition]
) -> dict[BrokerPartition, Bounds]:
    """What the brokers hold of the partitions that were chosen, or of all that the table covers.

    Raises:
        ReplayRefused: the table has nothing of one.
        KafkaIOError: a broker does not answer.
    """
    for id_ in sorted(set(chosen) - standing.covered.keys()):
        raise ReplayRefused("the table covers nothing of it", standing.topic.where.within(Where(partition=str(id_))))
    answers = cluster.bounds(standing.topic.name, sorted(chosen or standing.covered))
    return {id_: _sure(answer) for id_, answer in answers.items()}


def _sure(answer: T | KafkaIOError) -> T:
    if isinstance(answer, KafkaIOError):
        raise answer
    return answer
