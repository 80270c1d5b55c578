"""Records of a topic's partitions as they come, from one point to another, or on and on.

What a partition holds when it is asked is read whole before it is asked again; partitions take turns, a batch each, and
the records of one stay in order. Brokers have little work with it: bounds are asked for twice a second, records only
where there are new ones.

Without an end, trouble that may pass is told and waited for: a broker that is away, a registry that does not answer.
The others go on meanwhile, and the cluster is looked up anew. With an end it is raised, as anything else always is.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from kafka_io.client.cluster import Cluster
from kafka_io.client.reading import Reader, Span
from kafka_io.client.source import Source
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError, LogShort, RegistryError, TopicReplaced, Where, WireError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from kafka_io.records.columns import Decoded
from pipelines.points import Named
from pipelines.tailing.points import Cursor, Cursors, Point, TailRefused, check_held, offsets_of
from pipelines.tailing.query import Query
from resources.errors import TopicUnknown

T = TypeVar("T")
Rows = tuple[BrokerPartition, pa.RecordBatch]

_POLL_S = 0.5
_LIST_S = 10.0
_REST_S = 2.0  # how long a partition in trouble is left alone
_SAME_NOTE_S = 30.0
_AT_ONCE = 16  # partitions that take turns; each has connections of its own
_TURN_BYTES = 1024 * 1024


@dataclass(slots=True)
class _Place:
    """How far a partition was read, and where to end."""

    at: int
    stop: int | None


class Tail(Closing):
    """What `query` asks for, read once. A context manager; one thread uses it.

    Args:
        open_cluster: opens the cluster, again after trouble.
        query: what to show.
        cursors: asked when it begins at the committed offsets.
        on_trouble: told of trouble that may pass; of the same, twice a minute.
        sleep: waits between two looks.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        open_cluster: Callable[[], Cluster],
        query: Query,
        *,
        cursors: Cursors,
        on_trouble: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_cluster = open_cluster
        self._query = query
        self._cursors = cursors
        self._on_trouble = on_trouble
        self._sleep = sleep
        self._clock = clock
        self._cluster: Cluster | None = None
        self._troubled = False
        self._told: dict[str, float] = {}
        self._places: dict[BrokerPartition, _Place] = {}
        self._resting: dict[BrokerPartition, float] = {}
        self._idle: dict[int | None, list[Reader]] = defaultdict(list)

    def batches(self) -> Iterator[Rows]:
        """Rows of one partition at a time, with the columns of its generation.

        Raises:
            TopicUnknown: there is no such topic.
            TailRefused: the topic has no such partition, or several where an offset is of one.
            OffsetOutOfRange: the broker does not hold where it should begin, or no longer what comes next.
            TopicReplaced: the topic was deleted and made anew.
            KafkaIOError: the first bad batch, after all that comes before it; what else does not pass.
        """
        topic = self._first_listed()
        known = frozenset(self._chosen(topic))
        listed_at = self._clock()
        while True:
            self._take_up(topic, known)
            yield from self._round(topic)
            if self._query.until is not None and self._is_over():
                return
            self._sleep(_POLL_S)
            if self._query.until is None and self._clock() - listed_at >= _LIST_S:
                topic, listed_at = self._listed_anew(topic), self._clock()

    def _is_over(self) -> bool:
        return all(place.stop is not None and place.at >= place.stop for place in self._places.values())

    def _first_listed(self) -> TopicEntry:
        topic = self._connected().topic(self._query.topic)
        if topic is None:
            raise TopicUnknown("the cluster has no such topic", Where(topic=self._query.topic))
        there = ", ".join(map(str, topic.partitions)) or "none"
        absent = sorted(self._query.partitions - set(topic.partitions))
        if absent:
            raise TailRefused(f"topic {topic.name} has no partition {absent[0]}; it has: {there}")
        offset = next((one for one in (self._query.since, self._query.until) if isinstance(one, int)), None)
        if offset is not None and len(self._chosen(topic)) > 1:
            raise TailRefused(f"offset {offset} is of one partition, and topic {topic.name} has more: {there}")
        return topic

    def _listed_anew(self, known: TopicEntry) -> TopicEntry:
        """The topic as it is now. After trouble its brokers may be others: the cluster is opened again."""
        try:
            if self._troubled:
                self._disconnect()
            found = self._connected().topic(known.name)
        except KafkaIOError as error:
            self._pass_over(error)
            return known
        if found is None:
            self._tell("the cluster has no such topic now")
            return known
        if not {found.incarnation, *found.also} & {known.incarnation, *known.also}:
            raise TopicReplaced("the topic was deleted and made anew", Where(topic=known.name))
        return found

    def _chosen(self, topic: TopicEntry) -> list[BrokerPartition]:
        return sorted(one for one in topic.partitions if one in (self._query.partitions or topic.partitions))

    def _take_up(self, topic: TopicEntry, known: frozenset[BrokerPartition]) -> None:
        """Find out where to begin. A partition that was not there at first is new as a whole."""
        fresh = self._awake(id_ for id_ in self._chosen(topic) if id_ not in self._places)
        bounds = self._ask(fresh, lambda cluster: cluster.bounds(topic.name, fresh))
        first = {id_: bound for id_, bound in bounds.items() if id_ in known}
        later = {id_: bound for id_, bound in bounds.items() if id_ not in known}
        for point, some in ((self._query.since, first), (Named.EARLIEST, later)):
            for id_, at in self._offsets(point, topic, some).items():
                if point is Cursor.COMMITTED or isinstance(point, int):  # the others come from the brokers themselves
                    check_held(at, bounds[id_], Where(topic=topic.name, partition=str(id_)))
                self._places[id_] = _Place(at, None)
        if self._query.until is not None:
            for id_, stop in self._offsets(self._query.until, topic, bounds).items():
                self._places[id_].stop = stop

    def _offsets(
        self, point: Point, topic: TopicEntry, bounds: Mapping[BrokerPartition, Bounds]
    ) -> dict[BrokerPartition, int]:
        return self._ask(bounds, lambda cluster: offsets_of(point, cluster, topic, bounds, cursors=self._cursors))

    def _round(self, topic: TopicEntry) -> Iterator[Rows]:
        """Everything between where partitions stand and what their brokers hold now."""
        going = {id_: one for id_, one in self._places.items() if one.stop is None or one.at < one.stop}
        asked = self._awake(going)
        bounds = self._ask(asked, lambda cluster: cluster.bounds(topic.name, asked))
        spans = []
        for id_, bound in bounds.items():
            place = going[id_]
            if bound.latest < place.at:
                where = Where(topic=topic.name, partition=str(id_), offset=place.at)
                self._pass_over(LogShort(f"the log was read up to {place.at}, and now ends before that", where), id_)
            stop = bound.latest if place.stop is None else min(bound.latest, place.stop)
            if place.at < stop:
                spans.append(Span(topic=topic.name, id=id_, start=place.at, stop=stop, incarnation=topic.incarnation))
        yield from self._read(spans)

    def _read(self, spans: Iterable[Span]) -> Iterator[Rows]:
        """The rows of all spans; their partitions take turns."""
        waiting = deque((span, self._decoded(span)) for span in spans)
        turns: deque[tuple[Span, Generator[Decoded]]] = deque()
        try:
            while waiting or turns:
                while waiting and len(turns) < _AT_ONCE:
                    turns.append(waiting.popleft())
                span, batches = turns.popleft()
                try:
                    decoded = next(batches, None)
                except KafkaIOError as error:
                    yield from self._before(error, span)
                    self._pass_over(error, span.id)
                    continue
                if decoded is not None:
                    turns.append((span, batches))
                    yield from self._shown(span, decoded)
        finally:
            for _, batches in turns:
                batches.close()

    def _before(self, error: KafkaIOError, span: Span) -> Iterator[Rows]:
        """What is right in front of a bad batch: many are decoded at once, and of these all or none."""
        at, bad = self._places[span.id].at, error.where.offset
        if not isinstance(error, WireError) or bad is None or not at < bad < span.stop:
            return
        with suppress(KafkaIOError):  # the first error is the one to tell
            for decoded in self._decoded(replace(span, start=at, stop=bad)):
                yield from self._shown(span, decoded)

    def _shown(self, span: Span, decoded: Decoded) -> Iterator[Rows]:
        self._places[span.id].at = decoded.next_offset
        if decoded.batch.num_rows:
            yield span.id, decoded.batch

    def _decoded(self, span: Span) -> Generator[Decoded]:
        """The span's batches, by a reader that is kept for another unless something went wrong with it."""
        idle = self._idle[span.id.broker]
        reader = idle.pop() if idle else _in_turns(self._connected().source(span.id)).open()
        try:
            for batches in reader.read([span]):
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
        """The answers for those partitions that have one."""
        if not partitions:
            return {}
        try:
            answers = question(self._connected())
        except KafkaIOError as error:
            answers = dict.fromkeys(partitions, error)
        good = {}
        for id_, answer in answers.items():
            if isinstance(answer, KafkaIOError):
                self._pass_over(answer, id_)
            else:
                good[id_] = answer
        return good

    def _pass_over(self, error: KafkaIOError, partition: BrokerPartition | None = None) -> None:
        """Leave the partition alone for a while, if its trouble may pass and there is time without end."""
        if self._query.until is not None or not (error.retriable or isinstance(error, RegistryError)):
            raise error
        if partition is not None:
            self._resting[partition] = self._clock() + _REST_S
        self._troubled = True
        name = type(error).__name__
        self._tell(f"{name}: {error}: it is tried again", about=f"{name}: {error.reason}")

    def _tell(self, sentence: str, *, about: str | None = None) -> None:
        now = self._clock()
        about = about or sentence
        if now - self._told.get(about, -_SAME_NOTE_S) >= _SAME_NOTE_S:
            self._told[about] = now
            self._on_trouble(sentence)

    def _awake(self, partitions: Iterable[BrokerPartition]) -> list[BrokerPartition]:
        return [id_ for id_ in partitions if self._resting.get(id_, 0.0) <= self._clock()]

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._open_cluster()
        return self._cluster

    def _disconnect(self) -> None:
        self._troubled = False
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def close(self) -> None:
        """End all connections; safe to call again."""
        for readers in self._idle.values():
            while readers:
                readers.pop().close()
        self._disconnect()


def _in_turns(source: Source) -> Source:
    """The source, read in small pieces: the first is shown soon, and the turns of the others come soon."""
    sizes, limits = source.reading.sizes, source.reading.limits
    reading = replace(
        source.reading,
        sizes=replace(sizes, fetch_bytes=min(sizes.fetch_bytes, _TURN_BYTES)),
        limits=replace(limits, batch_bytes=min(limits.batch_bytes, _TURN_BYTES)),
    )
    return replace(source, reading=reading)
