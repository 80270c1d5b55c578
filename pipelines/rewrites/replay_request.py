"""The request for a replay, and the offset ranges that it means."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self, TypeVar

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.comparison.table_rows import LiveRows
from pipelines.identity.truncation import truncations
from pipelines.ledger.ledger import TableState
from pipelines.plan.positions import (
    NamedPosition,
    OffsetsOfTime,
    TableCursor,
    TimePosition,
    TopicPosition,
    parse_partition,
    parse_topic_position,
)
from resources.errors import ReplayRefused

T = TypeVar("T")
OnCompacted = Literal["fail", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """The offsets to fetch again: those between two positions.

    Args:
        topic: the topic.
        since: where to begin; `earliest` is where the table begins.
        until: where to end; `latest` and `committed` are where the table ends.
        partitions: only these partitions; empty for all.
        on_compacted: what happens to rows that compaction has removed from a log from 0.8 on: the replay fails, or it
            drops them from the table too.
    """

    topic: str
    since: TopicPosition
    until: TopicPosition
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
        """Parse the texts of a command line.

        Raises:
            ValueError: a text has no meaning in a replay.
        """
        request = cls(
            topic=topic,
            since=parse_topic_position(since, now=now),
            until=parse_topic_position(until, now=now),
            partitions=frozenset(map(parse_partition, partitions)),
            on_compacted=on_compacted,
        )
        if any(isinstance(edge, int) for edge in (request.since, request.until)) and len(request.partitions) != 1:
            raise ValueError("an offset belongs to a single partition: name the partition")
        if _is_empty(request.since, request.until):
            raise ValueError(f"nothing is between {since} and {until}")
        return request


def _is_empty(since: TopicPosition, until: TopicPosition) -> bool:
    """Whether the positions show, before any broker is asked, that no offset is between them."""
    match since, until:
        case (NamedPosition.LATEST | TableCursor.COMMITTED, _) | (_, NamedPosition.EARLIEST):
            return True
        case (TimePosition(first), TimePosition(last)) | (int(first), int(last)):
            return first >= last
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResolver:
    """Finds the offset ranges of a replay request, from the table and from the brokers' logs.

    Args:
        cluster: the brokers.
        state: the table's state.
        bounds: what the brokers hold of the requested partitions.
        truncated: the partitions whose log was truncated and written again, with the first offset that differs.
        rows: gives the table's rows of a partition.
    """

    cluster: Cluster
    state: TableState
    bounds: Mapping[BrokerPartition, Bounds]
    truncated: Mapping[BrokerPartition, int]
    rows: Callable[[BrokerPartition], LiveRows]

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        state: TableState,
        requested: Collection[BrokerPartition],
        rows: Callable[[BrokerPartition], LiveRows],
    ) -> Self:
        """The resolver for the requested partitions; without any, for all partitions that the table covers.

        Raises:
            ReplayRefused: the table does not cover a requested partition.
            KafkaIOError: a broker does not answer.
        """
        for partition in sorted(set(requested) - state.covered.keys()):
            where = state.topic.where.within(Where(partition=str(partition)))
            raise ReplayRefused("the table holds nothing of this partition; load the topic first", where)
        answers = cluster.bounds(state.topic.kafka_topic, sorted(requested or state.covered))
        bounds = {partition: _value(answer) for partition, answer in answers.items()}
        for partition in state.with_older_leader(bounds):
            raise ReplayRefused(
                f"the broker has leader epoch {bounds[partition].epoch}, but the table was loaded from epoch "
                f"{state.epochs[partition]}: load the topic first",
                state.topic.where.within(Where(partition=str(partition))),
            )
        # Where a leader does not know the epoch, the last message shows whether the log is the same; see `same_logs`.
        ends = truncations(cluster, state, bounds)
        truncated = {partition: epoch.end for partition, epoch in ends.items() if epoch.end is not None}
        return cls(cluster=cluster, state=state, bounds=bounds, truncated=truncated, rows=rows)

    @property
    def epochs(self) -> Mapping[BrokerPartition, int]:
        """The leader epochs of the bounds."""
        return {partition: bound.epoch for partition, bound in self.bounds.items()}

    @property
    def same_logs(self) -> Mapping[BrokerPartition, Bounds]:
        """The bounds of the logs that still have the table's last messages, as far as it is known."""
        return {partition: bound for partition, bound in self.bounds.items() if partition not in self.truncated}

    def ranges(self, request: ReplayRequest) -> list[OffsetRange]:
        """The requested offsets of each partition; empty ranges are left out.

        The table covers every range, and its broker holds all of it. Times and names select only what is covered. In
        0.7 a range consists of whole messages: it includes all of a message that an offset points into. There a time
        selects whole segments.

        Raises:
            ReplayRefused: an offset is not covered, or the brokers do not hold all of a range, or hold other records
                there, because the log was truncated and written again. Nothing has changed.
            KafkaIOError: a broker does not answer.
        """
        starts = self._offsets(request.since, self.cluster.offsets_at, self._start)
        stops = self._offsets(request.until, self.cluster.ends_at, lambda _partition, offset, _time_ms: offset)
        ranges = []
        for partition in sorted(self.bounds):
            start, stop = starts[partition], stops[partition]
            if partition.broker is not None and start < stop:
                start, stop = self.rows(partition).start_before(start), self.rows(partition).start_after(stop)
            if start < stop:
                offsets = OffsetRange(partition, start, stop)
                self._check_retained(offsets)
                end = self.truncated.get(partition, stop)
                if end < stop:
                    raise ReplayRefused(
                        f"the log was truncated at {end} and written again: load the topic first",
                        self._where(partition),
                    )
                ranges.append(offsets)
        return ranges

    def _offsets(
        self,
        position: TopicPosition,
        of_time: OffsetsOfTime,
        corrected: Callable[[BrokerPartition, int, int], int],
    ) -> Mapping[BrokerPartition, int]:
        """The offset of `position` in each partition. `of_time` asks for a time, `corrected` corrects the answer."""
        covered = {partition: self.state.covered[partition] for partition in self.bounds}
        match position:
            case NamedPosition.EARLIEST:
                return {partition: start for partition, (start, _) in covered.items()}
            case NamedPosition.LATEST | TableCursor.COMMITTED:
                return {partition: cursor for partition, (_, cursor) in covered.items()}
            case TimePosition(ms):
                answers = of_time(self.state.topic.kafka_topic, covered, ms)
                return {
                    partition: min(max(corrected(partition, _value(answers[partition]), ms), start), cursor)
                    for partition, (start, cursor) in covered.items()
                }
            case offset:
                for partition, (start, cursor) in covered.items():
                    if not start <= offset <= cursor:
                        reason = f"the table covers [{start}, {cursor}), and offset {offset} is outside of it"
                        raise ReplayRefused(reason, self._where(partition))
                return dict.fromkeys(covered, offset)

    def _start(self, partition: BrokerPartition, offset: int, time_ms: int) -> int:
        """The first offset of a time. For offsets that the broker no longer holds, the table's rows give it."""
        earliest = self.bounds[partition].earliest
        if offset > earliest:
            return offset
        older = self.rows(partition).first_since(time_ms, below=earliest)
        return offset if older is None else older

    def _check_retained(self, offsets: OffsetRange) -> None:
        bounds = self.bounds[offsets.partition]
        if offsets.start < bounds.earliest:
            start, stop, reason = offsets.start, min(offsets.stop, bounds.earliest), f"begins at {bounds.earliest}"
        elif bounds.latest < offsets.stop:
            start, stop, reason = max(offsets.start, bounds.latest), offsets.stop, f"ends at {bounds.latest}"
        else:
            return
        raise ReplayRefused(
            f"the brokers no longer hold offsets [{start}, {stop}): the log {reason}", self._where(offsets.partition)
        )

    def _where(self, partition: BrokerPartition) -> Where:
        return self.state.topic.where.within(Where(partition=str(partition)))


def _value(answer: T | KafkaIOError) -> T:
    if isinstance(answer, KafkaIOError):
        raise answer
    return answer
