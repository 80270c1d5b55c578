"""A YARN cluster with Hadoop's own servers: a ResourceManager and some NodeManagers, each on its own loopback address.

The jars are those with which tests/stores runs HDFS.
"""

import json
import sys
import tarfile
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape

from resources.machines.java import find_java
from tests import short_lived_jvm
from tests.brokers.ports import free_ports
from tests.spark.daemons import HOME, kill_in, server
from tests.spark.standalone import HOSTS
from tests.spark.ui import await_that
from tests.stores import programs

QUEUE = "loads"
_SERVER = "org.apache.hadoop.yarn.server"
_LOG_JARS = ("slf4j-api-*", "log4j-*")
"""Jars of PySpark with which the servers log their errors. Hadoop's servers need them, and its clients do not."""
_JAVA = (
    *short_lived_jvm.OPTIONS,
    "-Xmx256m",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    short_lived_jvm.LOG_RULES,
)
_INTERFACES = ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": QUEUE,
    f"yarn.scheduler.capacity.root.{QUEUE}.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
_TIMEOUT_S = 60.0


class Yarn:
    """A ResourceManager, and a NodeManager on each of HOSTS, with their files in `folder`; a context manager.

    A node has room for one executor of 1 GB, and one of the nodes for the application master too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()
        self._url = ""
        self.configuration = folder / "manager" / "conf"
        """The folder for the variable HADOOP_CONF_DIR."""

    def __enter__(self) -> Self:
        ports = free_ports(len(_INTERFACES))
        addresses = {
            f"yarn.resourcemanager.{name}address": f"{HOSTS[0]}:{port}"
            for name, port in zip(_INTERFACES, ports, strict=True)
        }
        self._url = f"http://{addresses['yarn.resourcemanager.webapp.address']}/ws/v1/cluster"
        with ExitStack() as running:
            self._start(running, "manager", "resourcemanager.ResourceManager", {**addresses, **self._of_manager()})
            for host in HOSTS:
                self._start(running, host, "nodemanager.NodeManager", {**addresses, **self._of_node(host)})
            await_that(self._is_ready)
            self._running = running.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def application(self) -> tuple[str, str]:
        """The state of the only application, and its final status."""
        [application] = self._get("apps")["apps"]["app"]
        return application["state"], application["finalStatus"]

    def working(self) -> int:
        """The number of containers that run on the nodes."""
        return sum(node["numContainers"] for node in self._get("nodes")["nodes"]["node"])

    def kill(self, container: str) -> None:
        """Kill all processes of a container."""
        [folder] = self._folder.glob(f"*/local/usercache/*/appcache/*/{container}")
        kill_in(folder)

    def _start(self, running: ExitStack, name: str, main: str, properties: Mapping[str, str]) -> None:
        folder = self._folder / name
        _write_properties(folder / "conf" / "yarn-site.xml", properties)
        _write_properties(folder / "conf" / "capacity-scheduler.xml", _QUEUES)
        _write_properties(folder / "conf" / "core-site.xml", {"hadoop.tmp.dir": str(folder / "tmp")})
        log_jars = [str(jar) for pattern in _LOG_JARS for jar in (HOME / "jars").glob(f"{pattern}.jar")]
        classpath = ":".join([str(folder / "conf"), *log_jars, f"{programs.hadoop()}/*"])
        (folder / "tmp").mkdir()
        options = (*_JAVA, f"-Djava.io.tmpdir={folder / 'tmp'}")
        command = [str(find_java() / "bin" / "java"), *options, "-cp", classpath, f"{_SERVER}.{main}"]
        running.enter_context(server(command, folder, {}))

    def _of_manager(self) -> dict[str, str]:
        return {
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
            # An application master whose cluster was killed ends soon.
            "yarn.resourcemanager.connect.max-wait.ms": "20000",
            "yarn.resourcemanager.connect.retry-interval.ms": "1000",
            "yarn.node-attribute.fs-store.root-dir": (self._folder / "manager" / "attributes").as_uri(),
        }

    def _of_node(self, host: str) -> dict[str, str]:
        folder = self._folder / host
        return {
            "yarn.nodemanager.address": f"{host}:0",
            "yarn.nodemanager.localizer.address": f"{host}:0",
            "yarn.nodemanager.webapp.address": f"{host}:0",
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(folder / "logs"),
            "yarn.nodemanager.resource.memory-mb": "1792",
            "yarn.nodemanager.disk-health-checker.enable": "false",  # a full disk of this machine is no matter of YARN
        }

    def _is_ready(self) -> bool:
        """Whether all nodes run."""
        try:
            nodes = self._get("nodes")["nodes"]
        except OSError:
            return False  # the ResourceManager starts
        return bool(nodes) and [node["state"] for node in nodes["node"]] == ["RUNNING"] * len(HOSTS)

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/{path}", timeout=_TIMEOUT_S) as answer:
            return json.load(answer)


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    """Write a file of Hadoop's configuration."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    )
    file.write_text(f"<configuration>\n{lines}</configuration>\n")


def write_environment(archive: Path) -> None:
    """Write an archive with `bin/python`, as venv-pack writes one; its Python is the one that runs the tests."""
    program = archive.with_suffix(".python")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(program, "bin/python")
