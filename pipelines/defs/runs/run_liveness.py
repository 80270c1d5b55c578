"""Finds runs whose process is gone: each run records its process in a tag, and a sensor fails the runs of dead ones.

Dagster's default run launcher does not watch the processes that it starts. Without this sensor, a run whose process
was killed would stay "started" for ever and block its place in the pool.
"""

import os
import socket

import dagster as dg
import psutil

WORKER_TAG = ".dagster/penstock_worker"
"""Dagster hides tags that begin with a dot."""
_SAME_PROCESS_S = 2.0
"""Start times of one process may differ by this much, because clocks may be set while it runs. A process with the same
id that started earlier or later than that is another one, which got the number by chance."""


def worker() -> str:
    """The identity of this process: host, process id, and start time in seconds since 1970."""
    return f"{socket.gethostname()}/{os.getpid()}/{psutil.Process().create_time():.3f}"


def is_gone(tag: str) -> bool:
    """Whether the process of a worker tag has ended. False for processes of other hosts, which cannot be seen here."""
    host, process_id, started = tag.split("/")
    if host != socket.gethostname():
        return False
    try:
        process = psutil.Process(int(process_id))
        is_other = abs(process.create_time() - float(started)) > _SAME_PROCESS_S
        return is_other or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def lost_runs_sensor(name: str) -> dg.SensorDefinition:
    """Marks runs as failed whose process was killed, so that the next run can load their topics. No record is lost."""

    @dg.sensor(
        name=name,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=lost_runs_sensor.__doc__,
    )
    def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        in_progress = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
        runs = context.instance.get_runs(in_progress)
        without_process = {run.run_id for run in runs if run.tags.get(WORKER_TAG) and is_gone(run.tags[WORKER_TAG])}
        # A run may have ended before its process was looked for. What is in progress now, no process ends any more.
        now = context.instance.get_runs(in_progress) if without_process else ()
        lost = [run for run in now if run.run_id in without_process]
        for run in lost:
            context.instance.report_run_failed(
                run, f"its process {run.tags[WORKER_TAG]} no longer exists: it was killed from outside"
            )
        ids = ", ".join(run.run_id for run in lost)
        return dg.SkipReason(f"marked as failed: {ids}" if lost else f"runs in progress, all alive: {len(runs)}")

    return lost_runs
