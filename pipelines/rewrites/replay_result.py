"""The result of a replay: the values that the command line prints and the Dagster UI shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from kafka_io.model import OffsetRange
from pipelines.comparison.compare import Comparison
from pipelines.ledger.failure import Failable
from pipelines.ledger.ledger import totals
from pipelines.ledger.slice_facts import SliceFacts
from resources.printed import INLINED, printed_property


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplay:
    """The part of a partition that was fetched again.

    Args:
        offsets: what was fetched again.
        rows: the number of rows that the broker has.
        gaps: the number of offsets without a row, by cause.
        comparison: how the table's rows of before differ from the broker's.
    """

    offsets: OffsetRange = field(metadata=INLINED)
    rows: int
    gaps: Mapping[str, int]
    comparison: Comparison = field(metadata=INLINED)

    @classmethod
    def of(cls, offsets: OffsetRange, facts: Sequence[SliceFacts], comparison: Comparison) -> Self:
        """The result for `offsets`; `facts` are all slices of the replay."""
        own = totals([slice_facts.range for slice_facts in facts if slice_facts.partition == offsets.partition])
        return cls(offsets=offsets, rows=own["rows"], gaps=own["gaps"], comparison=comparison)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReplay(Failable):
    """A result of `penstock replay`.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version after the replay.
        changed: whether the brokers have other rows than the table had, so that they were replaced.
        partitions: the result of each partition.
        seconds: how long the replay took.

    After a failure the table has not changed, unless `changed` says so, or the error says that this is not known.
    """

    topic: str
    table: str
    version: int | None = None
    changed: bool = False
    partitions: tuple[PartitionReplay, ...] = ()
    seconds: float = 0.0

    @property
    def error(self) -> str | None:
        """A sentence that says what failed."""
        return str(self.failure) if self.failure else None

    @printed_property
    def rows(self) -> int:
        """The number of rows that were fetched again."""
        return sum(partition.rows for partition in self.partitions)
