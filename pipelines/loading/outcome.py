"""The result of a load: the values that the command line prints and the Dagster UI shows.

Lag is counted in offsets: in records from 0.8 on, in bytes of the log in 0.7.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.loading.ledger import Coverage
from pipelines.loading.work import SliceFacts, SliceFailure


def printed_range(offsets: OffsetRange) -> dict[str, int | None]:
    """The range as the commands print it in JSON, and as Dagster's tables show it."""
    partition = offsets.partition
    return {"broker": partition.broker, "partition": partition.partition, "start": offsets.start, "end": offsets.stop}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """What a load did to one partition.

    Args:
        offsets: what was committed; empty if nothing was new.
        rows: the number of committed rows.
        bytes: the bytes that were read for them (see SliceFacts).
        files: the number of files with these rows.
        gaps: the number of offsets without a row, by cause.
        lag_before: the offsets that the broker held beyond the cursor when the load was planned.
        lag: the offsets among these that the load did not commit.
        seconds: how long the slices took in sum.
        source: the broker that served the last read, `id@host:port`; empty if nothing was read.
    """

    offsets: OffsetRange
    rows: int
    bytes: int = 0
    files: int = 0
    gaps: Mapping[str, int]
    lag_before: int = 0
    lag: int = 0
    seconds: float = 0.0
    source: str = ""

    def then(self, later: Self) -> Self:
        """This load and a later step of the same run as one.

        The later step committed offsets directly before or after this one's, or none.
        """
        parts = [load.offsets for load in (self, later) if load.offsets.size > 0] or [later.offsets]
        offsets = replace(later.offsets, start=min(part.start for part in parts), stop=max(part.stop for part in parts))
        return replace(
            later,
            offsets=offsets,
            rows=self.rows + later.rows,
            bytes=self.bytes + later.bytes,
            files=self.files + later.files,
            gaps=dict(Counter(self.gaps) + Counter(later.gaps)),
            lag_before=self.lag_before,
            seconds=round(self.seconds + later.seconds, 3),
            source=later.source or self.source,
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock load --json`."""
        return {
            **printed_range(self.offsets),
            **{item.name: getattr(self, item.name) for item in fields(self) if item.name != "offsets"},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceLoad:
    """A committed slice, and how long it took."""

    offsets: OffsetRange
    rows: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.offsets}: {self.rows} rows in {self.seconds:.1f} s"

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock load --json`."""
        start, stop = self.offsets.start, self.offsets.stop
        partition = self.offsets.partition
        return {
            "broker": partition.broker,
            "partition": partition.partition,
            "start": start,
            "stop": stop,
            "rows": self.rows,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """What a load did to one topic's table.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version after the load.
        rows: the number of rows that this load added.
        bytes: the bytes that were read for them (see SliceFacts).
        files: the number of files that this load added.
        error: what failed; None if everything that was planned is committed.
        retriable: whether another attempt may succeed, at least in part.
        partitions: what the load did to each partition.
        slowest: the slice that took the longest.
        warnings: what a person should know, for example of partitions that could not be loaded yet.
        seconds: how long the load took.
        trace: the stack trace of the error, if it is known.
    """

    topic: str
    table: str
    version: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    error: str | None = None
    retriable: bool = False
    partitions: tuple[PartitionLoad, ...] = ()
    slowest: SliceLoad | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    trace: str | None = None

    @property
    def lag_before(self) -> int:
        """The offsets that were there to load when the load began."""
        return sum(partition.lag_before for partition in self.partitions)

    @property
    def lag(self) -> int:
        """The offsets among these that are not loaded."""
        return sum(partition.lag for partition in self.partitions)

    @property
    def rows_per_second(self) -> float:
        """The speed of the whole load in rows."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """The speed of the whole load in bytes."""
        return self.bytes / self.seconds if self.seconds else 0.0

    def failed(self, failures: Sequence[SliceFailure]) -> Self:
        """This load with the error for `failures`; unchanged if there are none."""
        if not failures:
            return self
        others = f" (and {len(failures) - 1} more)" if failures[1:] else ""
        return replace(
            self,
            error=f"{failures[0]}{others}",
            retriable=any(failure.retriable for failure in failures),
            trace=next((failure.trace for failure in failures if failure.trace), None),
        )

    def then(self, later: Self) -> Self:
        """This load and the next step of the same run as one."""
        partitions = {load.offsets.partition: load for load in self.partitions}
        for load in later.partitions:
            before = partitions.get(load.offsets.partition)
            partitions[load.offsets.partition] = before.then(load) if before else load
        return replace(
            later,
            version=self.version if later.version is None else later.version,
            rows=self.rows + later.rows,
            bytes=self.bytes + later.bytes,
            files=self.files + later.files,
            partitions=tuple(partitions.values()),
            slowest=max(filter(None, (self.slowest, later.slowest)), key=lambda load: load.seconds, default=None),
            warnings=tuple(dict.fromkeys((*self.warnings, *later.warnings))),
            seconds=round(self.seconds + later.seconds, 3),
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock load --json`."""
        names = ("topic", "table", "version", "rows", "bytes", "files", "lag_before", "lag", "error", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "rows_per_second": round(self.rows_per_second, 1),
            "bytes_per_second": round(self.bytes_per_second, 1),
            "slowest": self.slowest.as_dict() if self.slowest else None,
            "warnings": list(self.warnings),
            "partitions": [partition.as_dict() for partition in self.partitions],
        }


def outcome(
    committed: Sequence[SliceFacts],
    bounds: Mapping[BrokerPartition, Bounds],
    covered: Coverage,
    *,
    topic: str,
    table: str,
    version: int,
    warnings: Sequence[str],
) -> TopicLoad:
    """The result of a step that committed some slices; `bounds` and `covered` are those that it was planned on."""
    fetched = [facts for facts in committed if facts.source]
    slowest = max(fetched, key=lambda facts: facts.seconds, default=None)
    return TopicLoad(
        topic=topic,
        table=table,
        version=version,
        rows=sum(facts.rows for facts in committed),
        bytes=sum(facts.bytes for facts in committed),
        files=sum(facts.path is not None for facts in committed),
        partitions=tuple(by_partition(committed, bounds, covered)),
        slowest=SliceLoad(offsets=slowest.offsets, rows=slowest.rows, seconds=round(slowest.seconds, 3))
        if slowest
        else None,
        warnings=tuple(warnings),
    )


def by_partition(
    committed: Sequence[SliceFacts], bounds: Mapping[BrokerPartition, Bounds], covered: Coverage
) -> Iterator[PartitionLoad]:
    """What happened to each partition of which the table or its broker holds something.

    The committed slices of a partition are adjacent, so together they are one range.
    """
    slices: dict[BrokerPartition, list[SliceFacts]] = defaultdict(list)
    for facts in committed:
        slices[facts.offsets.partition].append(facts)
    known = (id_ for id_, bound in bounds.items() if id_ in covered or id_ in slices or bound.earliest < bound.latest)
    for id_ in sorted(known):
        yield _partition_load(id_, slices.get(id_, ()), bounds[id_], covered)


def _partition_load(
    id_: BrokerPartition, slices: Sequence[SliceFacts], bound: Bounds, covered: Coverage
) -> PartitionLoad:
    cursor = covered[id_][1] if id_ in covered else bound.earliest
    start = min((facts.offsets.start for facts in slices), default=cursor)
    stop = max((facts.offsets.stop for facts in slices), default=cursor)
    return PartitionLoad(
        offsets=OffsetRange(id_, start, stop),
        rows=sum(facts.rows for facts in slices),
        bytes=sum(facts.bytes for facts in slices),
        files=sum(facts.path is not None for facts in slices),
        gaps=dict(sum((Counter(facts.gaps) for facts in slices), Counter())),
        lag_before=bound.latest - cursor,
        lag=bound.latest - max(cursor, stop),
        seconds=round(sum(facts.seconds for facts in slices), 3),
        source=next((facts.source for facts in reversed(slices) if facts.source), ""),
    )
