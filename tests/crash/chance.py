"""Random stories: drivers that race, are killed, are stopped and go on when others have long committed."""

import random
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.drivers import Driver, Ended
from tests.crash.harness import Act, Trial
from tests.crash.stage import WORLDS, Stage
from tests.crash.stories import STORIES

_KILLED = -9
_MOST_STORMS = 2
_REFUSED = "CommitRefused: "


class Failed(Exception):
    """A run after which a table was not as it must be."""


def attempt(stage: Stage, seed: int, folder: Path) -> Counter[str]:
    """Play the story of this seed; where drivers were ended, and how the others ended. Its lake is kept if it fails.

    Raises:
        Failed: with the seed, which starts the same drivers again, but not the same races between them.
    """
    home = folder / f"seed-{seed}"
    shutil.rmtree(home, ignore_errors=True)
    try:
        outcomes = _play(stage, random.Random(seed), home)
    except Exception as error:
        raise Failed(f"make crash RUNS=1 SEED={seed}: {type(error).__name__}: {error}; its lake is {home}") from error
    shutil.rmtree(home)
    return outcomes


def _play(stage: Stage, rng: random.Random, home: Path) -> Counter[str]:
    world = rng.choice(sorted(WORLDS))
    story = rng.choice([story for story in STORIES if stage.shows(world, story)])
    storms = _Storms(trial=stage.trial(world, home), rng=rng)
    try:
        for act, steps in zip(story.acts, stage.passed(world, story), strict=True):
            act.prepare(Path(storms.trial.table.uri))
            for _ in range(rng.randint(0 if len(story.acts) > 1 else 1, _MOST_STORMS)):
                storms.over(act, steps)
            if act is story.acts[-1]:
                storms.calm_down()
            storms.trial.finish(act)
        storms.trial.check_whole()
    finally:
        storms.end()
    return storms.outcomes


@dataclass(slots=True, kw_only=True)
class _Storms:
    """Drivers that work on one table at once. `stopped` ones wait, also while later acts are done."""

    trial: Trial
    rng: random.Random
    outcomes: Counter[str] = field(default_factory=Counter)
    stopped: list[Driver] = field(default_factory=list)

    def over(self, act: Act, steps: Counter[str]) -> None:
        """Up to three drivers do `act` at once, each with a fate of its own."""
        [count] = self.rng.choices((1, 2, 3), (5, 3, 1))
        drivers = [self.trial.start(act, at=self._fate(steps)) for _ in range(count)]
        self.stopped += [driver for driver in drivers if driver.stopped()]
        self._judge([driver for driver in drivers if driver not in self.stopped])
        for driver in [stopped for stopped in self.stopped if self.rng.randrange(2)]:
            self._let_go(driver)

    def _fate(self, steps: Counter[str]) -> str:
        """Any passing of a step is as likely as another, so most drivers end in the midst of their work."""
        [how] = self.rng.choices(("kill:", "stop:", ""), (6, 3, 1))
        [name] = self.rng.choices(list(steps), list(steps.values()))
        return f"{how}{name}:{self.rng.randint(1, steps[name])}" if how else ""

    def calm_down(self) -> None:
        """Let all stopped drivers continue, late."""
        for driver in [*self.stopped]:
            self._let_go(driver)

    def _let_go(self, driver: Driver) -> None:
        self.stopped.remove(driver)
        driver.go_on()
        self._judge([driver])

    def _judge(self, drivers: list[Driver]) -> None:
        for driver in drivers:
            ended = driver.wait()
            self.outcomes.update([*ended.reached, _told(ended)])
        self.trial.check()

    def end(self) -> None:
        """End all processes."""
        for driver in self.stopped:
            with suppress(ProcessLookupError):
                driver.process.kill()
            driver.process.join()


def _told(ended: Ended) -> str:
    if ended.code == 0:
        return "loaded"
    if ended.code == _KILLED and ended.reached:
        return "killed"
    assert ended.code == 1, ended
    assert _REFUSED in ended.output + ended.errors, ended
    return "refused"
