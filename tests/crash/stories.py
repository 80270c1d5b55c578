"""Stories of a table: a story is a list of acts. Each act is disturbed once, and then run until it is complete."""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import DeltaTable

from resources.table_formats import TableFormat
from tests.crash.child import DriverOptions
from tests.crash.drivers import Ended
from tests.crash.harness import LOAD, Act, Trial
from tests.crash.worlds import TOPIC
from tests.fakes.registry_faults import answers
from tests.pipelines.loaded import call_compaction

_ALL_AT_ONCE = DriverOptions(slices_per_commit=16)
_KILLED = -9


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A list of acts; after the last one the table has the complete topic.

    The act `rival` runs while the driver of another act is stopped at the failpoint `rival_at`. It has the settings of
    that act besides its own. Its driver is killed at the failpoint `rival_end`, if there is one. `formats` are the
    formats of tables with which the story can be played.
    """

    name: str
    acts: tuple[Act, ...]
    rival_at: str = ""
    rival: Act | None = None
    rival_end: str = ""
    formats: tuple[TableFormat, ...] = ("delta", "iceberg")


def _old_stage(trial: Trial) -> None:
    """Create the files of replays that were killed long ago."""
    for name in ("a", "b", "c"):
        file = Path(trial.table.uri) / "_replays" / name / "0.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        os.utime(file, (0, 0))


def _undecoded(trial: Trial) -> None:
    """Let the records of a typed table look as if a load had not decoded them."""
    changed = {"_error": "'not decoded'", "_raw": "arrow_cast(value, 'Binary')", "value": "NULL"}
    DeltaTable(trial.table.uri).update(updates=changed)
    call_compaction(trial.table.uri)  # otherwise no load would continue


def _registry_down(trial: Trial) -> None:
    """Let the registry answer 503 for a while: a load fails after two attempts, and the next one has to ask twice."""
    assert trial.world.registry is not None
    trial.world.registry.inject(answers(503), path="/schemas/ids/2", times=3)


REPLAY = ("replay", TOPIC, "--from", "earliest", "--to", "latest", "--json")
_REWIND = ("rewind", TOPIC, "--version", "1", "--yes", "--json")
CLEAN = Act(arguments=("clean", TOPIC, "--delete", "--json"), prepare=_old_stage)
_FIRST_SCHEMA = Act(settings={"variant": "avro-1", "value_format": "avro"})
BOTH_SCHEMAS = Act(settings={"variant": "avro", "value_format": "avro"})
REGISTRY_DOWN_STORY = Story(name="registry down", acts=(_FIRST_SCHEMA, replace(BOTH_SCHEMAS, prepare=_registry_down)))
SCHEMA_STORIES = (
    Story(name="schema", acts=(_FIRST_SCHEMA, BOTH_SCHEMAS)),
    Story(
        name="schema and rival",
        acts=(replace(_FIRST_SCHEMA, options=_ALL_AT_ONCE), replace(BOTH_SCHEMAS, options=_ALL_AT_ONCE)),
        rival_at="before load entry",
        rival=Act(),
        rival_end="after load entry",
    ),
)
"""In each act the first commit adds columns: those of the first schema, and then those of the second one."""
_DAYS = {"variant": "days", "partition_by": "event_day"}
DAY_STORY = Story(
    name="event days",
    acts=(Act(settings=_DAYS), replace(CLEAN, settings=_DAYS), Act(arguments=REPLAY, settings=_DAYS)),
)
"""A slice has files of three days."""
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
        acts=(Act(options=_ALL_AT_ONCE),),
        rival_at="before load entry",
        rival=Act(settings={"capped": True}),
    ),
    Story(name="cut", acts=(Act(), Act(settings={"variant": "truncated"}), Act())),
    Story(name="replay", acts=(Act(), Act(arguments=REPLAY, settings={"variant": "altered"}), Act(arguments=REPLAY))),
    Story(
        name="typed",
        acts=(Act(settings={"value_format": "text"}), Act(arguments=REPLAY, settings={"value_format": "text"})),
    ),
    Story(
        name="redecode",
        formats=("delta",),
        acts=(
            Act(settings={"value_format": "text"}),
            Act(arguments=("redecode", TOPIC, "--json"), settings={"value_format": "text"}, prepare=_undecoded),
        ),
    ),
    Story(
        name="convert",
        acts=(Act(), Act(arguments=("redecode", TOPIC, "--all", "--json"), settings={"value_format": "text"})),
    ),
    Story(name="rewind", acts=(Act(), Act(arguments=_REWIND), Act())),
    Story(name="clean", acts=(Act(), CLEAN, Act())),
    *SCHEMA_STORIES,
    REGISTRY_DOWN_STORY,
    DAY_STORY,
)


def play(trial: Trial, story: Story, act: int, step: str) -> Ended:
    """Play the story from the act with this number to the end; returns how the driver of that act ended.

    That driver ends at the failpoint `step`. The lake of `trial` must be as the earlier acts leave it.
    """
    acts = story.acts[act:]
    acts[0].prepare(trial)
    ended = _disturbed(trial, story, acts[0], step)
    trial.check()
    trial.finish(acts[0])
    for later in acts[1:]:
        later.prepare(trial)
        trial.finish(later)
    trial.check_complete()
    return ended


def _disturbed(trial: Trial, story: Story, act: Act, kill_at: str) -> Ended:
    if story.rival is None:
        return trial.run(act, kill_at=kill_at)
    driver = trial.start(act, kill_at=f"stop:{story.rival_at},{kill_at}")
    if driver.stopped():
        rival = replace(story.rival, settings={**act.settings, **story.rival.settings})
        assert trial.run(rival, kill_at=story.rival_end).code == (_KILLED if story.rival_end else 0)
        driver.resume()
    return driver.wait()


def count_failpoints(trial: Trial, story: Story, lakes: Path) -> list[Counter[str]]:
    """Play a story; returns how often each act passes each failpoint if it is not disturbed.

    Before each act it copies the lake to `lakes`, into a folder with the number of the act.
    """
    passes = []
    (trial.home / "lake").mkdir(parents=True)
    for number, act in enumerate(story.acts):
        shutil.copytree(trial.home / "lake", lakes / str(number))
        file = lakes / f"steps-{number}"
        act.prepare(trial)
        _disturbed(trial, story, replace(act, options=replace(act.options, steps_file=file)), "nowhere")
        passes.append(Counter(file.read_text().splitlines()))
        trial.finish(act)
    return passes


def first_and_last_pass(story_steps: Sequence[Counter[str]], step: str) -> list[tuple[int, int]]:
    """The first and the last pass of `step` in a story: the number of the act, and of the pass within the act."""
    places = [(act, nth) for act, steps in enumerate(story_steps) for nth in range(1, steps[step] + 1)]
    return sorted({places[0], places[-1]}) if places else []
