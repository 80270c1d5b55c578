"""Random stories: drivers race, are killed, or are stopped and resumed after other drivers have committed."""

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from resources.explanations.explanation import ExitCode
from tests.crash.drivers import Driver, Ended
from tests.crash.harness import REGISTRY_DOWN, Act, Trial
from tests.crash.stage import ALL_WORLDS, Stage
from tests.crash.stories import STORIES

_KILLED = -9
_MOST_ROUNDS = 2
_REFUSED = {
    "CommitRefused": ExitCode.TRY_AGAIN,
    "FormatChanged": ExitCode.CHOICE_NEEDED,
    REGISTRY_DOWN: ExitCode.TRY_AGAIN,
}
"""The kinds of errors with which a driver may end, with its exit code. `FormatChanged`: a rival converted the table."""


class Failed(Exception):
    """After a story the table was not correct."""


def attempt(stage: Stage, seed: int, folder: Path, worlds: Sequence[str] = tuple(sorted(ALL_WORLDS))) -> Counter[str]:
    """Play the story of this seed in one of the worlds; returns how often drivers ended in which way, and where.

    Raises:
        Failed: a check failed. The lake is kept. The same seed starts the same drivers, but their races may differ.
    """
    home = folder / f"seed-{seed}"
    shutil.rmtree(home, ignore_errors=True)
    try:
        outcomes = _play(stage, random.Random(seed), home, worlds)
    except Exception as error:
        raise Failed(f"make crash RUNS=1 SEED={seed}: {type(error).__name__}: {error}; its lake is {home}") from error
    shutil.rmtree(home)
    return outcomes


def _play(stage: Stage, rng: random.Random, home: Path, worlds: Sequence[str]) -> Counter[str]:
    world = rng.choice(worlds)
    story = rng.choice([story for story in STORIES if stage.can_play(world, story)])
    random_drivers = _RandomDrivers(trial=stage.trial(world, home), rng=rng)
    try:
        for act, steps in zip(story.acts, stage.failpoint_counts(world, story), strict=True):
            act.prepare(random_drivers.trial)
            for _ in range(rng.randint(0 if len(story.acts) > 1 else 1, _MOST_ROUNDS)):
                random_drivers.run_round(act, steps)
            if act is story.acts[-1]:
                random_drivers.resume_all()
            random_drivers.trial.finish(act)
        random_drivers.trial.check_complete()
    finally:
        random_drivers.end()
    return random_drivers.outcomes


@dataclass(slots=True, kw_only=True)
class _RandomDrivers:
    """Drivers that work on one table at the same time. `stopped` drivers may wait until later acts of the story."""

    trial: Trial
    rng: random.Random
    outcomes: Counter[str] = field(default_factory=Counter)
    stopped: list[Driver] = field(default_factory=list)

    def run_round(self, act: Act, steps: Counter[str]) -> None:
        """Start one to three drivers of `act` at once, most with a failpoint; then resume some stopped drivers."""
        [count] = self.rng.choices((1, 2, 3), (5, 3, 1))
        drivers = [self.trial.start(act, kill_at=self._random_failpoint(steps)) for _ in range(count)]
        self.stopped += [driver for driver in drivers if driver.stopped()]
        self._check_outcomes([driver for driver in drivers if driver not in self.stopped])
        for driver in [stopped for stopped in self.stopped if self.rng.randrange(2)]:
            self._resume(driver)

    def _random_failpoint(self, steps: Counter[str]) -> str:
        """A value for KILL_AT, or none. Each pass of a failpoint is equally likely, so most drivers end mid-work."""
        [how] = self.rng.choices(("kill:", "stop:", ""), (6, 3, 1))
        [name] = self.rng.choices(list(steps), list(steps.values()))
        return f"{how}{name}:{self.rng.randint(1, steps[name])}" if how else ""

    def resume_all(self) -> None:
        """Resume all stopped drivers."""
        for driver in [*self.stopped]:
            self._resume(driver)

    def _resume(self, driver: Driver) -> None:
        self.stopped.remove(driver)
        driver.resume()
        self._check_outcomes([driver])

    def _check_outcomes(self, drivers: list[Driver]) -> None:
        for driver in drivers:
            ended = driver.wait()
            self.outcomes.update([*ended.reached, _outcome(ended)])
        self.trial.check()

    def end(self) -> None:
        """Kill all drivers that are still stopped."""
        for driver in self.stopped:
            with suppress(ProcessLookupError):
                driver.process.kill()
            driver.process.join()


def _outcome(ended: Ended) -> str:
    if ended.code == 0:
        return "loaded"
    if ended.code == _KILLED and ended.reached:
        return "killed"
    text = ended.output + ended.errors
    assert any(kind in text and ended.code == code for kind, code in _REFUSED.items()), ended
    return "refused"
