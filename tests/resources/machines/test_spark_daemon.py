"""A Python worker of a local Spark session ends quietly when Spark has closed its connection."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

_WORKER = """
import socket
from pyspark import daemon, worker
from pyspark.serializers import write_int
from resources.machines import spark_daemon

{arrange}
ours, sparks = socket.socketpair()
if {has_task}:
    with sparks.makefile("wb") as spark:
        write_int(0, spark)
sparks.close()
print(daemon.worker(ours, True))
"""
_OURS = "worker.main = spark_daemon.run_task"


def run_worker(arrange: str, *, has_task: bool) -> subprocess.CompletedProcess[str]:
    """A worker whose connection Spark closes while it waits for a task, or while it reads one."""
    code = _WORKER.format(arrange=arrange, has_task=has_task)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("has_task", [False, True])
def test_a_worker_whose_connection_spark_has_closed_prints_nothing(has_task: bool) -> None:  # fault F06
    ended = run_worker(_OURS, has_task=has_task)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")
    assert "BrokenPipeError" in run_worker("", has_task=has_task).stderr  # what Spark's own worker prints


def test_another_error_of_a_worker_is_printed() -> None:
    fails = "spark_daemon._run_task = lambda *_: 1 / 0\n" + _OURS
    assert "ZeroDivisionError" in run_worker(fails, has_task=False).stderr
