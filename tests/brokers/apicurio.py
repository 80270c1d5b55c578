"""Apicurio, a real schema registry with Confluent's REST API: its archive, and one process that serves it.

Maven Central has it as an archive with all its jars. PySpark's Ivy downloads it once into the user's cache.
"""

import http.client
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from kafka_io.closing import Closing, closed_on_error
from resources.machines.java import find_java
from tests import short_lived_jvm
from tests.brokers.jars import jars_folder
from tests.brokers.java_server import JavaServer
from tests.brokers.ports import HOST, free_ports

VERSION = "3.3.3"
_JAVA = 21  # with an older one it ends with `class file version 65.0`
_START_S = 240.0  # 13 s of CPU, which take minutes on a machine that is busy
_POLL_S = 0.2
_RUNNER = "quarkus-run.jar"
_IVY_FILE = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="penstock" module="registry"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false"
                conf="default->master">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


class ApicurioNotStarted(RuntimeError):
    """The registry ended, or did not answer in time. The message has the end of its log."""


class Apicurio(Closing):
    """A registry that keeps its schemas in memory. A context manager.

    On Linux the kernel kills the registry when the thread that started it ends, so that thread must run as long.
    """

    def __init__(self, folder: Path) -> None:
        self._server = JavaServer(folder, "apicurio.log")
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        """The base URL of Confluent's REST API."""
        return f"http://{HOST}:{self._port}/apis/ccompat/v7"

    def start(self) -> Self:
        """Start the registry, and wait until it answers.

        Raises:
            ApicurioNotStarted: it ended, or did not answer in time.
            JarsNotFound: its archive could not be downloaded.
            JavaNotFound: there is no Java of the required version.
        """
        java = str(find_java(minimum=_JAVA) / "bin" / "java")
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": str(self._port),
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
        }
        options = [f"-D{name}={value}" for name, value in settings.items()]
        runner = str(unpacked_archive() / _RUNNER)
        self._server.start([java, "-Xmx512m", *short_lived_jvm.OPTIONS, *options, "-jar", runner])
        with closed_on_error(self):
            self._wait()
        return self

    def close(self) -> None:
        """Stop the registry. A second call does nothing."""
        self._server.stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if not self._server.runs:
                raise ApicurioNotStarted(f"Apicurio {VERSION} ended. {self._server.log_end()}")
            if self._answers():
                return
            time.sleep(_POLL_S)
        raise ApicurioNotStarted(f"Apicurio {VERSION} did not answer within {_START_S:g} s. {self._server.log_end()}")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=30)
        try:
            connection.request("GET", "/apis/ccompat/v7/subjects")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:  # it does not listen yet
            return False
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self.start()


def unpacked_archive() -> Path:
    """The folder with the unpacked archive. It is downloaded and unpacked if needed."""
    folder = jars_folder(f"apicurio-{VERSION}", _IVY_FILE, types="tar.gz")
    unpacked = folder / "unpacked"
    if not unpacked.exists():
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as tar, tempfile.TemporaryDirectory(dir=folder) as partial:
            tar.extractall(Path(partial) / "all", filter="data")
            with suppress(OSError):  # another process was faster
                (Path(partial) / "all").rename(unpacked)  # a killed process leaves no incomplete folder
    return unpacked
