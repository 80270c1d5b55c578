"""The servers of Dagster, as an operator runs them. Tests kill them and start them again."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from resources.machines.processes import dying_with_parent, end
from resources.settings.settings import PATH_VARIABLE
from tests.ui.waiting import until

ROOT = Path(__file__).parents[2]
DAEMON, WEBSERVER, CODE_SERVER = "dagster._daemon", "dagster_webserver", "dagster"
_HOST = "127.0.0.1"
_WORKSPACE = """\
load_from:
  - grpc_server: {{host: {host}, port: {port}, location_name: penstock}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The daemon and the webserver. The context manager ends them and all processes that they started.

    Args:
        home: the folder of their logs.
        dagster_home: the folder of the Dagster instance.
        settings: Penstock's settings file.
        port: the port of the webserver.
        code_port: the port of a code server that both share. Without it they load workspace.yaml: each starts a code
            server of its own, and the daemon a new one each minute.
        has_daemon: whether the daemon runs, too.
        has_webserver: whether the webserver runs.
        module: what the code server loads.
    """

    home: Path
    dagster_home: Path
    settings: Path
    port: int
    code_port: int | None = None
    has_daemon: bool = True
    has_webserver: bool = True
    module: str = "pipelines.definitions"
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    killed: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        if self.code_port:
            self._workspace.write_text(_WORKSPACE.format(host=_HOST, port=self.code_port))
            self.start(CODE_SERVER)
            until(self._code_server_listens, "the code server")
        if self.has_daemon:
            self.start(DAEMON)
        if self.has_webserver:
            self.start(WEBSERVER)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.started.values():
            end(process)
        for process in (*self.started.values(), *self.killed):
            with suppress(ProcessLookupError):  # code servers and runs survive a killed daemon
                os.killpg(process.pid, signal.SIGKILL)

    @property
    def _workspace(self) -> Path:
        return self.home / "workspace.yaml" if self.code_port else ROOT / "workspace.yaml"

    def _code_server_listens(self) -> bool:
        with suppress(OSError), socket.create_connection((_HOST, self.code_port)):
            return True
        return False

    def start(self, name: str) -> None:
        """Start a server."""
        code = ["-m", self.module, "--location-name", "penstock"]
        options = {
            DAEMON: ["run", "-w", str(self._workspace)],
            WEBSERVER: ["-h", _HOST, "-p", str(self.port), "-w", str(self._workspace)],
            CODE_SERVER: ["code-server", "start", "--host", _HOST, "--port", str(self.code_port), *code],
        }
        with (self.home / f"{name}.log").open("ab") as log:
            self.started[name] = subprocess.Popen(
                [sys.executable, "-m", name, *options[name]],
                cwd=ROOT,
                env={**os.environ, "DAGSTER_HOME": str(self.dagster_home), PATH_VARIABLE: str(self.settings)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
            )

    def log(self, name: str) -> str:
        """The output of a server."""
        return (self.home / f"{name}.log").read_text()

    def kill(self, name: str) -> None:
        """Kill a server, but not the processes that it started."""
        process = self.started.pop(name)
        process.kill()
        process.wait()
        self.killed.append(process)

    def code_servers(self, name: str = DAEMON) -> list[psutil.Process]:
        """The code servers that a server started, the newest last."""
        children = psutil.Process(self.started[name].pid).children()
        return sorted(filter(_is_code_server, children), key=psutil.Process.create_time)


def _is_code_server(process: psutil.Process) -> bool:
    try:
        return "grpc" in process.cmdline()
    except psutil.NoSuchProcess:  # the process has ended
        return False
