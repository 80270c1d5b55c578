"""The last error of a topic is kept in the lake until a load of the topic succeeds. It never affects a load."""

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from kafka_io.errors import Corrupt, Where
from pipelines.ledger.failure import SliceFailure
from pipelines.reports.last_error import LastError, LastErrors
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding
from tests.pipelines.load.test_run_target import load

WHERE = Where(cluster="main", topic="clicks", partition="3", offset=7)
FAILURE = replace(SliceFailure.of(Corrupt("a checksum is wrong"), WHERE), trace="Traceback: ...")
ERROR = LastError.of([FAILURE], run="run", time_ms=1)
LONG = "Clicks." * 60


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def test_an_error_is_read_by_others_until_a_load_succeeds(lake: Lake) -> None:  # fault U07
    assert LastErrors(lake, "main").read() == {}
    for topic in ("clicks", LONG):
        assert LastErrors(lake, "main")(topic, ERROR) == ()
    assert LastErrors(lake, "main").read() == {"clicks": ERROR, LONG: ERROR}
    assert LastErrors(lake, "other").read() == {}
    assert LastErrors(lake, "main")("clicks", None) == ()
    assert LastErrors(lake, "main").read() == {LONG: ERROR}
    assert lake.topics("main") == []


def test_an_error_tells_since_when_the_topic_fails(lake: Lake) -> None:
    def since(time_ms: int) -> int:
        LastErrors(lake, "main")("clicks", LastError.of([FAILURE], run="run", time_ms=time_ms))
        return LastErrors(lake, "main").read()["clicks"].since_ms

    assert [since(1000), since(2000), since(3000)] == [1000, 1000, 1000]
    LastErrors(lake, "main")("clicks", None)
    assert since(4000) == 4000


def test_an_error_is_small_and_without_traces() -> None:
    error = LastError.of([FAILURE] * 1000, run="run", time_ms=1)
    assert len(error.failures) < error.count == 1000
    assert {failure.trace for failure in error.failures} == {""}
    assert str(error).endswith("(and 999 more)")


def test_a_single_error_is_shown_as_it_is() -> None:
    assert str(ERROR) == str(FAILURE)


def test_a_file_that_is_cut_off_still_says_that_the_load_failed(lake: Lake) -> None:
    LastErrors(lake, "main")("clicks", ERROR)
    [file] = Path(lake.root).rglob("*.json")
    file.write_text("{")
    assert str(LastErrors(lake, "main").read()["clicks"]) == "the error is unknown"


def test_a_store_that_fails_is_one_warning_per_run(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file, not a folder")
    last_errors = LastErrors(Lake(root=str(tmp_path / "lake")), "main")
    [warning] = last_errors("clicks", ERROR)
    assert "`penstock status` may show an old result of this load" in warning
    assert last_errors("views", ERROR) == ()


def test_a_failed_load_is_remembered_and_the_next_success_forgets_it(fake: FakeCluster, tmp_path: Path) -> None:
    last_errors = LastErrors(Lake(root=str(tmp_path)), "main")
    with fake:
        assert load(fake, tmp_path).error is None
        assert last_errors.read() == {}
        fake.logs[0] = holding(0, 10)
        failed = load(fake, tmp_path, run_id="run-2")
        error = last_errors.read()["clicks"]
        assert (error.run, str(error)) == ("run-2", failed.error)
        fake.logs[0] = holding(0, 30)
        assert load(fake, tmp_path).error is None
    assert last_errors.read() == {}


def test_any_error_fails_the_load_of_its_topic_and_is_remembered(fake: FakeCluster, tmp_path: Path) -> None:
    def fail(*_: object) -> NoReturn:
        raise ZeroDivisionError("division by zero")

    with fake:
        failed = load(fake, tmp_path, fetch=fail)
    assert failed.error == (
        "ZeroDivisionError: an unexpected error; `penstock --debug` with the same command shows its details "
        "[cluster=main topic=clicks] (PS-901)"
    )
    assert not failed.retriable
    assert "in fail" in str(failed.trace)
    assert str(LastErrors(Lake(root=str(tmp_path)), "main").read()["clicks"]) == failed.error


def test_a_topic_that_does_not_exist_leaves_nothing_in_the_lake(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        fake.topic = "views"
        assert "TopicUnknown" in str(load(fake, tmp_path).error)
    assert [file for file in tmp_path.rglob("*.json") if file.parent.name != "_delta_log"] == []
