"""Spark's own processes, from PySpark's jars. Each works in its own folder, so that all its children can be found."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from resources.java import find_java
from resources.processes import dying_with_parent

HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "SPARK_SCALA_VERSION": "2.13",  # the scripts cannot find it out in the wheel
    "PYSPARK_PYTHON": sys.executable,  # of a Connect server's executors
}
LOG = "log"
_LONGEST_S = 180.0
_POLL_S = 0.05


@contextmanager
def daemon(command: Sequence[str], folder: Path, *, host: str, memory: str) -> Iterator[None]:
    """Run a script of Spark in `folder` for the length of a `with` block. All processes that it started end with it."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **ENVIRONMENT, "JAVA_HOME": str(find_java())}
    environment |= {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": memory}
    environment.pop("SPARK_CONF_DIR", None)  # a session of this process has set it, and its log has errors only
    with (
        (folder / LOG).open("wb") as log,
        subprocess.Popen(
            [str(HOME / "bin" / command[0]), *command[1:]],
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
            kill_below(folder)


def await_log(folder: Path, pattern: str) -> str:
    """Wait until the log of the daemon in `folder` matches the pattern; returns the group."""
    log = folder / LOG
    deadline = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_text()):
            return match[1]
        time.sleep(_POLL_S)
    raise TimeoutError(f"the log never contained: {pattern}\n{log.read_text()}")


def kill_below(folder: Path) -> None:
    """Kill every process that works in `folder` or below it, as a power failure does."""
    while process_ids := _working_below(folder.resolve()):
        for process in process_ids:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_POLL_S)


def _working_below(folder: Path) -> list[int]:
    processes = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # gone meanwhile, or another user's
            if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(folder):
                processes.append(int(entry.name))
    return processes
