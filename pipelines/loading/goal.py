"""How much a run is to load in all, and how far it has come: fixed when it begins, so that it ends."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Covered
from pipelines.loading.plan import Plan
from resources.spark import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`total` offsets are to be loaded, none beyond the `ends` of the logs as the run found them; `taken` are done."""

    ends: Mapping[BrokerPartition, int]
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

    def within(self, bounds: Mapping[BrokerPartition, Bounds], covered: Covered) -> dict[BrokerPartition, Bounds]:
        """What of the logs, as they are now, this run is to look at: partitions that came meanwhile are the next's."""
        found = {}
        for id_, bound in bounds.items():
            if id_ in self.ends:
                done = covered[id_][1] if id_ in covered else bound.earliest
                # A log that is said to end before it begins, or before the cursor, stays one: the plan refuses it.
                found[id_] = replace(bound, latest=min(bound.latest, max(self.ends[id_], done, bound.earliest)))
        return found

    def after(self, step: Plan) -> Self:
        """Once a step is done. A step of nothing ends the run: others have loaded what was left."""
        size = _size(step)
        return replace(self, taken=self.taken + size if size else self.total)

    def progress(self, step: Plan, tell: Progress) -> Progress:
        """What tells how far the run is, from how far its step is."""
        size = _size(step)
        return lambda done, total: tell(self.taken + size * done // max(1, total), self.total)


def _size(step: Plan) -> int:
    return sum(one.size for one in step.slices)
