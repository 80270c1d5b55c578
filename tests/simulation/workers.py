"""Simulated workers: they read the logs as the logs are at that moment, and record each read for the oracle.

What cannot be read is skipped or refused by the product's own code.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import pyarrow as pa

from kafka_io.errors import (
    Corrupt,
    KafkaIOError,
    LeaderChanged,
    LeaderMoved,
    LocatedError,
    LogShort,
    NetworkError,
    OffsetOutOfRange,
    TooLarge,
    TopicReplaced,
    Where,
)
from kafka_io.model import Broker, BrokerPartition, OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.reader.unreadable import UnreadableRange, is_unreadable
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.gaps import CONTROL, HOLE
from pipelines.fetch.decode_plan import DecodePlan
from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.left_out import LeftOut
from pipelines.fetch.typed_rows import IncompletePlan, TypedRows
from pipelines.fetch.unreadable import GAPS, SkipByChoice, readable_batches
from pipelines.layout.columns import ERROR_COLUMN, NO_COLUMNS, RAW_COLUMN, TOMBSTONE_COLUMN
from pipelines.layout.layout import TYPED
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.slice_facts import DataFile, Observations, SliceFacts
from pipelines.ledger.slice_times import SliceTimes, TimesOfRows
from resources.progress import Progress
from tests.simulation.brokers import SimCluster
from tests.simulation.day_law import rows_by_folder
from tests.simulation.scheduler import Scheduler
from tests.simulation.sim_log import SimLog
from tests.simulation.store import Row, SimStore

_ROWS_ARE_IN_READS = pa.RecordBatch.from_pylist([], schema=pa.schema([]))
_STATE = (TOMBSTONE_COLUMN, ERROR_COLUMN, RAW_COLUMN)
_NO_TOMBSTONE = (TOMBSTONE_COLUMN, False)
_ERRORS = {"on_corrupt": Corrupt, "on_too_large": TooLarge}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The records and markers of `[start, stop)` that a broker answered at `tick`, in one incarnation of the topic.

    `cluster_id` is the id of the cluster that the broker belonged to; empty in 0.7.

    `deposed` is the tick before the election, if the broker was a leader that had been deposed in it.

    `skipped` is the choice by which the offsets were skipped, because they cannot be read.
    """

    start: int
    stop: int
    tick: int
    incarnation: str
    payloads: dict[int, int]
    markers: frozenset[int] = frozenset()
    has_epoch: bool = True
    skipped: str = ""
    cluster_id: str = ""
    deposed: int | None = None

    @property
    def shown(self) -> int:
        """The tick at which the log had what was read."""
        return self.tick if self.deposed is None else self.deposed

    def within(self, offsets: OffsetRange) -> Self:
        """The part of the read that is in a range."""
        start, stop = max(self.start, offsets.start), min(self.stop, offsets.stop)
        if (start, stop) == (self.start, self.stop):
            return self
        payloads = {offset: payload for offset, payload in self.payloads.items() if start <= offset < stop}
        return replace(self, start=start, stop=stop, payloads=payloads, markers=self.markers & set(range(start, stop)))

    @property
    def lost(self) -> set[int]:
        """The offsets of which the log had neither a record nor a marker."""
        return set() if self.skipped else set(range(self.start, self.stop)).difference(self.payloads, self.markers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a worker made of the values of a slice: the cells of each row by offset (see Row)."""

    typed: TypedRows
    cells: Mapping[int, tuple[tuple[str, object], ...]]


@dataclass(slots=True, kw_only=True)
class SimReader:
    """Reads one partition for one slice; see Reader.

    `reads` are what the broker answered; those that the slice does not use in the end are replaced.
    """

    cluster: SimCluster
    scheduler: Scheduler
    work: FetchTask
    reads: list[Read] = field(default_factory=list)

    def read(self, planned_ranges: Iterable[PlannedRange]) -> Iterator[Iterator[DecodedBatch]]:
        """See Reader."""
        return (self._batches(planned) for planned in planned_ranges)

    def _batches(self, planned: PlannedRange) -> Iterator[DecodedBatch]:
        """Read in two fetches; anything may happen between them."""
        start, stop = planned.offsets.start, planned.offsets.stop
        middle = self.scheduler.rng.randint(start, stop)
        for part in pairwise((start, middle, stop)):
            if part[0] < part[1]:
                self.scheduler.seam()
                yield from self._fetched(*part)

    def _fetched(self, start: int, stop: int) -> Iterator[DecodedBatch]:
        (log, tick), planned = self._asked(), self.work.planned
        if self.cluster.refuses_later and -1 < planned.epoch < log.epoch_before(stop):
            raise LeaderChanged("the range has records of a later leader")
        if start < log.earliest:
            raise OffsetOutOfRange("the offset has expired")
        if stop > log.latest:
            raise LogShort(f"the log ends at {log.latest}")
        damage = next(iter(log.damages_in(start, stop)), None)
        if damage:
            readable = max(start, damage.start)
            # The decoder may drop the rows before what it cannot decode.
            if start < readable and self.scheduler.rng.random() < 0.5:
                yield self._decoded(log, start, readable, tick)
            raise _ERRORS[damage.setting]("a batch cannot be read", Where(offset=readable))
        yield self._decoded(log, start, stop, tick)

    def _asked(self) -> tuple[SimLog, int | None]:
        """The log of the leader, or of a deposed one that is as new as the plan, with the tick before the election.

        A read from a deposed leader shows what the log was before the election.
        """
        log, deposed = self._log(), self.cluster.asked_deposed(self.work.offsets.partition)
        is_older = deposed is not None and deposed[0].epoch < self.work.planned.epoch
        return (log, None) if deposed is None or (is_older and self.cluster.refuses_older) else deposed

    def _log(self) -> SimLog:
        id_ = self.work.offsets.partition
        away = self.cluster.away | self.cluster.leaderless
        if self.scheduler.harmed(0.3) or id_ in away or id_ not in self.cluster.logs or self.cluster.is_interrupted:
            raise NetworkError("connection reset by peer")
        self.cluster.check_id(self.work.source.cluster_id)
        if self.cluster.era.knows_ids and self.work.planned.incarnation not in {"unknown", self.cluster.topic_id}:
            raise TopicReplaced("the topic was created again")
        log = self.cluster.logs[id_]
        if self.cluster.era.has_epochs and self.cluster.refuses_older and log.epoch < self.work.planned.epoch:
            raise LeaderMoved("the broker knows only an older leader")
        return log

    def _decoded(self, log: SimLog, start: int, stop: int, tick: int | None) -> DecodedBatch:
        read = self._read(log, start, stop)
        self.reads.append(replace(read, deposed=tick))
        return DecodedBatch(_ROWS_ARE_IN_READS, stop, {})

    def _read(self, log: SimLog, start: int, stop: int) -> Read:
        self.scheduler.tick += 1
        return Read(
            start=start,
            stop=stop,
            tick=self.scheduler.tick,
            incarnation=self.cluster.incarnation,
            cluster_id=self.cluster.present_id,
            has_epoch=self.cluster.era.has_epochs,
            payloads={offset: payload for offset, payload in log.records.items() if start <= offset < stop},
            markers=frozenset(log.markers & set(range(start, stop))),
        )

    def unreadable(self, planned: PlannedRange, offset: int) -> UnreadableRange:
        """See Reader."""
        self.scheduler.seam()
        log = self._log()
        damage = next(iter(log.damages_in(offset, offset + 1)), None)
        if damage is None:
            return UnreadableRange(start=offset, stop=offset)
        stop = min(damage.stop, planned.offsets.stop)
        read = replace(self._read(log, offset, stop), payloads={}, markers=frozenset(), skipped=damage.setting)
        self.reads.append(read)
        return UnreadableRange(start=offset, stop=stop, data=self.bytes_of(offset, stop))

    def serving(self, planned: PlannedRange) -> Broker | None:
        """See Reader. The simulation does not need it."""
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: there is no connection."""

    @staticmethod
    def bytes_of(start: int, stop: int) -> bytes:
        """The bytes of a batch that cannot be read."""
        return b"%d-%d" % (start, stop)


@dataclass(slots=True, kw_only=True)
class SimWorkers:
    """Fetches slices. `reads` has all reads by partition and loading time, which is different for every load.

    `on_read` is called after each slice.
    """

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler
    reads: dict[tuple[BrokerPartition, int], list[Read]] = field(default_factory=lambda: defaultdict(list))
    on_read: Callable[[], None] = lambda: None

    def fetch(self, works: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
        """Fetch each slice; returns their facts. Some slices fail; some are fetched twice, but reported once."""
        result: list[SliceFacts] = []
        for fetched, work in enumerate(works, 1):
            self.scheduler.step("fetch began")
            try:
                for _ in range(2 if self.scheduler.harmed(0.3) else 1):
                    facts, reads = self._attempt(work)
                # A range that is fetched again replaces what was read of it before.
                before = self.reads[work.offsets.partition, work.loaded_at_us]
                kept = [read for read in before if work.offsets.stop <= read.start or read.stop <= work.offsets.start]
                self.reads[work.offsets.partition, work.loaded_at_us] = [*kept, *reads]
                result += facts
            except KafkaIOError as error:
                result.append(_failed(work.offsets, work, error))
            self.on_read()
            on_progress(fetched, len(works))
        return sorted(result, key=lambda facts: facts.offsets)

    def _attempt(self, work: FetchTask) -> tuple[list[SliceFacts], list[Read]]:
        """The facts of one attempt: as in a worker of Spark, those before a record that cannot be read come first."""
        if work.planned.to_message:
            work = replace(work, planned=replace(work.planned, offsets=self._to_message(work.offsets)))
        reader, skip = SimReader(cluster=self.cluster, scheduler=self.scheduler, work=work), SkipByChoice(work)
        [first] = reader.read([work.planned])
        next_offset, failed = work.offsets.start, []
        try:
            for decoded in readable_batches(reader, work.planned, first, skip):
                next_offset = decoded.next_offset
        except LocatedError as error:
            if next_offset == work.offsets.start or not is_unreadable(error):
                raise
            failed = [_failed(replace(work.offsets, start=next_offset), work, error)]
        offsets = replace(work.offsets, stop=next_offset)
        reads = list(_used(reader.reads, offsets))
        try:
            return [self._facts(work, offsets, reads, skip), *failed], reads
        except IncompletePlan as missing:
            return [SliceFacts(range=CommittedRange(offsets=work.offsets), needs=missing.needs)], reads

    def _facts(self, work: FetchTask, offsets: OffsetRange, reads: Sequence[Read], skip: SkipByChoice) -> SliceFacts:
        id_, left_out = offsets.partition, LeftOut(work, self.store.sets)
        payloads: dict[int, int] = {}
        gaps: Counter[str] = Counter(left_out.counts(offsets))
        for read in reads:
            read_offsets, read_gaps = left_out.apply(_batch(read, id_), OffsetRange(id_, read.start, read.stop))
            payloads |= {offset: read.payloads[offset] for offset in read_offsets.column("offset").to_pylist()}
            gaps.update(read_gaps)
        decoded = self._decoded(work.decode, payloads) if work.decode else None
        rows = [
            Row(id_, offset, work.loaded_at_us, payload, decoded.cells[offset] if decoded else ())
            for offset, payload in payloads.items()
        ]
        files = list(self._files(work, rows)) if rows else []
        if files and self.scheduler.harmed(0.1):
            self.scheduler.note(f"{files[-1].path} is damaged")
            self.store.staged[files[-1].path] = self.store.staged[files[-1].path][1:]
        holes = [] if id_.broker is not None else sorted(offset for read in reads for offset in read.lost)
        fetched = CommittedRange(
            offsets=offsets,
            rows=len(rows),
            bytes=offsets.size,
            gaps={cause: count for cause, count in gaps.items() if count},
            loaded_at_us=work.loaded_at_us,
            source="0@sim:1",
            exact=left_out.stored(offsets),
        )
        observed = Observations(
            holes=OffsetRange(id_, holes[0], holes[-1] + 1) if holes else None,
            skipped=tuple(skip.skipped),
            times=self._times(work, payloads) if work.times else None,
            bad=decoded.typed.bad if decoded else 0,
            bad_examples=tuple(decoded.typed.examples) if decoded else (),
            last=self.cluster.message(*max(payloads.items())) if payloads else None,
        )
        return SliceFacts(range=fetched, files=reported(files), observed=observed)

    def _files(self, work: FetchTask, rows: Sequence[Row]) -> Iterator[DataFile]:
        """Write one file, or one for each day that Penstock's own code gives to rows."""
        columns = work.decode.stored if work.decode else NO_COLUMNS
        for folder, part in rows_by_folder(work, rows) if not work.folder else [(work.folder, rows)]:
            yield DataFile(path=self.store.stage(part, columns, folder), size=len(part), rows=len(part))

    def _decoded(self, plan: DecodePlan, payloads: Mapping[int, int]) -> "Decoded":
        """The cells of rows, as Penstock's own code decodes their values.

        Raises:
            IncompletePlan: see TypedRows.
        """
        assert self.cluster.values is not None
        values = [self.cluster.values.by_payload[payload].data for payload in payloads.values()]
        columns = {"offset": pa.array(payloads.keys(), pa.int64()), "value": pa.array(values, pa.binary())}
        typed = TypedRows(plan)
        rows = typed.rows(pa.RecordBatch.from_pydict(columns), {})
        names = [*_STATE, *plan.values.names]
        cells: dict[int, list[tuple[str, object]]] = {offset: [] for offset in rows[TYPED.name("offset")].to_pylist()}
        for name in names:
            if rows[name].null_count == rows.num_rows:  # most columns of a wide topic have no cell in a slice
                continue
            for of_row, cell in zip(cells.values(), rows[name].to_pylist(), strict=True):
                if cell is not None and (name, cell) != _NO_TOMBSTONE:
                    of_row.append((name, cell))
        return Decoded(typed=typed, cells={offset: tuple(of_row) for offset, of_row in cells.items()})

    def _times(self, work: FetchTask, payloads: Mapping[int, int]) -> SliceTimes:
        """The event times of rows, as Penstock's own code collects them."""
        assert work.times is not None
        assert self.cluster.times is not None
        collected = TimesOfRows(work.times, before_ms=work.loaded_at_us // 1000)
        event_ms = [self.cluster.times.event_ms[payload] for payload in payloads.values()]
        collected.add(pa.RecordBatch.from_pydict({work.times.name: pa.array(event_ms, pa.timestamp("ms"))}))
        return collected.result

    def _to_message(self, offsets: OffsetRange) -> OffsetRange:
        """The range up to the end of the message that contains its last byte."""
        log = self.cluster.logs.get(offsets.partition)
        starts = [offset for offset in log.records if offset >= offsets.stop] if log else []
        return replace(offsets, stop=min(starts, default=max(offsets.stop, log.latest) if log else offsets.stop))


def _batch(read: Read, id_: BrokerPartition) -> DecodedBatch:
    """What the decoder makes of a read: the places of its records, and its gaps."""
    offsets = pa.array(read.payloads, pa.int64())
    columns = (
        {"offset": offsets}
        if id_.broker is None
        else {"offset": offsets, "inner": pa.repeat(pa.scalar(0), len(offsets))}
    )
    counts = {CONTROL: len(read.markers), HOLE: len(read.lost) if id_.broker is None else 0}
    if read.skipped:
        counts = {GAPS[read.skipped]: read.stop - read.start}
    gaps = {cause: count for cause, count in counts.items() if count}
    return DecodedBatch(pa.RecordBatch.from_pydict(columns), read.stop, gaps)


def reported(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """The files as the facts of their slice name them."""
    return tuple(files)


def _used(reads: Iterable[Read], offsets: OffsetRange) -> Iterator[Read]:
    """The reads of what a slice has in the end: not those of a batch that it neither read nor skipped."""
    return (read for read in reads if read.stop <= offsets.stop)


def _failed(offsets: OffsetRange, work: FetchTask, error: KafkaIOError | LocatedError) -> SliceFacts:
    return SliceFacts(range=CommittedRange(offsets=offsets), failure=SliceFailure.of(error, work.where))
