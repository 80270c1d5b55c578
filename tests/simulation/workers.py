"""The workers' part: reads from the brokers as they are when it reads, and keeps what was really there."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kafka_io.errors import KafkaIOError, LogShort, NetworkError, OffsetOutOfRange, TopicReplaced
from kafka_io.model import BrokerPartition
from pipelines.loading.work import Facts, Failure, Work
from resources.spark import Progress
from tests.simulation.brokers import SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Row, SimStore

COMPACTED = "compacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a broker gave of `[start, stop)` at `tick`, in one life of the topic."""

    start: int
    stop: int
    tick: int
    incarnation: str
    payloads: dict[int, int]


@dataclass(slots=True, kw_only=True)
class SimWorkers:
    """Fetches slices; `reads` are those of each partition and loading time, which no two loads share."""

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler
    reads: dict[tuple[BrokerPartition, int], list[Read]] = field(default_factory=lambda: defaultdict(list))

    def fetch(self, works: Sequence[Work], on_progress: Progress) -> list[Facts]:
        """The facts of each slice. Some fail, and some are fetched by two attempts, of which one is told."""
        found = []
        for done, work in enumerate(works, 1):
            self.scheduler.step("fetch began")
            try:
                for _ in range(2 if self.scheduler.harmed(0.3) else 1):
                    facts, reads = self._attempt(work)
                self.reads[work.span.id, work.loaded_at_us] += reads
                found.append(facts)
            except KafkaIOError as error:
                empty = Facts(broker=work.broker, partition=work.partition, start=work.start, stop=work.stop)
                found.append(replace(empty, failure=Failure.of(error, work.where, "")))
            on_progress(done, len(works))
        return sorted(found, key=lambda one: (one.id, one.start))

    def _attempt(self, work: Work) -> tuple[Facts, list[Read]]:
        reads = list(self._read(work))
        payloads = {offset: payload for one in reads for offset, payload in one.payloads.items()}
        id_ = work.span.id
        rows = [Row(id_, offset, work.loaded_at_us, payload) for offset, payload in payloads.items()]
        path = self.store.stage(rows) if rows else None
        if path and self.scheduler.harmed(0.1):
            self.scheduler.tell(f"{path} is damaged")
            self.store.staged[path] = tuple(rows[1:])
        size = work.stop - work.start
        missing = 0 if work.broker is not None else size - len(rows)
        facts = Facts(
            broker=work.broker,
            partition=work.partition,
            start=work.start,
            stop=work.stop,
            rows=len(rows),
            bytes=size,
            path=path,
            size=len(rows),
            gaps={COMPACTED: missing} if missing else {},
            loaded_at_us=work.loaded_at_us,
            source="0@sim:1",
        )
        return facts, reads

    def _read(self, work: Work) -> Iterator[Read]:
        """In two fetches, between which anything may happen."""
        middle = self.scheduler.rng.randint(work.start, work.stop)
        for start, stop in ((work.start, middle), (middle, work.stop)):
            if start < stop:
                self.scheduler.seam()
                yield self._fetched(work, start, stop)

    def _fetched(self, work: Work, start: int, stop: int) -> Read:
        id_ = work.span.id
        if self.scheduler.harmed(0.3) or id_ in self.cluster.away or id_ not in self.cluster.logs:
            raise NetworkError("connection reset by peer")
        if self.cluster.era.knows_ids and work.incarnation != self.cluster.incarnation:
            raise TopicReplaced("the topic was made anew")
        log = self.cluster.logs[id_]
        if start < log.earliest:
            raise OffsetOutOfRange("no longer there")
        if stop > log.latest:
            raise LogShort(f"the log ends at {log.latest}")
        self.scheduler.tick += 1
        return Read(
            start=start,
            stop=stop,
            tick=self.scheduler.tick,
            incarnation=self.cluster.incarnation,
            payloads={at: payload for at, payload in log.records.items() if start <= at < stop},
        )
