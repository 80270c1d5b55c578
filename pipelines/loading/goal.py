"""How much a run is to load in all, and how far it has come: fixed when it begins, so that it ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from kafka_io.model import BrokerPartition
from pipelines.loading.plan import Plan
from resources.spark import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`total` offsets are to be loaded, of which `taken` are done.

    They lie between `starts` and `ends` (see Reach), as these were when the run began: what comes meanwhile, records
    or partitions, is the next run's.
    """

    ends: Mapping[BrokerPartition, int]
    starts: Mapping[BrokerPartition, int] = field(default_factory=dict)
    total: int
    taken: int = 0

    @property
    def left(self) -> int:
        """What is still to be loaded, and one at least: a cap of nothing would be no cap."""
        return max(1, self.total - self.taken)

    @property
    def reached(self) -> bool:
        """Whether all of it is done."""
        return self.taken >= self.total

    def after(self, step: Plan) -> Self:
        """Once a step is done. A step of nothing ends the run: others have loaded what was left."""
        return replace(self, taken=self.taken + step.size if step.size else self.total)

    def progress(self, step: Plan, tell: Progress) -> Progress:
        """What tells how far the run is, from how far its step is."""
        return lambda done, total: tell(self.taken + step.size * done // max(1, total), self.total)
