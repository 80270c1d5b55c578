"""The same load at every site of Spark: in one process, on a cluster whose hosts are killed, through Spark Connect."""

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resources.failpoints import KILL_AT, ONCE
from tests.crash.avro_values import EARLIER
from tests.crash.harness import Trial
from tests.crash.stage import Stage
from tests.crash.worlds import MESSAGES
from tests.spark.driver import INTERRUPTED
from tests.spark.gate import Gate, gated
from tests.spark.sites import CLUSTER_NAMES, NAMES, Site, Sites
from tests.spark.standalone import HOSTS
from tests.spark.ui import await_that
from tests.thorough import also, first

pytestmark = [pytest.mark.spark, pytest.mark.crash]
ROOT = Path(__file__).parents[2]
CONNECT, CLASSIC = CLUSTER_NAMES
SITES = [NAMES[1], also(NAMES[0]), also(NAMES[2]), also(NAMES[3])]
"""In `make test` the first. A classic session on this machine loads in tests/pipelines/load/test_load.py, too."""
REQUEST_TIMEOUT_S = 180  # a fetch may wait so long at the gate before its client repeats it


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


def begin(
    site: Site, trial: Trial, *, kill_at: str = "", settings: Mapping[str, Any] | None = None, **options: Any
) -> Path:
    """Begin a load of the topic at a site, with these arguments of World.settings.

    Returns the folder where the worker that reaches `kill_at` leaves a mark.
    """
    home, file = trial.new_driver_files(request_timeout_s=REQUEST_TIMEOUT_S, **(settings or {}))
    site.driver.begin(file, for_workers={KILL_AT: kill_at, ONCE: str(home)} if kill_at else {}, **options)
    return home


def check_complete(site: Site, trial: Trial) -> None:
    """Check that the table is proven and complete, and that no task or job of Spark runs."""
    trial.check()
    trial.check_complete()
    await_that(site.ui.is_at_rest)


def load_all(site: Site, trial: Trial) -> None:
    """Load all messages without a disturbance, and check the result."""
    begin(site, trial)
    result = site.driver.end()
    assert (result.error, result.rows) == (None, len(MESSAGES))
    check_complete(site, trial)


@pytest.mark.parametrize("name", SITES)
def test_the_same_load_runs_at_every_site(name: str, sites: Sites, trial: Trial, gate: Gate) -> None:
    site = sites.open(name)
    gate.close()
    begin(site, trial)
    assert site.driver.progress() == (0, len(MESSAGES))
    gate.open()
    result = site.driver.end()
    assert (result.error, result.rows) == (None, len(MESSAGES))
    assert sorted(result.progress) == list(result.progress)
    assert {total for _, total in result.progress} == {len(MESSAGES)}
    check_complete(site, trial)


@pytest.mark.parametrize("name", SITES)
def test_free_cores_fetch_the_next_steps_while_a_step_waits_for_its_last_slice(
    name: str, sites: Sites, trial: Trial, gate: Gate
) -> None:
    site = sites.open(name)
    gate.close(lambda partition, offset: (partition, offset) == (0, 0) or offset >= 240)
    begin(site, trial, step_slices=2)  # each step has one slice of 120 records of each partition
    gate.wait_for_fetches(2)
    assert trial.loaded_numbers() == {}
    gate.open()
    result = site.driver.end()
    assert (result.error, result.rows) == (None, len(MESSAGES))
    check_complete(site, trial)


@pytest.mark.parametrize("name", first(1, CLUSTER_NAMES))
def test_workers_run_the_code_that_was_sent_to_them(name: str, sites: Sites) -> None:
    site = sites.open(name)
    environments = site.driver.task_environments()
    assert environments
    for environment in environments:
        assert any(environment.folder.is_relative_to(site.hosts.folder(host)) for host in HOSTS)
        assert ".zip/kafka_io/" in environment.code
        assert str(ROOT) not in environment.path.split(":")


def schema_requests(trial: Trial) -> list[int]:
    """The id of each schema that the registry was asked for."""
    assert trial.world.registry is not None
    prefix = "GET /schemas/ids/"
    return [int(line.removeprefix(prefix)) for line in trial.world.registry.requests if line.startswith(prefix)]


@pytest.mark.parametrize("name", first(1, CLUSTER_NAMES))
def test_records_of_a_schema_that_only_workers_have_met_are_decoded(
    name: str, sites: Sites, trial: Trial, gate: Gate
) -> None:
    """Workers report an unknown id to the driver. It asks the registry once, and sends the schema to the workers."""
    site = sites.open(name)
    loads: Sequence[tuple[str, int, list[int], list[int]]] = (
        ("avro-1", EARLIER, [], [1, 99]),
        ("avro", len(MESSAGES) - EARLIER, [1], [2, 99]),
    )
    for variant, rows, known, new in loads:
        earlier_requests = len(schema_requests(trial))
        snapshot = trial.table.existing()
        covered = snapshot.entry.covered if snapshot and snapshot.entry else {}
        cursors = {id_.partition: cursor for id_, (_, cursor) in covered.items()}
        # The driver fetches the last message before each cursor, to compare it with the table.
        gate.close(partial(lambda cursors, partition, offset: offset >= cursors.get(partition, 0), cursors))
        begin(site, trial, settings={"variant": variant, "value_format": "avro"})
        gate.wait_for_fetches(len(HOSTS))
        assert schema_requests(trial)[earlier_requests:] == known
        gate.open()
        result = site.driver.end()
        assert (result.error, result.rows) == (None, rows)
        assert schema_requests(trial)[earlier_requests:] == [*known, *new]
        trial.check()
    check_complete(site, trial)


@pytest.mark.parametrize("name", first(1, CLUSTER_NAMES))
def test_a_load_is_complete_although_a_host_is_killed(
    name: str, sites: Sites, trial: Trial, gate: Gate
) -> None:  # fault S01
    site = sites.open(name)
    gate.close()
    begin(site, trial)
    gate.wait_for_fetches(len(HOSTS))
    site.hosts.kill(HOSTS[0])
    gate.open()
    result = site.driver.end()
    assert (result.error, result.rows) == (None, len(MESSAGES))
    check_complete(site, trial)


@pytest.mark.parametrize(
    ("name", "dying"),
    [
        (CONNECT, HOSTS[:1]),
        also(CONNECT, ()),
        also(CLASSIC, ()),
        also(CLASSIC, HOSTS[:1]),
    ],
)
def test_two_attempts_of_a_slow_task_write_each_row_once(
    name: str, dying: Sequence[str], sites: Sites, trial: Trial, gate: Gate
) -> None:  # faults S01, S02
    site = sites.open(name)
    gate.close(lambda partition, offset: (partition, offset) == (0, 0))
    begin(site, trial)
    await_that(site.ui.retries_last_task)
    for host in dying:
        site.hosts.kill(host)
    gate.open()
    result = site.driver.end()
    assert (result.error, result.rows) == (None, len(MESSAGES))
    check_complete(site, trial)


def slices_with_two_files(trial: Trial) -> list[str]:
    """The slices with more than one data file. A file name has the slice, and then a part that differs by attempt."""
    files = Counter(Path(file).name.rpartition("-")[0] for file in trial.files())
    return [name for name, count in files.items() if count > 1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [CLASSIC])
def test_a_slice_whose_file_two_attempts_write_is_committed_once(
    name: str, sites: Sites, trial: Trial
) -> None:  # fault S02
    site = sites.open(name)
    mark = begin(site, trial, kill_at="stop:file synced") / "stop:file synced"
    await_that(lambda: mark.exists() and mark.read_text())
    await_that(lambda: slices_with_two_files(trial))
    os.kill(int(mark.read_text()), signal.SIGCONT)
    result = site.driver.end()
    assert (result.error, result.rows) == (None, len(MESSAGES))
    assert slices_with_two_files(trial)  # on a busy machine, Spark repeats more than the stopped one
    check_complete(site, trial)


@pytest.mark.parametrize("name", first(1, CLUSTER_NAMES))
def test_a_load_ends_with_an_error_when_all_hosts_are_dead(name: str, sites: Sites, trial: Trial, gate: Gate) -> None:
    """Spark would wait for executors forever; the error of the load says why the load ended."""
    site = sites.open(name)
    gate.close()
    begin(site, trial, starved_s=5)
    gate.wait_for_fetches(len(HOSTS))
    for host in HOSTS:
        site.hosts.kill(host)
    result = site.driver.end()
    assert result.error is not None
    assert "SparkFailed: no executor ran a task for 5 s" in result.error
    await_that(site.ui.is_at_rest)
    assert trial.loaded_numbers() == {}
    gate.open()
    load_all(sites.open(name), trial)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (CONNECT, signal.SIGTERM),
        also(CLASSIC, signal.SIGINT),
        also(CLASSIC, signal.SIGTERM),
        also(CONNECT, signal.SIGINT),
    ],
)
def test_an_interrupted_load_ends_its_tasks_and_commits_nothing(
    name: str, number: signal.Signals, sites: Sites, trial: Trial, gate: Gate
) -> None:
    site = sites.open(name)
    gate.close()
    begin(site, trial, step_slices=2)  # so there are jobs of later steps, too
    gate.wait_for_fetches(1)
    site.driver.interrupt(number)
    assert site.driver.end().error == INTERRUPTED
    await_that(site.ui.is_at_rest)
    assert trial.loaded_numbers() == {}
    gate.open()
    load_all(site, trial)
