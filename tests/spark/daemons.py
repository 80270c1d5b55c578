"""Runs the servers of Spark and of YARN. Each has its own working directory, by which we find its children."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from resources.machines.java import find_java
from resources.machines.processes import dying_with_parent

HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "SPARK_SCALA_VERSION": "2.13",  # Spark's scripts cannot detect it in the PySpark wheel
    "PYSPARK_PYTHON": sys.executable,  # for the executors of a Connect server
}
LOG = "log"
_TIMEOUT_S = 180.0
_POLL_S = 0.05


@contextmanager
def daemon(command: Sequence[str], folder: Path, *, host: str, memory: str) -> Iterator[None]:
    """Run a script of Spark in `folder` for the length of a `with` block. All processes that it started end with it."""
    variables = {**ENVIRONMENT, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": memory}
    variables["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_DAEMON_JAVA_OPTS"]
    with server([str(HOME / "bin" / command[0]), *command[1:]], folder, variables):
        yield


@contextmanager
def server(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Run a program in `folder` for the length of a `with` block. All processes that it started end with it.

    `variables` are added to the environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "JAVA_HOME": str(find_java()), **variables}
    # A session of this process logs only errors. The log of a daemon says when it is ready.
    environment.pop("SPARK_CONF_DIR", None)
    environment.pop("PYTHONPATH", None)  # a local session of this process puts our code there; executors receive it
    with (
        (folder / LOG).open("wb") as log,
        subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
        ),
    ):
        try:
            yield
        finally:
            kill_in(folder)


def await_log(folder: Path, pattern: str) -> str:
    """Wait until the log of the daemon in `folder` matches the pattern; return the first group."""
    log = folder / LOG
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_text()):
            return match[1]
        time.sleep(_POLL_S)
    raise TimeoutError(f"after {_TIMEOUT_S:g} s the log in {folder} does not match: {pattern}\n{log.read_text()}")


def kill_in(folder: Path) -> None:
    """Kill every process whose working directory is `folder` or a folder in it, as a power failure does."""
    while process_ids := _working_in(folder.resolve()):
        for process_id in process_ids:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(_POLL_S)


def _working_in(folder: Path) -> list[int]:
    process_ids = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # the process has ended, or belongs to another user
            if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(folder):
                process_ids.append(int(entry.name))
    return process_ids
