"""If a driver is killed with SIGKILL at a failpoint and then run again, the table is the same as without the kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.stage import WORLDS, Stage
from tests.crash.stories import DAY_STORY, SCHEMA_STORIES, STORIES, Story, first_and_last_pass, play
from tests.failpoints import FAILPOINTS
from tests.thorough import first, spread

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
AROUND_DAY_FILES = ("file opened", "file closed", "file synced", "files checked", "log entry written")
AROUND_COLUMNS = (
    "before load entry",
    "columns changed",
    "log entry written",
    "after load entry",
    "conflict seen",
    "rebased",
)


def cases(stage: Stage, step: str) -> Iterator[tuple[str, Story, int, int]]:
    """For each world, the first story that passes the failpoint, with the number of the act and of the pass in it."""
    for world in WORLDS:
        for story in STORIES:
            if stage.can_play(world, story) and (
                places := first_and_last_pass(stage.failpoint_counts(world, story), step)
            ):
                yield from ((world, story, act, nth) for act, nth in places)
                break


@pytest.mark.parametrize("in_each_world", first(1, [False, True]), ids=["one world", "each world"])
@pytest.mark.parametrize("step", spread(12, FAILPOINTS))
def test_a_load_whose_driver_is_killed_is_completed_by_the_next_one(
    step: str, in_each_world: bool, stage: Stage, tmp_path: Path
) -> None:  # faults L01, L02, L05, S04
    places = list(cases(stage, step))
    assert places, f"no story passes {step}"
    if not in_each_world:
        worlds = sorted({world for world, *_ in places})
        chosen = worlds[FAILPOINTS.index(step) % len(worlds)]
        places = [place for place in places if place[0] == chosen]
    for number, (world, story, act, nth) in enumerate(places):
        trial = stage.trial_before(world, story, act, tmp_path / str(number))
        killed = play(trial, story, act, f"{step}:{nth}")
        assert killed.code == -9, killed.output


@pytest.mark.parametrize("step", spread(2, AROUND_DAY_FILES))
def test_a_load_that_is_killed_while_it_writes_the_files_of_days_is_completed_by_the_next_one(
    step: str, stage: Stage, tmp_path: Path
) -> None:
    places = first_and_last_pass(stage.failpoint_counts("modern", DAY_STORY), step)
    assert places
    for number, (act, nth) in enumerate(places):
        trial = stage.trial_before("modern", DAY_STORY, act, tmp_path / str(number))
        killed = play(trial, DAY_STORY, act, f"{step}:{nth}")
        assert killed.code == -9, killed.output


@pytest.mark.parametrize("act", first(1, [0, 1]))
@pytest.mark.parametrize("step", spread(3, AROUND_COLUMNS))
def test_a_load_that_is_killed_while_it_adds_columns_is_completed_by_the_next_one(
    step: str, act: int, stage: Stage, tmp_path: Path
) -> None:
    story = next(story for story in SCHEMA_STORIES if stage.failpoint_counts("modern", story)[act][step])
    assert stage.failpoint_counts("modern", story)[act]["columns changed"] == 1
    killed = play(stage.trial_before("modern", story, act, tmp_path), story, act, step)
    assert killed.code == -9, killed.output
