"""The result of a load: the values that the command line prints and the Dagster UI shows.

Lag is counted in offsets up to the high watermark: in records from 0.8 on, in bytes of the log in 0.7.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import Coverage, TableState
from pipelines.ledger.slice_facts import NOTHING_DECODED, DecodedCounts, SliceFacts
from resources.printed import HIDDEN, INLINED, printed_property


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """The part of a partition that a load committed.

    Args:
        offsets: what was committed; empty if nothing was new.
        rows: the number of committed rows.
        bytes: the bytes that were read for them (see CommittedRange).
        files: the number of files with these rows.
        lag_before: the offsets that the broker held beyond the cursor when the load was planned.
        lag: the offsets among these that no load had committed when this one ended.
        seconds: the sum of the times that the slices took.
        source: the broker that served the last read, `id@host:port`; empty if nothing was read.
    """

    offsets: OffsetRange = field(metadata=INLINED)
    rows: int
    bytes: int = 0
    files: int = 0
    gaps: Mapping[str, int]
    """The number of offsets without a row, by cause."""
    odd_times: int = 0
    """The number of rows with a time that only the column `timestampRaw` can hold."""
    bad_records: int = 0
    """The number of rows whose value does not decode; 0 in a raw table."""
    rounded: int = 0
    """The number of rows with a number of more digits than its column of the type double keeps."""
    first_rounded: int | None = None
    """The offset of the first of them."""
    lag_before: int | None = 0
    """None if the broker did not report the end of the log."""
    lag: int | None = 0
    """None in the same case."""
    seconds: float = 0.0
    source: str = ""

    @classmethod
    def empty(cls, partition: BrokerPartition) -> Self:
        """The load before anything was committed."""
        return cls(offsets=OffsetRange(partition, 0, 0), rows=0, gaps={})

    def plus(self, facts: SliceFacts) -> Self:
        """The load with one more committed slice. Such slices are adjacent, so together they are one range."""
        own, new = self.offsets, facts.offsets
        if own.size:
            new = OffsetRange(new.partition, min(own.start, new.start), max(own.stop, new.stop))
        return replace(
            self,
            offsets=new,
            rows=self.rows + facts.rows,
            bytes=self.bytes + facts.range.bytes,
            files=self.files + len(facts.files),
            gaps=dict(Counter(self.gaps) + Counter(facts.range.gaps)),
            odd_times=self.odd_times + facts.observed.odd_times,
            bad_records=self.bad_records + facts.observed.bad,
            rounded=self.rounded + facts.observed.rounded,
            first_rounded=min(
                (first for first in (self.first_rounded, facts.observed.first_rounded) if first is not None),
                default=None,
            ),
            seconds=self.seconds + facts.observed.seconds,
            source=facts.range.source or self.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """A result of `penstock load`.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version after the load.
        rows: the number of rows that this load added.
        bytes: the bytes that were read for them (see CommittedRange).
        files: the number of files that this load added.
        error: what failed, with the first of `failures`; None if everything that was planned is committed.
        failures: everything that failed.
        retriable: whether another attempt may succeed, at least in part.
        partitions: what the load did to each partition.
        slowest: the slice that took the longest.
        warnings: sentences for the user, for example about partitions that could not be loaded yet.
        seconds: how long the load took.
        trace: the stack trace of the error, if it is known.
        tables: what the load did to the other tables of the topic. Errors and warnings are those of the topic.
    """

    topic: str
    table: str
    version: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    error: str | None = field(default=None, metadata=HIDDEN)
    failures: tuple[SliceFailure, ...] = field(default=(), metadata=HIDDEN)
    retriable: bool = field(default=False, metadata=HIDDEN)
    partitions: tuple[PartitionLoad, ...] = ()
    slowest: SliceFacts | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    trace: str | None = field(default=None, metadata=HIDDEN)
    tables: "tuple[TopicLoad, ...]" = field(default=(), metadata=HIDDEN)

    @property
    def of_tables(self) -> "Sequence[TopicLoad]":
        """The result for each table of the topic; its own comes first."""
        return (self, *self.tables)

    @printed_property
    def bad_records(self) -> int:
        """The number of rows whose value does not decode."""
        return sum(partition.bad_records for partition in self.partitions)

    @printed_property
    def skipped(self) -> int:
        """The number of records without a row because the condition `skip` is true for them."""
        return sum(partition.gaps.get(ExactCause.FILTERED, 0) for partition in self.partitions)

    @printed_property
    def lag_before(self) -> int | None:
        """The offsets that were there to load when the load began; None if it is unknown for a partition."""
        return self._sum([partition.lag_before for partition in self.partitions])

    @printed_property
    def lag(self) -> int | None:
        """The offsets among these that are not loaded; None if that is unknown for a partition."""
        return self._sum([partition.lag for partition in self.partitions])

    def _sum(self, numbers: Sequence[int | None]) -> int | None:
        """The sum. A load that failed before it knew the partitions knows nothing of their lag."""
        known = [number for number in numbers if number is not None]
        return None if len(known) < len(numbers) or (self.error and not numbers) else sum(known)

    @printed_property
    def rows_per_second(self) -> float:
        """The speed of the whole load in rows."""
        return round(self.rows / self.seconds, 1) if self.seconds else 0.0

    @printed_property
    def bytes_per_second(self) -> float:
        """The speed of the whole load in bytes."""
        return round(self.bytes / self.seconds, 1) if self.seconds else 0.0

    @printed_property
    def errors(self) -> tuple[SliceFailure, ...]:
        """Everything that failed."""
        return self.failures


@dataclass(slots=True, kw_only=True)
class RunRecord:
    """Collects the results of the steps that one run loads of a topic.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version after the last step.
        warnings: the warnings of all steps.
        failures: why slices were not fetched, and other errors.
        partitions: what was committed of each partition of which the table or its broker holds something, or whose
            broker did not answer.
        decoded: how many of the committed records decode.
        slowest: the committed slice that took the longest.
        lag_before: the lag of each partition when the run began, if its broker answered.
        cursors: the cursors after the last step, and the ends of the logs that it knew.
        bounds: what the brokers held of each partition before the last step that asked for it.
    """

    topic: str
    table: str
    version: int | None = None
    warnings: list[str] = field(default_factory=list)
    failures: list[SliceFailure] = field(default_factory=list)
    partitions: dict[BrokerPartition, PartitionLoad] = field(default_factory=dict)
    decoded: DecodedCounts = NOTHING_DECODED
    slowest: SliceFacts | None = None
    lag_before: dict[BrokerPartition, int] = field(default_factory=dict)
    cursors: dict[BrokerPartition, tuple[int, int | None]] = field(default_factory=dict)
    bounds: dict[BrokerPartition, Bounds] = field(default_factory=dict)

    def begin_step(
        self, partitions: Iterable[BrokerPartition], bounds: Mapping[BrokerPartition, Bounds], state: TableState
    ) -> None:
        """Record cursor, end of the log and lag of each partition before a step. They are known even if it fails."""
        self.bounds.update(bounds)
        for id_ in sorted({*partitions, *bounds}):
            bound, known_cursor = bounds.get(id_), state.cursor(id_)
            if bound is None:
                self.cursors[id_] = known_cursor or 0, None
            else:
                cursor = bound.earliest if known_cursor is None else known_cursor
                self.cursors[id_] = cursor, bound.high_watermark
                self.lag_before.setdefault(id_, max(0, bound.high_watermark - cursor))
            if bound is None or id_ in state.covered or bound.earliest < bound.high_watermark:
                self.partitions.setdefault(id_, PartitionLoad.empty(id_))

    def add(self, committed: Sequence[SliceFacts], covered: Coverage) -> None:
        """Add the slices that a step committed; `covered` is the table's coverage after the commit."""
        for id_, (_, latest) in self.cursors.items():
            if id_ in covered:
                self.cursors[id_] = covered[id_][1], latest
        for facts in committed:
            load = self.partitions.get(facts.partition) or PartitionLoad.empty(facts.partition)
            self.partitions[facts.partition] = load.plus(facts)
            slowest_s = self.slowest.observed.seconds if self.slowest else -1.0
            if facts.range.source and facts.observed.seconds > slowest_s:
                self.slowest = replace(facts, files=())  # their statistics are large
        self.decoded = self.decoded.plus(committed)

    def outcome(self, *, seconds: float) -> TopicLoad:
        """The result of the run, which took this time."""
        partitions = tuple(map(self._partition_load, sorted(self.partitions)))
        and_more = f" (and {len(self.failures) - 1} more)" if self.failures[1:] else ""
        return TopicLoad(
            topic=self.topic,
            table=self.table,
            version=self.version,
            rows=sum(load.rows for load in partitions),
            bytes=sum(load.bytes for load in partitions),
            files=sum(load.files for load in partitions),
            error=f"{self.failures[0]}{and_more}" if self.failures else None,
            failures=tuple(self.failures),
            retriable=any(failure.retriable for failure in self.failures),
            partitions=partitions,
            slowest=self.slowest,
            warnings=(
                *dict.fromkeys(self.warnings),
                *_odd_times_warning(partitions),
                *_bad_records_warning(self.topic, partitions, self.decoded),
                *_rounded_warning(partitions),
            ),
            seconds=round(seconds, 3),
            trace=next((failure.trace for failure in self.failures if failure.trace), None),
        )

    def _partition_load(self, id_: BrokerPartition) -> PartitionLoad:
        """The load of one partition, with its lag after the run."""
        load, (cursor, latest) = self.partitions[id_], self.cursors[id_]
        return replace(
            load,
            offsets=load.offsets if load.offsets.size else OffsetRange(id_, cursor, cursor),
            lag_before=self.lag_before.get(id_),
            lag=None if latest is None else max(0, latest - cursor),
            seconds=round(load.seconds, 3),
        )


def _odd_times_warning(partitions: Sequence[PartitionLoad]) -> Iterator[str]:
    counts = {str(load.offsets.partition): load.odd_times for load in partitions if load.odd_times}
    if counts:
        yield (
            f"{sum(counts.values())} records have a timestamp before the year 1 or after 9999 (partitions "
            f"{', '.join(counts)}): `timestamp` is null, and `timestampRaw` has the number that the producer sent"
        )


def _bad_records_warning(topic: str, partitions: Sequence[PartitionLoad], decoded: DecodedCounts) -> Iterator[str]:
    counts = {str(load.offsets.partition): load.bad_records for load in partitions if load.bad_records}
    if counts and decoded.first:
        partition, first = decoded.first
        yield (
            f"{sum(counts.values())} records do not decode (partitions {', '.join(counts)}): their rows have `_error` "
            f"and `_raw`, and `penstock redecode {topic}` decodes them when the schema or the settings are right; the "
            f"first one is at offset {first.offset} of partition {partition}: {first.reason}"
        )


def _rounded_warning(partitions: Sequence[PartitionLoad]) -> Iterator[str]:
    rounded = [load for load in partitions if load.rounded]
    if rounded:
        first = rounded[0]
        yield (
            f"{sum(load.rounded for load in rounded)} records have a number with more than 17 digits, which its column "
            f"of the type double rounds; the first one is at offset {first.first_rounded} of partition "
            f"{first.offsets.partition}: declare the types with `columns` to keep all digits"
        )
