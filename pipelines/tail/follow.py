"""Follows a topic: reads the records of its partitions from a start to an end, or without end as new ones arrive.

Each round asks the brokers for the bounds of all partitions and then reads everything up to them. Within a round
partitions take turns, one batch each; the records of one partition stay in order. The load on brokers is small: two
requests for bounds per second, and fetch requests only for partitions with new records.

Without an end, a temporary error (a broker is down, the registry does not answer) is reported, and the partition is
tried again later. The other partitions continue, and the cluster is opened again to find new leaders. With an end, a
temporary error is raised like every other error.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from kafka_io.closing import Closing
from kafka_io.cluster.cluster import Cluster
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import KafkaIOError, LogShort, OffsetOutOfRange, RegistryError, TopicReplaced, Where, WireError
from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange, Reader
from kafka_io.reader.source import Source
from kafka_io.records.decoded_batch import DecodedBatch
from pipelines.plan.positions import TableCursor, TopicPosition
from pipelines.tail.query import TailCursors, TailQuery, TailRefused, offsets_of, table_cursors
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from resources.suggestion import no_topic
from resources.table_names import route_of, topic_of

T = TypeVar("T")
PartitionBatch = tuple[BrokerPartition, pa.RecordBatch]

_POLL_S = 0.5
_METADATA_REFRESH_S = 10.0
_RETRY_S = 2.0  # how long a partition pauses after an error
_SAME_WARNING_S = 30.0
_MAX_READERS = 16  # partitions that take turns; each has its own connections
_TURN_BYTES = 1024 * 1024
_ATTEMPTS = 2  # the first attempt can fail on a connection that the broker closed because it was idle


@dataclass(slots=True)
class _Progress:
    """The next offset of a partition, and the offset where it ends; None without an end."""

    next_offset: int
    stop: int | None = None

    @property
    def is_finished(self) -> bool:
        return self.stop is not None and self.next_offset >= self.stop


@dataclass(kw_only=True, eq=False)
class Tail(Closing):
    """Reads what `query` asks for, once. A context manager for one thread.

    Args:
        open_cluster: opens the cluster; called again after an error.
        query: the topic, its partitions, start and end.
        cursors: returns the cursors of the topic's table, for a query that begins there.
        on_warning: called with a sentence for each temporary error; for the same error, twice a minute.
        sleep: waits between two rounds.
        clock: a monotonic clock, in seconds.
    """

    open_cluster: Callable[[], Cluster]
    query: TailQuery
    cursors: TailCursors
    on_warning: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _cluster: Cluster | None = None
    _reopen: bool = False
    _warned_at: dict[str, float] = field(default_factory=dict)
    _progress: dict[BrokerPartition, _Progress] = field(default_factory=dict)
    _paused_until: dict[BrokerPartition, float] = field(default_factory=dict)
    _idle_readers: dict[int | None, list[Reader]] = field(default_factory=lambda: defaultdict(list))

    def batches(self) -> Iterator[PartitionBatch]:
        """Yield batches of rows, each of one partition, with the columns of the cluster's generation.

        Raises:
            TailRefused: the topic does not exist, or has no such partition; or the query has an offset, which is for
                one partition only.
            OffsetOutOfRange: the broker does not hold the first offset, or no longer holds the next one.
            TopicReplaced: the topic was deleted and created again.
            KafkaIOError: a batch is damaged (all records before it were yielded), or another error is permanent.
        """
        topic = self._first_entry()
        first_partitions = frozenset(self._wanted(topic))
        refreshed_at = self.clock()
        while True:
            self._find_starts(topic, first_partitions)
            yield from self._round(topic)
            if self.query.until is not None and all(part.is_finished for part in self._progress.values()):
                return
            self.sleep(_POLL_S)
            if self.query.until is None and self.clock() - refreshed_at >= _METADATA_REFRESH_S:
                topic, refreshed_at = self._refreshed(topic), self.clock()

    def _first_entry(self) -> TopicEntry:
        name = self.query.topic
        if route_of(name):  # brokers call such a name invalid
            raise TailRefused(f"the cluster has no topic {name!r}{no_topic(name, [topic_of(name)])}")
        topic = self._connected().topic(name)
        if topic is None:
            known = [entry.name for entry in self._connected().topics().entries]
            raise TailRefused(f"the cluster has no topic {name!r}{no_topic(name, known)}")
        partitions = ", ".join(map(str, topic.partitions)) or "none"
        missing = sorted(self.query.partitions - set(topic.partitions))
        if missing:
            raise TailRefused(f"topic {topic.name} has no partition {missing[0]}; its partitions are: {partitions}")
        offset = next((edge for edge in (self.query.since, self.query.until) if isinstance(edge, int)), None)
        if offset is not None and len(self._wanted(topic)) > 1:
            raise TailRefused(
                f"offset {offset} is meaningful in one partition only; choose a partition of topic {topic.name}: "
                f"{partitions}"
            )
        return topic

    def _refreshed(self, known: TopicEntry) -> TopicEntry:
        """The topic as it is now. After an error the cluster is opened again, because leaders may have changed."""
        try:
            if self._reopen:
                self._disconnect()
            topic = self._connected().topic(known.name)
        except KafkaIOError as error:
            self._tolerate(error)
            return known
        if topic is None:
            self._warn("the cluster has no such topic now; waiting for it")
            return known
        if known.ids.difference(topic.ids):
            raise TopicReplaced("the topic was deleted and created again", Where(topic=known.name))
        return topic

    def _wanted(self, topic: TopicEntry) -> list[BrokerPartition]:
        return sorted(id_ for id_ in topic.partitions if id_ in (self.query.partitions or topic.partitions))

    def _find_starts(self, topic: TopicEntry, first_partitions: frozenset[BrokerPartition]) -> None:
        """Find the first offset of each new partition: the query's start, or earliest for one that was added later."""
        new = self._not_paused(id_ for id_ in self._wanted(topic) if id_ not in self._progress)
        bounds = self._ask(new, lambda cluster: cluster.bounds(topic.name, new))
        first = {id_: bound for id_, bound in bounds.items() if id_ in first_partitions}
        self._progress |= {id_: _Progress(bound.earliest) for id_, bound in bounds.items() if id_ not in first}
        # Brokers compute the offsets of all other positions. These can be valid and outside the bounds, because the log
        # can grow between the two requests.
        must_check = self.query.since is TableCursor.COMMITTED or isinstance(self.query.since, int)
        for id_, offset in self._offsets(self.query.since, topic, first).items():
            earliest, latest = first[id_].earliest, first[id_].latest
            if must_check and not earliest <= offset <= latest:
                reason = f"offset {offset} is outside the broker's log, which is [{earliest}, {latest})"
                where = Where(topic=topic.name, partition=str(id_))
                raise OffsetOutOfRange(reason, where, ErrorCode.OFFSET_OUT_OF_RANGE)
            self._progress[id_] = _Progress(offset)
        if self.query.until is not None:
            for id_, stop in self._offsets(self.query.until, topic, bounds).items():
                self._progress[id_].stop = stop

    def _offsets(
        self, position: TopicPosition, topic: TopicEntry, bounds: Mapping[BrokerPartition, Bounds]
    ) -> dict[BrokerPartition, int]:
        return self._ask(bounds, lambda cluster: offsets_of(position, cluster, topic, bounds, cursors=self.cursors))

    def _round(self, topic: TopicEntry) -> Iterator[PartitionBatch]:
        """Read everything between the progress of the partitions and what their brokers hold now."""
        open_ids = self._not_paused(id_ for id_, part in self._progress.items() if not part.is_finished)
        bounds = self._ask(open_ids, lambda cluster: cluster.bounds(topic.name, open_ids))
        ranges = []
        for id_, bound in bounds.items():
            start, stop = self._progress[id_].next_offset, self._progress[id_].stop
            if bound.latest < start:
                where = Where(topic=topic.name, partition=str(id_), offset=start)
                self._tolerate(LogShort(f"the log was read up to {start} and now ends before that offset", where), id_)
            stop = bound.latest if stop is None else min(bound.latest, stop)
            if start < stop:
                offsets = OffsetRange(id_, start, stop)
                ranges.append(PlannedRange(topic=topic.name, offsets=offsets, incarnation=topic.incarnation))
        yield from self._read(ranges)

    def _read(self, ranges: Iterable[PlannedRange]) -> Iterator[PartitionBatch]:
        """Read all ranges; their partitions take turns."""
        waiting = deque((planned_range, self._decoded(planned_range)) for planned_range in ranges)
        turns: deque[tuple[PlannedRange, Generator[DecodedBatch]]] = deque()
        try:
            while waiting or turns:
                while waiting and len(turns) < _MAX_READERS:
                    turns.append(waiting.popleft())
                planned_range, batches = turns.popleft()
                try:
                    decoded = next(batches, None)
                except KafkaIOError as error:
                    yield from self._before(error, planned_range)
                    self._tolerate(error, planned_range.offsets.partition)
                    continue
                if decoded is not None:
                    turns.append((planned_range, batches))
                    yield from self._advance(planned_range, decoded)
        finally:
            for _, batches in turns:
                batches.close()

    def _before(self, error: KafkaIOError, planned_range: PlannedRange) -> Iterator[PartitionBatch]:
        """The records before a damaged batch.

        Many batches are decoded together, and one damaged batch fails them all. So the range is read again up to the
        damaged batch.
        """
        offsets = planned_range.offsets
        start, damaged = self._progress[offsets.partition].next_offset, error.where.offset
        if not isinstance(error, WireError) or damaged is None or not start < damaged < offsets.stop:
            return
        with suppress(KafkaIOError):  # the caller raises the first error
            for decoded in self._decoded(replace(planned_range, offsets=replace(offsets, start=start, stop=damaged))):
                yield from self._advance(planned_range, decoded)

    def _advance(self, planned_range: PlannedRange, decoded: DecodedBatch) -> Iterator[PartitionBatch]:
        partition = planned_range.offsets.partition
        self._progress[partition].next_offset = decoded.next_offset
        if decoded.batch.num_rows:
            yield partition, decoded.batch

    def _decoded(self, planned_range: PlannedRange) -> Generator[DecodedBatch]:
        """The batches of the range. The reader is used again for another range, unless an error occurs."""
        partition = planned_range.offsets.partition
        idle = self._idle_readers[partition.broker]
        reader = idle.pop() if idle else _with_small_fetches(self._connected().source(partition)).open()
        try:
            for batches in reader.read([planned_range]):
                yield from batches
        except BaseException:
            reader.close()
            raise
        idle.append(reader)

    def _ask(
        self,
        partitions: Collection[BrokerPartition],
        question: Callable[[Cluster], Mapping[BrokerPartition, T | KafkaIOError]],
    ) -> dict[BrokerPartition, T]:
        """The answers of the brokers, without the partitions whose answer is a temporary error."""
        if not partitions:
            return {}
        try:
            answers = question(self._connected())
        except KafkaIOError as error:
            answers = dict.fromkeys(partitions, error)
        values = {}
        for id_, answer in answers.items():
            if isinstance(answer, KafkaIOError):
                self._tolerate(answer, id_)
            else:
                values[id_] = answer
        return values

    def _tolerate(self, error: KafkaIOError, partition: BrokerPartition | None = None) -> None:
        """Report the error and pause the partition, if the error is temporary and the query has no end.

        Raises:
            KafkaIOError: the error, otherwise.
        """
        if self.query.until is not None or not (error.retriable or isinstance(error, RegistryError)):
            raise error
        if partition is not None:
            self._paused_until[partition] = self.clock() + _RETRY_S
        self._reopen = True
        name = type(error).__name__
        self._warn(f"{name}: {error}; trying again", subject=f"{name}: {error.reason}")

    def _warn(self, sentence: str, *, subject: str | None = None) -> None:
        """Report a sentence, unless one with the same subject was reported within the last half minute."""
        now = self.clock()
        subject = subject or sentence
        if now - self._warned_at.get(subject, -_SAME_WARNING_S) >= _SAME_WARNING_S:
            self._warned_at[subject] = now
            self.on_warning(sentence)

    def _not_paused(self, partitions: Iterable[BrokerPartition]) -> list[BrokerPartition]:
        return [id_ for id_ in partitions if self._paused_until.get(id_, 0.0) <= self.clock()]

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self.open_cluster()
        return self._cluster

    def _disconnect(self) -> None:
        self._reopen = False
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def close(self) -> None:
        """Close all connections. May be called again."""
        for readers in self._idle_readers.values():
            while readers:
                readers.pop().close()
        self._disconnect()


def _with_small_fetches(source: Source) -> Source:
    """The source with small fetches and batches: the first records appear soon, and turns are short."""
    sizes, limits = source.read_settings.sizes, source.read_settings.limits
    read_settings = replace(
        source.read_settings,
        sizes=replace(sizes, fetch_bytes=min(sizes.fetch_bytes, _TURN_BYTES)),
        limits=replace(limits, batch_bytes=min(limits.batch_bytes, _TURN_BYTES)),
    )
    return replace(source, read_settings=read_settings)


def open_tail(settings: Settings, cluster: str, query: TailQuery, *, on_warning: Callable[[str], None]) -> Tail:
    """A tail of a cluster of the settings. Nothing is connected yet."""
    # A tail without end retries by itself, and the other partitions continue meanwhile.
    used = settings if query.until is not None else settings.with_short_timeout(attempts=_ATTEMPTS)
    return Tail(
        open_cluster=lambda: open_cluster(used, cluster),
        query=query,
        cursors=lambda topic: table_cursors(settings, cluster, topic),
        on_warning=on_warning,
    )
