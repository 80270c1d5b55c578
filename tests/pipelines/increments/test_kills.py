"""Consumers that are killed at any failpoint and started again, and consumers that race: each row has one effect."""

import json
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest

from pipelines.increments.increment import apply_increment
from pipelines.loading import failpoints
from pipelines.loading.failpoints import KILL_AT
from tests.crash.drivers import Driver
from tests.failpoints import OF_ALL_INCREMENTS, OF_DELTA_OUTPUTS, OF_SQL_OUTPUTS
from tests.pipelines.increments.stored_outputs import StoredOutput
from tests.pipelines.increments.table_histories import EVENTS, SourceRow, TableHistory
from tests.pipelines.increments.test_histories import rows_of

pytestmark = pytest.mark.crash


def consume(source: str, stored: StoredOutput) -> None:
    """Commit one increment, and print what was done."""
    done = apply_increment(
        source, lambda increment: increment.arrow(["value"]), consumer="c", into=stored.output(), attempts=20
    )
    sys.stdout.write(json.dumps(done))


@dataclass(frozen=True, slots=True)
class Consumers:
    """Processes of one consumer of a table."""

    source: TableHistory
    stored: StoredOutput

    def start(self, kill_at: str = "") -> Driver:
        """Start a process that commits one increment, and ends or stops at `kill_at`."""
        home = Path(mkdtemp(prefix="consumer-", dir=Path(self.source.lake.root).parent))
        return Driver.calling(home, consume, (self.source.uri, self.stored), kill_at=kill_at)

    def run(self, kill_at: str = "") -> int:
        """Run a process to its end; returns its exit code."""
        ended = self.start(kill_at).wait()
        assert ended.code in {0, -signal.SIGKILL}, ended.errors
        return ended.code

    def rows(self) -> list[SourceRow]:
        """The rows of the output; none if there is no table."""
        table = self.stored.table()
        return [] if table is None else rows_of(table)

    def check(self) -> None:
        """Check that a process without a kill completes the output."""
        assert self.run() == 0
        assert self.rows() == self.source.source_rows()


IN_SQL = (*OF_ALL_INCREMENTS, *OF_SQL_OUTPUTS)
BY_OUTPUT = {"delta": (*OF_ALL_INCREMENTS, *OF_DELTA_OUTPUTS), "duckdb": IN_SQL, "postgres": IN_SQL}
PLACES = [
    pytest.param(kind, name, marks=pytest.mark.postgres if kind == "postgres" else ())
    for kind, names in BY_OUTPUT.items()
    for name in names
]


@pytest.mark.parametrize(("kind", "failpoint"), PLACES)
def test_a_killed_consumer_is_completed_by_the_next(failpoint: str, stored: StoredOutput, tmp_path: Path) -> None:
    source = TableHistory(tmp_path / "lake", Random(3))
    source.happen("load")
    consumers = Consumers(source, stored)
    assert consumers.run(failpoint) == -signal.SIGKILL  # a new consumer
    consumers.check()
    for event in ("load", "replay", "load"):
        source.happen(event)
    if failpoint != "output created":
        assert consumers.run(failpoint) == -signal.SIGKILL  # one with rows to remove
    consumers.check()


def test_racing_consumers_commit_an_increment_once(stored: StoredOutput, tmp_path: Path) -> None:
    source = TableHistory(tmp_path / "lake", Random(5))
    source.happen("load")
    consumers = Consumers(source, stored)
    for event in ("load", "replay", "cut", "load"):
        source.happen(event)
        racing = [consumers.start() for _ in range(2)]
        ended = [consumer.wait() for consumer in racing]
        assert [consumer.code for consumer in ended] == [0, 0], [consumer.errors for consumer in ended]
        done = [result for consumer in ended if (result := json.loads(consumer.output))]
        # The loser finds nothing to do, or its increment and the winner's are the same one.
        assert {result["version"] for result in done} == {source.handle().version()}
        assert consumers.rows() == source.source_rows()


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
    consumers = Consumers(source, stored)
    consumers.check()
    source.happen("load")
    late = consumers.start(f"stop:{failpoint}")
    assert late.stopped()
    consumers.check()
    source.happen("load")
    late.resume()
    ended = late.wait()
    assert ended.code == 0, ended.errors
    assert len(set(consumers.rows())) == len(consumers.rows())
    consumers.check()


@pytest.mark.parametrize("seed", range(1))
def test_an_increment_that_ends_anywhere_has_all_of_its_effect_or_none(
    kind: str, stored: StoredOutput, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without processes, so there are many: an error ends the increment at a random pass of a random failpoint."""
    random = Random(seed)
    source = TableHistory(tmp_path / "lake", random)
    consumers = Consumers(source, stored)
    output = stored.output()
    before: list[SourceRow] = []
    ended = 0
    for event in ["load", *random.choices(EVENTS, k=25)]:
        source.happen(event)
        monkeypatch.setattr(failpoints, "_pass_counts", Counter())
        monkeypatch.setenv(KILL_AT, f"raise:{random.choice(BY_OUTPUT[kind])}:{random.randint(1, 2)}")
        try:
            apply_increment(source.table, lambda own: own.arrow(["value"]), consumer="c", into=output)
        except MemoryError:
            ended += 1
        monkeypatch.delenv(KILL_AT)
        after = consumers.rows()
        assert after in (before, source.source_rows()), source.events
        before = after
    apply_increment(source.table, lambda own: own.arrow(["value"]), consumer="c", into=output)
    assert consumers.rows() == source.source_rows()
    assert ended > 5
