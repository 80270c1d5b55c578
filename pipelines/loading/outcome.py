"""What a load did: the values that the command line prints and the Dagster UI shows."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Covered
from pipelines.loading.work import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """What a load did to one partition: `[start, end)` was committed, empty where nothing was new.

    `lag` is what the broker had beyond the cursor when the load was planned, and the load did not take.
    """

    broker: int | None
    partition: int
    start: int
    end: int
    rows: int
    gaps: Mapping[str, int]
    lag: int = 0
    seconds: float = 0.0

    def then(self, later: Self) -> Self:
        """This and what a later step did to the same partition: on one side of it or the other, or nothing."""
        ends = [one for one in (self, later) if one.start < one.end] or [later]
        return replace(
            later,
            start=min(one.start for one in ends),
            end=max(one.end for one in ends),
            rows=self.rows + later.rows,
            gaps=dict(Counter(self.gaps) + Counter(later.gaps)),
            seconds=round(self.seconds + later.seconds, 3),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """What a load did to one topic's table. `error` is None when everything that was planned is committed.

    `version` is the table's after the load; `rows`, `bytes` (see Facts) and `files` are what this load added.
    `warnings` tell of partitions that had to wait.
    """

    topic: str
    table: str
    version: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    error: str | None = None
    partitions: tuple[PartitionLoad, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    trace: str | None = None

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
            warnings=tuple(dict.fromkeys((*self.warnings, *later.warnings))),
            seconds=round(self.seconds + later.seconds, 3),
        )

    def as_dict(self) -> dict[str, Any]:
        """As `penstock load --json` prints it."""
        names = ("topic", "table", "version", "rows", "bytes", "files", "error", "seconds")
        parts = ("broker", "partition", "start", "end", "rows", "gaps", "lag", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "warnings": list(self.warnings),
            "partitions": [{name: getattr(one, name) for name in parts} for one in self.partitions],
        }


def by_partition(
    facts: Sequence[Facts], bounds: Mapping[BrokerPartition, Bounds], covered: Covered
) -> Iterator[PartitionLoad]:
    """Every partition that was looked at. Slices of one follow each other, so their ranges add up to one."""
    grouped: dict[BrokerPartition, list[Facts]] = defaultdict(list)
    for one in facts:
        grouped[one.id].append(one)
    for id_, bound in sorted(bounds.items()):
        mine = grouped[id_]
        before = covered[id_][1] if id_ in covered else bound.earliest
        end = max((one.stop for one in mine), default=before)
        yield PartitionLoad(
            broker=id_.broker,
            partition=id_.partition,
            start=min((one.start for one in mine), default=before),
            end=end,
            rows=sum(one.rows for one in mine),
            gaps=dict(sum((Counter(one.gaps) for one in mine), Counter())),
            lag=bound.latest - max(before, end),
            seconds=round(sum(one.seconds for one in mine), 3),
        )
