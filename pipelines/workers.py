"""Processes of runs: each run says which it is in, and a sensor tells Dagster of those that are gone.

Dagster's default launcher never looks after the processes it has started. A run whose process was killed would be
"started" for ever, and keep its place among the runs that may go on at once.
"""

import os
import socket

import dagster as dg
import psutil

WORKER_TAG = "penstock/worker"
_SAME_S = 2.0
"""Clocks may be set while a process runs; one that began that much earlier or later has the same number by chance."""


def worker() -> str:
    """This process, told apart from any other of this machine, also after its number is used again."""
    return f"{socket.gethostname()}/{os.getpid()}/{psutil.Process().create_time():.3f}"


def is_gone(tag: str) -> bool:
    """Whether a process of this machine is no more. Of other machines it is not known, and so not said."""
    host, number, began = tag.split("/")
    if host != socket.gethostname():
        return False
    try:
        process = psutil.Process(int(number))
        return abs(process.create_time() - float(began)) > _SAME_S or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def sign(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext | dg.OpExecutionContext) -> None:
    """Write this process on its run."""
    context.instance.add_run_tags(context.run.run_id, {WORKER_TAG: worker()})


def lost_runs_sensor() -> dg.SensorDefinition:
    """Runs whose process is gone are told as failed: their topics are free for the next run, which loses nothing."""

    @dg.sensor(
        name="lost_runs",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=lost_runs_sensor.__doc__,
    )
    def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        under_way = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
        runs = context.instance.get_runs(dg.RunsFilter(statuses=under_way))
        lost = [run for run in runs if WORKER_TAG in run.tags and is_gone(run.tags[WORKER_TAG])]
        for run in lost:
            context.instance.report_run_failed(run, f"its process {run.tags[WORKER_TAG]} is gone, killed from outside")
        ids = ", ".join(run.run_id for run in lost)
        return dg.SkipReason(f"told as failed: {ids}" if lost else f"runs under way, all alive: {len(runs)}")

    return lost_runs
