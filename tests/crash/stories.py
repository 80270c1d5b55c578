"""Stories of a table: acts one after the other; each is disturbed, and then run until it is done."""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.crash.child import Terms
from tests.crash.drivers import Driver, Ended
from tests.crash.harness import LOAD, Act, Trial
from tests.crash.worlds import TOPIC

_ALL_AT_ONCE = Terms(slices_per_commit=16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Acts of which the last leaves the whole topic in the table.

    `rival` commits something while the driver of the act before it is stopped at the step `meets_at`.
    """

    name: str
    acts: tuple[Act, ...]
    meets_at: str = ""
    rival: Act | None = None


def _old_stage(table: Path) -> None:
    """Files of a replay that was killed long ago."""
    for name in ("a", "b", "c"):
        file = table / "_replays" / name / "0.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        os.utime(file, (0, 0))


_REPLAY = ("replay", TOPIC, "--from", "earliest", "--to", "latest", "--json")
_REWIND = ("rewind", TOPIC, "--version", "1", "--yes", "--json")
CLEAN = Act(arguments=("clean", TOPIC, "--delete", "--json"), prepare=_old_stage)
STORIES = (
    Story(name="load", acts=(Act(),)),
    Story(name="capped", acts=(Act(settings={"capped": True}),)),
    Story(
        name="backfill",
        acts=(
            Act(settings={"start": "latest"}),
            Act(arguments=(*LOAD, "--from", "earliest"), settings={"capped": True}),
        ),
    ),
    Story(
        name="rival",
        acts=(Act(terms=_ALL_AT_ONCE),),
        meets_at="before load entry",
        rival=Act(settings={"capped": True}),
    ),
    Story(name="cut", acts=(Act(), Act(settings={"myself": "former"}), Act())),
    Story(name="replay", acts=(Act(), Act(arguments=_REPLAY, settings={"myself": "altered"}), Act(arguments=_REPLAY))),
    Story(name="rewind", acts=(Act(), Act(arguments=_REWIND), Act())),
    Story(name="clean", acts=(Act(), CLEAN, Act())),
)


def play(trial: Trial, story: Story, act: int, step: str) -> Ended:
    """Play the story from its act with this number on; the driver of that act ends at `step`. How the driver ended.

    The lake of `trial` is as the earlier acts leave it.
    """
    acts = story.acts[act:]
    acts[0].prepare(Path(trial.table.uri))
    ended = _disturbed(trial, story, acts[0], step)
    trial.check()
    trial.finish(acts[0])
    for later in acts[1:]:
        later.prepare(Path(trial.table.uri))
        trial.finish(later)
    trial.check_whole()
    return ended


def _disturbed(trial: Trial, story: Story, act: Act, at: str) -> Ended:
    if story.rival is None:
        return trial.run(act, at=at)
    driver = trial.start(act, at=f"stop:{story.meets_at},{at}")
    meet(trial, driver, story.rival)
    return driver.wait()


def meet(trial: Trial, driver: Driver, rival: Act) -> None:
    """When the driver has stopped, let the rival act, and then let the driver continue."""
    if driver.stopped():
        assert trial.run(rival).code == 0
        driver.go_on()


def passed(trial: Trial, story: Story, lakes: Path) -> list[Counter[str]]:
    """The number of times that each act of the story passes each failpoint, if nothing ends it.

    A copy of the lake before each act is left in `lakes`, in a folder with the act's number.
    """
    passes = []
    (trial.home / "lake").mkdir(parents=True)
    for number, act in enumerate(story.acts):
        shutil.copytree(trial.home / "lake", lakes / str(number))
        file = lakes / f"steps-{number}"
        act.prepare(Path(trial.table.uri))
        _disturbed(trial, story, replace(act, terms=replace(act.terms, tell_steps=file)), "nowhere")
        passes.append(Counter(file.read_text().splitlines()))
        trial.finish(act)
    return passes


def passings(story_steps: Sequence[Counter[str]], step: str) -> list[tuple[int, int]]:
    """The first and the last place where a story passes `step`: the number of the act, and of the pass in it."""
    places = [(act, nth) for act, steps in enumerate(story_steps) for nth in range(1, steps[step] + 1)]
    return sorted({places[0], places[-1]}) if places else []
