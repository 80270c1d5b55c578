"""The same load at every place of Spark: in one process, on a cluster whose hosts die, and through Spark Connect."""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.crash.harness import Trial
from tests.crash.stage import Stage
from tests.crash.worlds import MESSAGES
from tests.spark.driver import INTERRUPTED
from tests.spark.gate import Gate, gated
from tests.spark.sites import NAMES, SPREAD, Site, Sites
from tests.spark.standalone import HOSTS
from tests.spark.ui import await_that

pytestmark = [pytest.mark.spark, pytest.mark.crash]
ROOT = Path(__file__).parents[2]
HELD_S = 180  # at most, before the client of a fetch asks again


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with Sites(tmp_path_factory.mktemp("sites")) as sites:
        yield sites


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Modern brokers in this process, which need no ZooKeeper."""
    with Stage("", tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture
def trial(world: Stage, tmp_path: Path) -> Trial:
    return world.trial("modern", tmp_path / "trial")


@pytest.fixture
def gate() -> Iterator[Gate]:
    with gated() as gate:
        yield gate


def begin(site: Site, trial: Trial, **how: float) -> None:
    _, settings = trial.place(request_timeout_s=HELD_S)
    site.driver.begin(settings, **how)


def check_whole(site: Site, trial: Trial) -> None:
    """Check that the table is proven and complete, and that Spark has no work left."""
    trial.check()
    trial.check_whole()
    await_that(site.ui.is_at_rest)


def load_whole(site: Site, trial: Trial) -> None:
    """Load everything without a disturbance."""
    begin(site, trial)
    ended = site.driver.end()
    assert (ended.error, ended.rows) == (None, len(MESSAGES))
    check_whole(site, trial)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_load_runs_at_every_site(name: str, sites: Sites, trial: Trial, gate: Gate) -> None:
    site = sites.open(name)
    gate.close()
    begin(site, trial)
    assert site.driver.progress() == (0, len(MESSAGES))
    gate.open()
    ended = site.driver.end()
    assert (ended.error, ended.rows) == (None, len(MESSAGES))
    assert sorted(ended.progress) == list(ended.progress)
    assert {total for _, total in ended.progress} == {len(MESSAGES)}
    check_whole(site, trial)


@pytest.mark.parametrize("name", SPREAD)
def test_workers_run_the_code_that_was_sent_to_them(name: str, sites: Sites) -> None:
    site = sites.open(name)
    places = site.driver.places()
    assert places
    for place in places:
        assert any(place.folder.is_relative_to(site.hosts.folder(host)) for host in HOSTS)
        assert ".zip/kafka_io/" in place.code
        assert str(ROOT) not in place.path.split(":")


@pytest.mark.parametrize("name", SPREAD)
def test_a_load_survives_the_death_of_a_host(name: str, sites: Sites, trial: Trial, gate: Gate) -> None:  # fault S01
    site = sites.open(name)
    gate.close()
    begin(site, trial)
    gate.await_held(len(HOSTS))
    site.hosts.kill(HOSTS[0])
    gate.open()
    ended = site.driver.end()
    assert (ended.error, ended.rows) == (None, len(MESSAGES))
    check_whole(site, trial)


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("dying", [(), HOSTS[:1]])
def test_two_attempts_of_a_slow_task_make_one_set_of_rows(
    name: str, dying: Sequence[str], sites: Sites, trial: Trial, gate: Gate
) -> None:  # faults S01, S02
    site = sites.open(name)
    gate.close(lambda partition, offset: (partition, offset) == (0, 0))
    begin(site, trial)
    await_that(site.ui.tries_the_last_again)
    for host in dying:
        site.hosts.kill(host)
    gate.open()
    ended = site.driver.end()
    assert (ended.error, ended.rows) == (None, len(MESSAGES))
    check_whole(site, trial)


@pytest.mark.parametrize("name", SPREAD)
def test_a_load_without_any_living_host_ends(name: str, sites: Sites, trial: Trial, gate: Gate) -> None:
    """Spark would wait for executors forever; the error of the load says why it ended."""
    site = sites.open(name)
    gate.close()
    begin(site, trial, starved_s=5)
    gate.await_held(len(HOSTS))
    for host in HOSTS:
        site.hosts.kill(host)
    ended = site.driver.end()
    assert ended.error is not None
    assert "SparkFailed: no executor ran a task for 5 s" in ended.error
    await_that(site.ui.is_at_rest)
    assert trial.held() == {}
    gate.open()
    load_whole(sites.open(name), trial)


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_load_ends_its_tasks_and_commits_nothing(
    name: str, number: signal.Signals, sites: Sites, trial: Trial, gate: Gate
) -> None:
    site = sites.open(name)
    gate.close()
    begin(site, trial)
    gate.await_held(1)
    site.driver.interrupt(number)
    assert site.driver.end().error == INTERRUPTED
    await_that(site.ui.is_at_rest)
    assert trial.held() == {}
    gate.open()
    load_whole(site, trial)
