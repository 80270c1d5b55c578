"""A simulated topic. Its logs grow, expire, lose records, and are compacted or truncated.

Its brokers sometimes report wrong bounds.

The payload of each record is a number that no other record has, so it shows from which record a row comes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.retention import Retention
from kafka_io.errors import KafkaIOError, NetworkError, RegistryUnavailable
from kafka_io.model import (
    UNKNOWN_INCARNATION,
    Bounds,
    Broker,
    BrokerPartition,
    Generation,
    OffsetRange,
    TopicEntry,
)
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.records.last_message import LastMessage
from kafka_io.registry.listing import Listing
from tests.simulation.scheduler import Scheduler

TOPIC = "clicks"
_SEGMENT_BYTES = 120


@dataclass(frozen=True, slots=True)
class Era:
    """A generation of brokers.

    Args:
        name: the first version of Kafka with these properties.
        in_bytes: whether offsets count bytes.
        has_epochs: whether brokers report leader epochs.
        has_ids: whether brokers report topic ids.
        knows_ids: whether a fetch fails if the topic was created again (topic ids, KIP-516).
    """

    name: str
    in_bytes: bool = False
    has_epochs: bool = False
    has_ids: bool = False
    knows_ids: bool = False


ERAS = (
    Era("0.7", in_bytes=True),
    Era("0.10"),
    Era("2.8", has_epochs=True, has_ids=True),
    Era("3.9", has_epochs=True, has_ids=True, knows_ids=True),
)


class Asked(NamedTuple):
    """The true bounds of a log when a run asked for them, and the time in milliseconds since 1970."""

    time_ms: int
    tick: int
    earliest: int
    latest: int


class Cut(NamedTuple):
    """A truncation of a log at `offset` and `tick`. Records that were read there earlier may differ from the log."""

    tick: int
    offset: int


@dataclass(slots=True, kw_only=True)
class SimLog:
    """The log of one partition, in one incarnation of the topic.

    Args:
        records: payloads by offset.
        markers: the offsets of transaction markers.
        written_ms: when each record was written, by offset, in milliseconds since 1970. Expired records are included.
        starts: leader epochs with their start offsets, oldest first.
        segments: the start offsets of segments, if offsets count bytes: a slice may end only at one of them.
        cuts: all truncations so far.
        lies: the ticks at which a broker reported wrong bounds.
    """

    era: Era
    earliest: int = 0
    latest: int = 0
    records: dict[int, int] = field(default_factory=dict)
    markers: set[int] = field(default_factory=set)
    written_ms: dict[int, int] = field(default_factory=dict)
    starts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    segments: list[int] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    lies: list[int] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """The epoch of the current leader."""
        return self.starts[-1][0]

    def grow(self, payloads: Iterable[int], size: Callable[[], int], time_ms: int = 0) -> None:
        """Append records, written at `time_ms`. `size` gives the number of offsets from one record to the next.

        From 0.8 on, a size of two means that a transaction marker follows the record.
        """
        for payload in payloads:
            if self.era.in_bytes and self.latest - (self.segments[-1] if self.segments else 0) >= _SEGMENT_BYTES:
                self.segments.append(self.latest)
            self.records[self.latest] = payload
            self.written_ms[self.latest] = time_ms
            end = self.latest + size()
            if not self.era.in_bytes:
                self.markers |= set(range(self.latest + 1, end))
            self.latest = end

    def expire(self, to: int) -> None:
        """Retention: the log now begins at `to`; in 0.7 it begins at the start of the segment that contains `to`."""
        if self.era.in_bytes:
            to = max((cut_offset for cut_offset in self.segments if cut_offset <= to), default=self.earliest)
            self.segments = [cut_offset for cut_offset in self.segments if cut_offset > to]
        self.earliest = max(self.earliest, to)
        self.records = {offset: payload for offset, payload in self.records.items() if offset >= self.earliest}
        known = [epoch for epoch, start in self.starts if start <= self.earliest]
        self.starts = [(known[-1], self.earliest), *(begin for begin in self.starts if begin[1] > self.earliest)]

    def compact(self, offsets: Iterable[int]) -> None:
        """Log compaction removes these records, because newer records have the same keys."""
        for offset in offsets:
            self.records.pop(offset, None)

    def lose(self, start: int, stop: int) -> None:
        """The broker loses what it has of the offsets `[start, stop)`, for example a segment on a damaged disk."""
        self.records = {offset: payload for offset, payload in self.records.items() if not start <= offset < stop}
        self.markers -= set(range(start, stop))

    def elect(self) -> None:
        """Elect another leader, which has the complete log."""
        self.starts.append((self.epoch + 1, self.latest))

    def cut(self, offset: int, tick: int) -> None:
        """An unclean election: the log of the new leader ends at `offset`."""
        epoch = self.epoch + 1
        self.latest = offset
        self.records = {kept: payload for kept, payload in self.records.items() if kept < offset}
        self.markers = {kept for kept in self.markers if kept < offset}
        self.written_ms = {kept: time_ms for kept, time_ms in self.written_ms.items() if kept < offset}
        self.starts = [*((older, start) for older, start in self.starts if start < offset), (epoch, offset)]
        self.cuts.append(Cut(tick, offset))

    def end_of(self, epoch: int) -> int:
        """The end offset of a leader epoch, as the current leader answers it (KIP-320)."""
        return next((start for number, start in self.starts if number > epoch), self.latest)

    def first_written(self, time_ms: int) -> int:
        """The offset of the first record that was written at a time or later, even if it expired; or the log's end."""
        return min((offset for offset, written in self.written_ms.items() if written >= time_ms), default=self.latest)

    def at_time(self, time_ms: int) -> int:
        """The offset of the first record that is not older than a time, or the end of the log.

        In 0.7 it is the start of the segment that contains this record.
        """
        first = min((offset for offset in self.records if self.written_ms[offset] >= time_ms), default=self.latest)
        return first if first == self.latest else self.sliceable(first)

    def sliceable(self, offset: int) -> int:
        """The last offset up to this one at which a slice can start: in 0.7 the start of a segment."""
        if not self.era.in_bytes:
            return offset
        return max((start for start in self.segments if self.earliest < start <= offset), default=self.earliest)

    def bounds(self) -> Bounds:
        """The real bounds of the log."""
        inside = tuple(cut_offset for cut_offset in self.segments if self.earliest < cut_offset < self.latest)
        return Bounds(
            earliest=self.earliest,
            latest=self.latest,
            segment_starts=inside if self.era.in_bytes else (),
            epoch=self.epoch if self.era.has_epochs else -1,
        )


@dataclass(kw_only=True)
class SimCluster(Cluster):
    """A cluster with one topic.

    Args:
        compacts: whether the topic's cleanup.policy is "compact", and not "delete".
        incarnation_number: how often the topic was created.
        created_zxid: the zxid of the topic's node in ZooKeeper.
        upgraded: whether the brokers were upgraded, so that old commits may lack epochs.
        truncated_without_ids: whether a log was truncated while nothing told that from a topic that was recreated.
        recreated_without_ids: whether the topic was created again while it had no id, or after an upgrade.
        exchanged: whether the settings exchanged ZooKeeper and bootstrap brokers.
        through_zookeeper: whether the settings name ZooKeeper, or only bootstrap brokers.
        away: the partitions of 0.7 brokers that are down.
        leaderless: the partitions of later brokers that have no leader.
        answered: the bounds that each call of `bounds` has answered.
        asked: the first answer about each partition.
        payloads: the number of records so far; the next record has this number as its payload.
    """

    scheduler: Scheduler
    era: Era
    name: str = "main"
    compacts: bool = False
    incarnation_number: int = 0
    created_zxid: int = 0
    through_zookeeper: bool = True
    upgraded: bool = False
    truncated_without_ids: bool = False
    recreated_without_ids: bool = False
    exchanged: bool = False
    logs: dict[BrokerPartition, SimLog] = field(default_factory=dict)
    away: set[BrokerPartition] = field(default_factory=set)
    leaderless: set[BrokerPartition] = field(default_factory=set)
    answered: list[dict[BrokerPartition, Bounds]] = field(default_factory=list)
    asked: dict[BrokerPartition, Asked] = field(default_factory=dict)
    payloads: int = 0

    @property
    def incarnation(self) -> str:
        """The incarnation of the topic now, which only the oracle knows."""
        return f"incarnation-{self.incarnation_number}"

    @property
    def topic_id(self) -> str:
        """The id of the topic, if brokers of this era have ids."""
        return f"topic-id-{self.incarnation_number:013d}"

    @property
    def is_blind(self) -> bool:
        """Whether only the last messages show that the topic was created again, which expire and are compacted."""
        return self.recreated_without_ids and self.exchanged

    @property
    def has_replaced_logs(self) -> bool:
        """Whether the logs were created again under a node that stayed."""
        return self.created_zxid != self.incarnation_number

    def add_partition(self) -> None:
        """Add a partition; in 0.7 the two brokers take turns."""
        number = len(self.logs)
        id_ = BrokerPartition(number % 2, number // 2) if self.era.in_bytes else BrokerPartition(None, number)
        self.logs[id_] = SimLog(era=self.era)

    def recreate(self, partitions: int) -> None:
        """Delete the topic and create it again under the same name."""
        self.incarnation_number += 1
        self.created_zxid = self.incarnation_number
        self.logs = {}
        self.away = set()
        self.leaderless = set()
        for _ in range(partitions):
            self.add_partition()

    def replace_logs(self) -> None:
        """Create all logs again, under a node in ZooKeeper that stays."""
        zxid, partitions = self.created_zxid, len(self.logs)
        self.recreate(partitions)
        self.created_zxid = zxid

    def upgrade(self) -> None:
        """Upgrade the brokers to the next era; only they could not keep the logs of 0.7."""
        if self.era in ERAS[1:-1]:
            self.era, self.upgraded = ERAS[ERAS.index(self.era) + 1], True
            for log in self.logs.values():
                log.era = self.era

    def send(self, id_: BrokerPartition, count: int) -> None:
        """Append new records to one partition."""
        rng = self.scheduler.rng
        size = (lambda: rng.randint(8, 40)) if self.era.in_bytes else (lambda: 1 if rng.random() < 0.95 else 2)
        self.logs[id_].grow(range(self.payloads, self.payloads + count), size, self.scheduler.now_ms)
        self.payloads += count

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def cluster_id(self) -> str | None:
        """See Cluster."""
        return None if self.era.in_bytes else "the-cluster"

    def topics(self) -> Listing[TopicEntry]:
        """See Cluster."""
        return Listing(found=(self._entry(),))

    def topic(self, name: str) -> TopicEntry | None:
        """The topic; by chance the registry does not answer."""
        assert name == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise RegistryUnavailable("no answer")
        return self._entry()

    def _entry(self) -> TopicEntry:
        available = tuple(sorted(self.logs.keys() - self.away))
        ids = [self.topic_id] if self.era.has_ids else []
        ids += [str(self.created_zxid)] if self.through_zookeeper else []
        first, *also = ids or [UNKNOWN_INCARNATION]
        return TopicEntry(name=TOPIC, incarnation=first, also=tuple(also), partitions=available)

    def bounds(self, topic: str, partitions: Iterable[BrokerPartition]) -> dict[BrokerPartition, Bounds | KafkaIOError]:
        """For each partition, by chance, the real bounds, wrong bounds or an error. `answered` gets the bounds."""
        assert topic == TOPIC
        result: dict[BrokerPartition, Bounds | KafkaIOError] = {}
        for id_ in partitions:
            self.scheduler.seam()
            if self._is_silent(id_):
                result[id_] = NetworkError("no answer")
            else:
                log = self.logs[id_]
                self.asked.setdefault(id_, Asked(self.scheduler.now_ms, self.scheduler.tick, log.earliest, log.latest))
                result[id_] = self._answered_bounds(log)
        self.answered.append({id_: answer for id_, answer in result.items() if isinstance(answer, Bounds)})
        return result

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """See Cluster."""
        return {topic: self.bounds(topic, partitions) for topic, partitions in topics.items()}

    def _is_silent(self, id_: BrokerPartition) -> bool:
        return id_ not in self.logs or id_ in self.leaderless or self.scheduler.harmed(0.5)

    def _answered_bounds(self, log: SimLog) -> Bounds:
        real = log.bounds()
        if not self.scheduler.harmed(0.3):
            return real
        rng = self.scheduler.rng
        self.scheduler.note("a broker lies about a log's bounds")
        log.lies.append(self.scheduler.tick)
        somewhere = rng.choice([real.earliest, *log.records, real.latest])
        starts = tuple(start for start in real.segment_starts if start < somewhere)
        return rng.choice(
            [
                Bounds(earliest=real.earliest, latest=somewhere, segment_starts=starts, epoch=real.epoch),
                Bounds(earliest=0, latest=0, epoch=real.epoch),
                Bounds(earliest=real.latest, latest=real.earliest, epoch=real.epoch),
                Bounds(
                    earliest=real.earliest,
                    latest=real.latest + 7,
                    segment_starts=real.segment_starts,
                    epoch=real.epoch,
                ),
            ]
        )

    def truncations(self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """See Cluster."""
        assert topic == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise NetworkError("no answer")
        return self.true_truncations(read)

    def true_truncations(self, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, int]:
        """The correct answer of `truncations`, without simulated failures."""
        ends = {id_: self.logs[id_].end_of(epoch) for id_, (_, epoch) in read.items() if id_ in self.logs}
        return {id_: end for id_, end in ends.items() if end < read[id_][0]}

    @staticmethod
    def message(offset: int, payload: int) -> LastMessage:
        """The digest of a record: no other record has its payload."""
        return LastMessage(offset=offset, digest=str(payload))

    def last_messages(
        self, topic: str, ranges: Mapping[BrokerPartition, OffsetRange]
    ) -> dict[BrokerPartition, LastMessage | KafkaIOError | None]:
        """See Cluster."""
        assert topic == TOPIC
        result: dict[BrokerPartition, LastMessage | KafkaIOError | None] = {}
        for id_, offsets in ranges.items():
            self.scheduler.seam()
            if id_ not in self.logs or id_ in self.away or self.scheduler.harmed(0.3):
                result[id_] = NetworkError("no answer")
                continue
            log = self.logs[id_]
            payload = log.records.get(offsets.start)
            result[id_] = None if payload is None else self.message(offsets.start, payload)
            if payload is None and self.era.in_bytes and offsets.start >= log.earliest:
                result[id_] = LastMessage(offset=offsets.start, digest="")
        return result

    def offsets_at(
        self, topic: str, partitions: Iterable[BrokerPartition], timestamp_ms: int
    ) -> dict[BrokerPartition, int | KafkaIOError]:
        """See Cluster. 0.7 brokers answer only with starts of segments."""
        assert topic == TOPIC
        result: dict[BrokerPartition, int | KafkaIOError] = {}
        for id_ in partitions:
            self.scheduler.seam()
            if self._is_silent(id_):
                result[id_] = NetworkError("no answer")
            else:
                result[id_] = self.logs[id_].at_time(timestamp_ms)
                if id_ in self.asked:
                    self.asked[id_] = self.asked[id_]._replace(earliest=self.logs[id_].earliest)
        return result

    def times_at(
        self, at: Mapping[str, Mapping[BrokerPartition, int]]
    ) -> dict[str, dict[BrokerPartition, int | KafkaIOError | None]]:
        """See Cluster. The simulation does not need it."""
        raise NotImplementedError

    def retention(self, topics: Iterable[str]) -> dict[str, Retention | KafkaIOError]:
        """See Cluster. The simulation does not need it."""
        raise NotImplementedError

    def cleanup_policies(self, topic: str) -> frozenset[str] | None:
        """See Cluster."""
        assert topic == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise NetworkError("no answer")
        return frozenset({"compact" if self.compacts else "delete"})

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
