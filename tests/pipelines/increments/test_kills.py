"""Consumers that are killed at any failpoint and started again, and consumers that race: each row has one effect."""

import json
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import duckdb
import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.increment import apply_increment
from pipelines.increments.output import IncrementOutput
from pipelines.loading import failpoints
from pipelines.loading.failpoints import KILL_AT
from tests.crash.drivers import Driver
from tests.failpoints import INCREMENT_FAILPOINTS
from tests.pipelines.increments.table_histories import EVENTS, SourceRow, TableHistory
from tests.pipelines.increments.test_histories import rows_of

pytestmark = pytest.mark.crash
DUCKDB_ONLY = ("before output transaction", "progress moved", "rows inserted", "after output transaction")
DELTA_ONLY = ("output created", "before increment entry", "after increment entry", "increment synced")
OF_SPARK = ("increment files written",)
OF_BOTH = tuple(name for name in INCREMENT_FAILPOINTS if name not in {*DUCKDB_ONLY, *DELTA_ONLY, *OF_SPARK})


def output_at(kind: str, path: Path) -> IncrementOutput:
    """The output of a consumer."""
    return DeltaOutput(uri=str(path)) if kind == "delta" else DuckDBOutput(path=path, table="clicks")


def consume(source: str, kind: str, path: Path) -> None:
    """Commit one increment, and print what was done."""
    done = apply_increment(
        source,
        lambda increment: increment.arrow(["value"]),
        consumer="c",
        into=output_at(kind, path),
        attempts=20,
    )
    sys.stdout.write(json.dumps(done))


@dataclass(frozen=True, slots=True)
class Consumers:
    """Processes of one consumer of a table."""

    source: TableHistory
    kind: str
    path: Path

    def start(self, kill_at: str = "") -> Driver:
        """Start a process that commits one increment, and ends or stops at `kill_at`."""
        home = Path(mkdtemp(prefix="consumer-", dir=self.path.parent))
        return Driver.calling(home, consume, (self.source.uri, self.kind, self.path), kill_at=kill_at)

    def run(self, kill_at: str = "") -> int:
        """Run a process to its end; returns its exit code."""
        ended = self.start(kill_at).wait()
        assert ended.code in {0, -signal.SIGKILL}, ended.errors
        return ended.code

    def rows(self) -> list[SourceRow]:
        """The rows of the output."""
        if self.kind == "delta":
            return rows_of(DeltaTable(str(self.path)).to_pyarrow_table())
        with duckdb.connect(self.path) as connection:
            return rows_of(connection.sql("from clicks").to_arrow_table())

    def check(self) -> None:
        """Check that a process without a kill completes the output."""
        assert self.run() == 0
        assert self.rows() == self.source.source_rows()


def places() -> list[tuple[str, str]]:
    return [
        *(("delta", name) for name in (*OF_BOTH, *DELTA_ONLY)),
        *(("duckdb", name) for name in (*OF_BOTH, *DUCKDB_ONLY)),
    ]


@pytest.mark.parametrize(("kind", "failpoint"), places())
def test_a_killed_consumer_is_completed_by_the_next(kind: str, failpoint: str, tmp_path: Path) -> None:
    source = TableHistory(tmp_path / "lake", Random(3))
    source.happen("load")
    consumers = Consumers(source, kind, tmp_path / "output")
    assert consumers.run(failpoint) == -signal.SIGKILL  # a new consumer
    consumers.check()
    for event in ("load", "replay", "load"):
        source.happen(event)
    if failpoint != "output created":
        assert consumers.run(failpoint) == -signal.SIGKILL  # one with rows to remove
    consumers.check()


@pytest.mark.parametrize("kind", ["delta", "duckdb"])
def test_racing_consumers_commit_an_increment_once(kind: str, tmp_path: Path) -> None:
    source = TableHistory(tmp_path / "lake", Random(5))
    source.happen("load")
    consumers = Consumers(source, kind, tmp_path / "output")
    for event in ("load", "replay", "cut", "load"):
        source.happen(event)
        racing = [consumers.start() for _ in range(2)]
        ended = [consumer.wait() for consumer in racing]
        assert [consumer.code for consumer in ended] == [0, 0]
        done = [result for consumer in ended if (result := json.loads(consumer.output))]
        # The loser finds nothing to do, or its increment and the winner's are the same one.
        assert {result["version"] for result in done} == {source.handle().version()}
        assert consumers.rows() == source.source_rows()


@pytest.mark.parametrize(("kind", "failpoint"), [("delta", "before increment entry"), ("duckdb", "increment known")])
def test_a_late_consumer_does_not_repeat_what_another_has_committed(kind: str, failpoint: str, tmp_path: Path) -> None:
    """The late one is stopped when it has read the progress, and resumed after the other and a further load."""
    source = TableHistory(tmp_path / "lake", Random(5))
    source.happen("load")
    consumers = Consumers(source, kind, tmp_path / "output")
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


@pytest.mark.parametrize("kind", ["delta", "duckdb"])
@pytest.mark.parametrize("seed", range(3))
def test_an_increment_that_ends_anywhere_has_all_of_its_effect_or_none(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without processes, so there are many: an error ends the increment at a random pass of a random failpoint."""
    random = Random(seed)
    source = TableHistory(tmp_path / "lake", random)
    consumers = Consumers(source, kind, tmp_path / "output")
    output = output_at(kind, consumers.path)
    failpoints_of_kind = [failpoint for kind_, failpoint in places() if kind_ == kind]
    before: list[SourceRow] = []
    ended = 0
    for event in ["load", *random.choices(EVENTS, k=25)]:
        source.happen(event)
        monkeypatch.setattr(failpoints, "_pass_counts", Counter())
        monkeypatch.setenv(KILL_AT, f"raise:{random.choice(failpoints_of_kind)}:{random.randint(1, 2)}")
        try:
            apply_increment(source.table, lambda own: own.arrow(["value"]), consumer="c", into=output)
        except MemoryError:
            ended += 1
        monkeypatch.delenv(KILL_AT)
        after = consumers.rows() if has_rows(consumers) else []
        assert after in (before, source.source_rows()), source.events
        before = after
    apply_increment(source.table, lambda own: own.arrow(["value"]), consumer="c", into=output)
    assert consumers.rows() == source.source_rows()
    assert ended > 5


def has_rows(consumers: Consumers) -> bool:
    """Whether the output has a table."""
    if not consumers.path.exists() or consumers.kind == "delta":
        return consumers.path.exists()
    with duckdb.connect(consumers.path) as connection:
        return bool(connection.execute("select * from duckdb_tables() where table_name = 'clicks'").fetchall())
