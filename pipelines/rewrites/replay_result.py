"""The result of a replay: the values that the command line prints and the Dagster UI shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from kafka_io.model import OffsetRange
from pipelines.comparison.compare import Comparison
from pipelines.ledger.ledger import totals
from pipelines.ledger.work import SliceFacts, SliceFailure
from pipelines.reports.outcome import printed_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplay:
    """The replayed offsets of one partition.

    Args:
        offsets: what was fetched again.
        rows: the number of rows that the broker has.
        gaps: the number of offsets without a row, by cause.
        comparison: how the table's rows of before differ from the broker's.
    """

    offsets: OffsetRange
    rows: int
    gaps: Mapping[str, int]
    comparison: Comparison

    @classmethod
    def of(cls, offsets: OffsetRange, facts: Sequence[SliceFacts], comparison: Comparison) -> Self:
        """The result for `offsets`; `facts` are all slices of the replay."""
        own = totals([slice_facts for slice_facts in facts if slice_facts.offsets.partition == offsets.partition])
        return cls(offsets=offsets, rows=own["rows"], gaps=own["gaps"], comparison=comparison)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock replay --json`."""
        printed = printed_fields(self)
        comparison: Comparison = printed.pop("comparison")
        return {**printed, **comparison.as_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReplay:
    """The result of a replay for one topic.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version after the replay.
        changed: whether the brokers have other rows than the table had, so that they were replaced.
        failure: what failed. The table has not changed then, unless the error says that this is not known.
        partitions: the result of each partition.
        seconds: how long the replay took.
    """

    topic: str
    table: str
    version: int | None = None
    changed: bool = False
    failure: SliceFailure | None = None
    partitions: tuple[PartitionReplay, ...] = ()
    seconds: float = 0.0

    @property
    def error(self) -> str | None:
        """A sentence that says what failed."""
        return str(self.failure) if self.failure else None

    @property
    def rows(self) -> int:
        """The number of rows that were fetched again."""
        return sum(partition.rows for partition in self.partitions)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock replay --json`."""
        names = ("topic", "table", "version", "changed", "rows", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "errors": [self.failure.as_dict()] if self.failure else [],
            "partitions": [partition.as_dict() for partition in self.partitions],
        }
