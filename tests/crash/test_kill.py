"""A driver killed with SIGKILL at any named step, then run again, leaves the same table as one that is not."""

from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from pipelines.loading.failpoints import FAILPOINTS
from tests.crash.stage import WORLDS, Stage
from tests.crash.stories import STORIES, Story, passings, play

pytestmark = [pytest.mark.crash, pytest.mark.zookeeper]
AT_LEAST = 3


def cases(stage: Stage, step: str) -> Iterator[tuple[str, Story, int, int]]:
    """In each world the first story that passes the step, the number of the act, and at which passing in it."""
    for world in WORLDS:
        for story in STORIES:
            if stage.shows(world, story) and (found := passings(stage.passed(world, story), step)):
                yield from ((world, story, act, nth) for act, nth in found)
                break


@pytest.mark.parametrize("step", FAILPOINTS)
def test_a_driver_killed_at(step: str, stage: Stage, tmp_path: Path) -> None:  # faults L01, L02, L05, S04
    found = list(cases(stage, step))
    assert found, f"no story passes {step}"
    times = max(len(found), AT_LEAST)
    for number, (world, story, act, nth) in enumerate(islice(cycle(found), times)):
        trial = stage.trial_before(world, story, act, tmp_path / str(number))
        killed = play(trial, story, act, f"{step}:{nth}")
        assert killed.code == -9, killed.output
