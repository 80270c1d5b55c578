"""Updates of a state table that are killed at any failpoint and started again, and updates that race."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from pipelines.increments.state_update import update_state
from pipelines.loading import failpoints
from pipelines.loading.failpoints import KILL_AT
from resources.errors import LoadError
from tests.failpoints import STATE_FAILPOINTS
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory, Row
from tests.pipelines.increments.table_histories import EVENTS

pytestmark = pytest.mark.crash
ROOT = Path(__file__).parents[3]
PLACES = (
    "increment begun",
    "increment known",
    "increment batch read",
    "increment batch written",
    *STATE_FAILPOINTS,
    "output created",
    "before increment entry",
    "after increment entry",
    "increment synced",
)
UPDATE = """
import json, sys
from pipelines.increments.state_update import update_state
from pipelines.loading.table import LakeTable
from resources.lake import Lake
from tests.pipelines.increments.keyed_tables import BY_KEY

table = LakeTable.of(Lake(root=sys.argv[1]), "main", "clicks")
print(json.dumps(update_state(table, BY_KEY, attempts=20).as_dict()))
"""


def start(history: KeyedHistory, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a process that updates the state table."""
    return subprocess.Popen(
        [sys.executable, "-c", UPDATE, history.lake.root],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed(history: KeyedHistory, failpoint: str) -> None:
    """Kill an update at a failpoint."""
    process = start(history, {KILL_AT: failpoint})
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors


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
        printed = [process.communicate(timeout=120) for process in racing]
        assert [process.returncode for process in racing] == [0, 0], printed
        assert {json.loads(text)["version"] for text, _ in printed} == {history.handle().version()}
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
