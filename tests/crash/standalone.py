"""Spark's own cluster manager, from PySpark's jars: a master and two workers, each on a loopback address of its own.

Only where the workers are on different hosts does Spark start a second attempt of a slow task (FINDINGS, 1).
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from resources.java import find_java

HOSTS = ("127.0.0.1", "127.0.0.2")
_HOME = Path(pyspark.__file__).parent
_LONGEST_S = 60.0
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
ENVIRONMENT = {
    "SPARK_HOME": str(_HOME),
    "SPARK_SCALA_VERSION": "2.13",  # the wheel has no folder from which the scripts could tell
    "SPARK_DAEMON_MEMORY": "256m",
}


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The URL of a master whose workers have registered; all end with the block."""
    folder.mkdir(parents=True)
    with ExitStack() as running:
        master = folder / "master.log"
        places = ["--host", HOSTS[0], "--port", "0", "--webui-port", "0"]
        running.enter_context(_daemon("master.Master", places, master))
        url = _said(master, _URL)
        for host in HOSTS:
            log = folder / f"worker-{host}.log"
            places = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            running.enter_context(_daemon("worker.Worker", [*places, "--work-dir", str(folder / host), url], log))
            _said(log, re.compile(r"Successfully registered with master (\S+)"))
        yield url


@contextmanager
def _daemon(name: str, arguments: Sequence[str], log: Path) -> Iterator[None]:
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    environment = {**os.environ, **ENVIRONMENT, "JAVA_HOME": str(find_java())}
    environment.pop("SPARK_CONF_DIR", None)  # ours, once a session was open here, lets Spark say errors only
    with log.open("wb") as file, subprocess.Popen(command, env=environment, stdout=file, stderr=file) as process:
        try:
            yield
        finally:
            process.terminate()


def _said(log: Path, pattern: re.Pattern[str]) -> str:
    deadline = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline:
        if found := pattern.search(log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(f"never said: {pattern.pattern}\n{log.read_text()}")
