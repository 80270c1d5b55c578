"""Consumers that end anywhere, and consumers that race: each row has one effect. Some are killed in `tests/crash`."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from pipelines.increments.increment import apply_increment
from resources import failpoints
from resources.failpoints import KILL_AT
from tests.crash.consumers import FAILPOINTS_OF, RowConsumer
from tests.pipelines.increments.stored_outputs import StoredOutput
from tests.pipelines.increments.table_histories import EVENTS, SourceRow, TableHistory

pytestmark = pytest.mark.crash


# faults N41, E19
def test_racing_consumers_commit_an_increment_once(stored: StoredOutput, tmp_path: Path) -> None:
    source = TableHistory(tmp_path / "lake", Random(5))
    source.happen("load")
    consumer = RowConsumer(source, tmp_path, stored)
    for event in ("load", "replay", "cut", "load"):
        source.happen(event)
        racing = [consumer.start() for _ in range(2)]
        ended = [driver.wait() for driver in racing]
        assert [driver.code for driver in ended] == [0, 0], [driver.errors for driver in ended]
        done = [result for driver in ended if (result := json.loads(driver.output))]
        assert [result["version"] for result in done] == [source.handle().version()]  # the loser finds nothing to do
        assert consumer.rows() == source.source_rows()


# fault N41
@pytest.mark.parametrize(
    ("kind", "failpoint"),
    [
        ("delta", "before increment entry"),
        ("duckdb", "increment known"),
        pytest.param("postgres", "before output transaction", marks=pytest.mark.postgres),
    ],
)
def test_a_late_consumer_does_not_repeat_what_another_has_committed(
    failpoint: str, stored: StoredOutput, tmp_path: Path
) -> None:
    """The late one is stopped when it has read the progress, and resumed after the other and a further load."""
    source = TableHistory(tmp_path / "lake", Random(5))
    source.happen("load")
    consumer = RowConsumer(source, tmp_path, stored)
    consumer.complete()
    source.happen("load")
    late = consumer.start(f"stop:{failpoint}")
    assert late.stopped()
    consumer.complete()
    source.happen("load")
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.errors
    assert len(set(consumer.rows())) == len(consumer.rows())
    consumer.complete()
    assert consumer.rows() == source.source_rows()


# fault N40
@pytest.mark.parametrize("seed", range(1))
def test_an_increment_that_ends_anywhere_has_all_of_its_effect_or_none(
    kind: str, stored: StoredOutput, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without processes, so there are many: an error ends the increment at a random pass of a random failpoint."""
    random = Random(seed)
    source = TableHistory(tmp_path / "lake", random)
    consumer = RowConsumer(source, tmp_path, stored)
    output = stored.output()
    before: list[SourceRow] = []
    ended = 0
    for event in ["load", *random.choices(EVENTS, k=25)]:
        source.happen(event)
        monkeypatch.setattr(failpoints, "_pass_counts", Counter())
        monkeypatch.setenv(KILL_AT, f"raise:{random.choice(FAILPOINTS_OF[kind])}:{random.randint(1, 2)}")
        try:
            apply_increment(source.table, lambda own: own.arrow(["value"]), consumer="c", into=output)
        except MemoryError:
            ended += 1
        monkeypatch.delenv(KILL_AT)
        after = consumer.rows()
        assert after in (before, source.source_rows()), source.events
        before = after
    apply_increment(source.table, lambda own: own.arrow(["value"]), consumer="c", into=output)
    assert consumer.rows() == source.source_rows()
    assert ended > 5
