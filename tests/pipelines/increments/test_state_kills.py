"""Updates of a state table that are killed at any failpoint and started again, and updates that race."""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest

from pipelines.increments.state_update import update_state
from pipelines.loading import failpoints
from pipelines.loading.failpoints import KILL_AT
from pipelines.loading.table import LakeTable
from resources.errors import LoadError
from resources.lake import Lake
from tests.crash.drivers import Driver
from tests.failpoints import OF_ALL_INCREMENTS, OF_DELTA_OUTPUTS, STATE_FAILPOINTS
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory, Row
from tests.pipelines.increments.table_histories import EVENTS

pytestmark = pytest.mark.crash
PLACES = (*OF_ALL_INCREMENTS, *STATE_FAILPOINTS, *OF_DELTA_OUTPUTS)


def update(lake: Path) -> None:
    """Update the state table, and print what was done."""
    table = LakeTable.of(Lake(root=str(lake)), "main", "clicks")
    sys.stdout.write(json.dumps(update_state(table, BY_KEY, attempts=20).as_dict()))


def start(history: KeyedHistory, kill_at: str = "") -> Driver:
    """Start a process that updates the state table, and ends at `kill_at`."""
    lake = Path(history.lake.root)
    home = Path(mkdtemp(prefix="updating-", dir=lake.parent))
    return Driver.calling(home, update, (lake,), kill_at=kill_at)


def killed(history: KeyedHistory, failpoint: str) -> None:
    """Kill an update at a failpoint."""
    ended = start(history, failpoint).wait()
    assert ended.code == -signal.SIGKILL, ended.errors


@pytest.mark.parametrize("failpoint", PLACES)
def test_a_killed_update_is_completed_by_the_next(failpoint: str, tmp_path: Path) -> None:
    history = KeyedHistory(tmp_path / "lake", Random(3))
    history.happen("load")
    killed(history, failpoint)  # the state table does not exist yet
    update_state(history.table, BY_KEY)
    assert history.state() == history.expected()
    for event in ("load", "replay", "load"):
        history.happen(event)
    if failpoint != "output created":
        before = history.state()
        killed(history, failpoint)  # with keys to compute again
        assert history.state() in (before, history.expected())
    update_state(history.table, BY_KEY)
    assert history.state() == history.expected()


def test_racing_updates_have_one_effect(tmp_path: Path) -> None:
    history = KeyedHistory(tmp_path / "lake", Random(5))
    for event in ("load", "load", "replay", "cut", "load"):
        history.happen(event)
        racing = [start(history) for _ in range(2)]
        ended = [process.wait() for process in racing]
        assert [process.code for process in ended] == [0, 0], ended
        assert {json.loads(process.output)["version"] for process in ended} == {history.handle().version()}
        assert history.state() == history.expected()


@pytest.mark.parametrize("seed", range(3))
def test_an_update_that_ends_anywhere_has_all_of_its_effect_or_none(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without processes, so there are many: an error ends the update at a random pass of a random failpoint."""
    random = Random(seed)
    history = KeyedHistory(tmp_path / "lake", random)
    before: list[Row] = []
    ended = 0
    for event in ["load", *random.choices(EVENTS, k=25)]:
        history.happen(event)
        monkeypatch.setattr(failpoints, "_pass_counts", Counter())
        monkeypatch.setenv(KILL_AT, f"raise:{random.choice(PLACES)}:{random.randint(1, 2)}")
        try:
            update_state(history.table, BY_KEY)
        except (MemoryError, LoadError):
            ended += 1
        monkeypatch.delenv(KILL_AT)
        after = history.state()
        assert after in (before, history.expected()), history.events
        before = after
    update_state(history.table, BY_KEY)
    assert history.state() == history.expected()
    assert ended > 5
