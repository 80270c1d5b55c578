"""Simulated workers: they read the logs as the logs are at that moment, and record each read for the oracle."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kafka_io.errors import KafkaIOError, LogShort, NetworkError, OffsetOutOfRange, TopicReplaced
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.gaps import CONTROL, HOLE
from pipelines.loading.work import FetchTask, SliceFacts, SliceFailure
from resources.spark import Progress
from tests.simulation.brokers import SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Row, SimStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The records and markers of `[start, stop)` that a broker answered at `tick`, in one incarnation of the topic."""

    start: int
    stop: int
    tick: int
    incarnation: str
    payloads: dict[int, int]
    markers: frozenset[int] = frozenset()
    has_epoch: bool = True

    @property
    def lost(self) -> list[int]:
        """The offsets of which the log had neither a record nor a marker."""
        return [offset for offset in range(self.start, self.stop) if offset not in self.payloads.keys() | self.markers]


@dataclass(slots=True, kw_only=True)
class SimWorkers:
    """Fetches slices. `reads` has all reads by partition and loading time, which is different for every load."""

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler
    reads: dict[tuple[BrokerPartition, int], list[Read]] = field(default_factory=lambda: defaultdict(list))

    def fetch(self, works: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
        """Fetch each slice; returns their facts. Some slices fail; some are fetched twice, but reported once."""
        result = []
        for fetched, work in enumerate(works, 1):
            self.scheduler.step("fetch began")
            try:
                for _ in range(2 if self.scheduler.harmed(0.3) else 1):
                    facts, reads = self._attempt(work)
                # A range that is fetched again replaces what was read of it before.
                before = self.reads[work.offsets.partition, work.loaded_at_us]
                kept = [read for read in before if work.offsets.stop <= read.start or read.stop <= work.offsets.start]
                self.reads[work.offsets.partition, work.loaded_at_us] = [*kept, *reads]
                result.append(facts)
            except KafkaIOError as error:
                empty = SliceFacts(offsets=work.offsets)
                result.append(replace(empty, failure=SliceFailure.of(error, work.where, "")))
            on_progress(fetched, len(works))
        return sorted(result, key=lambda facts: facts.offsets)

    def _attempt(self, work: FetchTask) -> tuple[SliceFacts, list[Read]]:
        if work.planned.to_message:
            work = replace(work, planned=replace(work.planned, offsets=self._to_message(work.offsets)))
        reads = list(self._read(work))
        payloads = {offset: payload for read in reads for offset, payload in read.payloads.items()}
        id_ = work.offsets.partition
        rows = [Row(id_, offset, work.loaded_at_us, payload) for offset, payload in payloads.items()]
        path = self.store.stage(rows) if rows else None
        if path and self.scheduler.harmed(0.1):
            self.scheduler.note(f"{path} is damaged")
            self.store.staged[path] = tuple(rows[1:])
        size = work.offsets.size
        holes = [] if id_.broker is not None else [offset for read in reads for offset in read.lost]
        gaps = {CONTROL: sum(len(read.markers) for read in reads), HOLE: len(holes)}
        facts = SliceFacts(
            offsets=work.offsets,
            rows=len(rows),
            bytes=size,
            path=path,
            size=len(rows),
            gaps={cause: count for cause, count in gaps.items() if count},
            holes=OffsetRange(id_, holes[0], holes[-1] + 1) if holes else None,
            loaded_at_us=work.loaded_at_us,
            last=self.cluster.message(*max(payloads.items())) if payloads else None,
            source="0@sim:1",
        )
        return facts, reads

    def _to_message(self, offsets: OffsetRange) -> OffsetRange:
        """The range up to the end of the message that contains its last byte."""
        log = self.cluster.logs.get(offsets.partition)
        starts = [offset for offset in log.records if offset >= offsets.stop] if log else []
        return replace(offsets, stop=min(starts, default=max(offsets.stop, log.latest) if log else offsets.stop))

    def _read(self, work: FetchTask) -> Iterator[Read]:
        """Read in two fetches; anything may happen between them."""
        middle = self.scheduler.rng.randint(work.offsets.start, work.offsets.stop)
        for start, stop in ((work.offsets.start, middle), (middle, work.offsets.stop)):
            if start < stop:
                self.scheduler.seam()
                yield self._fetched(work, start, stop)

    def _fetched(self, work: FetchTask, start: int, stop: int) -> Read:
        id_ = work.offsets.partition
        away = self.cluster.away | self.cluster.leaderless
        if self.scheduler.harmed(0.3) or id_ in away or id_ not in self.cluster.logs:
            raise NetworkError("connection reset by peer")
        if self.cluster.era.knows_ids and work.planned.incarnation not in {"unknown", self.cluster.topic_id}:
            raise TopicReplaced("the topic was created again")
        log = self.cluster.logs[id_]
        if start < log.earliest:
            raise OffsetOutOfRange("the offset has expired")
        if stop > log.latest:
            raise LogShort(f"the log ends at {log.latest}")
        self.scheduler.tick += 1
        return Read(
            start=start,
            stop=stop,
            tick=self.scheduler.tick,
            incarnation=self.cluster.incarnation,
            has_epoch=self.cluster.era.has_epochs,
            payloads={offset: payload for offset, payload in log.records.items() if start <= offset < stop},
            markers=frozenset(log.markers & set(range(start, stop))),
        )
