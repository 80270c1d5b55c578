"""What a load did: the values that the command line prints and the Dagster UI shows.

Lag is counted in offsets: records from 0.8 on, bytes of the log in 0.7.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Covered
from pipelines.loading.work import Facts, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """What a load did to one partition: `[start, end)` was committed, empty where nothing was new.

    Args:
        broker: of 0.7.
        partition: its number.
        start: where what was committed begins.
        end: where it ends.
        rows: how many rows it has.
        bytes: what was read for it (see Facts).
        files: how many files it is in.
        gaps: offsets without a row, by their cause.
        lag_before: what the broker had beyond the cursor when the load was planned.
        lag: what of that the load did not take.
        seconds: how long its slices took, one after the other.
        source: the broker it was read from at last, `id@host:port`; empty where nothing was.
    """

    broker: int | None
    partition: int
    start: int
    end: int
    rows: int
    bytes: int = 0
    files: int = 0
    gaps: Mapping[str, int]
    lag_before: int = 0
    lag: int = 0
    seconds: float = 0.0
    source: str = ""

    def then(self, later: Self) -> Self:
        """This and what a later step did to the same partition: on one side of it or the other, or nothing."""
        ends = [one for one in (self, later) if one.start < one.end] or [later]
        return replace(
            later,
            start=min(one.start for one in ends),
            end=max(one.end for one in ends),
            rows=self.rows + later.rows,
            bytes=self.bytes + later.bytes,
            files=self.files + later.files,
            gaps=dict(Counter(self.gaps) + Counter(later.gaps)),
            lag_before=self.lag_before,
            seconds=round(self.seconds + later.seconds, 3),
            source=later.source or self.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceLoad:
    """One slice that was committed, and how long it took."""

    broker: int | None
    partition: int
    start: int
    stop: int
    rows: int
    seconds: float

    def __str__(self) -> str:
        id_ = BrokerPartition(self.broker, self.partition)
        return f"partition {id_} [{self.start}, {self.stop}): {self.rows} rows in {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """What a load did to one topic's table. `error` is None when everything that was planned is committed.

    `version` is the table's after the load; `rows`, `bytes` (see Facts) and `files` are what this load added.
    `warnings` tell of partitions that had to wait. An error is `passing` where some of it may be gone at another
    attempt.
    """

    topic: str
    table: str
    version: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    error: str | None = None
    passing: bool = False
    partitions: tuple[PartitionLoad, ...] = ()
    slowest: SliceLoad | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    trace: str | None = None

    @property
    def lag_before(self) -> int:
        """What was there to load when it began."""
        return sum(one.lag_before for one in self.partitions)

    @property
    def lag(self) -> int:
        """What of it is left."""
        return sum(one.lag for one in self.partitions)

    @property
    def rows_per_second(self) -> float:
        """Over the whole load."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Over the whole load."""
        return self.bytes / self.seconds if self.seconds else 0.0

    def failed(self, failures: Sequence[Failure]) -> Self:
        """This, with what failed of it, if anything did."""
        if not failures:
            return self
        others = f" (and {len(failures) - 1} more)" if failures[1:] else ""
        return replace(
            self,
            error=f"{failures[0]}{others}",
            passing=any(one.passing for one in failures),
            trace=next((one.trace for one in failures if one.trace), None),
        )

    def then(self, later: Self) -> Self:
        """This load and the next step of the same run as one."""
        parts = {(one.broker, one.partition): one for one in self.partitions}
        for one in later.partitions:
            before = parts.get((one.broker, one.partition))
            parts[one.broker, one.partition] = before.then(one) if before else one
        return replace(
            later,
            version=self.version if later.version is None else later.version,
            rows=self.rows + later.rows,
            bytes=self.bytes + later.bytes,
            files=self.files + later.files,
            partitions=tuple(parts.values()),
            slowest=max(filter(None, (self.slowest, later.slowest)), key=lambda one: one.seconds, default=None),
            warnings=tuple(dict.fromkeys((*self.warnings, *later.warnings))),
            seconds=round(self.seconds + later.seconds, 3),
        )

    def as_dict(self) -> dict[str, Any]:
        """As `penstock load --json` prints it."""
        names = ("topic", "table", "version", "rows", "bytes", "files", "lag_before", "lag", "error", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "rows_per_second": round(self.rows_per_second, 1),
            "bytes_per_second": round(self.bytes_per_second, 1),
            "slowest": asdict(self.slowest) if self.slowest else None,
            "warnings": list(self.warnings),
            "partitions": [asdict(one) for one in self.partitions],
        }


def outcome(
    good: Sequence[Facts],
    bounds: Mapping[BrokerPartition, Bounds],
    covered: Covered,
    *,
    topic: str,
    table: str,
    version: int,
    warnings: Sequence[str],
) -> TopicLoad:
    """What a step did that committed `good`; `bounds` and `covered` are those it was planned on."""
    fetched = [one for one in good if one.source]
    slowest = max(fetched, key=lambda one: one.seconds, default=None)
    return TopicLoad(
        topic=topic,
        table=table,
        version=version,
        rows=sum(one.rows for one in good),
        bytes=sum(one.bytes for one in good),
        files=sum(one.path is not None for one in good),
        partitions=tuple(by_partition(good, bounds, covered)),
        slowest=_slice_load(slowest) if slowest else None,
        warnings=tuple(warnings),
    )


def _slice_load(one: Facts) -> SliceLoad:
    return SliceLoad(
        broker=one.broker,
        partition=one.partition,
        start=one.start,
        stop=one.stop,
        rows=one.rows,
        seconds=round(one.seconds, 3),
    )


def by_partition(
    facts: Sequence[Facts], bounds: Mapping[BrokerPartition, Bounds], covered: Covered
) -> Iterator[PartitionLoad]:
    """Every partition that the table or its broker has something of.

    Slices of one follow each other, so their ranges add up to one.
    """
    grouped: dict[BrokerPartition, list[Facts]] = defaultdict(list)
    for one in facts:
        grouped[one.id].append(one)
    held = (id_ for id_, bound in bounds.items() if id_ in covered or id_ in grouped or bound.earliest < bound.latest)
    for id_ in sorted(held):
        yield _partition_load(id_, grouped.get(id_, ()), bounds[id_], covered)


def _partition_load(id_: BrokerPartition, mine: Sequence[Facts], bound: Bounds, covered: Covered) -> PartitionLoad:
    before = covered[id_][1] if id_ in covered else bound.earliest
    end = max((one.stop for one in mine), default=before)
    gaps: Counter[str] = Counter()
    for one in mine:
        gaps.update(one.gaps)
    return PartitionLoad(
        broker=id_.broker,
        partition=id_.partition,
        start=min((one.start for one in mine), default=before),
        end=end,
        rows=sum(one.rows for one in mine),
        bytes=sum(one.bytes for one in mine),
        files=sum(one.path is not None for one in mine),
        gaps=dict(gaps),
        lag_before=bound.latest - before,
        lag=bound.latest - max(before, end),
        seconds=round(sum(one.seconds for one in mine), 3),
        source=next((one.source for one in reversed(mine) if one.source), ""),
    )
