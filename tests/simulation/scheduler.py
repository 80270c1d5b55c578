"""Decides by a seed which run goes next, so that the same seed always gives the same trace.

There is only one thread. Whenever a run calls a broker, the store or a failpoint, other runs may happen there from
start to end, and more runs inside these. So any two runs can overlap at each of these calls, which are called seams.
"""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from pipelines.commit import commit
from resources.failpoints import failpoint

_DEEPEST = 3
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_CALL = timedelta(milliseconds=1)


class Killed(BaseException):
    """Ends a run like `kill -9`: no code handles it, and everything that the run began stays as it is."""


@dataclass(slots=True, kw_only=True)
class Odds:
    """The probabilities of other actors, kills and failures at a seam."""

    others: float = 0.04
    kill: float = 0.004
    harm: float = 0.06

    @classmethod
    def calm(cls) -> "Odds":
        """The odds of a world without failures and other actors."""
        return cls(others=0, kill=0, harm=0)


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """The random numbers, the clock and the trace of one world.

    Args:
        meanwhile: lets other actors do something.
        ticks: the tick of each time that `now` has returned, by microseconds since 1970.
        tick: the number of events so far.
        depth: how many runs are inside one another now.
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
        """The simulated time. Each call returns a later time."""
        self.tick += 1
        time = self._time()
        self.ticks[int(time.timestamp() * 1_000_000)] = self.tick
        return time

    def tick_of(self, time_us: int) -> int:
        """The tick of a time, or of the newest one before it: a load can take the time after a commit (fault E08)."""
        if time_us in self.ticks:
            return self.ticks[time_us]
        return self.ticks[max(known for known in self.ticks if known < time_us)]

    @property
    def now_ms(self) -> int:
        """The simulated time in milliseconds since 1970."""
        return int(self._time().timestamp() * 1000)

    def _time(self) -> datetime:
        return _FIRST_DAY + timedelta(days=self.day) + self.tick * _CALL

    def note(self, line: str) -> None:
        """Add a line to the trace."""
        self.tick += 1
        self.trace.append(f"day {self.day} {'.' * self.depth}{line}")

    def harmed(self, part: float = 1.0) -> bool:
        """Whether something goes wrong here. The probability is `part` of the usual one."""
        return self.rng.random() < self.odds.harm * part

    def seam(self) -> None:
        """A place where other actors may do something."""
        if self.depth < _DEEPEST and self.rng.random() < self.odds.others / (1 + self.depth):
            self.depth += 1
            try:
                self.meanwhile()
            finally:
                self.depth -= 1

    def step(self, name: str) -> None:
        """A failpoint of a run: a seam where the run may also be killed.

        Raises:
            Killed: the run ends here.
        """
        self.seam()
        if self.rng.random() < self.odds.kill:
            raise Killed(name)

    def pause(self, _seconds: float) -> None:
        """A pause between attempts: it takes no time, but other actors may do something."""
        self.seam()


@contextmanager
def hooked(scheduler: Scheduler) -> Iterator[None]:
    """Replace failpoints and pauses by those of the scheduler, in all modules that are imported."""
    with ExitStack() as stack:
        for name, module in sorted(sys.modules.items()):
            if name.startswith("pipelines.") and getattr(module, failpoint.__name__, None) is failpoint:
                stack.enter_context(patch.object(module, failpoint.__name__, scheduler.step))
        stack.enter_context(patch.dict(commit.commit.__kwdefaults__, {"sleep": scheduler.pause}))
        yield
