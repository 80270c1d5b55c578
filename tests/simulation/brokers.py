"""A topic whose logs grow, expire, are compacted, are truncated and written again, and whose brokers lie about them.

Every record has a number that no other record has: it is the payload, and shows where a row came from.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.retention import Retention
from kafka_io.errors import KafkaIOError, NetworkError, RegistryUnavailable
from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.registry.listing import Listing
from tests.simulation.scheduler import Scheduler

TOPIC = "clicks"
_SEGMENT_BYTES = 120


@dataclass(frozen=True, slots=True)
class Era:
    """What brokers of one version can do: count in bytes, report leader epochs, detect a recreated topic in a fetch."""

    name: str
    in_bytes: bool = False
    has_epochs: bool = False
    knows_ids: bool = False


ERAS = (
    Era("0.7", in_bytes=True),
    Era("0.10"),
    Era("2.8", has_epochs=True),
    Era("3.9", has_epochs=True, knows_ids=True),
)


class Cut(NamedTuple):
    """At `tick` a log was cut at `offset`: what was read from there on before is no longer what it holds."""

    tick: int
    offset: int


@dataclass(slots=True, kw_only=True)
class SimLog:
    """One partition in one life of the topic. `records` are its payloads by offset; `starts` those of leaders' epochs.

    Where offsets count bytes, slices may end at the starts of `segments` alone. `lies` are the ticks at which a broker
    told of another log.
    """

    era: Era
    earliest: int = 0
    latest: int = 0
    records: dict[int, int] = field(default_factory=dict)
    starts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    segments: list[int] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    lies: list[int] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """The newest leader's."""
        return self.starts[-1][0]

    def grow(self, payloads: Iterable[int], size: Callable[[], int]) -> None:
        """Records arrive; each takes so many offsets, of which the last ones of a record from 0.8 on hold nothing."""
        for payload in payloads:
            if self.era.in_bytes and self.latest - (self.segments[-1] if self.segments else 0) >= _SEGMENT_BYTES:
                self.segments.append(self.latest)
            self.records[self.latest] = payload
            self.latest += size()

    def expire(self, to: int) -> None:
        """Retention: the log begins at `to`, or in 0.7 at the segment that holds it."""
        if self.era.in_bytes:
            to = max((cut_offset for cut_offset in self.segments if cut_offset <= to), default=self.earliest)
            self.segments = [cut_offset for cut_offset in self.segments if cut_offset > to]
        self.earliest = max(self.earliest, to)
        self.records = {offset: payload for offset, payload in self.records.items() if offset >= self.earliest}
        known = [epoch for epoch, start in self.starts if start <= self.earliest]
        self.starts = [(known[-1], self.earliest), *(begin for begin in self.starts if begin[1] > self.earliest)]

    def compact(self, offsets: Iterable[int]) -> None:
        """Remove some records, because newer ones have their keys."""
        for offset in offsets:
            self.records.pop(offset, None)

    def elect(self) -> None:
        """Another leader, who has all of it."""
        self.starts.append((self.epoch + 1, self.latest))

    def cut(self, at: int, tick: int) -> None:
        """An unclean election: the new leader's log ends at `at`."""
        epoch = self.epoch + 1
        self.latest = at
        self.records = {offset: payload for offset, payload in self.records.items() if offset < at}
        self.starts = [*((older, start) for older, start in self.starts if start < at), (epoch, at)]
        self.cuts.append(Cut(tick, at))

    def end_of(self, epoch: int) -> int:
        """The end offset of that leader epoch, as the present leader answers it."""
        return next((start for number, start in self.starts if number > epoch), self.latest)

    def at_time(self, time: int) -> int:
        """The first offset whose record is not older, or the segment's that has it; the latest if there is none."""
        first = next((offset for offset, payload in sorted(self.records.items()) if payload >= time), self.latest)
        if not self.era.in_bytes or first == self.latest:
            return first
        return max(
            (cut_offset for cut_offset in self.segments if self.earliest < cut_offset <= first), default=self.earliest
        )

    def bounds(self) -> Bounds:
        """The truth."""
        inside = tuple(cut_offset for cut_offset in self.segments if self.earliest < cut_offset < self.latest)
        return Bounds(
            earliest=self.earliest,
            latest=self.latest,
            segment_starts=inside if self.era.in_bytes else (),
            epoch=self.epoch if self.era.has_epochs else -1,
        )


@dataclass(kw_only=True)
class SimCluster(Cluster):
    """A cluster of one topic. Partitions that are `away` are on a 0.7 broker that is down."""

    scheduler: Scheduler
    era: Era
    name: str = "main"
    life: int = 0
    logs: dict[BrokerPartition, SimLog] = field(default_factory=dict)
    away: set[BrokerPartition] = field(default_factory=set)
    answered: list[dict[BrokerPartition, Bounds]] = field(default_factory=list)
    payloads: int = 0

    @property
    def incarnation(self) -> str:
        """The topic's present incarnation."""
        return f"life-{self.life}"

    def add_partition(self) -> None:
        """One more; in 0.7 on one broker or the other."""
        number = len(self.logs)
        id_ = BrokerPartition(number % 2, number // 2) if self.era.in_bytes else BrokerPartition(None, number)
        self.logs[id_] = SimLog(era=self.era)

    def recreate(self, partitions: int) -> None:
        """The topic is deleted, and created again under the same name."""
        self.life += 1
        self.logs = {}
        self.away = set()
        for _ in range(partitions):
            self.add_partition()

    def send(self, id_: BrokerPartition, count: int) -> None:
        """New records for one partition."""
        rng = self.scheduler.rng
        size = (lambda: rng.randint(8, 40)) if self.era.in_bytes else (lambda: 1 if rng.random() < 0.95 else 2)
        self.logs[id_].grow(range(self.payloads, self.payloads + count), size)
        self.payloads += count

    def close(self) -> None:
        """Nothing is open."""

    def cluster_id(self) -> str | None:
        """See Cluster."""
        return None if self.era.in_bytes else "the-cluster"

    def topics(self) -> Listing[TopicEntry]:
        """See Cluster."""
        return Listing(found=(self._entry(),))

    def topic(self, name: str) -> TopicEntry | None:
        """The topic, unless the registry is away."""
        assert name == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise RegistryUnavailable("no answer")
        return self._entry()

    def _entry(self) -> TopicEntry:
        there = tuple(sorted(self.logs.keys() - self.away))
        return TopicEntry(name=TOPIC, incarnation=self.incarnation, partitions=there)

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """The true bounds, false ones or an error, each by chance; `answered` keeps the answers of each call."""
        assert topic == TOPIC
        result: dict[BrokerPartition, Bounds | KafkaIOError] = {}
        for id_ in partitions:
            self.scheduler.seam()
            if id_ not in self.logs or self.scheduler.harmed(0.5):
                result[id_] = NetworkError("no answer")
            else:
                result[id_] = self._told(self.logs[id_])
        self.answered.append({id_: answer for id_, answer in result.items() if isinstance(answer, Bounds)})
        return result

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """See Cluster."""
        return {topic: self.bounds(topic, partitions) for topic, partitions in topics.items()}

    def _told(self, log: SimLog) -> Bounds:
        truth = log.bounds()
        if not self.scheduler.harmed(0.3):
            return truth
        rng = self.scheduler.rng
        self.scheduler.note("a broker lies about a log's bounds")
        log.lies.append(self.scheduler.tick)
        somewhere = rng.choice([truth.earliest, *log.records, truth.latest])
        starts = tuple(start for start in truth.segment_starts if start < somewhere)
        return rng.choice(
            [
                Bounds(earliest=truth.earliest, latest=somewhere, segment_starts=starts, epoch=truth.epoch),
                Bounds(earliest=0, latest=0, epoch=truth.epoch),
                Bounds(earliest=truth.latest, latest=truth.earliest, epoch=truth.epoch),
                Bounds(
                    earliest=truth.earliest,
                    latest=truth.latest + 7,
                    segment_starts=truth.segment_starts,
                    epoch=truth.epoch,
                ),
            ]
        )

    def truncations(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """See Cluster."""
        assert topic == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise NetworkError("no answer")
        return self.parted(read)

    def parted(self, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """The answer of `truncations` if nothing goes wrong."""
        ends = {id_: self.logs[id_].end_of(epoch) for id_, (_, epoch) in read.items() if id_ in self.logs}
        return {id_: end for id_, end in ends.items() if end < read[id_][0]}

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """The time of a record is its number. Where offsets count bytes, brokers know those of segments only."""
        assert topic == TOPIC
        result: dict[BrokerPartition, int | KafkaIOError] = {}
        for id_ in partitions:
            self.scheduler.seam()
            if id_ not in self.logs or self.scheduler.harmed(0.5):
                result[id_] = NetworkError("no answer")
            else:
                result[id_] = self.logs[id_].at_time(timestamp_ms)
        return result

    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """Nobody asks for these here."""
        raise NotImplementedError

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """Nor how long records are kept."""
        raise NotImplementedError

    @property
    def generation(self) -> Generation:
        """See Cluster."""
        return Generation.V07 if self.era.in_bytes else Generation.MODERN

    def source(self, partition: BrokerPartition) -> Source:
        """See Cluster."""
        del partition
        return Source(
            cluster=self.name, generation=self.generation, brokers=(Broker(0, "sim", 1),), read_settings=ReadSettings()
        )
