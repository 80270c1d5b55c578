"""A sample of `make crash KILLS=20`: a consumer that is killed at a failpoint is completed by the next one."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.crash import consumer_kills
from tests.crash.chance import Failed
from tests.crash.consumer_kills import PLACES
from tests.crash.consumer_stories import ConsumerStory, circumstance, kill_consumers
from tests.crash.consumers import FAILPOINTS_OF, Consumer, RowConsumer, consumer_of
from tests.failpoints import INCREMENT_FAILPOINTS, OF_SPARK_ROWS, STATE_FAILPOINTS
from tests.thorough import also, first

pytestmark = pytest.mark.crash
OF_SPARK = ("output columns added", "increment files written", "staged rows committed", "after increment entry")


FAILPOINTS = {*INCREMENT_FAILPOINTS, *STATE_FAILPOINTS}
KINDS = ("delta", "duckdb", "state", "postgres")


def places(*kinds: str) -> list[Any]:
    """All failpoints of these kinds. `make test` kills at each failpoint one of the kinds that pass it."""
    cases = []
    for number, failpoint in enumerate(sorted(FAILPOINTS)):
        passing = [kind for kind in KINDS if failpoint in FAILPOINTS_OF[kind]]
        for place, kind in enumerate(passing):
            if kind in kinds:
                case = pytest.param if place == number % len(passing) else also
                cases.append(case(kind, failpoint))
    return cases


def test_make_test_kills_at_each_failpoint_but_some_of_spark() -> None:
    killed = [case.values for case in places(*KINDS) if not case.marks]
    assert {failpoint for _, failpoint in killed} == FAILPOINTS - {*OF_SPARK_ROWS} | {"output columns added"}
    assert {kind for kind, _ in killed} == {*KINDS}
    every = [(kind, failpoint) for kind in KINDS for failpoint in FAILPOINTS_OF[kind]]
    assert sorted(tuple(case.values) for case in places(*KINDS)) == sorted(every)


# faults N40, N50
@pytest.mark.parametrize(("kind", "failpoint"), places("delta", "duckdb", "state"))
def test_a_killed_consumer_is_completed_by_the_next(kind: str, failpoint: str, tmp_path: Path) -> None:
    outcomes = kill_consumers(kind, failpoint, 1, 0, tmp_path, consumer_of)
    assert outcomes["killed"] == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgres
@pytest.mark.parametrize(("kind", "failpoint"), places("postgres"))
def test_a_killed_consumer_of_postgres_is_completed_by_the_next(
    kind: str, failpoint: str, postgres_dsn: str, tmp_path: Path
) -> None:
    def opened(kind: str, home: Path, random: Random) -> Consumer:
        return consumer_of(kind, home, random, dsn=postgres_dsn)

    assert kill_consumers(kind, failpoint, 1, 0, tmp_path, opened)["killed"] == 1


@pytest.mark.spark
@pytest.mark.parametrize("failpoint", first(1, OF_SPARK))
def test_a_killed_driver_of_spark_is_completed_by_the_next(failpoint: str, spark: SparkSession, tmp_path: Path) -> None:
    def opened(kind: str, home: Path, random: Random) -> Consumer:
        return consumer_of(kind, home, random, session=spark)

    assert kill_consumers("spark", failpoint, 1, 0, tmp_path, opened)["killed"] == 1


def test_consumers_are_killed_at_every_failpoint_of_increments() -> None:
    assert {place.split(": ")[1] for place in PLACES} == FAILPOINTS
    assert len(FAILPOINTS) >= 25


def test_a_row_that_has_two_effects_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = RowConsumer.rows
    monkeypatch.setattr(RowConsumer, "rows", lambda consumer: sorted(rows(consumer) * 2))
    with pytest.raises(Failed, match='make crash KILLS=1 SEED=0 AT="delta: increment known": AssertionError'):
        kill_consumers("delta", "increment known", 1, 0, tmp_path, consumer_of)
    assert (tmp_path / "delta-increment-known-0-0" / "lake").is_dir()


def test_a_failpoint_that_no_consumer_passes_ends_the_search(tmp_path: Path) -> None:
    consumer = consumer_of("delta", tmp_path, Random(0))
    story = ConsumerStory(
        consumer=consumer, failpoint="loaded", circumstance=circumstance("delta", "loaded"), random=Random(0)
    )
    with pytest.raises(AssertionError, match="killed 0 times at loaded"):
        story.play(1)


def test_the_search_reports_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert consumer_kills.run(["delta: source read"], 1, 3, tmp_path)["killed"] == 1
    assert "1 of 1, delta: source read: 1 killed" in capsys.readouterr().out
