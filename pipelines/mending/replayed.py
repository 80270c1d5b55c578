"""What a replay did: the values that the command line prints and the Dagster UI shows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.loading.pieces import Interval
from pipelines.loading.work import Facts
from pipelines.mending.compare import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplay:
    """One partition's interval: the rows and gaps that its broker has, and how the table's rows were beside them."""

    interval: Interval
    rows: int
    gaps: Mapping[str, int]
    found: Comparison

    @classmethod
    def of(cls, interval: Interval, facts: Sequence[Facts], found: Comparison) -> "PartitionReplay":
        """Of all slices of the replay, those of the interval."""
        mine = [one for one in facts if one.id == interval.id]
        gaps = sum((Counter(one.gaps) for one in mine), Counter())
        return cls(interval=interval, rows=sum(one.rows for one in mine), gaps=dict(gaps), found=found)

    def as_dict(self) -> dict[str, Any]:
        """As `penstock replay --json` prints it."""
        return {
            "broker": self.interval.id.broker,
            "partition": self.interval.id.partition,
            "start": self.interval.start,
            "end": self.interval.stop,
            "rows": self.rows,
            "gaps": dict(self.gaps),
            **self.found.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReplay:
    """What a replay did to one topic's table: `changed` if the brokers have other rows than the table had.

    `version` is the table's after it. With an `error` nothing has changed, unless the error says that it is not known.
    """

    topic: str
    table: str
    version: int | None = None
    changed: bool = False
    error: str | None = None
    partitions: tuple[PartitionReplay, ...] = ()
    seconds: float = 0.0
    trace: str | None = None

    @property
    def rows(self) -> int:
        """How many rows were fetched again."""
        return sum(one.rows for one in self.partitions)

    def as_dict(self) -> dict[str, Any]:
        """As `penstock replay --json` prints it."""
        names = ("topic", "table", "version", "changed", "rows", "error", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "partitions": [one.as_dict() for one in self.partitions],
        }
