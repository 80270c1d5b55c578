"""An embedded ZooKeeper server, run from the jars of the package pyspark, for tests and the demo.

It has no access control and serves every process of this machine. Do not use it in production.
"""

import socket
import subprocess
import time
from pathlib import Path
from typing import IO, Self

import click

from kafka_io.closing import Closing, closed_on_error
from kafka_io.errors import LocatedError, RegistryUnavailable, system_reason
from kafka_io.stopping import stop_signals
from kafka_io.zookeeper.session import ZooKeeperSession
from resources.extras import check_extra
from resources.machines.java import find_java
from resources.machines.processes import dying_with_parent, end

_HOST = "127.0.0.1"
_START_S = 60.0
_POLL_S = 0.5
_JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.apache.logging.log4j.level=WARN",
)
# tickTime: a session timeout is at least two ticks. preAllocSize is in KiB; its default is 64 MiB per log file.
_CONFIG = """\
clientPort={port}
clientPortAddress={host}
dataDir={data_dir}
tickTime=500
maxSessionTimeout=60000
maxClientCnxns=0
preAllocSize=1024
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr
"""


class ZooKeeperNotStarted(LocatedError):
    """The server ended, or did not accept sessions in time. The message names its log."""


class ZooKeeperServer(Closing):
    """A server whose data in `data_dir` survives a restart. A context manager.

    On Linux the kernel kills the server when the thread that started it ends, so start it from a thread that lives long
    enough. On other systems, a parent that is killed leaves the server running.
    """

    def __init__(self, port: int | None, data_dir: Path) -> None:
        """Port 0 or None means any free port; `start` chooses it."""
        self.port = port or 0
        self._data_dir = data_dir
        self._jvm: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        """The address for clients: `host:port`."""
        return f"{_HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """The file with all output of the server since its first start."""
        return self._data_dir / "zookeeper.log"

    def start(self) -> Self:
        """Start the server and wait until it accepts sessions.

        Raises:
            ZooKeeperNotStarted: the server ended, or the port is in use.
            ExtraMissing: the jars of PySpark, which contain ZooKeeper, are not installed.
        JavaNotFound: there is no Java to run it.
        """
        check_extra("spark", "the embedded ZooKeeper")
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self.port = _bindable(self.port)
        config = self._data_dir / "zookeeper.cfg"
        # In a properties file of Java, a backslash begins an escape sequence.
        data_dir = str(self._data_dir.resolve()).replace("\\", "\\\\")
        config.write_text(_CONFIG.format(port=self.port, host=_HOST, data_dir=data_dir))
        with self.log.open("ab") as log:
            self._jvm = _start_jvm(config, log)
        with closed_on_error(self):
            self._wait_for_sessions()
        return self

    def close(self) -> None:
        """End the server; safe to call again."""
        if self._jvm is not None:
            end(self._jvm)
            self._jvm = None

    def check(self) -> None:
        """Check that the server still runs.

        Raises:
            ZooKeeperNotStarted: it ended.
        """
        if self._jvm is None or self._jvm.poll() is not None:
            raise ZooKeeperNotStarted(f"ZooKeeper on port {self.port} ended; its log {self.log} says why")

    def _wait_for_sessions(self) -> None:
        """Open sessions until one is accepted. The server answers `ruok` slightly earlier than that (decision D10)."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            self.check()
            try:
                ZooKeeperSession(self.connect, timeout_s=2.0, session_timeout_s=2.0).close()
            except RegistryUnavailable:
                continue
            return
        raise ZooKeeperNotStarted(f"ZooKeeper did not accept a session within {_START_S:g} s; see its log {self.log}")

    def __enter__(self) -> Self:
        return self.start()


def run_foreground(port: int | None, data_dir: Path) -> None:
    """Run a server until SIGTERM or SIGINT, then end it and return. Must be called in the main thread.

    Raises:
        ZooKeeperNotStarted: the server did not start, or ended by itself.
    """
    with stop_signals() as stop_requested, ZooKeeperServer(port, data_dir) as server:
        click.echo(f"ZooKeeper is ready on {server.connect}")
        while not stop_requested():
            server.check()


def _bindable(port: int) -> int:
    """The port to listen on: `port` if it is free, any free port for 0.

    Without this test, clients could connect to a server of somebody else that uses the port already.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise ZooKeeperNotStarted(
                f"ZooKeeper cannot listen on {_HOST} port {port}: {system_reason(error)}"
            ) from error
        return int(probe.getsockname()[1])


def _start_jvm(config: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    import pyspark  # noqa: PLC0415 - it belongs to the extra `spark`

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    java = find_java() / "bin" / "java"
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    return subprocess.Popen(  # noqa: S603 - the Java that was found, with fixed arguments
        [java, *_JVM_OPTIONS, "-cp", str(jars), main, str(config)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        process_group=0,  # Ctrl-C must not reach the server; `close` ends it
        preexec_fn=dying_with_parent(),  # noqa: PLW1509 - it makes two system calls, which were looked up before the fork
    )
