"""Dagster's processes are killed in the middle of a load and started again: no record is lost or doubled."""

# faults O01, O03

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

import dagster as dg
import psutil
import pytest

from pipelines.defs.runs.run_liveness import WORKER_TAG, is_gone
from tests.live import numbered
from tests.ui.gate import Gate, gate
from tests.ui.modern import modern_cluster
from tests.ui.servers import DAEMON, WEBSERVER
from tests.ui.stand import Stand, dagster_on
from tests.ui.waiting import until

pytestmark = [pytest.mark.ui, pytest.mark.timeout(1800)]

TOPICS = ("first", "held", "last")
LOAD = "load__main__topics"
FAILED, SUCCESS = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS


@pytest.fixture(scope="module")
def gated() -> Iterator[Gate]:
    with gate() as open_gate:
        yield open_gate


@pytest.fixture(scope="module")
def killed(gated: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Three topics were loaded, each in its own run. The daemon was killed between the two ticks of the sensor."""
    home = tmp_path_factory.mktemp("kills")
    with ExitStack() as running:
        settings = running.enter_context(modern_cluster(home, topics_per_run=1))
        stand = running.enter_context(dagster_on(home, settings, runs_at_once=4, loads_at_once=1))
        # The sensor asks this webserver to load the new assets.
        settings.write_text(f'webserver = "{stand.url}"\n{settings.read_text()}')
        for topic in TOPICS:
            stand.publish(topic, numbered(100))
        until(
            lambda: any("new topics: " in (tick["skipReason"] or "") for tick in stand.ticks("new_topics__main")),
            "a tick that saw the topics",
        )
        stand.servers.kill(DAEMON)
        stand.servers.start(DAEMON)
        stand.wait_for(*TOPICS)
        until(lambda: stand.defined() == set(TOPICS), "the assets in the webserver")
        # From now on a run loads all topics that it is launched for. Each run reads the file again.
        settings.write_text(settings.read_text().replace("topics_per_run = 1\n", f"topics_per_run = {len(TOPICS)}\n"))
        yield stand


def publish_to_all(stand: Stand) -> list[bytes]:
    """Publish messages to all topics, whose tables must be complete. Returns the values expected in each, sorted."""
    row_count = len(stand.values("held"))
    for topic in TOPICS:
        stand.publish(topic, numbered(100, row_count))
    return sorted(numbered(row_count + 100))


def load_to_gate(stand: Stand, gated: Gate) -> str:
    """Launch a run over all topics and wait until it is at the gate. Returns its id."""
    run_id = stand.launch(LOAD, TOPICS)
    until(lambda: "held" in gated.waiting_topics, "a fetch at the gate")
    return run_id


def worker_of(stand: Stand, run_id: str) -> psutil.Process:
    """The process of a run."""
    _, number, _ = stand.run(run_id).tags[WORKER_TAG].split("/")
    return psutil.Process(int(number))


def check_each_value_is_loaded_once(stand: Stand, expected: list[bytes]) -> None:
    """Check that every table has exactly the expected values, and that no run is unfinished."""
    stand.wait_for_runs()
    for topic in TOPICS:
        assert stand.values(topic) == expected
        assert stand.proof(topic).proven
    assert stand.preview(LOAD)["skipReason"] == "nothing new in 3 topics; 0 are being loaded"


def load_requested(stand: Stand) -> None:
    """Load all topics that the schedule requests now in one run. The schedule must also request topics of dead runs."""
    requested = sorted(topic for topics in stand.requested(LOAD) for topic in topics)
    run_id = stand.launch(LOAD, requested)
    stand.wait_for_runs()
    assert stand.run(run_id).is_success


def test_without_a_shared_code_server_the_webserver_is_asked_and_the_daemon_follows(killed: Stand) -> None:
    """The fixture has waited until both had the assets. Without the sensor the webserver would never load them."""
    reasons = [tick["skipReason"] or "" for tick in killed.ticks("new_topics__main")]
    sentence = re.compile(r"new topics: [1-3]; the daemon loads the new assets within 65 seconds; the webserver ")
    assert any(map(sentence.match, reasons)), reasons
    assert killed.defined() == set(TOPICS)


def test_a_daemon_killed_between_two_ticks_requests_new_topics_once(killed: Stand) -> None:
    runs = [run for run in killed.instance.get_runs() if "dagster/sensor_name" in run.tags]
    assert [run.status for run in runs] == [SUCCESS] * 3
    assert all(killed.proof(topic).proven for topic in TOPICS)


def test_a_run_ends_without_the_daemon_that_launched_it_and_without_the_webserver(killed: Stand, gated: Gate) -> None:
    expected = publish_to_all(killed)
    with gated.holding("held"):
        run_id = load_to_gate(killed, gated)
        killed.servers.kill(DAEMON)
        killed.servers.kill(WEBSERVER)
    until(lambda: killed.run(run_id).is_finished, "the run")
    assert killed.run(run_id).is_success
    killed.servers.start(DAEMON)
    killed.servers.start(WEBSERVER)
    until(killed.servers.code_servers, "the new daemon's code server")
    until(killed.answers, "the webserver")
    check_each_value_is_loaded_once(killed, expected)


def test_a_run_continues_without_its_code_server_and_the_daemon_starts_another(killed: Stand, gated: Gate) -> None:
    expected = publish_to_all(killed)
    with gated.holding("held"):
        run_id = load_to_gate(killed, gated)
        before = killed.servers.code_servers()
        for server in before:
            server.kill()
    until(lambda: killed.run(run_id).is_finished, "the run")
    assert killed.run(run_id).is_success
    until(lambda: set(killed.servers.code_servers()) - set(before), "another code server")
    check_each_value_is_loaded_once(killed, expected)
    expected = publish_to_all(killed)
    load_requested(killed)
    check_each_value_is_loaded_once(killed, expected)


def test_the_topics_of_a_killed_run_are_loaded_by_the_next_run(killed: Stand, gated: Gate) -> None:
    expected = publish_to_all(killed)
    with gated.holding("held"):
        run_id = load_to_gate(killed, gated)
        worker_of(killed, run_id).kill()
        until(lambda: killed.run(run_id).is_finished, "the run to be marked as failed")
    assert killed.run(run_id).status is FAILED
    assert len(killed.values("first")) == len(expected)
    assert len(killed.values("held")) == len(expected) - 100
    load_requested(killed)
    check_each_value_is_loaded_once(killed, expected)


def test_a_run_that_died_with_all_servers_is_marked_as_failed_and_frees_its_pool_slot(
    killed: Stand, gated: Gate
) -> None:
    """Let no process notice the death of the run, like after a crash of the machine."""
    expected = publish_to_all(killed)
    with gated.holding("held"):
        run_id = load_to_gate(killed, gated)
        waiting_run = killed.launch(LOAD, ["held"])
        worker = worker_of(killed, run_id)
        for server in killed.servers.code_servers():
            server.kill()
        killed.servers.kill(DAEMON)
        worker.kill()
    assert not killed.run(run_id).is_finished
    killed.servers.start(DAEMON)
    until(lambda: killed.run(run_id).is_finished, "the sensor lost_runs")
    assert killed.run(run_id).status is FAILED
    skip_reasons = [tick["skipReason"] or "" for tick in killed.ticks("lost_runs")]
    assert [reason for reason in skip_reasons if run_id in reason] == [f"marked as failed: {run_id}"]
    until(lambda: killed.run(waiting_run).is_finished, "the run that waited for the pool")
    assert killed.run(waiting_run).is_success
    load_requested(killed)
    check_each_value_is_loaded_once(killed, expected)


def test_a_terminated_run_ends_and_the_next_run_loads_its_topics(killed: Stand, gated: Gate) -> None:
    expected = publish_to_all(killed)
    with gated.holding("held"):
        run_id = load_to_gate(killed, gated)
        assert killed.terminate(run_id) == "TerminateRunSuccess"
        until(lambda: killed.run(run_id).is_finished, "the end of the terminated run")
    assert killed.run(run_id).status in {dg.DagsterRunStatus.CANCELED, FAILED}
    until(lambda: is_gone(killed.run(run_id).tags[WORKER_TAG]), "the end of its process")
    assert len(killed.values("first")) == len(expected)
    assert len(killed.values("held")) == len(expected) - 100
    assert all(killed.proof(topic).proven for topic in TOPICS)
    load_requested(killed)
    check_each_value_is_loaded_once(killed, expected)


def test_a_pool_of_one_slot_never_runs_two_loads_at_once(killed: Stand, gated: Gate) -> None:
    """This also holds for runs that the sensor requested in one tick, before the pool existed in Dagster."""
    expected = publish_to_all(killed)
    with gated.holding("held", "last"):
        runs = [killed.launch(LOAD, [topic]) for topic in ("held", "last")]
        until(lambda: gated.waiting_topics, "a fetch at the gate")
        (blocked,) = [run_id for run_id in runs if killed.run(run_id).status is dg.DagsterRunStatus.QUEUED]
        until(lambda: f"{blocked} is blocked by global concurrency limits" in killed.servers.log(DAEMON), "a full pool")
        assert len(gated.waiting_topics) == 1
    load_requested(killed)
    check_each_value_is_loaded_once(killed, expected)
    records = killed.instance.get_run_records(dg.RunsFilter(job_name=LOAD))
    times = sorted((record.start_time, record.end_time) for record in records if record.start_time and record.end_time)
    assert len(times) >= 5
    assert all(ended <= began for (_, ended), (began, _) in pairwise(times))
