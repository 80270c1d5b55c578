"""A simulated topic. Its logs grow, expire, lose records, and are compacted or truncated.

Its brokers sometimes report wrong bounds.

The payload of each record is a number that no other record has, so it shows from which record a row comes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.retention import Retention
from kafka_io.errors import (
    Corrupt,
    KafkaIOError,
    NetworkError,
    OffsetOutOfRange,
    RegistryUnavailable,
    TopicReplaced,
    Where,
)
from kafka_io.model import (
    UNKNOWN_INCARNATION,
    Bounds,
    Broker,
    BrokerPartition,
    EpochEnd,
    Generation,
    OffsetRange,
    TopicEntry,
    TopicIds,
)
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source
from kafka_io.records.last_message import LastMessage
from kafka_io.zookeeper.listing import Listing
from tests.simulation.event_times import SimTimes
from tests.simulation.scheduler import Scheduler
from tests.simulation.sim_log import ERAS, Era, SimLog
from tests.simulation.values import ENCODINGS, SimRegistry, SimValues

TOPIC = "clicks"
_LAGGING = 5.0  # while a broker lags, it often answers


class TrueBounds(NamedTuple):
    """The true bounds of a log when a run asked for them, and the time in milliseconds since 1970.

    `held_from` is the first offset that an open transaction held back; None if there was none.
    """

    time_ms: int
    tick: int
    earliest: int
    latest: int
    held_from: int | None = None


class AnsweredBounds(NamedTuple):
    """The bounds that brokers answered to one question, and the version of the table that the run saw then.

    `topics` is the number of the run's questions about the topic until then.
    """

    bounds: dict[BrokerPartition, Bounds]
    version: int
    topics: int


@dataclass(slots=True, kw_only=True)
class Answers:
    """The answers of the registry and the brokers to one run.

    Args:
        through_zookeeper: whether the settings of the run name ZooKeeper. A run reads its settings once.
        topics: the topic's incarnation and the ids that it showed, at each question.
        bounds: the answers about bounds with which each step began: it asks for the topic, and then for its bounds.
        begins_step: whether the run has asked for the topic, and not yet for its bounds.
        before_table: whether the last bounds were asked for before the table was read, and not used yet.
        asked: the true bounds at the first answer about each partition.
        lied: the partitions of which a broker reported wrong bounds.
        silent: the partitions whose last message the run could not read.
        schemas: whether the schema registry knew the id of a schema, when it was asked last.
        contradicting, ids_after_read, logs_after_read: see `IdentityLaw.note_read`.
        cluster_id: the id of the cluster, which a run asks for once.
        restores: how often a disk had been put back when the run began.
        planned_on_other: the logs that contradicted the table when the step of the run began.
        other_records: the logs that had lost records of the table then, as their leaders' epochs showed.
    """

    through_zookeeper: bool = True
    topics: list[tuple[str, TopicIds]] = field(default_factory=list)
    bounds: list[AnsweredBounds] = field(default_factory=list)
    asked: dict[BrokerPartition, TrueBounds] = field(default_factory=dict)
    lied: set[BrokerPartition] = field(default_factory=set)
    silent: set[BrokerPartition] = field(default_factory=set)
    schemas: dict[int, bool] = field(default_factory=dict)
    contradicting: dict[BrokerPartition, SimLog] = field(default_factory=dict)
    ids_after_read: TopicIds = field(default_factory=TopicIds)
    logs_after_read: dict[BrokerPartition, tuple[SimLog, int]] = field(default_factory=dict)
    cluster_id: str = ""
    begins_step: bool = True
    before_table: bool = False
    restores: int = 0
    planned_on_other: dict[BrokerPartition, tuple[SimLog, int]] = field(default_factory=dict)
    other_records: dict[BrokerPartition, tuple[SimLog, int]] = field(default_factory=dict)

    def drop_first_answers(self) -> None:
        """Forget what the run asked before it read the table, and does not use."""
        self.bounds.pop()
        self.asked.clear()
        self.before_table = False

    @property
    def topics_of_step(self) -> list[tuple[str, TopicIds]]:
        """The topics that the last step of the run was shown."""
        return self.topics[max(0, self.bounds[-1].topics - 1) :] if self.bounds else self.topics

    @property
    def incarnations(self) -> set[str]:
        """The incarnations that the topic had when the run asked for it."""
        return {incarnation for incarnation, _ in self.topics}


@dataclass(kw_only=True)
class SimCluster(Cluster):
    """A cluster with one topic.

    Args:
        compacts: whether the topic's cleanup.policy is "compact", and not "delete".
        incarnation_number: how often the topic was created.
        created_zxid: the zxid of the topic's node in ZooKeeper.
        upgraded: whether the brokers were upgraded, so that old commits may lack epochs.
        through_zookeeper: whether the settings of the next run name ZooKeeper, or only bootstrap brokers.
        away: the partitions of 0.7 brokers that are down.
        leaderless: the partitions of later brokers that have no leader.
        answers: the answers to the run that asks now.
        table_version: the version of the table that this run saw last.
        payloads: the number of records so far; the next record has this number as its payload.
        values: the values of the records, if the table of the topic is typed.
        times: the event times of the records, if the settings of the topic ask for them.
        cluster_number: how often the cluster was built.
        deposed: for some partitions, the log of a leader that was deposed, that does not know it, and that still
            answers; with the tick before the election.
        restores: how often a disk was put back to an older copy. This takes longer than a client tries.
        on_bounds: is called when a step of a run has asked for the bounds.
        known_to_lagging: the incarnation and the id of the topic before it was created again, as a broker without a
            controller still shows them; None if there is no such broker.

    `refuses_others` lets a run refuse the answers of another cluster behind the same address, as Penstock's connections
    do. `refuses_older` lets a worker refuse a leader that is older than the one of its plan, and `refuses_later` lets
    it refuse records of a later one, as Penstock's readers do. A test switches them off.
    """

    refuses_others: ClassVar[bool] = True
    refuses_older: ClassVar[bool] = True
    refuses_later: ClassVar[bool] = True

    scheduler: Scheduler
    era: Era
    name: str = "main"
    compacts: bool = False
    incarnation_number: int = 0
    created_zxid: int = 0
    through_zookeeper: bool = True
    upgraded: bool = False
    logs: dict[BrokerPartition, SimLog] = field(default_factory=dict)
    away: set[BrokerPartition] = field(default_factory=set)
    leaderless: set[BrokerPartition] = field(default_factory=set)
    answers: Answers = field(default_factory=Answers)
    table_version: Callable[[], int] = lambda: 0
    payloads: int = 0
    values: SimValues | None = None
    times: SimTimes | None = None
    cluster_number: int = 1
    known_to_lagging: tuple[str, str] | None = None
    deposed: dict[BrokerPartition, tuple[SimLog, int]] = field(default_factory=dict)
    restores: int = 0
    on_bounds: Callable[[], None] = lambda: None

    @property
    def incarnation(self) -> str:
        """The incarnation of the topic now, which only the oracle knows."""
        return f"incarnation-{self.incarnation_number}"

    @property
    def topic_id(self) -> str:
        """The id of the topic, if brokers of this era have ids."""
        return f"topic-id-{self.incarnation_number:013d}"

    def add_partition(self) -> None:
        """Add a partition; in 0.7 the two brokers take turns."""
        number = len(self.logs)
        id_ = BrokerPartition(number % 2, number // 2) if self.era.in_bytes else BrokerPartition(None, number)
        self.logs[id_] = SimLog(era=self.era)

    def recreate(self, partitions: int) -> None:
        """Delete the topic and create it again under the same name. One broker does not notice it."""
        self.known_to_lagging = (self.incarnation, self.topic_id) if self.incarnation_number else None
        self.incarnation_number += 1
        self.created_zxid = self.incarnation_number
        self.logs = {}
        self.away = set()
        self.leaderless = set()
        self.deposed = {}
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
        payloads = range(self.payloads, self.payloads + count)
        self.logs[id_].grow(payloads, size, self.scheduler.now_ms)
        if self.values:
            self.values.send(payloads)
        if self.times:
            self.times.send(payloads, self.scheduler.now_ms)
        self.payloads += count

    def begin_values(self) -> SimValues:
        """Give the records values, whose schemas are in a registry."""

        def note(schema_id: int, is_known: bool) -> None:
            self.answers.schemas[schema_id] = is_known

        [encoding] = self.scheduler.rng.choices(list(ENCODINGS), weights=list(ENCODINGS.values()))
        registry = SimRegistry(self.scheduler, encoding, note)
        self.values = SimValues(scheduler=self.scheduler, registry=registry, encoding=encoding)
        return self.values

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def cluster_id(self) -> str | None:
        """See Cluster. A run that knows the id keeps it."""
        self.answers.cluster_id = self.answers.cluster_id or self.present_id
        return self.answers.cluster_id or None

    @property
    def present_id(self) -> str:
        """The id of the cluster that is behind the address now; empty in 0.7."""
        return "" if self.era.in_bytes else f"cluster-{self.cluster_number}"

    def check_id(self, known: str) -> None:
        """Check that the cluster behind the address is the one that a client knows.

        Raises:
            TopicReplaced: it is another one.
        """
        if self.refuses_others and known not in {"", self.present_id}:
            raise TopicReplaced(f"the address leads to the cluster {self.present_id} now, and not to {known}")

    def topics(self) -> Listing[TopicEntry]:
        """See Cluster."""
        return Listing(entries=(self._entry(),))

    def described(self, names: Collection[str]) -> dict[str, TopicEntry]:
        """See Cluster."""
        entries = {name: self.topic(name) for name in names}
        return {name: entry for name, entry in entries.items() if entry}

    def topic(self, name: str) -> TopicEntry | None:
        """The topic; by chance the registry does not answer, or a lagging broker does (fault B17)."""
        if self.answers.before_table:
            self.answers.drop_first_answers()
        entry = self._asked_topic(name)
        self.answers.begins_step = True
        is_of_broker = self.era.has_ids and not self.answers.through_zookeeper
        if self.known_to_lagging and is_of_broker and self.scheduler.harmed(_LAGGING):
            incarnation, topic_id = self.known_to_lagging
            entry = replace(entry, incarnation=topic_id)
            self.answers.topics[-1] = (incarnation, entry.ids)
        return entry

    def topic_at_leaders(self, name: str, partitions: Iterable[BrokerPartition]) -> TopicEntry | None:
        """The topic; by chance the registry does not answer."""
        del partitions
        return self._asked_topic(name)

    def _asked_topic(self, name: str) -> TopicEntry:
        assert name == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3):
            raise RegistryUnavailable("no answer")
        if not self.answers.through_zookeeper:  # a registry in ZooKeeper does not compare the id
            self.check_id(self.answers.cluster_id)
        entry = self._entry()
        self.answers.topics.append((self.incarnation, entry.ids))
        return entry

    @property
    def shown_ids(self) -> TopicIds:
        """The ids of the topic that the registry shows now."""
        return self._entry().ids

    def _entry(self) -> TopicEntry:
        available = tuple(sorted(self.logs.keys() - self.away))
        ids = [self.topic_id] if self.era.has_ids else []
        ids += [str(self.created_zxid)] if self.answers.through_zookeeper else []
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
            elif error := self._refusal():
                result[id_] = error
            else:
                log = self.logs[id_]
                held_from = None if log.open_from is None else log.bounds().latest
                asked = TrueBounds(self.scheduler.now_ms, self.scheduler.tick, log.earliest, log.latest, held_from)
                self.answers.asked.setdefault(id_, asked)
                result[id_] = self._answered_bounds(id_, log)
        if self.answers.begins_step:
            bounds = {id_: answer for id_, answer in result.items() if isinstance(answer, Bounds)}
            self.answers.bounds.append(AnsweredBounds(bounds, self.table_version(), len(self.answers.topics)))
            self.answers.begins_step = False
            self.on_bounds()
        return result

    def bounds_of(
        self, topics: Mapping[str, Iterable[BrokerPartition]]
    ) -> dict[str, dict[BrokerPartition, Bounds | KafkaIOError]]:
        """See Cluster."""
        return {topic: self.bounds(topic, partitions) for topic, partitions in topics.items()}

    def _refusal(self) -> TopicReplaced | None:
        """Why the present run refuses all answers of the brokers."""
        try:
            self.check_id(self.answers.cluster_id)
        except TopicReplaced as error:
            return error
        return None

    def _is_silent(self, id_: BrokerPartition) -> bool:
        return id_ not in self.logs or id_ in self.leaderless or self.is_interrupted or self.scheduler.harmed(0.5)

    @property
    def is_interrupted(self) -> bool:
        """Whether a disk was put back since the present run began: its connections ended."""
        return self.answers.restores != self.restores

    def asked_deposed(self, id_: BrokerPartition) -> tuple[SimLog, int] | None:
        """The deposed leader of a partition, if it is asked by chance; with the tick before the election."""
        return self.deposed[id_] if id_ in self.deposed and self.scheduler.harmed(_LAGGING) else None

    def _answered_bounds(self, id_: BrokerPartition, log: SimLog) -> Bounds:
        deposed = self.asked_deposed(id_)
        real = (deposed[0] if deposed else log).bounds()
        if deposed:
            log.lies.append(self.scheduler.tick)
            self.answers.lied.add(id_)
        if not self.scheduler.harmed(0.3):
            return real
        rng = self.scheduler.rng
        self.scheduler.note("a broker lies about a log's bounds")
        log.lies.append(self.scheduler.tick)
        self.answers.lied.add(id_)
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

    def truncations(
        self, topic: str, read: Mapping[BrokerPartition, tuple[int, int]]
    ) -> dict[BrokerPartition, EpochEnd]:
        """See Cluster."""
        assert topic == TOPIC
        self.scheduler.seam()
        if self.scheduler.harmed(0.3) or self.is_interrupted:
            raise NetworkError("no answer")
        self.check_id(self.answers.cluster_id)
        return self.true_truncations(read)

    def true_truncations(self, read: Mapping[BrokerPartition, tuple[int, int]]) -> dict[BrokerPartition, EpochEnd]:
        """The correct answer of `truncations`, without simulated failures."""
        ends: dict[BrokerPartition, EpochEnd] = {}
        for id_, (offset, epoch) in read.items():
            log = self.logs.get(id_)
            if log and log.epoch < epoch:
                ends[id_] = EpochEnd(None, is_exact=False)
            elif log and log.end_of(epoch) < offset:
                ends[id_] = EpochEnd(log.end_of(epoch), is_exact=log.knows(epoch))
        return ends

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
            if id_ not in self.logs or id_ in self.away or self.is_interrupted or self.scheduler.harmed(0.3):
                result[id_] = NetworkError("no answer")
                self.answers.silent.add(id_)
                continue
            if error := self._refusal():
                result[id_] = error
                self.answers.silent.add(id_)
                continue
            result[id_] = self._last_message(self.logs[id_], offsets.start)
        return result

    def _last_message(self, log: SimLog, offset: int) -> LastMessage | KafkaIOError | None:
        """The message at the offset or, from 0.8 on, the next one.

        In 0.7 bytes that are no message count as a message with an empty digest.
        """
        if not log.earliest <= offset < log.latest:
            return OffsetOutOfRange("the log does not have this offset", Where(offset=offset))
        if self.era.in_bytes:
            is_message = offset in log.records and not any(log.damages_in(offset, offset + 1))
            return self.message(offset, log.records[offset]) if is_message else LastMessage(offset=offset, digest="")
        first = min((other for other in log.records if other >= offset), default=None)
        if any(log.damages_in(offset, log.latest if first is None else first + 1)):
            return Corrupt("the checksum is wrong", Where(offset=offset))
        return None if first is None else self.message(first, log.records[first])

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
            elif error := self._refusal():
                result[id_] = error
            else:
                result[id_] = self.logs[id_].at_time(timestamp_ms)
                if id_ in self.answers.asked:
                    asked = self.answers.asked[id_]
                    self.answers.asked[id_] = asked._replace(earliest=self.logs[id_].earliest)
        return result

    def times_at(
        self, offsets: Mapping[str, Mapping[BrokerPartition, int]]
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
        self.check_id(self.answers.cluster_id)
        return frozenset({"compact" if self.compacts else "delete"})

    @property
    def generation(self) -> Generation:
        """See Cluster."""
        return Generation.V07 if self.era.in_bytes else Generation.MODERN

    def source(self, partition: BrokerPartition) -> Source:
        """See Cluster."""
        del partition
        return Source(
            cluster=self.name,
            generation=self.generation,
            brokers=(Broker(0, "sim", 1),),
            read_settings=ReadSettings(),
            cluster_id=self.answers.cluster_id,
        )
