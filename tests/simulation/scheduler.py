"""Who runs when: one seed decides, so that the same seed gives the same trace.

Nothing runs at the same time. Whenever a run calls out, to a broker, the store or a step, others may run there from
their beginning to their end, and others again inside of them: any two runs overlap at every seam there is.
"""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from pipelines.loading import commit
from pipelines.loading import failpoints as steps

_DEEPEST = 3
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_CALL = timedelta(milliseconds=1)


class Killed(BaseException):
    """The run ends here, as by `kill -9`: nothing handles it, and what it began is left as it is."""


@dataclass(slots=True, kw_only=True)
class Odds:
    """The probabilities of failures; all are 0 in a `calm` world."""

    others: float = 0.04
    kill: float = 0.004
    harm: float = 0.06

    @classmethod
    def calm(cls) -> "Odds":
        """Odds of a world in which nothing fails and nobody else acts."""
        return cls(others=0, kill=0, harm=0)


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """The seed, the clock and the trace of one world. `meanwhile` lets somebody else do something.

    `tick` counts what happens; `ticks` has it for every time that was given, in microseconds since 1970.
    """

    rng: random.Random
    odds: Odds = field(default_factory=Odds)
    meanwhile: Callable[[], None] = lambda: None
    trace: list[str] = field(default_factory=list)
    ticks: dict[int, int] = field(default_factory=dict)
    tick: int = 0
    day: int = 0
    depth: int = 0

    def now(self) -> datetime:
        """The time. It is never the same twice."""
        self.tick += 1
        time = _FIRST_DAY + timedelta(days=self.day) + self.tick * _CALL
        self.ticks[int(time.timestamp() * 1_000_000)] = self.tick
        return time

    def note(self, line: str) -> None:
        """Add to the trace."""
        self.tick += 1
        self.trace.append(f"day {self.day} {'.' * self.depth}{line}")

    def harmed(self, part: float = 1.0) -> bool:
        """Whether something goes wrong here, at a part of the usual odds."""
        return self.rng.random() < self.odds.harm * part

    def seam(self) -> None:
        """A place where others may run."""
        if self.depth < _DEEPEST and self.rng.random() < self.odds.others / (1 + self.depth):
            self.depth += 1
            try:
                self.meanwhile()
            finally:
                self.depth -= 1

    def step(self, name: str) -> None:
        """A named step of a run.

        Raises:
            Killed: it is the run's last.
        """
        self.seam()
        if self.rng.random() < self.odds.kill:
            raise Killed(name)

    def rest(self, _seconds: float) -> None:
        """A wait between attempts: it takes no time, but others run."""
        self.seam()


@contextmanager
def hooked(scheduler: Scheduler) -> Iterator[None]:
    """Steps and waits go to the scheduler, in all modules that are there."""
    with ExitStack() as stack:
        for name, module in sorted(sys.modules.items()):
            if name.startswith("pipelines.") and getattr(module, "step", None) is steps.failpoint:
                stack.enter_context(patch.object(module, "step", scheduler.step))
        stack.enter_context(patch.dict(commit.commit.__kwdefaults__, rest=scheduler.rest))
        yield
