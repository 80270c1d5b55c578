"""A standalone Spark cluster with PySpark's jars: a master and some workers, each on its own loopback address.

Spark starts a second attempt of a slow task only if there are workers on different hosts (decision D06).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.spark.daemons import await_log, daemon, kill_in

HOSTS = ("127.0.0.1", "127.0.0.2")
_SPARK_CLASS = ("spark-class",)
_MEMORY = "256m"
_FREE_PORTS = ("--port", "0", "--webui-port", "0")


class Standalone:
    """A master and a worker on each of the hosts, with their files in `folder`; a context manager.

    A host has one core, so it runs one executor. A dead executor is replaced only when its host is started again.
    """

    def __init__(self, folder: Path, hosts: Sequence[str] = HOSTS) -> None:
        self._folder = folder
        self._names = hosts
        self._running = ExitStack()
        self._hosts: dict[str, ExitStack] = {}
        self.url = ""

    def __enter__(self) -> Self:
        folder = self._folder / "master"
        command = (*_SPARK_CLASS, "org.apache.spark.deploy.master.Master", "--host", HOSTS[0], *_FREE_PORTS)
        with ExitStack() as running:
            running.enter_context(daemon(command, folder, host=HOSTS[0], memory=_MEMORY))
            self.url = await_log(folder, r"Starting Spark master at (spark://\S+)")
            self._running = running.pop_all()
        self.restart_missing()
        return self

    def __exit__(self, *_: object) -> None:
        for host in list(self._hosts):
            self.kill(host)
        self._running.close()

    def folder(self, host: str) -> Path:
        """The working directory of a host's processes."""
        return self._folder / host

    def kill(self, host: str) -> None:
        """Kill the worker of a host, its executors and their Python processes."""
        kill_in(self.folder(host))
        self._hosts.pop(host).close()

    def restart_missing(self) -> None:
        """Start a worker on each host that has none."""
        missing = [host for host in self._names if host not in self._hosts]
        for host in missing:
            self._hosts[host] = self._worker(host)
        for host in missing:
            await_log(self.folder(host), r"Successfully registered with master (\S+)")

    def _worker(self, host: str) -> ExitStack:
        folder = self.folder(host)
        worker = ("org.apache.spark.deploy.worker.Worker", "--host", host, *_FREE_PORTS)
        resources = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        running = ExitStack()
        running.enter_context(daemon((*_SPARK_CLASS, *worker, *resources, self.url), folder, host=host, memory=_MEMORY))
        return running
