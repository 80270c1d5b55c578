"""Processes of Spark's own, from PySpark's jars. Each works in a folder, by which it and its children are found."""

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
    "SPARK_SCALA_VERSION": "2.13",  # the wheel has no folder from which the scripts could tell
    "PYSPARK_PYTHON": sys.executable,  # of a Connect server's executors
}
LOG = "log"
_LONGEST_S = 180.0
_POLL_S = 0.05


@contextmanager
def daemon(command: Sequence[str], folder: Path, *, host: str, memory: str) -> Iterator[None]:
    """A script of Spark's, run in `folder`, whose servers listen on `host`; what it started ends with it."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **ENVIRONMENT, "JAVA_HOME": str(find_java())}
    environment |= {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": memory}
    environment.pop("SPARK_CONF_DIR", None)  # ours, once a session was open here, lets Spark say errors only
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


def said(folder: Path, pattern: str) -> str:
    """What the pattern's group holds, once the daemon in `folder` has said it."""
    log = folder / LOG
    deadline = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(_POLL_S)
    raise TimeoutError(f"never said: {pattern}\n{log.read_text()}")


def kill_below(folder: Path) -> None:
    """As if the power went: every process that works in `folder`, or in one of its folders, is gone at once."""
    while there := _working_below(folder.resolve()):
        for process in there:
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
