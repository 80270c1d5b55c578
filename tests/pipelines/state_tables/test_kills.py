"""Updates of a state table that end anywhere, and updates that race. Some are killed in `tests/crash`."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from pipelines.state_tables.update import update_state
from resources import failpoints
from resources.errors import LoadError
from resources.failpoints import KILL_AT
from tests.crash.consumers import FAILPOINTS_OF, StateConsumer
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory, Row
from tests.pipelines.increments.table_histories import EVENTS
from tests.thorough import first

pytestmark = pytest.mark.crash
PLACES = FAILPOINTS_OF["state"]


# fault N50
def test_racing_updates_have_one_effect(tmp_path: Path) -> None:
    history = KeyedHistory(tmp_path / "lake", Random(5))
    for event in ("load", "load", "replay", "cut", "load"):
        history.happen(event)
        racing = [StateConsumer(history, tmp_path).start() for _ in range(2)]
        ended = [process.wait() for process in racing]
        assert [process.code for process in ended] == [0, 0], ended
        assert {json.loads(process.output)["version"] for process in ended} == {history.handle().version()}
        assert history.state() == history.expected()


@pytest.mark.parametrize("seed", first(1, range(3)))
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
        monkeypatch.setenv(KILL_AT, f"raise:{random.choice(FAILPOINTS_OF['state'])}:{random.randint(1, 2)}")
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
