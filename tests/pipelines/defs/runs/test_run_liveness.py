"""Only runs whose process is gone are marked as failed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.runs.run_liveness import WORKER_TAG, is_gone, lost_runs_sensor, worker
from pipelines.defs.runs.run_tags import tagged_run
from tests.pipelines.defs.declared import LOAD, defs_of


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A process that prints its worker tag and waits until the test kills it."""
    code = (
        "import sys; from pipelines.defs.runs.run_liveness import worker; print(worker(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def tag_of(process: subprocess.Popen[str]) -> str:
    """The worker tag that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.slow
def test_a_process_exists_until_it_is_killed(process: subprocess.Popen[str]) -> None:
    tag = tag_of(process)
    assert not is_gone(tag)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie: its parent has not waited for it yet
    assert is_gone(tag)
    process.wait()
    assert is_gone(tag)


def test_a_later_process_with_the_same_id_is_another_process() -> None:
    host, number, began = worker().split("/")
    assert not is_gone(f"{host}/{number}/{began}")
    assert is_gone(f"{host}/{number}/{float(began) - 60}")


def test_a_process_of_another_host_counts_as_alive() -> None:
    assert not is_gone("elsewhere/1/1.0")


def evaluate(instance: dg.DagsterInstance) -> Any:
    with dg.build_sensor_context(instance=instance) as context:
        return lost_runs_sensor("lost_runs").evaluate_tick(context)


@pytest.mark.slow
def test_a_run_whose_process_is_gone_is_marked_as_failed(
    instance: dg.DagsterInstance, process: subprocess.Popen[str]
) -> None:
    job = defs_of("clicks").resolve_job_def(LOAD)
    running = {
        name: instance.create_run_for_job(job, tags={WORKER_TAG: tag}, status=dg.DagsterRunStatus.STARTED).run_id
        for name, tag in (("killed", tag_of(process)), ("alive", worker()), ("elsewhere", "elsewhere/1/1.0"))
    }
    unsigned = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED).run_id
    assert evaluate(instance).skip_message == "runs in progress, all alive: 4"
    process.kill()
    process.wait()
    assert evaluate(instance).skip_message == f"marked as failed: {running['killed']}"
    statuses = {run.run_id: run.status for run in instance.get_runs()}
    assert statuses == {
        running["killed"]: dg.DagsterRunStatus.FAILURE,
        running["alive"]: dg.DagsterRunStatus.STARTED,
        running["elsewhere"]: dg.DagsterRunStatus.STARTED,
        unsigned: dg.DagsterRunStatus.STARTED,
    }
    assert evaluate(instance).skip_message == "runs in progress, all alive: 3"


# fault F17
def test_a_run_that_ends_while_the_sensor_looks_is_not_marked_as_failed(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The more daemons share a storage, the more often that happens."""
    job = defs_of("clicks").resolve_job_def(LOAD)
    run = instance.create_run_for_job(job, tags={WORKER_TAG: "here/1/1.0"}, status=dg.DagsterRunStatus.STARTED)

    def ended(_: str) -> bool:
        instance.run_storage.handle_run_event(run.run_id, run_success(job.name))
        return True

    monkeypatch.setattr("pipelines.defs.runs.run_liveness.is_gone", ended)
    assert evaluate(instance).skip_message == "runs in progress, all alive: 1"
    stored = instance.get_run_by_id(run.run_id)
    assert stored is not None
    assert stored.status == dg.DagsterRunStatus.SUCCESS


def run_success(job_name: str) -> dg.DagsterEvent:
    return dg.DagsterEvent(event_type_value=dg.DagsterEventType.RUN_SUCCESS.value, job_name=job_name)


@pytest.mark.parametrize(("executor", "kept"), [(dg.in_process_executor, True), (dg.multiprocess_executor, False)])
def test_a_step_in_a_process_of_its_own_does_not_make_the_rest_of_the_run_look_dead(
    instance: dg.DagsterInstance, executor: dg.ExecutorDefinition, kept: bool
) -> None:
    @dg.op
    def step() -> None:
        """A step."""

    @dg.job(executor_def=executor)
    def steps() -> None:
        step()

    context = SimpleNamespace(
        instance=instance, job_def=steps, run=instance.create_run_for_job(steps, status=dg.DagsterRunStatus.STARTED)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.defs.runs.run_tags.dg.OpExecutionContext", SimpleNamespace)
        with tagged_run(context, "main", ["clicks"]):  # type: ignore[arg-type]
            pass
    run = instance.get_run_by_id(context.run.run_id)
    assert run is not None
    assert run.tags["topics"] == "clicks"
    assert bool(run.tags[WORKER_TAG]) is kept
