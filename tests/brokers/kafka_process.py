"""A Kafka server in its own JVM: a broker, a controller, or both. Its settings, data and log are in one folder."""

import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.brokers import jvm
from tests.brokers.java_server import JavaServer
from tests.brokers.properties import text

_ARCHIVE_S = 120.0
_TERMINATED = 128 + signal.SIGTERM
"""The exit code of a JVM that SIGTERM has shut down in order."""
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class KafkaProcess(JavaServer):
    """A Kafka server that is not started yet."""

    def __init__(self, version: str, folder: Path, *, options: tuple[str, ...] = ()) -> None:
        """`version` is a key of RELEASES. `folder` is created if it is missing. `options` are options for Java."""
        super().__init__(folder, "broker.log")
        self._version = version
        self._options = options
        self._archive = self.folder / "classes.jsa"

    @property
    def data(self) -> Path:
        """The folder for the data. It remains after a stop or a kill."""
        return self.folder / "logs"

    def start_with(self, config: Mapping[str, str], prepare: Callable[[Path, IO[bytes]], None]) -> None:
        """Start the server with these settings, after `prepare(settings file, log)`.

        Raises:
            JarsNotFound: the jars could not be downloaded.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "server.properties"
        settings.write_text(text(config))
        log4j = self.folder / "log4j.properties"
        log4j.write_text(_LOG4J)
        with self.log.open("ab") as log:
            prepare(settings, log)
        options = (*self._options, f"-Dlog4j.configuration={log4j.as_uri()}")
        self.start(jvm.command(self._version, "kafka.Kafka", str(settings), options=options, archive=self._archive))

    def stop(self) -> None:
        """Stop the server, and keep the archive of classes that it may write when it ends (see `jvm`)."""
        server = self._jvm
        if server is not None and jvm.writes_archive(server.args):
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(_ARCHIVE_S)
        super().stop()
        if server is not None and server.returncode == _TERMINATED and self._archive.exists():
            jvm.keep_archive(self._version, self._archive)
